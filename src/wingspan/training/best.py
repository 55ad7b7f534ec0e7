"""Keeps the best model of a run: in its folder where there is one, else in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from wingspan.checkpoint import predictor, read_json, read_weights
from wingspan.recognizer import Recognizer
from wingspan.training.loop import Progress, Run


class Best:
    """Looks at every progress and saves when it is the best so far."""

    def __init__(
        self, run: Run, folder: Path | None, facts: dict[str, Any], device: torch.device, *, saves: bool = True
    ) -> None:
        self.run = run
        self.folder = folder
        self.facts = facts
        self.device = device
        self.saves = saves  # of several processes one
        self.weights: dict[str, torch.Tensor] | None = None

    def look_at(self, progress: Progress) -> None:
        """Saves the model when it is the best so far."""
        if not progress.best:
            return
        if progress.scores is not None:
            self.facts["dev"] = progress.scores.to_dict()
        if self.folder is not None:
            if self.saves:
                self._recognizer().save_pretrained(self.folder)
        else:
            self.weights = {name: value.detach().cpu().clone() for name, value in self.run.learner.state_dict().items()}

    def model(self) -> Recognizer:
        """The best model, ready to predict."""
        encoder = self.run.learner.model.encoder
        if self.folder is not None:  # also where an earlier process saved it, before a kill
            encoder.settle()
            read_weights(self.folder / "model.safetensors", predictor(self.run.learner))
            self.facts |= read_json(self.folder / "facts.json")
        elif self.weights is not None:
            self.run.learner.load_state_dict(self.weights)
            encoder.settle()
        self.run.learner.eval()
        return self._recognizer()

    def _recognizer(self) -> Recognizer:
        run = self.run
        return Recognizer(run.recipe, run.labels, run.learner, device=self.device, facts=self.facts)
