"""Which figures follow a control, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

from IPython import get_ipython
from ipywidgets import Widget

if TYPE_CHECKING:
    from posenc.lesson.live import Live

# In the order in which they were made. The widget itself would stop calling them at the first that raises.
_followers: WeakKeyDictionary[Widget, WeakValueDictionary[int, Live]] = WeakKeyDictionary()

# What each cell of the notebook shows since it ran last: that run, and the figures, which stay alive with it.
_shown: dict[str | None, tuple[str | None, list[Live]]] = {}


def follow(figure: Live) -> None:
    """Let a figure follow its controls."""
    for control in dict.fromkeys(figure.controls.values()):
        if control not in _followers:
            _followers[control] = WeakValueDictionary()
            control.observe(_moved, "value")
        _followers[control][id(figure)] = figure


def shown(figure: Live) -> None:
    """Keep what a cell shows. What it showed when it ran before, and no other cell shows, follows no more."""
    cell, run = _running_cell()
    last, figures = _shown.get(cell, (run, []))
    if cell is None or run == last:
        _shown[cell] = run, [*figures, figure] if figure not in figures else figures
    else:
        _shown[cell] = run, [figure]
        elsewhere = {id(each) for _, others in _shown.values() for each in others}
        for gone in figures:
            for control in gone.controls.values() if id(gone) not in elsewhere else ():
                _followers[control].pop(id(gone), None)
    follow(figure)


def _running_cell() -> tuple[str | None, str | None]:
    """The cell of the notebook that runs, as far as the page tells, and the message that made it run."""
    parent = getattr(get_ipython(), "get_parent", dict)()
    return parent.get("metadata", {}).get("cellId"), parent.get("header", {}).get("msg_id")


def _moved(change: Mapping) -> None:
    """Move all figures of a control, also those after one that raises."""
    with ExitStack() as stack:
        for figure in reversed([*_followers[change["owner"]].values()]):
            stack.callback(figure.move)
