"""The shell: one module per verb, loaded when it is called. Users see one sentence, never a traceback."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import wraps
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import CommandInfo

from wingspan import __version__

python_warning = warnings.formatwarning
OUTPUTS = ("output", "json", "report")
"""The names of parameters that say where to write; all others may name something to read."""


class Verbs(typer.Typer):
    """The commands, each of which writes over nothing that it reads."""

    def command(self, *names: Any, **options: Any) -> Callable[[Any], Any]:
        """Registers a function as a command; called from Python, the function stays as it is."""
        register = super().command(*names, **options)

        def add(verb: Callable[..., Any]) -> Callable[..., Any]:
            register(careful(verb))
            return verb

        return add


def careful(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refused where a file that it would write is one of its inputs, or where a path is empty."""

    @wraps(verb)
    def checked(**arguments: Any) -> Any:
        if "" in sys.argv and Path() in [path for value in arguments.values() for path in paths_in(value)]:
            raise ValueError("an empty argument where a file or folder is named; write . for this folder")
        for output in (arguments.get(name) for name in OUTPUTS):
            if isinstance(output, Path) and output.is_file():
                from wingspan.corpora.formats import keep_apart

                others = (value for name, value in arguments.items() if name not in OUTPUTS)
                keep_apart(output, (path for value in others for path in paths_in(value)))
        return verb(**arguments)

    return checked


def paths_in(argument: Any) -> Iterator[Path]:
    """The paths that an argument has: itself, or what exists of NAME=FILE,FILE and of a pattern."""
    if isinstance(argument, Path):
        yield argument
    elif isinstance(argument, list):
        for item in argument:
            yield from paths_in(item)
    elif isinstance(argument, str):
        for part in {argument, *argument.partition("=")[2].split(",")} - {""}:
            yield from map(Path, [part] if os.path.exists(part) else glob(part))


app = Verbs(
    name="wingspan",
    help="Named entities out of text: train, predict, score, compare. Start with [bold]wingspan demo[/].",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def show_version(asked: bool) -> None:
    """Prints the version and ends."""
    if asked:
        print(f"wingspan {__version__}")
        raise typer.Exit


@app.callback(help=app.info.help)
def commands(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Keeps the verb in the command line where only one is loaded."""


VERBS = (
    *("demo", "recipes", "train", "predict", "serve", "evaluate", "info", "calibrate", "export"),
    *("score", "compare", "analyze", "experiment", "tune"),
    *("convert", "validate", "split", "leaks", "show", "label-map", "lexicon", "vectors"),
)
"""All commands in the order of the help: models, evaluation, data."""
HOMES = {"info": "recipes", "tune": "experiment"}
"""Modules of the verbs that share one."""


def main() -> None:
    """The entry point: an error in the arguments or files is one sentence and exit code 1."""
    load_verbs(sys.argv[1:2])
    warnings.formatwarning = one_sentence
    try:
        if os.environ.get("WORLD_SIZE", "1") != "1":  # under torchrun other verbs would run once in each process
            if sys.argv[1:2] != ["train"]:
                raise ValueError(
                    "several processes can train together and nothing else; start this one without torchrun"
                )
            os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # torch would warn about intended behavior
        app()
    except (BrokenPipeError, SystemExit) as end:  # `wingspan predict ... | head`: the reader is gone, which is no error
        if not isinstance(end.__context__ or end, BrokenPipeError):  # rich and typer make an exit code 1 of it
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # torch's own; importing torch to name it would cost a second
            raise
        print("wingspan: the GPU's memory is full; use a smaller --batch-size or train.budget", file=sys.stderr)
        sys.exit(1)
    except (ValueError, OSError) as error:
        print(f"wingspan: {describe(error)}", file=sys.stderr)
        sys.exit(1)


def one_sentence(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
    """A warning about a corpus as one line, without the place in the code; others as Python shows them."""
    from wingspan.files import CorpusWarning

    if issubclass(category, CorpusWarning):
        return f"wingspan: {message}\n"
    return python_warning(message, category, *place, **line)


def load_verbs(verbs: list[str]) -> None:
    """Adds the given verbs to the app, or all of them if there are none: each module registers its commands."""
    for verb in verbs if set(verbs) <= set(VERBS) and verbs else VERBS:
        import_module(f"wingspan.cli.{HOMES.get(verb, verb).replace('-', '_')}")

    def order(command: CommandInfo) -> int:
        assert command.callback is not None
        return VERBS.index(command.name or command.callback.__name__.replace("_", "-"))

    app.registered_commands.sort(key=order)


def describe(error: Exception) -> str:
    """An error as one line that starts with the file, if it has one."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{error.filename}: no such file or folder; check the path"
    if isinstance(error, IsADirectoryError) and error.filename:  # a file written under another name is renamed last
        return f"{error.filename2 or error.filename}: a folder of this name is there; name a file"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
