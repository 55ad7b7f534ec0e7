"""`wingspan train`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from wingspan.cli import app, options
from wingspan.cli.options import pairs, trusted, use_threads, whole_numbers


@app.command(
    epilog="Example: wingspan train bundling/bl-span --train train.jsonl --dev dev.jsonl --encoder minilm "
    "--output runs/mine --set train.epochs=3"
)
def train(
    recipe: options.RecipeName,
    output: Annotated[Path, typer.Option(help="Folder for the model, the journal and the states for --resume.")],
    train: Annotated[
        list[Path] | None, typer.Option(help="Training corpus, in any format; may be given several times.")
    ] = None,
    corpora: Annotated[
        Path | None, typer.Option(help="Several corpora for one model: a corpora.toml instead of the files.")
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="Documents that decide which epoch is best.")] = None,
    test: Annotated[Path | None, typer.Option(help="Scored once, at the end, with the best epoch's model.")] = None,
    format: options.CorpusFormat = None,
    encoder: options.EncoderName = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Rounds through the corpus; short for --set train.epochs.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Sentences per batch in training.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The highest learning rate.")] = None,
    set: Annotated[list[str] | None, typer.Option(help="key=value: any setting that `wingspan recipes` shows.")] = None,
    settings: Annotated[Path | None, typer.Option(help="A file of settings, as `wingspan tune` writes it.")] = None,
    seed: options.Seed = 1,
    seeds: Annotated[str | None, typer.Option(help="Several seeds, 1,2,3: mean and deviation at the end.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")] = False,
    start: Annotated[str | None, typer.Option("--from", help="Go on from this model; new labels are added.")] = None,
    rename: Annotated[list[str] | None, typer.Option(help="OLD=NEW: another name for a label of --from.")] = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(help="A model whose chances of spans are learned, too; may be given several times."),
    ] = None,
    parts: options.Parts = None,
    lexicon: Annotated[
        str | None, typer.Option(help="Synonyms for recipes that learn from them: a file, or corpus.")
    ] = None,
    on_leak: options.OnLeakOption = "drop",
    track: Annotated[str | None, typer.Option(help="tensorboard, or another tracker of Accelerate.")] = None,
    json: options.Json = None,
    device: options.Device = None,
    threads: options.Threads = None,
    no_progress: options.NoProgress = False,
) -> None:
    """Trains a recognizer on your corpus and keeps the best epoch's model."""
    from rich.console import Console

    from wingspan.recipe_json import with_settings
    from wingspan.training.corpora import corpora_of
    from wingspan.training.run import TrainingJob, check_warm_start, decide, quick_settings, train_seeds
    from wingspan.views.console import first_process, program, say, write_json

    use_threads(threads)
    printed: Any = {"stderr": json == Path("-"), "quiet": not first_process()}
    console, lines_only = Console(**printed), Console(**printed, force_terminal=False)
    chosen = whole_numbers(seeds) if seeds is not None else [seed]
    encoder, chosen_settings = with_settings(settings, recipe, encoder, pairs(set, "--set"))
    chosen_settings = {**chosen_settings, **quick_settings(epochs, batch_size, learning_rate)}
    check_warm_start(start, rename, encoder, chosen_settings)
    data = corpora_of(train or None, dev, test, format, corpora)
    mine = trusted(parts)
    decided, reason = decide(
        recipe, data, encoder, chosen_settings, console, start=start, parts=mine, taught=bool(teacher)
    )
    job = TrainingJob(
        decided,
        data,
        output,
        reason=reason,
        resume=resume,
        start=start,
        rename=pairs(rename, "--rename"),
        parts=mine,
        device=device,
        track=track,
        lexicon=lexicon,
        on_leak=on_leak,
        teachers=teacher or (),
        bar=lines_only if no_progress else None,
    )
    try:
        figures = train_seeds(job, chosen, console)
    except KeyboardInterrupt:
        again = sys.argv[1:] if resume else [*sys.argv[1:], "--resume"]
        say(console, f"Stopped. Go on from the last state with: {shlex.join([program(), *again])}")
        raise
    folder = output if len(chosen) == 1 else output / f"seed-{chosen[0]}"
    following = shlex.join([program(), "predict", "Some text.", "--model", str(folder)])
    say(console, f"{folder}: the model. Next: {following}")
    if json is not None and figures is not None:
        write_json(figures, json)
