"""The generator of the built-in corpus, `src/wingspan/corpora/demo.jsonl.gz`, which is written by running this file.

Names are drawn anew for the held-out parts most of the time, so that a model has to learn endings and contexts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from wingspan.corpora import demo
from wingspan.corpora.formats import write
from wingspan.text import Document, Entity, Span

SEED = 20
SIZES = {"train": 110, "dev": 20, "test": 35}
"""How many documents each part has."""
KNOWN = 0.3
"""The share of held-out names that are from the training part; training repeats its own names as often."""

# {chemical} and the like are entities; {trial} and {person} have the shapes of gene symbols and eponyms and are none
TITLES = """
Effects of {chemical} on {disease}
{gene} and {gene} in {disease}
A case of {disease} after {chemical}
Role of {gene} in the {part}
Resistance of {organism} to {chemical}
Diagnosis and prognosis of {disease} in the {trial} cohort
"""
SENTENCES = """
{chemical} reduced the severity of {disease} in {number} patients.
We treated {number} patients with {chemical} and {number} with {chemical}.
Expression of {gene} was increased in the {part} of {animals}.
Mutations in {gene} cause {disease}.
{organism} was isolated from the {part} of {number} patients with {disease}.
Loss of {gene} led to {disease} and damage of the {part}.
The {part} was removed within {number} hours, and its database record was separate.
{chemical} inhibits {gene} at moderate doses.
No decrease of {gene} activity was seen in {organism}.
Patients with {disease} had a history of {disease} ({number} of {number}).
{gene} binds {chemical} in the {part}.
{gene}, {gene} and {gene} were found in {organism}.
In {animals}, {chemical} crossed the {part} but not the {part}.
Infection with {organism} was treated with {chemical}, which may induce {disease}.
It is not clear whether {disease} is caused by {organism} or by {chemical}.
The risk of {diseases} was higher than expected.
Patients with {diseases} received {chemical}.
{disease} is a rare disorder of the {part}.
Both {disease} and {disease} responded to {chemical} again.
A deletion in the {gene} gene was associated with {disease} in {animals}.
Overexpression of {gene} in {organism} raised the yield of {chemical}.
Levels of {chemical} in the {part} were measured by HPLC.
The {trial} trial compared {chemical} with placebo in {disease}.
{person} et al. reported that {gene} protects the {part} (Fig. {number}).
Among {number} carriers of {gene} variants, {number} developed {disease}.
{chemical}-resistant {organism} grew on basic medium.
Staining of the {part} for {gene} was positive, e.g. in {disease}.
Our results indicate that {gene} regulates {chemical} uptake in {organism}.
The {part}, the {part} and the {part} were normal.
Neither {chemical} nor {chemical} was toxic to {organism}.
Why {disease} spares the {part} is unknown.
"""
PLAIN = """
The {trial} protocol was approved by the clinical board.
Control animals received saline within {number} hours.
{person} and {person} designed the database and the final protocol.
Results of the {trial} cohort are shown in Table {number}.
The diagnosis was confirmed by PCR, ELISA and a clinical examination.
We thank {person} for a premium license and {person} for moderate criticism.
The {trial} study ended early in this phase, and a symposium was held.
Follow-up was complete for {number} of {number} participants.
Basic and clinical data were separate, as in the {trial} trial.
An increase of the dose again gave no benefit (Table {number}).
A medium with low aroma was prepared by {person} in the final phase.
Prognosis was estimated with the {trial} score of {person}.
"""
ANIMALS = ["mice", "rats", "rabbits", "zebrafish larvae", "human volunteers"]

_SLOT = re.compile(r"\{(\w+)\}")


def generated() -> tuple[tuple[Document, ...], tuple[Document, ...], tuple[Document, ...]]:
    """The documents for training, development and testing: raw text with entities in characters."""
    random = Random(SEED)
    names: dict[str, list[TaggedText]] = {slot: [] for slot in INVENT}
    train = _part("train", _Author(random, names, growing=True))
    held_out = _Author(random, names, growing=False)
    return train, _part("dev", held_out), _part("test", held_out)


def _part(name: str, author: _Author) -> tuple[Document, ...]:
    return tuple(author.document(f"{name}-{number}") for number in range(SIZES[name]))


class _Author:
    """Writes documents with names from a common stock; only training adds to it."""

    def __init__(self, random: Random, names: dict[str, list[TaggedText]], growing: bool) -> None:
        self.random = random
        self.names = names
        self.growing = growing

    def document(self, name: str) -> Document:
        """A title line and some sentences, about one of them without any entity."""
        text = self.fill(self.one_of(TITLES)) + "\n"
        count = self.random.randint(5, 8)
        plain = self.random.randrange(count)
        for number in range(count):
            template = self.one_of(PLAIN if number == plain else SENTENCES)
            text = text + self.fill(template) + (" " if number < count - 1 else "\n")
        return Document(name, text.text, text.entities)

    def one_of(self, templates: str) -> str:
        """One line, each as likely as the others."""
        return self.random.choice(templates.strip().split("\n"))

    def fill(self, template: str) -> TaggedText:
        """The template with names for its slots, and a capital letter at its beginning."""
        filled, at = TaggedText(""), 0
        used: set[str] = set()
        for slot in _SLOT.finditer(template):
            name = self.name(slot[1])
            while name.text in used:
                name = self.name(slot[1])
            used.add(name.text)
            filled = filled + template[at : slot.start()] + name
            at = slot.end()
        filled = filled + template[at:]
        return TaggedText(filled.text[:1].upper() + filled.text[1:], filled.entities)

    def name(self, slot: str) -> TaggedText:
        """The name in a slot: one that was used before, or a new one."""
        if slot in INVENT:
            if self.names[slot] and self.random.random() < KNOWN:
                return self.random.choice(self.names[slot])
            made = INVENT[slot](self.random)
            if self.growing:
                self.names[slot].append(made)
            return made
        if slot == "number":
            return TaggedText(str(self.random.randint(2, 99)))
        if slot == "animals":
            return TaggedText(self.random.choice(ANIMALS))
        if slot == "trial":
            return TaggedText(symbol(self.random))
        return TaggedText(surname(self.random))


# Invented names of diseases, chemicals, genes, organisms and body parts, some nested. Each type has its own endings, as
# in biomedical prose, and shares its shape with words that are not names.


@dataclass(frozen=True)
class TaggedText:
    """A piece of text with the entities in it, by characters."""

    text: str
    entities: tuple[Entity, ...] = ()

    def labeled(self, label: str) -> TaggedText:
        """The same text, as a whole an entity too."""
        return TaggedText(self.text, (*self.entities, Entity.at(label, 0, len(self.text))))

    def __add__(self, other: TaggedText | str) -> TaggedText:
        """One after the other."""
        other = TaggedText(other) if isinstance(other, str) else other
        at = len(self.text)
        moved = (
            Entity(entity.label, tuple(Span(start + at, end + at) for start, end in entity.spans))
            for entity in other.entities
        )
        return TaggedText(self.text + other.text, (*self.entities, *moved))


Invent = Callable[[Random], TaggedText]

_ONSETS = [*"bcdfghklmnprstvz", "br", "dr", "fl", "gr", "pl", "qu", "st", "tr"]
_VOWELS = "aeiou"
_CODAS = ["", "", "", "l", "m", "n", "r", "s", "v", "x"]

ENDINGS = {
    "Chemical": ["mycin", "azole", "idine", "amide", "cillin", "olol", "oxate", "ine"],
    "Genus": ["ella", "bacter", "coccus", "monas", "cystis"],
    "Species": ["ensis", "orum", "ans", "ii", "atus"],
    "Disease": ["itis", "oma", "osis", "opathy", "emia"],
    "Part": ["ium", "ula", "ex", "enchyma"],
    "Adjective": ["al", "ar", "ic", "ine"],
    "Enzyme": ["ase", "in", "ogen"],
    "Surname": ["son", "man", "berg", "well", "ova"],
}
_ORGANS = ["gland", "duct", "cortex", "nerve", "artery", "lobe", "membrane", "epithelium"]
_KNOWN_PARTS = ["liver", "kidney", "lung", "heart", "skin", "spleen", "retina", "colon"]
_GROWTHS = ["carcinoma", "cancer", "fibrosis", "atrophy", "tumor", "inflammation"]
_SALTS = ["sodium", "calcium"]


def stem(random: Random) -> str:
    """A pronounceable beginning of one or two syllables."""
    return "".join(
        random.choice(_ONSETS) + random.choice(_VOWELS) + random.choice(_CODAS) for _ in range(random.randint(1, 2))
    )


def coined(random: Random, kind: str) -> str:
    """A stem with an ending of the kind."""
    ending = random.choice(ENDINGS[kind])
    return stem(random) + (random.choice(_ONSETS) if ending[0] in _VOWELS else "") + ending


def symbol(random: Random) -> str:
    """Capital letters and perhaps a number: a gene's short name, or a trial's."""
    letters = "".join(random.choice("ABCDFGHKLMNPRSTX") for _ in range(random.choice([3, 3, 4])))
    return letters + random.choice(["", "1", "2", "3", "4", "7", "12"])


def surname(random: Random) -> str:
    """A capitalized family name."""
    return coined(random, "Surname").capitalize()


def chemical(random: Random) -> TaggedText:
    """A drug, sometimes a salt or a numbered derivative."""
    name = coined(random, "Chemical")
    shape = random.random()
    if shape < 0.1:
        name = f"{random.choice(_SALTS)} {name}"
    elif shape < 0.2:
        name = f"{random.randint(2, 9)}-{name}"
    return TaggedText(name).labeled("Chemical")


def organism(random: Random) -> TaggedText:
    """Genus and species, sometimes with the genus cut to its initial."""
    genus = coined(random, "Genus").capitalize()
    if random.random() < 0.2:
        genus = genus[0] + "."
    return TaggedText(f"{genus} {coined(random, 'Species')}").labeled("Organism")


def body_part(random: Random) -> TaggedText:
    """An invented part, a part with an invented adjective, or an organ that everybody knows."""
    shape = random.random()
    if shape < 0.25:
        name = random.choice(_KNOWN_PARTS)
    elif shape < 0.5:
        name = coined(random, "Part")
    else:
        name = f"{coined(random, 'Adjective')} {random.choice(_ORGANS)}"
    return TaggedText(name).labeled("Anatomy")


def gene(random: Random) -> TaggedText:
    """A symbol, an enzyme, an enzyme named after its chemical, or a complex of two."""
    shape = random.random()
    if shape < 0.5:
        return TaggedText(symbol(random)).labeled("Gene")
    if shape < 0.7:
        return TaggedText(coined(random, "Enzyme")).labeled("Gene")
    if shape < 0.92:
        return (chemical(random) + random.choice([" synthase", " reductase", " transporter"])).labeled("Gene")
    first, second = TaggedText(symbol(random)).labeled("Gene"), TaggedText(symbol(random)).labeled("Gene")
    return (first + "-" + second + " complex").labeled("Gene")


def disease(random: Random) -> TaggedText:
    """A single word, a family name's syndrome, or named after the part, the gene or the organism in it."""
    shape = random.random()
    if shape < 0.35:
        return TaggedText(coined(random, "Disease")).labeled("Disease")
    if shape < 0.48:
        return TaggedText(f"{surname(random)} {random.choice(['syndrome', 'disease'])}").labeled("Disease")
    if shape < 0.75:
        return (body_part(random) + f" {random.choice(_GROWTHS)}").labeled("Disease")
    if shape < 0.88:
        return (gene(random) + " deficiency").labeled("Disease")
    return (organism(random) + " infection").labeled("Disease")


def coordination(random: Random) -> TaggedText:
    """Two diseases that share their last word: the first one is discontinuous."""
    first, second, growth = body_part(random), body_part(random), random.choice(_GROWTHS)
    whole = first + f" {random.choice(['and', 'or'])} " + (second + f" {growth}").labeled("Disease")
    end = len(whole.text)
    parts = (Span(0, len(first.text)), Span(end - len(growth), end))
    return TaggedText(whole.text, (*whole.entities, Entity("Disease", parts)))


INVENT: dict[str, Invent] = {
    "chemical": chemical,
    "organism": organism,
    "part": body_part,
    "gene": gene,
    "disease": disease,
    "diseases": coordination,
}


if __name__ == "__main__":
    write([document for part in generated() for document in part], demo.FILE, "jsonl")
