"""What a lesson says and what was measured.

    claim("turned, the score depends on m − n alone", drift, below=1e-12)
    ✓ turned, the score depends on m − n alone: 2.2e-16 < 1e-12

A claim's line is the sentence, what was measured, and the bound. `parse` reads a stored line back. A cell shows its
claims when it ends, or when one fails: one or two as lines, more as a table that is folded. What was measured can be
left out where stored outputs are compared: `MEASURED` finds it between two `MARK`s, invisible characters, in the text,
and by its markup in the HTML, from which a reader copies.
"""

from __future__ import annotations

import functools
import html
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from IPython import get_ipython
from IPython.display import display

MARK = "\u2063"  # an invisible separator; it stands before and after what was measured
MEASURED = r"\u2063[^\u2063]*\u2063|<b class=.measured.*?</b>"  # as a regular expression
_JOINER = "\u2060"  # invisible too; it tells the case of a loop from a bracket in the sentence

MOST_VALUES = 32  # that one claim shows; more are a tensor to reduce, not one number per seed
DEFAULTS = {"SEED": 0, "PACE": 1.0, "STEPS": 1.0}  # what a reader changes to run a chapter another way


@dataclass(frozen=True)
class Claim:
    """A sentence, what was measured for it, and whether that keeps the bound.

    Attributes:
        sentence: what is claimed.
        case: which of the cases of a loop it is, or an empty string.
        values: what was measured; several are one per seed.
        relation: "<", ">", "in" (both ends included) or "=".
        bound: one number, or the two ends for "in".
        at_least: in how many of the values it must hold, or None for all.
        several: one value per seed, even if there is but one seed.
    """

    sentence: str
    case: str
    values: tuple[float, ...]
    relation: str
    bound: tuple[float, ...]
    at_least: int | None = None
    several: bool = False

    @property
    def count(self) -> int:
        """In how many of the values it holds."""
        return sum(map(self._holds, self.values))

    @property
    def held(self) -> bool:
        """Whether it holds in as many values as it must."""
        return self.count >= (self.at_least or len(self.values))

    @property
    def measured(self) -> str:
        """What was measured, in words."""
        shown = " ".join(self.shown)
        return f"{shown}, {self.count} of {len(self.values)}" if self.several else shown

    @property
    def shown(self) -> list[str]:
        """Each value in as few digits as tell it."""
        return [number(value, *self.bound) for value in self.values]

    @property
    def required(self) -> str:
        """What it must be, in words."""
        bound = f"{self.relation} {' … '.join(map(_exact, self.bound))}"
        needed = f" (at least {self.at_least})" if self.at_least else " (all)"
        return bound + (needed if self.several else "")

    def __str__(self) -> str:
        case = f" ({_JOINER}{self.case})" if self.case else ""
        return f"{_sign(self)} {self.sentence}{case}: {MARK}{self.measured}{MARK} {self.required}"

    __repr__ = __str__

    def _holds(self, value: float) -> bool:
        first, last = self.bound[0], self.bound[-1]
        return {"<": value < first, ">": value > first, "in": first <= value <= last, "=": value == first}[
            self.relation
        ]


GREY = "color:var(--jp-content-font-color2, inherit)"
LINES = 2  # claims of a cell that are shown as lines; more are a table


def bundle(claims: Sequence[Claim]) -> dict[str, str]:
    """What a cell shows of its claims, by kind: the text has a line for each, in their order."""
    written = "".join(map(_line, claims)) if len(claims) <= LINES else _table(claims)
    return {"text/plain": "\n".join(map(str, claims)), "text/html": f'<div class="claimed">{written}</div>'}


def _line(made: Claim) -> str:
    case = f" ({html.escape(made.case)})" if made.case else ""
    return (
        f'<div style="padding:1px 0">{_badge(made)} {html.escape(made.sentence)}{case}: '
        f'<b class="measured">{made.measured}</b> <span style="{GREY}">{html.escape(made.required)}</span></div>'
    )


def _table(claims: Sequence[Claim]) -> str:
    """A row for each claim; the cases of a sentence below it, the values of the seeds beside each other."""
    held = sum(made.held for made in claims)
    said = f"{len(claims)} measured here, {'all' if held == len(claims) else held} held"
    rows = ""
    for sentence in dict.fromkeys(made.sentence for made in claims):
        cases = [made for made in claims if made.sentence == sentence]
        if cases[0].case:
            rows += f'<tr><th colspan="3" style="{CELL}">{html.escape(sentence)}</th></tr>'
        rows += "".join(map(_row, cases))
    return (
        f'<details{"" if held == len(claims) else " open"}><summary style="cursor:pointer">{said}</summary>'
        f'<table style="margin:4px 0">{rows}</table></details>'
    )


CELL = "text-align:left;vertical-align:top"


def _row(made: Claim) -> str:
    sign, words = "✓" if made.held else _badge(made), html.escape(made.case or made.sentence)
    numbers = [*made.shown, f"{made.count} of {len(made.values)}"] if made.several else made.shown
    values = " ".join(f'<span style="display:inline-block;min-width:3.5em">{shown}</span>' for shown in numbers)
    return (
        f'<tr><td style="{CELL}{";padding-left:1.5em" if made.case else ""}">{sign} {words}</td>'
        f'<td style="{CELL}"><b class="measured" style="font-weight:normal">{values}</b></td>'
        f'<td style="{CELL};{GREY}">{html.escape(made.required)}</td></tr>'
    )


def _badge(made: Claim) -> str:
    # White on a dark colour of its own reads on any theme's background; without styles the sign stays.
    colour, word = ("#2e7d32", "holds") if made.held else ("#b71c1c", "does not hold")
    return (
        f'<span role="img" aria-label="{word}" style="background:{colour};color:#fff;border-radius:3px;'
        f'padding:0 .3em;font-size:.85em;font-weight:bold">{_sign(made)}</span>'
    )


_claimed: list[Claim] = []  # by the cell that runs, and not shown yet


def _show(*_: object) -> None:
    """Show what the cell claimed. IPython calls it when the cell has run, and what it shows still belongs to it."""
    if _claimed:
        display(bundle(_claimed), raw=True)
        _claimed.clear()


def make(
    sentence: str,
    value: object,
    *,
    below: float | None = None,
    above: float | None = None,
    between: tuple[float, float] | None = None,
    equals: float | None = None,
    in_at_least: int | None = None,
    case: object = None,
) -> Claim:
    """The claim that `claim` shows, with its arguments, and its TypeError and ValueError."""
    case = "" if case is None else str(case)
    for name, words in {"sentence": sentence, "case": case}.items():
        require_line(name, words)
    if not sentence:
        raise ValueError("the sentence is empty: say what is claimed")
    several, values = _values(value)
    relation, bound = _bound(below=below, above=above, between=between, equals=equals)
    if in_at_least is not None:
        if not several:
            raise ValueError("in_at_least counts values: pass one number per seed, or leave it out")
        if type(in_at_least) is not int or not 1 <= in_at_least <= len(values):
            raise ValueError(f"in_at_least is {in_at_least!r}; it must be 1 to {len(values)}")
    return Claim(sentence, case, values, relation, bound, in_at_least, several)


@functools.wraps(make, assigned=())  # its arguments
def claim(*measured, **bound) -> None:
    """Show a sentence with what was measured and its bound, ✓ where the bound holds and ✗ where it does not.

    In a notebook it is shown with the other claims of its cell, below what else the cell shows.

    Args:
        sentence: what is claimed.
        value: a number, or one number per seed as a list or a tensor of one dimension.
        below, above, between, equals: the bound, one of them; the ends of `between` are included.
        in_at_least: in how many of several values the bound must hold; in all, unless it is given.
        case: for a claim in a loop, which of its cases this is.

    Raises:
        AssertionError: the bound does not hold, where the notebook's SEED, PACE and STEPS have their defaults.
            Where they are changed, or POSENC_REPLICATE=1 is in the environment, the ✗ is shown and that is all.
        TypeError: value or bound is not a number, or not one per seed.
        ValueError: value is NaN or empty, there are two bounds or none, or in_at_least fits no values.
    """
    made = make(*measured, **bound)
    shell, fails = get_ipython(), not made.held and not _goes_on(sys._getframe(1).f_globals)
    if shell:
        _claimed.append(made)
        shell.events.register("post_run_cell", _show)  # once, however often it is asked for
    else:
        print(made)
    if fails:
        _show()
        raise AssertionError(str(made).replace(MARK, "").replace(_JOINER, ""))


_LINE = re.compile(
    rf"[✓✗] (?P<sentence>.+?)(?: \({_JOINER}(?P<case>.+)\))?: {MARK}(?P<values>[^,{MARK}]+)(?P<several>, [^{MARK}]+)?{MARK}"
    r" (?P<relation>[<>=]|in) (?P<bound>\S+)(?: … (?P<end>\S+))?(?: \((?:at least (?P<at_least>\d+)|all)\))?"
)


def parse(line: str) -> Claim | None:
    """The claim that a line of text shows, its values as they are shown, or None if it shows no claim.

    Raises:
        ValueError: the line's sign is not what its numbers say.
    """
    found = _LINE.fullmatch(line)
    if not found:
        return None
    made = Claim(
        sentence=found["sentence"],
        case=found["case"] or "",
        values=tuple(map(_read, found["values"].split())),
        relation=found["relation"],
        bound=tuple(_read(end) for end in (found["bound"], found["end"]) if end),
        at_least=int(found["at_least"]) if found["at_least"] else None,
        several=bool(found["several"]),
    )
    # 20.047 is shown as 20.05, and 20.05 would be shown as 20.1: digits are taken as they stand
    if re.sub(rf"{MARK}[^,{MARK}]+", lambda _: MARK + found["values"], str(made), count=1) != line:
        raise ValueError(f"this line does not say what its numbers do: {line}")
    return made


def number(value: float, *bounds: float) -> str:
    """A measured value in as few digits as tell it: three, or two with a power of ten.

    There are more where it would seem to be a small integer that it is not (0.9996), and always as many as it takes
    to stand to each bound as the value does.
    """
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    for digits in range(3, 18):
        shown = _rounded(value, digits)
        read = float(shown)
        if math.isinf(read):  # rounded beyond the largest float
            continue
        seems_integer = digits < 7 and abs(read) <= 100 and read.is_integer() and read != value
        if not seems_integer and all(_side(read, bound) == _side(value, bound) for bound in bounds):
            return shown
    return _tidy(repr(value))


def _rounded(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    power = math.floor(math.log10(abs(value)))
    if -3 <= power < 6:
        shown = f"{value:.{max(0, digits - 1 - power)}f}"
        return shown.rstrip("0").rstrip(".") if "." in shown else shown
    mantissa, _, power = f"{value:.{digits - 2}e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(power)}"


def _exact(bound: float) -> str:
    """A bound, with all its digits."""
    if isinstance(bound, float) and bound.is_integer() and abs(bound) < 1e6:
        return str(int(bound))
    return _tidy(repr(bound))


def _tidy(shown: str) -> str:
    """1e-05 as 1e-5 and 1e+16 as 1e16."""
    return re.sub(r"e([+-])0*", lambda found: "e" + found[1].strip("+"), shown)


def _read(shown: str) -> float:
    return int(shown) if re.fullmatch(r"-?\d+", shown) else float(shown)


def _side(value: float, bound: float) -> int:
    return (value > bound) - (value < bound)


def _sign(made: Claim) -> str:
    return "✓" if made.held else "✗"


def require_line(name: str, words: object) -> None:
    if not isinstance(words, str):
        raise TypeError(f"the {name} is {_kind(words)}: write it as a text")
    if "\n" in words or MARK in words or _JOINER in words:
        raise ValueError(f"the {name} must be one line of text: {words!r}")


def _values(value: object) -> tuple[bool, tuple[float, ...]]:
    """Whether there may be several, and the numbers."""
    if isinstance(value, Mapping):
        raise TypeError("the value is a dict: claim each of its values with case=name, or pass a list of them")
    several = isinstance(value, (list, tuple))
    if not several and hasattr(value, "tolist"):  # a tensor, or an array or a number of NumPy
        value = value.tolist()
        several = isinstance(value, list)
    values = []
    for one in value if several else [value]:
        one = one.tolist() if hasattr(one, "tolist") else one
        if isinstance(one, list):
            reduced = "reduce it, for instance by abs().max(), to one number, or to one number per seed"
            raise TypeError(f"the value has more than one dimension: {reduced}")
        values.append(_number("value", one))
    if not values:
        raise ValueError("the value is empty: nothing was measured")
    if len(values) > MOST_VALUES:
        raise ValueError(f"{len(values)} values are too many to show: reduce them, for instance by abs().max()")
    return several, tuple(values)


def _bound(**bounds: object) -> tuple[str, tuple[float, ...]]:
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    if len(given) != 1:
        raise ValueError(f"give one bound of {', '.join(bounds)}, not {' and '.join(given) or 'none'}")
    ((name, bound),) = given.items()
    relation = {"below": "<", "above": ">", "between": "in", "equals": "="}[name]
    if name != "between":
        return relation, (_number(name, bound, finite=True),)
    if not isinstance(bound, (tuple, list)) or len(bound) != 2:
        raise TypeError(f"between takes two numbers, (low, high), not {_kind(bound)}")
    low, high = (_number(name, end, finite=True) for end in bound)
    if low >= high:
        raise ValueError(f"between takes (low, high), and {_exact(low)} is not less than {_exact(high)}")
    return relation, (low, high)


def _number(name: str, value: object, *, finite: bool = False) -> float:
    if isinstance(value, bool):
        raise TypeError(f"{name} is {value}: measure or count, so that a number is shown")
    if not isinstance(value, (int, float)):
        hint = ": bounds are written in the cell, so a measured one goes into the value" if finite else ""
        raise TypeError(f"{name} is {_kind(value)}, not a number{hint}")
    if math.isnan(value) or (finite and math.isinf(value)):
        raise ValueError(f"{name} is {value}: look for 0/0, inf - inf, or a mean of nothing")
    return value + 0.0 if isinstance(value, float) else int(value)  # 0.0 for -0.0


def _kind(value: object) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _goes_on(caller: Mapping[str, object]) -> bool:
    """Whether a claim that does not hold is shown and no more."""
    shell = get_ipython()
    names = shell.user_ns if shell else caller
    changed = any(names.get(name, default) != default for name, default in DEFAULTS.items())
    return changed or os.environ.get("POSENC_REPLICATE") == "1"
