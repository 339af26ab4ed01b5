"""Exercises: `check` an answer, `use` what works.

A chapter's exercises are a module of its folder in `posenc.chapters`; importing it registers them. Each is a
function that receives an `Answer` and calls `wrong("what the mistake is")` when it finds one. For an answer
that is right in its own way it may return a word of its own. The functions of the module `worked` beside it, which
have the exercises' names, are the worked solutions.
"""

import copy
import functools
import importlib
import inspect
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from IPython import get_ipython
from torch import Tensor

from posenc.lesson import progress

HANDED_OUT = "worked_solutions"  # the module that a teacher may put beside an assignment
try:  # what the process was started with: no cell can change it
    STRICT = "POSENC_STRICT=1" in Path("/proc/self/environ").read_text(errors="replace").split("\0")
except OSError:  # no Linux
    STRICT = os.environ.get("POSENC_STRICT") == "1"
_COLOURS = {"✓": "\x1b[32m", "✗": "\x1b[31m"}  # green and red, as the page's theme has them


class Wrong(Exception):
    """The answer is wrong; the message says how, in one line."""


class NotAttempted(Exception):
    """The stub still stands."""


def wrong(message: str) -> NoReturn:
    """End a check: the answer is wrong, and this is why."""
    raise Wrong(message)


class Unanswered(NotImplementedError):
    """A cell needs an exercise that is still open. In a notebook it is one line without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Answer:
    """A learner's function, called with care: whatever it does becomes one clear line."""

    def __init__(self, function: Callable):
        self.function = function

    def __call__(self, *inputs: Any) -> Any:
        """Call the function on copies of the inputs.

        Raises:
            NotAttempted: the stub still stands.
            Wrong: it takes other arguments, raised, changed an input or returned None.
        """
        names = self._argument_names(inputs)
        copies = copy.deepcopy(inputs)
        try:
            result = self.function(*copies)
        except (Exception, SystemExit) as error:
            if isinstance(error, Unanswered) or (type(error), str(error)) == (NotImplementedError, "your turn"):
                raise NotAttempted from error  # torch raises NotImplementedError, too
            wrong(f"it raised {type(error).__name__}: {_first_line(error)}{_called_with(names, inputs)}")
        for name, before, after in zip(names, inputs, copies):
            if not _same(before, after):
                wrong(f"it changed its input {name} in place: work on a copy and return a new value")
        if result is None:
            wrong("it returned None: end the function with return")
        return result

    def tensor(self, *inputs: Any, shape: Sequence[int], dtype: torch.dtype = torch.float64) -> Tensor:
        """Call the function and insist on a tensor of this shape and dtype without NaN."""
        result = self(*inputs)
        if isinstance(result, np.ndarray):
            wrong("it returned a NumPy array: stay in torch, or end with torch.from_numpy(…)")
        if not isinstance(result, Tensor):
            wrong(f"it returned {_describe(result)}: return a torch tensor of shape {tuple(shape)}")
        if tuple(result.shape) != tuple(shape):
            called = _called_with(self._argument_names(inputs), inputs)
            wrong(f"the result has shape {tuple(result.shape)}, expected {tuple(shape)}{called}")
        if isinstance(result, torch.nn.Parameter):
            wrong("it returned a Parameter: return a plain tensor, for instance by .detach()")
        if result.dtype != dtype:
            given = any(isinstance(value, Tensor) and value.dtype == dtype for value in inputs)
            mend = "keep the dtype of the inputs" if given else f"make it with dtype={dtype}"
            wrong(f"the result is {result.dtype}, expected {dtype}: {mend}")
        if result.isnan().any():
            look = "0/0, inf - inf, 0·inf, the root of a negative number, or a row in which everything is -inf"
            wrong(f"the result holds NaN: look for {look}")
        return result.detach()

    def number(self, *inputs: Any) -> float:
        """Call the function and insist on one finite number."""
        result = self(*inputs)
        if isinstance(result, (Tensor, np.ndarray, np.generic)) and math.prod(result.shape) == 1:
            result = result.item()
        if isinstance(result, bool) or not isinstance(result, (int, float)):
            wrong(f"it returned {_describe(result)}: return one number")
        try:
            number = float(result)
        except OverflowError:
            wrong("it returned an integer that no float can hold: return a finite number")
        if not math.isfinite(number):
            wrong(f"it returned {result}: return a finite number")
        return number

    def _argument_names(self, inputs: Sequence) -> list[str]:
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # some built-in functions do not tell
            return [f"number {index}" for index in range(len(inputs))]
        try:
            return list(signature.bind(*inputs).arguments)
        except TypeError:
            wrong(f"it takes {signature} but is called with {len(inputs)} arguments: keep the stub's first line")


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers of float64, always the same."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def difference(got: Tensor, right: Tensor) -> str:
    """How a tensor differs from the right one of its shape, for the end of a message.

    By its last digits, by a sign, by a factor, by a summand, or else the first place where it does.
    """
    got, right = got.detach().double(), right.detach().double()
    finite = right.where(right.isfinite(), 0.0).abs()
    size, largest = finite.max().item(), finite.argmax()
    near = functools.partial(torch.allclose, rtol=1e-5, atol=1e-6 * size)
    if torch.allclose(got, right, rtol=0, atol=0.01 * size):
        return "right to a few digits, so don't round, and keep float64 on the way"
    if near(got, -right):
        return "every number has the other sign"
    factor, more = (got / right).flatten()[largest].item(), (got - right).flatten()[largest].item()
    if near(got, factor * right):
        return f"every number is {factor:.3g} times what it should be"
    if near(got - more, right):
        return f"every number is {abs(more):.3g} too {'large' if more > 0 else 'small'}"
    place = (~torch.isclose(got, right, rtol=1e-5, atol=1e-6 * size)).nonzero()[0].tolist()
    return f"at {place} it is {got[tuple(place)]:.3g} and should be {right[tuple(place)]:.3g}"


@dataclass(frozen=True)
class Exercise:
    """What is asked: the checker, the hints from faint to plain, and a word for who gets it right."""

    name: str
    checker: Callable[[Answer], str | None]
    hints: tuple[str, ...]
    well_done: str

    @property
    def chapter(self) -> str:
        """The name of its chapter's folder."""
        return self.checker.__module__.rpartition(".")[0].rpartition(".")[2]

    @property
    def worked(self) -> Callable | None:
        """The worked function; None where its module is not there, as under grading."""
        return _function(self._module_of_worked, self.name)

    def is_worked(self, answer: Any) -> bool:
        """Whether an answer is the worked function, the course's or the one that a teacher handed out."""
        return getattr(answer, "__module__", None) in (self._module_of_worked, HANDED_OUT)

    @property
    def _module_of_worked(self) -> str:
        return f"{self.checker.__module__.rpartition('.')[0]}.worked".removeprefix(".")


_exercises: dict[str, Exercise] = {}


def exercise(*hints: str, well_done: str = "") -> Callable:
    """Make an exercise of a checker; the exercise has the checker's name.

    Args:
        hints: Markdown, from faint to plain; examples in them are doctests and are run by the tests.
        well_done: printed after the tick.

    Raises:
        ValueError: there is an exercise of this name already.
    """

    def register(checker: Callable[[Answer], str | None]) -> Callable[[Answer], str | None]:
        name = checker.__name__
        if name in _exercises:
            raise ValueError(f"two exercises are called {name!r}: rename one")
        _exercises[name] = Exercise(name, checker, hints, well_done)
        return checker

    return register


def check(name: str, answer: Any) -> None:
    """Print whether the answer is right, and if not, why. In the reader's own copy the start page knows it, too.

    ○ not attempted, ✗ wrong, ✓ right. Raises nothing, so that a chapter runs on; with
    POSENC_STRICT=1 in the environment, for grading, all but ✓ raise AssertionError.

    Raises:
        KeyError: there is no exercise of this name.
    """
    asked = find(name)
    verdict, line = _judge(asked, answer)
    print(verdict, _coloured(verdict, f"{name}{line}"))
    if not STRICT:
        progress.note(asked.chapter, name, verdict)
    elif verdict != "✓":
        raise AssertionError(f"{name}{line}")


def use(name: str, answer: Any, *, handed_out: bool = False) -> Any:
    """The learner's function if it passes its check, otherwise the worked one, and a line that says so.

    Args:
        name: of the exercise.
        answer: the learner's function.
        handed_out: whether the notebook is an assignment. Then the answer stays what it is. While it is not attempted,
            a cell that calls it says so in one line; or the worked function takes its place, where the teacher has
            put `worked_solutions.py` beside the notebook. Under grading no function takes its place.

    Raises:
        KeyError: there is no exercise of this name.
    """
    asked = find(name)
    sign, _ = _judge(asked, answer)
    if sign == "✓":
        return answer
    worked = None
    if not STRICT:
        worked = (_function(HANDED_OUT, name) if sign == "○" else None) if handed_out else asked.worked
    if worked is None:
        return _open(name, answer) if sign == "○" and callable(answer) else answer
    print(f"The chapter goes on with the worked {name}.")
    return worked


def find(name: str) -> Exercise:
    """The exercise of this name.

    Raises:
        KeyError: there is none.
    """
    if name not in _exercises:
        raise KeyError(f"no exercise is called {name!r}; there are {', '.join(_exercises)}")
    return _exercises[name]


def _function(module: str, name: str) -> Callable | None:
    """A module's function, if there is this module."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # something that the module imports is missing
            raise
        return None


def _open(name: str, stub: Callable) -> Callable:
    """The stub, which says in one line that it is one when it is called."""

    @functools.wraps(stub)
    def unanswered(*arguments, **options):
        raise Unanswered(f"This cell needs {name}, which is still open: answer the exercise above first.")

    return unanswered


def _judge(asked: Exercise, answer: Any) -> tuple[str, str]:
    """The verdict's sign and the rest of its line."""
    try:
        if not callable(answer):
            wrong(f"pass the function itself, {asked.name}, not {_describe(answer)}")
        if asked.is_worked(answer):
            return "○", ": this is the worked solution; run your own cell first"
        with torch.random.fork_rng(devices=[]):
            word = asked.checker(Answer(answer)) or asked.well_done
    except NotAttempted:
        return "○", ": not attempted yet"
    except Wrong as reason:
        return "✗", f": {reason}"
    return "✓", f": {word}" if word else ""


def _coloured(sign: str, words: str) -> str:
    """The words in the colour of their sign where a notebook shows them, and elsewhere as they are."""
    return f"{_COLOURS[sign]}{words}\x1b[0m" if sign in _COLOURS and get_ipython() else words


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else "no message"


def shown(value: Any) -> str:
    """The value where it fits into a message, else what kind it is."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  a learner's object may raise anything
        return _describe(value)
    return text if len(text) <= 60 and "\n" not in text else _describe(value)


def _called_with(names: Sequence[str], inputs: Sequence) -> str:
    """What it was called with, as far as it can be said in a few words."""
    words = []
    for name, value in zip(names, inputs):
        if isinstance(value, Tensor) and value.dim():
            words.append(f"{name} of shape {tuple(value.shape)}")
        elif isinstance(value, (int, float, str, list, Tensor)):
            words.append(f"{name} = {shown(value)}")
    return f" (called with {', '.join(words)})" if words else ""


def _describe(value: Any) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor):
        return before.shape == after.shape and bool(((before == after) | (before.isnan() & after.isnan())).all())
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(_same(before[key], after[key]) for key in before)
    return callable(before) or before == after
