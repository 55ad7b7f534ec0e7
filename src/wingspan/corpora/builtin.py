"""The corpus of `wingspan demo` and of the tests: biomedical-looking English, generated, always the same.

Nested and some discontinuous entities of five types. Names are drawn anew for the held-out parts most of the time, so
that a model has to learn endings and contexts; a dictionary of the training names finds the smaller half only.
"""

from __future__ import annotations

from functools import cache
from random import Random

import regex

from wingspan.corpora.invented import INVENT, Mention, surname, symbol
from wingspan.text import Document

SEED = 20
SIZES = {"train": 110, "dev": 20, "test": 35}
"""How many documents each part has."""
KNOWN = 0.3
"""How often a held-out name is one of the training part; training draws its own again as often."""

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

_SLOT = regex.compile(r"\{(\w+)\}")


@cache
def corpus() -> tuple[tuple[Document, ...], tuple[Document, ...], tuple[Document, ...]]:
    """The documents for training, development and testing: raw text with entities in characters."""
    random = Random(SEED)
    names: dict[str, list[Mention]] = {slot: [] for slot in INVENT}
    train = _part("train", _Author(random, names, growing=True))
    held_out = _Author(random, names, growing=False)
    return train, _part("dev", held_out), _part("test", held_out)


def _part(name: str, author: _Author) -> tuple[Document, ...]:
    return tuple(author.document(f"{name}-{number}") for number in range(SIZES[name]))


class _Author:
    """Writes documents with names of a common stock; only training adds to it."""

    def __init__(self, random: Random, names: dict[str, list[Mention]], growing: bool) -> None:
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

    def fill(self, template: str) -> Mention:
        """The template with names for its slots, and a capital letter at its beginning."""
        filled, at = Mention(""), 0
        used: set[str] = set()
        for slot in _SLOT.finditer(template):
            name = self.name(slot[1])
            while name.text in used:
                name = self.name(slot[1])
            used.add(name.text)
            filled = filled + template[at : slot.start()] + name
            at = slot.end()
        filled = filled + template[at:]
        return Mention(filled.text[:1].upper() + filled.text[1:], filled.entities)

    def name(self, slot: str) -> Mention:
        """What stands in a slot: a name that was used before, or a new one."""
        if slot in INVENT:
            if self.names[slot] and self.random.random() < KNOWN:
                return self.random.choice(self.names[slot])
            made = INVENT[slot](self.random)
            if self.growing:
                self.names[slot].append(made)
            return made
        if slot == "number":
            return Mention(str(self.random.randint(2, 99)))
        if slot == "animals":
            return Mention(self.random.choice(ANIMALS))
        if slot == "trial":
            return Mention(symbol(self.random))
        return Mention(surname(self.random))
