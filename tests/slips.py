"""Planted mistakes as slips of the pen: what a learner wrote in place of a part, or of all, of a worked solution."""

import inspect
import math
from collections.abc import Callable

import planted  # noqa: F401  registers the exercises
import torch

from posenc.lesson import exercises


def mistakes(**tables: dict[str, str | Callable]) -> list[tuple[str, Callable, str]]:
    """(exercise, wrong answer, words of its message) for each row, words → slip, of the tables of the exercises."""
    return [(name, slip(name, slips[words]), words) for name, slips in tables.items() for words in slips]


def slip(name: str, change: str | Callable) -> Callable:
    """A wrong answer.

    Args:
        name: of the exercise.
        change: `old → new` in the body of the worked solution, more of them after a `;`; or without an arrow what is
            returned, an expression of the arguments and of `result`, which the worked solution returns; or a function.

    Raises:
        ValueError: the worked solution has no such part.
    """
    if callable(change):
        return change
    worked = exercises.find(name).worked
    names = {"math": math, "torch": torch} | worked.__globals__ | {"__name__": "a notebook", "worked": worked}
    first_line, body = inspect.getsource(worked).split("\n", 1)
    if "→" not in change:
        result = f"worked({', '.join(inspect.signature(worked).parameters)})" if "result" in change else None
        body = f"    result = {result}\n    return {change}"
    for part in change.split(";") if "→" in change else ():
        old, new = (text.strip() for text in part.split("→"))
        if old not in body:
            raise ValueError(f"the worked {name} has no {old!r} that could be written wrongly")
        body = body.replace(old, new)
    exec(f"{first_line}\n{body}", names)
    return names[name]
