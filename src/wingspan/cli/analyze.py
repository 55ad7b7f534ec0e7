"""The command that explains results: `analyze`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.compare import name_systems, read_systems
from wingspan.cli.options import BatchSize, Device, Json, Parts, Threads, pairs, trusted, use_threads
from wingspan.cli.score import documents
from wingspan.corpora.formats import write as save
from wingspan.evaluation.comparison import Comparison
from wingspan.evaluation.scores import Scores, recognition
from wingspan.evaluation.transfer import Predict, Transfer, transfer_matrix
from wingspan.text import Document

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer
    from wingspan.report import Asked, Step
    from wingspan.report.blocks import Report, Section
    from wingspan.report.collect import Latent
    from wingspan.training.multi_corpus import CorporaPlan


class Chapter(StrEnum):
    """What needs the model once more."""

    robustness = "robustness"
    representation = "representation"


@app.command(
    epilog="Example: wingspan analyze runs/mine test.jsonl --train train.jsonl --output analysis    "
    "Without a model: wingspan analyze --gold test.jsonl --predicted A=a.jsonl --predicted B=b.jsonl --output analysis"
)
def analyze(
    output: Annotated[Path, typer.Option(help="Folder for report.html, figures, tables and predictions.")],
    model: Annotated[str | None, typer.Argument(help="A model folder or hub id.")] = None,
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
        typer.Option(help="A bucket attribute, entity:KEY or document:KEY for what the corpus says; otherwise all."),
    ] = None,
    quantiles: Annotated[
        int | None, typer.Option(min=2, help="So many buckets of equal size, instead of the papers' intervals.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Bootstrap samples behind intervals and p-values.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Decides every draw.")] = 1,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Gold documents without prediction count as predicted empty.")
    ] = False,
    skip: Annotated[list[Chapter] | None, typer.Option(help="Leave out this chapter, which takes its time.")] = None,
    corpora: Annotated[
        Path | None, typer.Option(help="Of a model of several corpora: a corpora.toml, for a chapter on each of them.")
    ] = None,
    transfer: Annotated[
        list[str] | None, typer.Option(help="NAME=MODEL: a model of one of these corpora, to be scored on the others.")
    ] = None,
    json: Json = None,
    batch_size: BatchSize = 32,
    parts: Parts = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Explains results in one HTML report: scores, errors, buckets, calibration, and how a model sees spans."""
    from rich.console import Console

    from wingspan.views.console import write_json

    console = Console(stderr=json == Path("-"))
    skipped = [name.value for name in skip or []]
    settings = Settings(format, predicted_format, samples, seed, attribute, quantiles, allow_missing, skipped)
    if model is not None and corpus is not None and gold is None and not predicted:
        use_threads(threads)

        if transfer and corpora is None:
            raise ValueError("--transfer scores models on other corpora; give these with --corpora corpora.toml")
        models = pairs(transfer, "--transfer", "bc5cdr=runs/bc5cdr")
        report = analyze_model(
            model,
            corpus,
            output,
            train,
            settings,
            console,
            batch_size=batch_size,
            parts=trusted(parts),
            device=device,
            several=Several(corpora, models, device) if corpora is not None else None,
        )
    elif model is None and corpus is None and gold is not None and predicted:
        report = analyze_documents(gold, predicted, output, train, settings, console)
    else:
        raise ValueError("give MODEL and CORPUS, or --gold GOLD with --predicted FILE once or several times")
    if json is not None:
        write_json(figures_of(report), json)
    console.print(f"{output / 'report.html'}", highlight=False, markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Settings:
    """What is asked for besides the files."""

    format: str | None = None
    predicted_format: str | None = None
    samples: int = 1000
    seed: int = 1
    attributes: Sequence[str] | None = None
    quantiles: int | None = None
    allow_missing: bool = False
    skip: Sequence[str] = ()

    def chapters(self, output: Path) -> Asked:
        """What the chapters on documents are told."""
        from wingspan.report import Asked

        return Asked(output / "figures", self.samples, self.seed, self.attributes, self.quantiles)


def analyze_documents(
    gold: Path, predicted: Sequence[str], output: Path, train: Path | None, settings: Settings, console: Console
) -> Report:
    """Gold and predicted documents are enough for most chapters; a system is FILE, NAME=FILE or NAME=FILE,FILE,..."""
    from wingspan.report import from_documents, report_of
    from wingspan.report.blocks import Subject

    named = name_systems(predicted)
    with steps(console) as step:
        step("reading")
        subject = Subject.of(
            documents(gold, settings.format),
            read_systems(named, settings.predicted_format or settings.format),
            documents(train, settings.format) if train else None,
            allow_missing=settings.allow_missing,
        )
        forget_the_last(output)
        sections = from_documents(subject, settings.chapters(output), step)
        sources = {"gold": gold.name, **{name: ", ".join(path.name for path in paths) for name, paths in named.items()}}
        report = report_of(f"{gold.stem}: {', '.join(named)}", subject, sections, sources)
        step("writing")
        write(report, output)
    return report


def forget_the_last(output: Path) -> None:
    """Removes what an earlier report left in the folder, its page first; predictions stay, for they may be an input."""
    page = output / "report.html"
    if page.is_file():
        page.unlink()
        left = [path for kind in ("tables/*.csv", "figures/*.svg", "figures/*.png") for path in output.glob(kind)]
        for path in (output / "collected.npz", *left):
            path.unlink(missing_ok=True)


def write(report: Report, output: Path) -> None:
    """The tables, then the page: a folder with a report.html is complete."""
    from wingspan.report.html import write_report, write_tables

    write_tables(report, output / "tables")
    write_report(report, output / "report.html")


def write_comparison(
    comparison: Comparison, predicted: Sequence[str], path: Path, train: Path | None, settings: Settings
) -> None:
    """The report of `wingspan compare --report`: one file."""
    from wingspan.report import Asked, from_documents, report_of
    from wingspan.report.blocks import Subject
    from wingspan.report.html import write_report

    found = read_systems(name_systems(predicted), settings.predicted_format or settings.format)
    training = documents(train, settings.format) if train else None
    subject = Subject.of(comparison.gold, found, training, allow_missing=settings.allow_missing)
    sections = from_documents(subject, Asked(comparison=comparison))
    write_report(report_of(" and ".join(found), subject, sections, {}, folder=False), path)


def figures_of(report: Report) -> dict[str, Any]:
    """Every table of the report as plain data."""
    from wingspan.report.blocks import Table

    return {
        block.name: {
            "caption": block.caption,
            "columns": [column.name for column in block.columns],
            "rows": [list(row) for row in (*block.rows, *block.totals)],
        }
        for block in report.blocks()
        if isinstance(block, Table)
    }


@contextmanager
def steps(console: Console) -> Iterator[Step]:
    """Says what is being worked on, on a terminal only."""
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("starting") as status:
        yield lambda name: status.update(name)


# --- `wingspan analyze MODEL CORPUS`: predictions, collected spans, perturbed documents, and the report on them.


MOST_PERTURBED = 300
"""How many documents are perturbed: each perturbation is another prediction of all of them."""


def analyze_model(
    model: str,
    corpus: Path,
    output: Path,
    train: Path | None,
    settings: Settings,
    console: Console,
    *,
    batch_size: int = 32,
    parts: Sequence[str] = (),
    device: str | None = None,
    several: Several | None = None,
) -> Report:
    """Predicts the corpus and looks at documents, spans and the training; predictions and span rows are kept.

    With `several`, there is a chapter on its corpora, and their test documents are among the spans.
    """
    from wingspan.recognizer import Recognizer
    from wingspan.report import from_documents, report_of
    from wingspan.report.blocks import Subject
    from wingspan.report.scores import typed

    with steps(console) as step:
        step("reading")
        recognizer = Recognizer.from_pretrained(model, device=device, parts=parts)
        gold = documents(corpus, settings.format)
        plan = several.plan() if several is not None else None
        training = documents(train, settings.format) if train else None
        step("predicting")
        found = recognizer.predict(gold, batch_size=batch_size)
        forget_the_last(output)
        output.mkdir(parents=True, exist_ok=True)
        save(found, output / "predictions.jsonl")
        name = recognizer.recipe.name
        subject = Subject.of(gold, {name: [found]}, training)
        if recognizer.recipe.protocol == "typing":
            sections = [typed(subject, name)]
        else:
            sections = [*from_documents(subject, settings.chapters(output), step)]
        if several is not None and plan is not None:
            step("corpora")
            sections.append(across_corpora(recognizer, plan, several, batch_size))
        sections += chapters(recognizer, Path(model), gold, output, settings, batch_size, step, plan)
        report = report_of(f"{name} on {corpus.stem}", subject, sections, {"model": str(model), "corpus": corpus.name})
        step("writing")
        write(report, output)
    return report


def chapters(
    recognizer: Recognizer,
    folder: Path,
    gold: Sequence[Document],
    output: Path,
    settings: Settings,
    batch_size: int,
    step: Step,
    plan: CorporaPlan | None = None,
) -> Iterator[Section]:
    """The chapters that need the model."""
    from wingspan.recipe_json import to_record
    from wingspan.report.model import perturbed, robustness, trained
    from wingspan.report.writing import generation_of, regenerate, writing

    figures = output / "figures"
    if "robustness" not in settings.skip and recognizer.recipe.protocol == "recognition":
        step("perturbing")
        chosen = gold[:: -(-len(gold) // MOST_PERTURBED)]

        def predict(documents: Sequence[Document]) -> Sequence[Document]:
            return recognizer.predict(documents, batch_size=batch_size)

        yield perturbed(robustness(predict, chosen, seed=settings.seed), len(chosen))
    writer = with_decoders(folder, recognizer)
    if "representation" not in settings.skip:
        step("collecting spans")
        rows = [*gold, *sampled(plan)] if plan is not None else gold
        yield collected(writer or recognizer, rows, output, figures, settings.seed, folder)
    if writer is not None:
        step("writing entities again")
        tasks = generation_of(writer).tasks
        yield writing({task: regenerate(writer, gold, task=task, batch_size=batch_size) for task in tasks})
    journal = folder / "journal.jsonl"
    parameters = sum(parameter.numel() for parameter in recognizer.learner.parameters())
    facts = {"system": recognizer.recipe.paper, "parameters": parameters, **recognizer.facts}
    yield trained(to_record(recognizer.recipe), facts, journal if journal.is_file() else None, figures)


def with_decoders(folder: Path, recognizer: Recognizer) -> Recognizer | None:
    """The model with the decoders of its training, where the recipe has them and the run kept them."""
    from wingspan.objectives.generation import Generation
    from wingspan.training.state import load_phase

    objectives = [term.objective for term in recognizer.recipe.terms.values()]
    generates = any(isinstance(part, partial) and part.func is Generation for part in objectives)
    kept = sorted((folder / "state").glob("phase-*/learner.safetensors"))
    if not generates or not kept:
        return None
    return load_phase(folder, len(kept), device=recognizer.device)


def collected(
    recognizer: Recognizer, gold: Sequence[Document], output: Path, figures: Path, seed: int, folder: Path
) -> Section:
    """The rows about spans, kept as a file, and what they show; a model without spans is said to have none."""
    from wingspan.report.blocks import Prose, Section
    from wingspan.report.collect import collect, read_label_rows
    from wingspan.report.representation import representation

    try:
        rows = collect(recognizer, gold, seed=seed, latent=latents(recognizer))
    except ValueError as error:
        return Section("representation", "Representation", [Prose((str(error),))])
    rows.save(output / "collected.npz")
    return representation(rows, figures, read_label_rows(folder, recognizer.recipe, recognizer.labels))


def latents(recognizer: Recognizer) -> Latent | None:
    """The posterior means of a generator, where there is one (000, Figure 2)."""
    from wingspan.objectives.generation import Generation
    from wingspan.report.writing import generation_of

    if not any(isinstance(objective, Generation) for objective in recognizer.learner.objectives.values()):
        return None
    generation = generation_of(recognizer)
    return lambda vectors: generation.latent(vectors)[0]


# --- The part of `wingspan analyze` that is about several corpora: each of them, and what one is worth for another.


MOST_ROWS = 300
"""How many test rows of each corpus are mapped or scored across corpora, as in paper 004's Figure 4."""


@dataclass(frozen=True)
class Several:
    """What is asked about several corpora."""

    corpora: Path
    """A `corpora.toml`."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Models of single corpora, by corpus, for scores across corpora; without them the model's own blocks answer."""
    device: str | None = None

    def plan(self) -> CorporaPlan:
        """The corpora with their documents."""
        from wingspan.training.multi_corpus import read_corpora

        return read_corpora(self.corpora)


def sampled(plan: CorporaPlan) -> list[Document]:
    """Test rows of the auxiliary corpora, some of each."""
    return [document for corpus in plan.corpora if corpus.role != "target" for document in corpus.test[:MOST_ROWS]]


def across_corpora(model: Recognizer, plan: CorporaPlan, several: Several, batch_size: int) -> Section:
    """Every corpus in its own labels and in the target's, and every block of classes on every corpus."""
    from wingspan.report.corpora import corpora_chapter
    from wingspan.training.finish import mapped_scores

    own: dict[str, Scores] = {}
    mapped: dict[str, Scores] = {}
    for corpus in plan.corpora:
        if not corpus.test:
            continue
        known = corpus.name if corpus.name in model.labels.types else None
        if known is not None:
            own[corpus.name] = recognition(
                corpus.test, model.predict(corpus.test, batch_size=batch_size, dataset=known)
            )
        in_targets = mapped_scores(model, corpus.test, corpus.name, plan)
        if in_targets is not None:
            mapped[corpus.name] = in_targets
    return corpora_chapter(plan.label_map, own, mapped, transfers(model, plan, several, batch_size))


def transfers(model: Recognizer, plan: CorporaPlan, several: Several, batch_size: int) -> list[Transfer]:
    """The matrix, where there is a label map and more than one corpus to be asked."""
    from wingspan.recognizer import Recognizer

    if plan.label_map is None or plan.heads != "own":
        return []
    labels = {corpus.name: corpus.labels for corpus in plan.corpora}
    gold = {corpus.name: corpus.test[:MOST_ROWS] for corpus in plan.corpora if corpus.test}
    models: dict[str, Predict] = {}
    for name in plan.labels.types:
        if several.models and name in several.models:
            single = Recognizer.from_pretrained(several.models[name], device=several.device)
            models[name] = answering(single, block_of(single, name, labels[name]), batch_size)
        elif not several.models and name in model.labels.types:
            models[name] = answering(model, name, batch_size)
    unknown = [name for name in several.models if name not in labels]
    if unknown:
        raise ValueError(f"--transfer {unknown[0]}=...: no such corpus; there are {', '.join(labels)}")
    return transfer_matrix(models, gold, labels, plan.label_map)


def block_of(model: Recognizer, corpus: str, labels: Collection[str]) -> str | None:
    """The block of a model that is of this corpus: the one of its name, or the only one, if it has such labels."""
    block = corpus if corpus in model.labels.types else model.labels.target
    if not set(model.labels.types[block]) & set(labels):
        raise ValueError(
            f"--transfer {corpus}=...: this model knows none of the labels of {corpus!r} ({', '.join(labels)}); "
            f"give one that was trained on it"
        )
    return block if block == corpus else None


def answering(model: Recognizer, dataset: str | None, batch_size: int) -> Predict:
    """A model that answers in the labels of one corpus, or of its target."""

    def predict(documents: Sequence[Document]) -> list[Document]:
        return model.predict(documents, batch_size=batch_size, dataset=dataset)

    return predict
