"""`wingspan analyze MODEL CORPUS`: predictions, collected spans, perturbed documents, and the report on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from wingspan.analysis.collect import Latent, collect
from wingspan.analysis.generated import generation_of, regenerate
from wingspan.analysis.label_rows import read_label_rows
from wingspan.analysis.report.blocks import Prose, Report, Section
from wingspan.analysis.report.building import Step, from_documents, report_of
from wingspan.analysis.report.model_chapters import perturbed, trained
from wingspan.analysis.report.representation import representation
from wingspan.analysis.report.subject import Subject
from wingspan.analysis.report.typing import typed
from wingspan.analysis.report.writing import writing
from wingspan.analysis.robustness import robustness
from wingspan.corpora import write as save
from wingspan.corpora.several import CorporaPlan
from wingspan.objectives.generation import Generation
from wingspan.recognizer import Recognizer
from wingspan.record import to_record
from wingspan.runs.analyze import Settings, forget_the_last, steps, write
from wingspan.runs.analyze_corpora import Several, across_corpora, sampled
from wingspan.runs.score import documents
from wingspan.text import Document
from wingspan.training.phases import load_phase

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
    try:
        rows = collect(recognizer, gold, seed=seed, latent=latents(recognizer))
    except ValueError as error:
        return Section("representation", "Representation", [Prose((str(error),))])
    rows.save(output / "collected.npz")
    return representation(rows, figures, read_label_rows(folder, recognizer.recipe, recognizer.labels))


def latents(recognizer: Recognizer) -> Latent | None:
    """The posterior means of a generator, where there is one (000, Figure 2)."""
    if not any(isinstance(objective, Generation) for objective in recognizer.learner.objectives.values()):
        return None
    generation = generation_of(recognizer)
    return lambda vectors: generation.latent(vectors)[0]
