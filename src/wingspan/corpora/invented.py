"""Invented names of diseases, chemicals, genes, organisms and body parts, some inside others. None of them is real.

Each type has endings of its own, as in biomedical prose, and shares its shape with words that are no names at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from wingspan.text import Entity, Span


@dataclass(frozen=True)
class Mention:
    """A piece of text with the entities in it, by characters."""

    text: str
    entities: tuple[Entity, ...] = ()

    def labeled(self, label: str) -> Mention:
        """The same text, as a whole an entity too."""
        return Mention(self.text, (*self.entities, Entity.at(label, 0, len(self.text))))

    def __add__(self, other: Mention | str) -> Mention:
        """One after the other."""
        other = Mention(other) if isinstance(other, str) else other
        at = len(self.text)
        moved = (
            Entity(entity.label, tuple(Span(start + at, end + at) for start, end in entity.spans))
            for entity in other.entities
        )
        return Mention(self.text + other.text, (*self.entities, *moved))


Invent = Callable[[Random], Mention]

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


def chemical(random: Random) -> Mention:
    """A drug, sometimes a salt or a numbered derivative."""
    name = coined(random, "Chemical")
    shape = random.random()
    if shape < 0.1:
        name = f"{random.choice(_SALTS)} {name}"
    elif shape < 0.2:
        name = f"{random.randint(2, 9)}-{name}"
    return Mention(name).labeled("Chemical")


def organism(random: Random) -> Mention:
    """Genus and species, sometimes with the genus cut to its initial."""
    genus = coined(random, "Genus").capitalize()
    if random.random() < 0.2:
        genus = genus[0] + "."
    return Mention(f"{genus} {coined(random, 'Species')}").labeled("Organism")


def body_part(random: Random) -> Mention:
    """An invented part, a part with an invented adjective, or an organ that everybody knows."""
    shape = random.random()
    if shape < 0.25:
        name = random.choice(_KNOWN_PARTS)
    elif shape < 0.5:
        name = coined(random, "Part")
    else:
        name = f"{coined(random, 'Adjective')} {random.choice(_ORGANS)}"
    return Mention(name).labeled("Anatomy")


def gene(random: Random) -> Mention:
    """A symbol, an enzyme, an enzyme named after its chemical, or a complex of two."""
    shape = random.random()
    if shape < 0.5:
        return Mention(symbol(random)).labeled("Gene")
    if shape < 0.7:
        return Mention(coined(random, "Enzyme")).labeled("Gene")
    if shape < 0.92:
        return (chemical(random) + random.choice([" synthase", " reductase", " transporter"])).labeled("Gene")
    first, second = Mention(symbol(random)).labeled("Gene"), Mention(symbol(random)).labeled("Gene")
    return (first + "-" + second + " complex").labeled("Gene")


def disease(random: Random) -> Mention:
    """A single word, a family name's syndrome, or named after the part, the gene or the organism in it."""
    shape = random.random()
    if shape < 0.35:
        return Mention(coined(random, "Disease")).labeled("Disease")
    if shape < 0.48:
        return Mention(f"{surname(random)} {random.choice(['syndrome', 'disease'])}").labeled("Disease")
    if shape < 0.75:
        return (body_part(random) + f" {random.choice(_GROWTHS)}").labeled("Disease")
    if shape < 0.88:
        return (gene(random) + " deficiency").labeled("Disease")
    return (organism(random) + " infection").labeled("Disease")


def coordination(random: Random) -> Mention:
    """Two diseases that share their last word: the first one is discontinuous."""
    first, second, growth = body_part(random), body_part(random), random.choice(_GROWTHS)
    whole = first + f" {random.choice(['and', 'or'])} " + (second + f" {growth}").labeled("Disease")
    end = len(whole.text)
    parts = (Span(0, len(first.text)), Span(end - len(growth), end))
    return Mention(whole.text, (*whole.entities, Entity("Disease", parts)))


INVENT: dict[str, Invent] = {
    "chemical": chemical,
    "organism": organism,
    "part": body_part,
    "gene": gene,
    "disease": disease,
    "diseases": coordination,
}
