"""A matplotlib figure with controls that answers within a few hundredths of a second.

A `Live` draws its figure once, keeps the picture of all that stands still, and on each move draws only the
artists that change. The frame goes as PNG into an image widget. There is no pyplot and no output widget.

    figure = canvas()
    axes = figure.add_subplot()
    line, = axes.plot(x, x)
    axes.set_ylim(-1, 1)

    def update(frequency):
        line.set_ydata(torch.sin(frequency * x))

    Live(figure, update, moving={"line": line}, alt="A sine wave.",
         controls={"frequency": slider("frequency", 1, 9, unit="per turn")})

Conventions: limits, ticks and the layout stand still, unless a control is named in `relayout`. Text in a figure
is shown as it is: a $ is a dollar sign, so write θ, √ and ² and no mathtext. `canvas` sets the size of all text, so
a figure names none. Colours mean the same in every chapter; `palette` names them.
"""

from __future__ import annotations

import base64
import html
import itertools
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import ipywidgets as widgets
import matplotlib
import numpy as np
import torch
import traitlets
from IPython import get_ipython
from IPython.display import display
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Text

from posenc.lesson.controls import NAME_HANDLES, answer_beside_a_cell, in_words
from posenc.lesson.following import follow, shown
from posenc.lesson.png import encode

TEXT = {"font.size": 9} | dict.fromkeys(["axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize"], 9)
TEXT |= dict.fromkeys(["legend.fontsize", "figure.titlesize", "figure.labelsize"], 9)

WIDTH = 800  # of the picture on the page, in CSS pixels

# One lock for all figures: callbacks run in threads of their own, and matplotlib is not made for two of them.
_lock = threading.RLock()


def canvas(width: float = 8, height: float = 3.6) -> Figure:
    """An empty white figure of width by height inches at 144 dots an inch, its layout constrained, its text small."""
    matplotlib.rcParams.update(TEXT)
    figure = Figure(figsize=(width, height), dpi=144, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


class _Picture(widgets.Image):
    """An image with a text alternative: the page shows a tooltip only on a widget that has a description."""

    description = traitlets.Unicode("").tag(sync=True)


class Live:
    """A figure whose moving artists follow its controls.

    Args:
        figure: made by `canvas`, with everything in it that stands still.
        update: called with the value of every control, by name; it moves the artists.
        moving: the artists that change, by name. They are drawn last, in ascending zorder, with the spines of
            their axes.
        controls: widgets made by `slider`, `choice`, `switch` and `text`, by name. Several figures may share one.
        alt: what the picture shows, in words.
        relayout: names of controls that change limits, ticks or anything else that is not in `moving`. Their
            moves draw everything, which is slow.
        together: the name of a switch → names of sliders. While it is on, a move of one of them moves the others
            by as much, as far as all of them can go.

    Attributes:
        artists: the moving artists, by name.
        controls: the controls, by name.
        error: what the last move raised, or an empty string.
        view: the widget that is shown.

    Raises:
        ValueError: alt is empty, or relayout or together names something that is no control.
    """

    def __init__(
        self,
        figure: Figure,
        update: Callable[..., object],
        *,
        moving: Mapping[str, Artist],
        controls: Mapping[str, widgets.Widget],
        alt: str,
        relayout: Collection[str] = (),
        together: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        if not alt.strip():
            raise ValueError("alt is empty: say in words what the picture shows, for those who cannot see it")
        for name in (*relayout, *together, *itertools.chain(*together.values())):
            _require(controls, name)
        self.figure, self.update, self.alt = figure, update, alt
        self.relayout, self.together = relayout, together
        self.artists, self.controls, self.error = dict(moving), dict(controls), ""

        spines = [
            spine for artist in moving.values() if artist.axes is not None for spine in artist.axes.spines.values()
        ]
        self._layers = sorted(dict.fromkeys([*moving.values(), *spines]), key=Artist.get_zorder)
        for artist in self._layers:
            artist.set_animated(True)

        self._layout_engine = figure.get_layout_engine()
        self._background = None  # pixels of all that stands still
        self._drawn: dict | None = None  # the values of the controls in the picture
        self._stood: dict | None = self._values()  # the values of the controls after their last move
        self._held = False  # the controls are being set, so don't follow each

        self._image = _Picture(format="png", tooltip=alt, layout=widgets.Layout(width=f"{WIDTH}px", max_width="100%"))
        self._message = widgets.HTML()
        parts = [*self.controls.values(), self._image]
        boxes = [n for n, part in enumerate(parts) if isinstance(part, widgets.Text)]
        parts.insert(boxes[-1] + 1 if boxes else -1, self._message)  # what is wrong, where it was typed
        if any(hasattr(control, "min") for control in self.controls.values()):
            parts.append(widgets.HTML(NAME_HANDLES, layout=widgets.Layout(display="none")))
        self.view = widgets.VBox(parts)
        for control in self.controls.values():
            answer_beside_a_cell(control)
        follow(self)

    def set(self, **values: object) -> None:
        """Move controls; the figure is drawn once.

        Raises:
            ValueError: there is no such control, or it did not take the value. What `update` raises is raised too.
        """
        for name in values:
            _require(self.controls, name)
        refused = []
        with _lock:
            if any(len(values.keys() & set(names)) > 1 for names in self.together.values()):
                self._stood = None  # each goes where it is told to
            with self._hold():
                for name, value in values.items():
                    control = self.controls[name]
                    try:
                        control.value = value
                    except traitlets.TraitError:
                        pass  # the control keeps its value, which is reported below
                    if control.value != value:
                        refused.append(f"{in_words(name, control)}, does not take {value!r}")
            self.move()
        if refused:
            raise ValueError("; ".join(refused))

    def png(self) -> bytes:
        """The current frame."""
        with _lock:
            if not self._image.value:
                self.move()
            return self._image.value

    def frames(self, states: Iterable[Mapping[str, object]]) -> Iterator[np.ndarray]:
        """The picture at each of these values of controls; the controls and the page stay as they are.

        Args:
            states: values by name; a control that is not named stays at its value.

        Yields:
            the pixels, (height, width, 4). The next picture overwrites them.
        """
        try:
            for state in states:
                with self._reporting():
                    self._set_artists(self._values() | state)
                    pixels = self._pixels()
                yield pixels
        finally:
            with self._reporting():
                self._set_artists(self._values())
                self._pixels()

    def redraw(self) -> None:
        """Draw the moving artists as they stand now, without asking the controls."""
        with self._reporting():
            self._draw()

    @contextmanager
    def watch(self) -> Iterator[Live]:
        """Show the figure now, and keep the last frame that is drawn inside as the stored picture."""
        self.png()
        handle = display(self, display_id=True) if get_ipython() else None
        try:
            yield self
        finally:
            self.redraw()
            if handle:
                handle.update(self)

    def __repr__(self) -> str:
        controls = "; ".join(in_words(name, control) for name, control in self.controls.items())
        return f"Figure: {self.alt}" + (f" Controls: {controls}." if controls else "")

    def _repr_mimebundle_(self, **_: object) -> tuple[dict, dict]:
        shown(self)
        picture = base64.b64encode(self.png()).decode()
        data = self.view._repr_mimebundle_() | {"image/png": picture, "text/plain": repr(self)}
        return data, {"image/png": {"width": WIDTH, "alt": self.alt}}

    def _values(self) -> dict[str, object]:
        return {name: control.value for name, control in self.controls.items()}

    def move(self) -> None:
        """Let the artists follow the controls and draw a frame."""
        with _lock:
            if self._held:
                return
            with self._reporting():
                with self._hold():
                    self._keep_together()
                    values = None
                    while values != (values := self._values()):
                        self._stood = values
                        self._set_artists(values)  # it may limit another control: then once more
                self._draw()

    def _keep_together(self) -> None:
        """Let the sliders that are locked go as far as the one of them that was moved."""
        for lock, names in self.together.items():
            if not self._stood or not (self._stood[lock] and self.controls[lock].value):
                continue
            steps = {name: self.controls[name].value - self._stood[name] for name in names}
            if sum(map(bool, steps.values())) == 1:
                step = sum(steps.values())
                for name in names:
                    control, stood = self.controls[name], self._stood[name]
                    step = min(max(step, control.min - stood), control.max - stood)
                for name in names:
                    self.controls[name].value = self._stood[name] + step

    def _set_artists(self, values: Mapping[str, object]) -> None:
        if self._drawn is None or any(values[name] != self._drawn[name] for name in self.relayout):
            self._background = None
        self._drawn = None  # until the update is through
        self.update(**values)
        self._drawn = dict(values)

    def _draw(self) -> None:
        self._image.value = encode(self._pixels())

    def _pixels(self) -> np.ndarray:
        if self._background is None:
            self._draw_all()
        drawing = self.figure.canvas
        drawing.restore_region(self._background)
        for artist in self._layers:
            self.figure.draw_artist(artist)
        return np.asarray(drawing.buffer_rgba())

    def _draw_all(self) -> None:
        for item in self.figure.findobj(Text):
            item.set_parse_math(False)
        for axes in self.figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                if axis.get_scale() != "linear":  # these write their tick labels in mathtext
                    for label in axis.get_ticklabels(which="both"):
                        label.set_parse_math(True)
        self.figure.set_layout_engine(self._layout_engine)
        images = [artist for artist in self._layers if isinstance(artist, AxesImage) and artist.get_visible()]
        for image in images:  # matplotlib draws them although they are animated
            image.set_visible(False)
        try:
            self.figure.canvas.draw()
        finally:
            for image in images:
                image.set_visible(True)
        self.figure.set_layout_engine("none")  # stand still until the next full draw
        self._background = self.figure.canvas.copy_from_bbox(self.figure.bbox)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        self._held, held = True, self._held
        try:
            yield
        finally:
            self._held = held

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """What drawing needs around it; an error is shown under the figure and raised again."""
        with _lock, torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            try:
                yield
            except Exception as error:
                about = "" if type(error) is ValueError else f"{type(error).__name__}: "
                self._show_error(" ".join(f"{about}{error}".split()))
                raise
            self._show_error("")

    def _show_error(self, line: str) -> None:
        self.error = line
        style = "color: var(--jp-error-color1, #d32f2f); padding-left: min(198px, 30%)"
        self._message.value = line and f'<div role="alert" style="{style}">{html.escape(line)}</div>'


def still(figure: Figure, *, alt: str) -> Live:
    """A figure without controls.

    Args:
        figure: made by `canvas`.
        alt: what it shows, in words.
    """
    return Live(figure, lambda: None, moving={}, controls={}, alt=alt)


def _require(controls: Mapping, name: str) -> None:
    if name not in controls:
        raise ValueError(f"there is no control named {name!r}; there are: {', '.join(controls) or 'none'}")
