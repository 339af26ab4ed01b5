"""Instruments for models that are not the course's own: what they do with positions, found from outside."""

from posenc.probe.asking import (
    Questions,
    effects,
    energies,
    orthogonal_texts,
    questions,
    score_table,
    tabulate,
)
from posenc.probe.inside import scores
from posenc.probe.turned import Rotation, rotation

__all__ = [
    "Questions",
    "Rotation",
    "effects",
    "energies",
    "orthogonal_texts",
    "questions",
    "rotation",
    "score_table",
    "scores",
    "tabulate",
]
