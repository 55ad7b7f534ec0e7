"""A predictor for processes that loads no model: it finds the first word of a text, or dies, as the text says."""

from __future__ import annotations

import os
import time

from wingspan.scale import Failure
from wingspan.text import Document, Entity

POISON, STUMBLE, SLOW = "poison", "stumble", "slow"


class FirstWords:
    def __init__(self, job) -> None:
        if job.model == "unlucky":
            os._exit(9)
        if job.model == "wrong":
            raise ValueError("wrong: no such model")

    def __call__(self, batch, rows):
        return rows.answered(batch, [self.answer(document) for document in rows.documents(batch)])

    def answer(self, document):
        if document is None or not document.text:
            return document
        if document.text == POISON:
            os._exit(9)
        if document.text == SLOW:
            time.sleep(0.05)
        if document.text == STUMBLE:
            return Failure("stumbled")
        return Document("", document.text, (Entity.at("First", 0, len(document.text.split()[0])),))
