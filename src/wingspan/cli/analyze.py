"""`wingspan analyze`: one report that explains results, from documents or from a model. Imports torch only with one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from wingspan.box import located
from wingspan.cli import app
from wingspan.cli.compare import name_systems, read_systems
from wingspan.cli.options import BatchSize, Device, Json, NoProgress, Parts, Threads, pairs, trusted, use_threads
from wingspan.cli.score import documents
from wingspan.corpora.formats import keep_apart, write_predictions
from wingspan.evaluation.scores import Scores, recognition
from wingspan.evaluation.transfer import CorpusModel, Transfer, transfer_matrix
from wingspan.text import Document
from wingspan.views.console import say, write_json

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer
    from wingspan.report import ReportOptions
    from wingspan.report.blocks import Section
    from wingspan.training.multi_corpus import CorporaPlan

PREDICTIONS = "predictions.jsonl"  # in the folder of a report on a model
MOST_PERTURBED = 300  # documents; each perturbation is another prediction of all of them
MOST_MAPPED = 300  # test documents of each corpus that are mapped or scored across corpora (Oi and Miwa 2025, Figure 4)
Step = Callable[[str], object]
"""Receives the name of each step, for a person who waits."""


@app.command(
    epilog="Example: wingspan analyze runs/mine test.jsonl --train train.jsonl --output analysis    "
    "Without a model: wingspan analyze --gold test.jsonl --predicted A=a.jsonl --predicted B=b.jsonl --output analysis"
)
def analyze(
    output: Annotated[Path, typer.Option(help="Folder for report.html, figures, tables and predictions.")],
    model: Annotated[str | None, typer.Argument(help="A model folder, a hub id, or wingspan-bio-small.")] = None,
    corpus: Annotated[Path | None, typer.Argument(help="The corpus with the right entities, in any format.")] = None,
    gold: Annotated[Path | None, typer.Option(help="Without MODEL: the corpus with the right entities.")] = None,
    predicted: Annotated[
        list[str] | None,
        typer.Option(help="FILE, NAME=FILE or NAME=FILE,FILE for the runs of one system; may be given several times."),
    ] = None,
    train: Annotated[Path | None, typer.Option(help="The training corpus: more attributes, label conflicts.")] = None,
    format: Annotated[str | None, typer.Option(help="Format of the files; otherwise found by name or content.")] = None,
    predicted_format: Annotated[
        str | None, typer.Option(help="Format of the predictions, if it differs from --format.")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(help="A bucket attribute, or entity:KEY or document:KEY of the corpus; otherwise all attributes."),
    ] = None,
    quantiles: Annotated[
        int | None, typer.Option(min=2, help="This number of buckets of equal size, instead of the papers' intervals.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Bootstrap samples behind intervals and p-values.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Decides every draw.")] = 1,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Gold documents without prediction count as predicted empty.")
    ] = False,
    robustness: Annotated[
        bool, typer.Option("--robustness", help="Predict perturbed documents too, for a chapter on the drop in F1.")
    ] = False,
    skip_representation: Annotated[
        bool, typer.Option("--skip-representation", help="Leave out the chapter on spans, which takes its time.")
    ] = False,
    corpora: Annotated[
        Path | None, typer.Option(help="For a model of several corpora: a corpora.toml, for a chapter on each of them.")
    ] = None,
    transfer: Annotated[
        list[str] | None, typer.Option(help="NAME=MODEL: a model of one of these corpora, to be scored on the others.")
    ] = None,
    json: Json = None,
    batch_size: BatchSize = 32,
    parts: Parts = None,
    device: Device = None,
    threads: Threads = None,
    no_progress: NoProgress = False,
) -> None:
    """Explains results in one HTML report: scores, errors, buckets, calibration, and how a model sees spans."""
    from wingspan.report import ReportOptions, from_documents, report_of
    from wingspan.report.blocks import Subject, Table
    from wingspan.report.html import write_report, write_tables

    console = Console(stderr=json == Path("-"))
    options = ReportOptions(output / "figures", samples, seed, attribute, quantiles)
    with steps(console, not no_progress) as step:
        if model is not None and corpus is not None and gold is None and not predicted:
            from wingspan.recognizer import Recognizer
            from wingspan.report.scores import typing_accuracy
            from wingspan.training.multi_corpus import read_corpora

            use_threads(threads)
            keep_apart(output / PREDICTIONS, [corpus, *([train] if train is not None else [])])
            if transfer and corpora is None:
                raise ValueError("--transfer scores models on other corpora; give these with --corpora corpora.toml")
            singles = pairs(transfer, "--transfer", "bc5cdr=runs/bc5cdr")
            step("reading")
            recognizer = Recognizer.from_pretrained(model, device=device, parts=trusted(parts))
            recipe = recognizer.recipe
            truth = documents(corpus, format)
            plan = read_corpora(corpora) if corpora is not None else None
            training = documents(train, format) if train is not None else None
            step("predicting")
            predict = partial(recognizer.predict, batch_size=batch_size)
            found = list(tracked(recognizer.predict_stream(truth, batch_size=batch_size), len(truth), step))
            remove_report(output)
            output.mkdir(parents=True, exist_ok=True)
            write_predictions(found, output / PREDICTIONS)
            subject = Subject.of(truth, {recipe.name: [found]}, training)
            typing = recipe.protocol == "typing"
            sections = [typing_accuracy(subject, recipe.name)] if typing else from_documents(subject, options, step)
            if plan is not None:
                step("corpora")
                sections.append(across_corpora(recognizer, plan, singles, batch_size))
            if robustness and not typing:
                from wingspan.report.errors import robustness as drops_of
                from wingspan.report.errors import robustness_chapter

                step("perturbing")
                every = -(-len(truth) // MOST_PERTURBED)
                drops = drops_of(predict, truth[::every], predicted=found[::every], seed=seed)
                sections.append(robustness_chapter(drops, len(truth[::every])))
            sections += inner_chapters(
                recognizer, located(model), truth, plan, output, options, step, batch_size, skip_representation
            )
            title, sources = f"{recipe.name} on {corpus.stem}", {"model": str(model), "corpus": corpus.name}
        elif model is None and corpus is None and gold is not None and predicted:
            step("reading")
            named = name_systems(predicted)
            truth = documents(gold, format)
            systems = read_systems(named, truth, predicted_format or format)
            training = documents(train, format) if train is not None else None
            subject = Subject.of(truth, systems, training, allow_missing=allow_missing)
            remove_report(output)
            sections = from_documents(subject, options, step)
            title = f"{gold.stem}: {', '.join(named)}"
            files = {name: ", ".join(path.name for path in paths) for name, paths in named.items()}
            sources = {"gold": gold.name, **files}
        else:
            raise ValueError("give MODEL and CORPUS, or --gold GOLD with --predicted FILE once or several times")
        report = report_of(title, subject, sections, sources)
        step("writing")
        write_tables(report, output / "tables")
        write_report(report, output / "report.html")  # last: a folder with a report.html is complete
    if json is not None:
        tables = {
            block.name: {
                "caption": block.caption,
                "columns": [column.name for column in block.columns],
                "rows": [list(row) for row in (*block.rows, *block.totals)],
            }
            for block in report.blocks()
            if isinstance(block, Table)
        }
        write_json(tables, json)
    say(console, str(output / "report.html"))


def remove_report(output: Path) -> None:
    """Removes an earlier report from the folder, its page first; predictions stay, for they may be an input."""
    page = output / "report.html"
    if page.is_file():
        files = [path for kind in ("tables/*.csv", "figures/*.svg", "figures/*.png") for path in output.glob(kind)]
        for path in (page, output / "collected.npz", *files):
            path.unlink(missing_ok=True)


@contextmanager
def steps(console: Console, progress: bool = True) -> Iterator[Step]:
    """Shows the current step, on a terminal only."""
    if not (progress and console.is_terminal):
        yield lambda _: None
        return
    with console.status("starting") as status:
        yield status.update


def tracked(documents: Iterable[Document], total: int, step: Step) -> Iterator[Document]:
    """Counts the predicted documents for a person who waits."""
    for number, document in enumerate(documents, 1):
        if number % 10 == 0:
            step(f"predicting: {number:,} of {total:,} documents")
        yield document


# With a model: collected spans, generated entities, several corpora.


def inner_chapters(
    recognizer: Recognizer,
    folder: Path,
    gold: Sequence[Document],
    plan: CorporaPlan | None,
    output: Path,
    options: ReportOptions,
    step: Step,
    batch_size: int,
    skip_representation: bool,
) -> Iterator[Section]:
    """The representation of spans, the words that decoders write where the run kept them, the recipe and training."""
    from wingspan.objectives.generation import Generation
    from wingspan.recipe import made_by
    from wingspan.recipe_json import as_json
    from wingspan.report.model import training_chapter
    from wingspan.training.state import load_phase

    recipe = recognizer.recipe
    generates = any(made_by(term.objective) is Generation for term in recipe.terms.values())
    kept = sorted((folder / "state").glob("phase-*/learner.safetensors"))
    generator = load_phase(folder, len(kept), device=recognizer.device) if generates and kept else None
    if not skip_representation:
        step("collecting spans")
        others = [corpus for corpus in plan.corpora if corpus.role != "target"] if plan is not None else []
        rows = [*gold, *(document for corpus in others for document in corpus.test[:MOST_MAPPED])]
        yield collected(generator or recognizer, rows, output, options.seed, folder)
    if generator is not None:
        from wingspan.report.generation import generation_chapter, generation_of, regenerate

        step("writing entities again")
        tasks = generation_of(generator).tasks
        yield generation_chapter(
            {task: regenerate(generator, gold, task=task, batch_size=batch_size) for task in tasks}
        )
    parameters = sum(parameter.numel() for parameter in recognizer.learner.parameters())
    facts = {"system": recipe.paper, "parameters": parameters, **recognizer.facts}
    yield training_chapter(as_json(recipe), facts, folder / "journal.jsonl", options.figures)


def collected(recognizer: Recognizer, rows: Sequence[Document], output: Path, seed: int, folder: Path) -> Section:
    """The chapter on spans, whose rows are kept as a file; a model without spans gets a remark.

    A generator's posterior means are collected as latents (Nguyen et al. 2023, Figure 2).
    """
    from wingspan.objectives.generation import Generation
    from wingspan.report.blocks import Prose, Section
    from wingspan.report.collect import collect, read_label_rows
    from wingspan.report.model import representation

    generators = [term for term in recognizer.learner.objectives.values() if isinstance(term, Generation)]
    latent = (lambda vectors: generators[0].latent(vectors)[0]) if generators else None
    try:
        spans = collect(recognizer, rows, seed=seed, latent=latent)
    except ValueError as error:
        return Section("representation", "Representation", [Prose((str(error),))])
    spans.save(output / "collected.npz")
    return representation(spans, output / "figures", read_label_rows(folder, recognizer.recipe, recognizer.labels))


def across_corpora(model: Recognizer, plan: CorporaPlan, transfer: Mapping[str, str], batch_size: int) -> Section:
    """Every corpus in its own labels and in the target's, and the classes of every corpus on every other one."""
    from wingspan.report.scores import corpora_chapter
    from wingspan.training.finish import mapped_scores

    own: dict[str, Scores] = {}
    mapped: dict[str, Scores] = {}
    for corpus in plan.corpora:
        if not corpus.test:
            continue
        if corpus.name in model.labels.types:
            predicted = model.predict(corpus.test, batch_size=batch_size, dataset=corpus.name)
            own[corpus.name] = recognition(corpus.test, predicted)
        if (in_target := mapped_scores(model, corpus.test, corpus.name, plan)) is not None:
            mapped[corpus.name] = in_target
    return corpora_chapter(plan.label_map, own, mapped, transfers(model, plan, transfer, batch_size))


def transfers(model: Recognizer, plan: CorporaPlan, transfer: Mapping[str, str], batch_size: int) -> list[Transfer]:
    """The matrix, where there is a label map and every corpus has its own classes."""
    from wingspan.recognizer import Recognizer

    if plan.label_map is None or plan.heads != "own":
        return []
    labels = {corpus.name: corpus.labels for corpus in plan.corpora}
    gold = {corpus.name: corpus.test[:MOST_MAPPED] for corpus in plan.corpora if corpus.test}
    if unknown := [name for name in transfer if name not in labels]:
        raise ValueError(f"--transfer {unknown[0]}=...: no such corpus; there are {', '.join(labels)}")
    models: dict[str, CorpusModel] = {}
    for name in plan.labels.types:
        if name in transfer:
            single = Recognizer.from_pretrained(transfer[name], device=str(model.device))
            block = block_of(single, name, labels[name])
            models[name] = partial(single.predict, batch_size=batch_size, dataset=block)
        elif not transfer and name in model.labels.types:
            models[name] = partial(model.predict, batch_size=batch_size, dataset=name)
    return transfer_matrix(models, gold, labels, plan.label_map)


def block_of(model: Recognizer, corpus: str, labels: Collection[str]) -> str | None:
    """The name of the corpus if the model has classes of that name; None if its only ones share labels with it."""
    block = corpus if corpus in model.labels.types else model.labels.target
    if not set(model.labels.types[block]) & set(labels):
        raise ValueError(
            f"--transfer {corpus}=...: this model knows none of the labels of {corpus!r} ({', '.join(labels)}); "
            f"give one that was trained on it"
        )
    return block if block == corpus else None
