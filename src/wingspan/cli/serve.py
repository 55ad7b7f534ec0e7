"""`wingspan serve`: models behind HTTP, with a page to try them."""

import json
import logging
import math
import os
import signal
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from wingspan.box import EXAMPLES, chosen
from wingspan.cli import app
from wingspan.cli.options import ComputeIn, Device, Parts, Threads, trusted, use_threads
from wingspan.serving import KEY_VARIABLE, Settings
from wingspan.views.console import say

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer

START = "WINGSPAN_SERVE"  # the environment variable in which each of several processes finds what to serve
LOCAL = ("127.0.0.1", "localhost", "::1")


@app.command(epilog="Example: wingspan serve runs/mine, then open http://127.0.0.1:8000")
def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="Model folders or hub ids, or NAME=FOLDER; otherwise wingspan-bio-small."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for other machines.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at; 0 for a free one.")] = 8000,
    api_key: Annotated[
        str | None, typer.Option(envvar=KEY_VARIABLE, help="Clients must send this key; best as the variable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A web site whose pages may ask, such as https://example.org.")
    ] = None,
    body_limit: Annotated[int, typer.Option(min=1, help="The most bytes of a request.")] = Settings.body_limit,
    text_limit: Annotated[int, typer.Option(min=1, help="The most characters of a text.")] = Settings.text_limit,
    texts_limit: Annotated[int, typer.Option(min=1, help="The most texts of a request.")] = Settings.texts_limit,
    time_limit: Annotated[
        float, typer.Option(min=0.1, help="Seconds until a request is given up.")
    ] = Settings.time_limit,
    queue: Annotated[int, typer.Option(min=1, help="The most requests that wait.")] = Settings.queue,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="About how many tokens are predicted at once; otherwise by the device.")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the port, each with the models.")] = 1,
    parts: Parts = None,
    device: Device = None,
    precision: ComputeIn = "auto",
    threads: Threads = None,
) -> None:
    """Serves models over HTTP, with a page to try them."""
    settings = Settings(
        api_key=api_key or None,
        allow_origins=tuple(allow_origin or ()),
        body_limit=body_limit,
        text_limit=text_limit,
        texts_limit=texts_limit,
        time_limit=time_limit,
        queue=queue,
        batch_tokens=batch_tokens,
        example=None if models else " ".join(EXAMPLES),
    )
    try:
        import uvicorn

        from wingspan.serving.service import service
    except ImportError as error:
        raise ValueError(
            f"{error.name} is needed to serve and is not installed; install it with: pip install 'wingspan-ner[serve]'"
        ) from None
    loading: dict[str, Any] = {"device": device, "precision": precision}
    check_address(host, port)
    use_threads(threads)
    places = named(models or [chosen(None)])
    loaded = load_models(places, parts, **loading)  # whatever is wrong with a model is said here, once
    console = Console(stderr=True)
    if host not in LOCAL and settings.api_key is None:
        say(console, f"note: everybody who reaches {host} may ask; set a key in {KEY_VARIABLE} to change that")
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    shown = f"[{host}]" if ":" in host else host
    say(console, f"{', '.join(loaded)}: http://{shown}:{port or '(a free port)'}; end with Ctrl+C")
    options: dict[str, Any] = {"host": host, "port": port, "access_log": False, "log_config": None}
    # at the end, answers may take their time; a client that never finishes its request may not
    options |= {"server_header": False, "timeout_graceful_shutdown": math.ceil(time_limit) + 5}
    if processes == 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # uvicorn raises the signal again after it has ended well
        uvicorn.run(service(loaded, settings), **options)
        return
    del loaded  # each process loads its own
    start = {"models": places, "parts": list(map(str, parts or [])), "threads": threads, **loading}
    os.environ[START] = json.dumps({"start": start, "settings": asdict(settings)})
    uvicorn.run("wingspan.cli.serve:from_environment", factory=True, workers=processes, **options)


def check_address(host: str, port: int) -> None:
    """Says that an address cannot be had before models are loaded for it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        raise ValueError(f"cannot listen at {host}, port {port} ({error.strerror}); choose another --port") from None


def from_environment() -> Any:
    """The application of one of several processes."""
    from wingspan.serving.service import service

    logging.basicConfig(format="%(asctime)s %(process)d %(message)s", level=logging.INFO)
    given = json.loads(os.environ[START])
    start, settings = given["start"], given["settings"]
    use_threads(start.pop("threads"))
    settings["allow_origins"] = tuple(settings["allow_origins"])
    parts = list(map(Path, start.pop("parts"))) or None
    return service(load_models(start.pop("models"), parts, **start), Settings(**settings))


def named(models: list[str]) -> dict[str, str]:
    """Where each model is, by its name: NAME=FOLDER, or the last part of a folder or hub id."""
    places: dict[str, str] = {}
    for argument in models:
        name, equals, place = argument.partition("=")
        if not equals or Path(argument).exists():
            name, place = Path(argument).resolve().name or argument, argument
        if not name or name in places:
            raise ValueError(f"two models are called {name!r}; name them, as in first={place}")
        places[name] = place
    return places


def load_models(places: dict[str, str], parts: list[Path] | None, **options: Any) -> dict[str, "Recognizer"]:
    """The models, ready to predict."""
    import wingspan

    if parts:
        options["parts"] = trusted(parts)
    loaded = {name: wingspan.load(place, **options) for name, place in places.items()}
    for name, recognizer in loaded.items():
        if recognizer.recipe.protocol == "typing":
            raise ValueError(
                f"{name} types given spans and finds none itself, so there is nothing to serve; name another"
            )
    return loaded
