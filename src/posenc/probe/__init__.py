"""Instruments for models that are not the course's own: what they do with positions, found from outside.

Nothing here needs Jupyter or matplotlib; importing it loads torch alone.
"""

from posenc.probe.agreement import Agreement, Calls, agreement
from posenc.probe.asking import (
    Questions,
    effects,
    energies,
    orthogonal_texts,
    questions,
    score_table,
    tabulate,
)
from posenc.probe.convention import Convention, convention
from posenc.probe.inside import scores, some_tokens
from posenc.probe.loss import Ranking, best_convention, conventions
from posenc.probe.turned import Rotation, rotation

__all__ = [
    "Agreement",
    "Calls",
    "Convention",
    "Questions",
    "Ranking",
    "Rotation",
    "agreement",
    "best_convention",
    "convention",
    "conventions",
    "effects",
    "energies",
    "orthogonal_texts",
    "questions",
    "rotation",
    "score_table",
    "scores",
    "some_tokens",
    "tabulate",
]
