"""Controls of a slider figure, each with its name and unit before it: a slider, a choice, a switch, a text box."""

from collections.abc import Collection, Sequence

import ipywidgets as widgets


def slider(
    name: str,
    low: float,
    high: float,
    *,
    unit: str = "",
    value: float | None = None,
    step: float = 1,
    stops: Collection[float] | None = None,
) -> widgets.Widget:
    """A slider: for integers if all its numbers are, else for floats.

    Args:
        name: what stands before it, with the unit.
        low: the smallest value, and where it starts if there is no `value`.
        high: the largest value.
        unit: of its numbers.
        value: where it starts.
        step: from one value to the next.
        stops: the values that a web page without a kernel keeps, where those that it would choose miss some.
    """
    value = low if value is None else value
    integers = all(isinstance(number, int) for number in (low, high, value, step))
    control = (widgets.IntSlider if integers else widgets.FloatSlider)(
        value=value,
        min=low,
        max=high,
        step=step,
        **_labelled(f"{name} ({unit})" if unit else name),
    )
    control.unit = unit
    control.stops = None if stops is None else sorted({value, *stops})
    return control


def choice(name: str, options: Sequence) -> widgets.Widget:
    """One of a few options, all in sight; the first is chosen."""
    control = widgets.ToggleButtons(options=list(options), **_labelled(name, width="auto"))
    control.style.button_width = "auto"  # as wide as their words
    for css in ("jupyter-widgets", "widget-inline-hbox"):  # these put the label beside it, as with the others
        control.add_class(css)
    return control


def switch(name: str, *, value: bool = False) -> widgets.Widget:
    """A box to tick."""
    return widgets.Checkbox(value, **_labelled(name))


def text(name: str, *, value: str = "", placeholder: str = "") -> widgets.Widget:
    """A line to type in. It counts when Enter is pressed or the line is left."""
    return widgets.Text(value, placeholder=placeholder, continuous_update=False, **_labelled(name))


def sentence_box(sentence: str = "The dog bit the man.") -> widgets.Text:
    """A text box for a sentence; several figures may share it."""
    return text("sentence", value=sentence, placeholder="type a sentence and press Enter")


def _labelled(label: str, width: str = "540px") -> dict:
    return {
        "description": label,
        "tooltip": label,  # the whole of it, where the room is too small; without one the page says "null"
        "style": {"description_width": "190px"},
        # where there is too little room, what is moved goes below its label
        "layout": widgets.Layout(width=width, max_width="100%", height="auto", flex_flow="row wrap"),
    }


def ends(control: widgets.Widget) -> Sequence:
    """The first and the last value of a control."""
    if isinstance(control, widgets.Checkbox):
        return False, True
    if hasattr(control, "options"):
        return control.options[0], control.options[-1]
    return control.min, control.max


def in_words(name: str, control: widgets.Widget) -> str:
    """A control's name, range and value, for those who cannot see it."""
    if isinstance(control, widgets.Checkbox):
        return f"{name}, {'on' if control.value else 'off'}"
    if isinstance(control, widgets.Text):
        return f"{name}, a text, now “{control.value}”"
    if hasattr(control, "options"):
        return f"{name}, one of {', '.join(map(str, control.options))}, at {control.value}"
    unit = f" {control.unit}" if control.unit else ""
    return f"{name}, {control.min:g} to {control.max:g}{unit}, at {control.value:g}"


def answer_beside_a_cell(control: widgets.Widget) -> None:
    """Let a control that was never touched be answered while a cell runs.

    ipykernel 7.4 answers a control in the thread that spoke to it last, which is the busy one that made it, whatever
    thread the page asks for. This gives it the thread that the page asks for. Other versions have no such method.
    """
    comm = getattr(control, "comm", None)
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda data, default: default


# Nothing in ipywidgets gives the handle of a slider a name for those who hear the page. This does, where the page
# allows a picture to run a script when it is loaded; where it does not, nothing happens.
NAME_HANDLES = """<img hidden alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
onload="const look = () => {
    const figure = this.closest('.widget-vbox');
    if (!figure) return setTimeout(look, 100);
    const name = () => {
        for (const slider of figure.querySelectorAll('.widget-slider')) {
            const label = slider.querySelector('label')?.textContent;
            slider.querySelector('.noUi-handle')?.setAttribute('aria-label', label);
            slider.querySelector('.widget-readout')?.setAttribute('aria-label', label + ', value');
        }
    };
    new MutationObserver(name).observe(figure, {childList: true, subtree: true});
    name();
};
look()">"""
