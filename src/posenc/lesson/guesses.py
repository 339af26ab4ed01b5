"""A guess before the measurement: `predict` asks, and `compare` of what it returns answers.

What is stored shows the question with its options, and below the figure the question with what was measured. A web
page makes buttons of the options; the reasons that it then shows stand in the data of the answer's HTML.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence

import ipywidgets as widgets
from IPython.display import display

from posenc.lesson.claims import require_line

RUN = "Run this cell to answer."
STYLE = (  # it is the reader's own moment, so larger than the claims beside it
    "border-left:4px solid #1976d2;padding:2px 0 2px 12px;font-size:var(--jp-content-font-size2, "
    "1.1em);line-height:1.5;color:var(--jp-content-font-color1, inherit)"
)


class Guess:
    """A question with buttons for its options, and the lines below that compare the choice with what was measured.

    Attributes:
        question, options, several: as given to `predict`.
        chosen: the options that are chosen now.
        buttons: one for each option; a button's text says whether it is chosen.
    """

    def __init__(self, question: str, options: Sequence[str], several: bool) -> None:
        self.question, self.options, self.several = question, tuple(options), several
        wide = {"width": "auto", "max_width": "100%"}
        self.buttons = [widgets.ToggleButton(tooltip=option, layout=wide) for option in self.options]
        self._lines: list[_Comparison] = []
        self._exclusive = False  # one choice is taking the place of another
        for button in self.buttons:
            button.observe(self._choose, "value")
        self._write()
        many = " Choose all that apply." if several else ""
        asked = widgets.HTML(f"<strong>{html.escape(question)}</strong>{many}")
        self.view = widgets.VBox([asked, *self.buttons], layout={"align_items": "flex-start"})

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(option for option, button in zip(self.options, self.buttons) if button.value)

    def compare(self, *measured: str, since: Mapping[str, str] | None = None) -> None:
        """Show the question again with what was measured, beside what is chosen above; it follows the choice.

        Args:
            measured: the options that turned out to be right.
            since: for wrong options the reason why they are wrong, shown where they were chosen.

        Raises:
            TypeError: a reason is no text.
            ValueError: nothing was measured, it is none of the options, or the reasons are not for wrong options.
        """
        since = dict(since or {})
        for option in (*measured, *since):
            if option not in self.options:
                raise ValueError(f"{option!r} is none of the options: {', '.join(map(repr, self.options))}")
        if not measured:
            raise ValueError("nothing was measured: pass the options that turned out to be right")
        for option, reason in since.items():
            require_line("reason", reason)
            if option in measured:
                raise ValueError(f"{option!r} was measured: give a reason for each option that is wrong")
        line = _Comparison(self, measured, since)
        self._lines.append(line)
        display(line)

    def _choose(self, change: Mapping) -> None:
        if self._exclusive:
            return
        if change["new"] and not self.several:
            self._exclusive = True
            try:
                for button in self.buttons:
                    button.value = button is change["owner"]
            finally:
                self._exclusive = False
        self._write()

    def _write(self) -> None:
        """State the choice in the buttons' own text, for those who don't see or hear it otherwise."""
        empty, full = "☐☑" if self.several else "○●"
        for option, button in zip(self.options, self.buttons):
            button.description = f"{full if button.value else empty} {option}"
        for line in self._lines:
            line.write()

    def __repr__(self) -> str:
        sign = "☐" if self.several else "○"
        return "\n".join([self.question, *(f"  {sign} {option}" for option in self.options), RUN])

    def _repr_mimebundle_(self, **_: object) -> dict:
        sign = "☐" if self.several else "○"
        items = "".join(f'<li style="list-style:none">{sign} {html.escape(option)}</li>' for option in self.options)
        written = (
            f'<div class="prediction"><p><strong>{html.escape(self.question)}</strong></p><ul>{items}</ul>'
            f'<p class="run"><em>{RUN}</em></p></div>'
        )
        return self.view._repr_mimebundle_() | {"text/plain": repr(self), "text/html": written}


class _Comparison:
    """The question, what was said and what was measured, and why what was said is wrong."""

    def __init__(self, guess: Guess, measured: Sequence[str], since: Mapping[str, str]) -> None:
        self.guess, self.measured, self.since = guess, measured, since
        self.view = widgets.HTML()
        self.write()

    def write(self) -> None:
        self.view.value = self._html()

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """The wrong options that are chosen, each with its reason."""
        return [(option, self.since[option]) for option in self.guess.chosen if option in self.since]

    def _html(self) -> str:
        since = html.escape(json.dumps(self.since, ensure_ascii=False))
        said, measured = (html.escape(words) for words in (self._said(), self._list(self.measured)))
        reasons = "".join(
            f'<div class="reason"><em>{html.escape(o)}</em>: {html.escape(why)}</div>' for o, why in self.reasons
        )
        return (
            f'<div class="comparison" role="status" data-since="{since}" style="{STYLE}">'
            f"<strong>{html.escape(self.guess.question)}</strong>"
            f'<div><span class="said">{said}</span>Measured: <strong>{measured}</strong>.</div>{reasons}</div>'
        )

    def __repr__(self) -> str:
        answer = f"{self._said()}Measured: {self._list(self.measured)}."
        return "\n".join([self.guess.question, answer, *(f"{option}: {why}" for option, why in self.reasons)])

    def _said(self) -> str:
        return f"You said: {self._list(self.guess.chosen)}. " if self.guess.chosen else ""

    def _list(self, answers: Sequence[str]) -> str:
        comma = "; " if any("," in option for option in self.guess.options) else ", "
        return comma.join(option.rstrip(".") for option in self.guess.options if option in answers)

    def _repr_mimebundle_(self, **_: object) -> dict:
        return self.view._repr_mimebundle_() | {"text/plain": repr(self), "text/html": self._html()}


_guesses: dict[tuple, Guess] = {}


def predict(question: str, options: Sequence[str], several: bool = False) -> Guess:
    """Ask before the measurement; `compare` of what is returned answers after it.

    Args:
        question: one line.
        options: two or more, of which none is chosen at first. Asked again, the question keeps its choice.
        several: whether more than one may be chosen.

    Raises:
        TypeError: question or options are no texts.
        ValueError: the question is empty, or there are not two different options.
    """
    if isinstance(options, str):
        raise TypeError("options is a text: pass a list of them")
    for words in (question, *options):
        require_line("question" if words is question else "option", words)
    if not question.strip() or not all(option.strip() for option in options):
        raise ValueError("the question or an option is empty")
    if len(options) < 2 or len(set(options)) != len(options):
        raise ValueError(f"a question has two different options or more, not {list(options)}")
    key = (question, *options, several)
    if key not in _guesses:
        _guesses[key] = Guess(question, options, several)
    display(_guesses[key])
    return _guesses[key]
