"""What a slider figure promises: the right picture, whatever the callback does."""

import base64
import gc
import inspect
import io
import threading
import time
import types
import warnings
import weakref

import ipykernel.comm.comm
import ipykernel.kernelbase
import numpy as np
import PIL.Image
import pytest
import torch

import posenc.lesson.following
from posenc.lesson import png
from posenc.lesson.controls import choice, slider, switch, text
from posenc.lesson.live import Live, canvas


def heat_map(words=("the", "dog", "bit", "the", "man", "back")) -> Live:
    """A matrix that turns and shrinks, beside a line that follows it; every kind of artist that the course moves."""
    size = len(words)
    scores = torch.rand(size, size, generator=torch.Generator().manual_seed(0)).numpy()
    figure = canvas(5, 2.5)
    left, right = figure.subplots(1, 2)
    image = left.imshow(scores, vmin=0, vmax=1)
    left.set_xticks(range(size), words, rotation=90)
    left.set_yticks(range(size), words)
    left.set(xlim=(-1, size), ylim=(-1, size))
    figure.colorbar(image, ax=left)
    title = left.set_title(" ")
    (line,) = right.plot(torch.arange(size), scores[0], linewidth=6, zorder=3)
    band = right.axvspan(0, 1, color="orange", zorder=1)
    right.set(xlim=(0, size - 1), ylim=(0, 1))

    def turn_matrix(turn):
        image.set_data(np.roll(scores, (turn, turn), (0, 1)))
        image.set_extent((0, size - turn, 0, size - turn))
        line.set_ydata(np.roll(scores, turn, 1)[0])
        band.set_x(turn)
        title.set_text(f"turned by {turn}")

    return Live(
        figure,
        turn_matrix,
        moving={"line": line, "band": band, "matrix": image, "title": title},
        controls={"turn": slider("turn", 0, size - 1, unit="places")},
        alt="A matrix of scores.",
    )


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(PIL.Image.open(io.BytesIO(png)).convert("RGB"))


def height(line, level):
    line.set_ydata([level])


def top_of_axes(line, top):
    line.axes.set_ylim(-1, top)


def dot(update=height, *, relayout=(), together=None, **controls) -> Live:
    """The smallest figure: a dot that the callback moves, `update(line, **values)`, if by nothing else by its level."""
    figure = canvas(2, 1)
    (line,) = figure.add_subplot(xlim=(0, 1), ylim=(-1, 10)).plot([0.5], [0], "o")
    return Live(
        figure,
        lambda **values: update(line, **values),
        moving={"line": line},
        controls=controls or {"level": slider("level", 0, 9)},
        alt="A dot.",
        relayout=relayout,
        together=together or {},
    )


def count_full_draws(live: Live) -> list:
    draws, draw = [], live.figure.canvas.draw
    live.figure.canvas.draw = lambda: (draws.append(1), draw())
    return draws


# The picture


def test_a_blitted_frame_is_the_full_picture_and_a_move_back_gives_the_same_bytes():
    live = heat_map()
    before = live.png()
    live.set(turn=3)
    moved = live.png()
    live.set(turn=0)
    assert live.png() == before != moved
    live.set(turn=3)
    for artist in live.figure.findobj():
        artist.set_animated(False)
    live.figure.canvas.draw()
    assert (pixels(moved) == np.asarray(live.figure.canvas.buffer_rgba())[..., :3]).all()


@pytest.mark.parametrize("library", ["zlib", "isal.isal_zlib"])
def test_a_frame_is_read_back_pixel_by_pixel(library, monkeypatch):
    monkeypatch.setattr(png, "fast", pytest.importorskip(library))
    pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 4), dtype=np.uint8)
    assert (np.asarray(PIL.Image.open(io.BytesIO(png.encode(pixels)))) == pixels).all()


def test_the_picture_is_opaque_white_and_144_dots_an_inch():
    picture = PIL.Image.open(io.BytesIO(dot().png()))
    assert picture.size == (288, 144)
    assert picture.getpixel((0, 0)) == (255, 255, 255, 255)


# Moving controls


def test_nothing_is_drawn_before_it_is_asked_for_and_set_moves_several_controls_at_once():
    seen = []
    live = dot(lambda line, a, b: seen.append((a, b)), a=slider("a", 0, 3), b=slider("b", 0, 3))
    draws = count_full_draws(live)
    assert seen == draws == []
    live.png(), live.png()
    live.set(a=2, b=3)
    assert (seen, draws) == ([(0, 0), (2, 3)], [1])


@pytest.mark.parametrize(
    "ask, message",
    [
        (lambda: dot().set(levle=1), "no control named 'levle'; there are: level"),
        (lambda: dot(relayout=("size",)), "no control named 'size'; there are: level"),
        (lambda: dot(together={"level": ("level", "n")}), "no control named 'n'"),
        (lambda: dot(together={"lock": ("level",)}), "no control named 'lock'"),
        (lambda: Live(canvas(), print, moving={}, controls={}, alt=" ", relayout="x"), "alt is empty"),
        (lambda: Live(canvas(), print, moving={}, controls={}, alt="A", relayout="x"), "'x'; there are: none"),
    ],
)
def test_what_is_no_control_and_no_text_alternative_is_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


@pytest.mark.parametrize(
    "control, value, message",
    [
        (slider("x", 0, 5, unit="places"), 9, "x, 0 to 5 places, at 5, does not take 9"),
        (slider("x", 0, 5), 2.5, "x, 0 to 5, at 2, does not take 2.5"),
        (slider("x", 0.0, 1.0, step=0.1), -1, "x, 0 to 1, at 0, does not take -1"),
        (choice("x", ["none", "causal"]), "maybe", "x, one of none, causal, at none, does not take 'maybe'"),
        (switch("x"), "yes", "x, off, does not take 'yes'"),
        (text("x", value="a"), 7, "x, a text, now “a”, does not take 7"),
    ],
)
def test_set_says_which_value_a_control_did_not_take(control, value, message):
    with pytest.raises(ValueError) as caught:
        dot(lambda line, x: None, x=control).set(x=value)
    assert str(caught.value) == message


def test_a_shared_control_moves_every_figure_also_those_after_one_that_raises():
    def fail(line, level):
        raise ValueError("no")

    level = slider("level", 0, 9)
    first, failing, last = (dot(update, level=level) for update in (height, fail, height))
    assert all(level in live.view.children for live in (first, failing, last))
    before = first.png(), last.png()
    with pytest.raises(ValueError, match="no"):
        level.value = 5
    assert first.png() == last.png() not in before


def test_a_callback_may_limit_another_control():
    level, most = slider("level", 0, 9, value=9), slider("most", 1, 9, value=9)
    inside = []

    def update(line, level, most):
        assert not inside, "called within itself"
        inside.append(1)
        live.controls["level"].max = most
        height(line, level)
        inside.clear()

    live = dot(update, level=level, most=most)
    live.set(most=4)
    assert live.artists["line"].get_ydata()[0] == level.value == 4


def test_relayout_draws_everything_exactly_once():
    def update(line, shift, top):
        line.set_xdata([shift])
        top_of_axes(line, top)

    live = dot(update, relayout=("top",), shift=slider("shift", 0.0, 1.0, step=0.1), top=slider("top", 10, 10_000))
    draws = count_full_draws(live)
    before = live.png()
    for values, count in (({"shift": 0.5}, 1), ({"top": 10_000}, 2), ({"shift": 0.7}, 2), ({"shift": 0, "top": 10}, 3)):
        live.set(**values)
        assert len(draws) == count
    assert live.png() == before
    assert live.artists["line"].get_animated()


def test_relayout_keeps_long_labels_in_the_picture():
    def update(line, words):
        line.axes.set_yticks([0, 1], words.split())

    live = dot(update, relayout=("words",), words=text("words", value="a b"))
    before = live.png()
    live.set(words="incomprehensibilities antidisestablishment")
    assert (pixels(live.png())[:, :4] == 255).all()
    live.set(words="a b")
    assert live.png() == before


# Errors


def test_an_error_is_shown_and_raised_and_goes_away():
    def fails_at_3(line, level):
        height(line, level)
        if level == 3:
            raise ValueError("three\nis <b>too</b> many")

    live = dot(fails_at_3)
    live.set(level=2)
    good, message = live.png(), live._message
    assert live.error == message.value == ""

    with pytest.raises(ValueError, match="too"):
        live.set(level=3)
    assert live.error == "three is <b>too</b> many"
    assert 'role="alert"' in message.value and "color" in message.value
    assert ">three is &lt;b&gt;too&lt;/b&gt; many<" in message.value
    assert live.png() == good

    live.set(level=2)
    assert live.error == message.value == ""
    assert live.png() == good


def test_an_error_while_drawing_is_shown_too():
    live = dot(lambda line, level: line.set_alpha("much"))
    with pytest.raises(TypeError, match="alpha"):
        live.png()
    assert live.error.startswith("TypeError: alpha")


def test_after_an_error_in_a_relayout_everything_is_drawn_again():
    def update(line, top):
        top_of_axes(line, top)
        if top == 500:
            raise ValueError("no")

    live = dot(update, relayout=("top",), top=slider("top", 10, 1000))
    before = live.png()
    with pytest.raises(ValueError):
        live.set(top=500)
    live.redraw()
    live.set(top=10)
    assert live.png() == before


def test_a_message_stands_under_the_box_or_else_above_the_picture():
    box, level = text("words"), slider("level", 0, 9)
    with_a_box = dot(lambda line, words, level: None, words=box, level=level)
    assert with_a_box.view.children[:4] == (box, with_a_box._message, level, with_a_box._image)
    without = dot(level=level)
    assert without.view.children[:3] == (level, without._message, without._image)


# Sliders that are locked


def locked(update=lambda line, m, n, lock: line.set_data([n / 30 + lock / 9], [m / 3])):
    controls = {"m": slider("m", 0, 24, value=7), "n": slider("n", 0, 24, value=4), "lock": switch("lock", value=True)}
    return dot(update, together={"lock": ("m", "n")}, **controls)


@pytest.mark.parametrize("drawn", [True, False])
def test_a_locked_slider_takes_the_other_one_along(drawn):
    live = locked()
    if drawn:
        live.png()
    for values, stands in (
        ({"m": 9}, (9, 6)),
        ({"n": 24}, (24, 21)),  # m can go no further, so n does not either
        ({"n": 0}, (3, 0)),
        ({"m": 10, "n": 0}, (10, 0)),  # both are told where to go
        ({"m": 11}, (11, 1)),
        ({"lock": False}, (11, 1)),
        ({"m": 20}, (20, 1)),
        ({"lock": True}, (20, 1)),  # the lock keeps what it finds
        ({"m": 0}, (19, 0)),
    ):
        live.set(**values)
        assert (live.controls["m"].value, live.controls["n"].value) == stands


def test_a_lock_stays_right_where_a_move_raises():
    def update(line, m, n, lock):
        if m == 9:
            raise ValueError("nine")

    live = locked(update)
    with pytest.raises(ValueError, match="nine"):
        live.controls["m"].value = 9
    live.controls["m"].value = 10
    assert live.controls["n"].value == 7


# Pictures without a move


def growing():
    return dot(top_of_axes, relayout=("top",), top=slider("top", 10, 1000))


@pytest.mark.parametrize("make, name, values", [(heat_map, "turn", (3, 0, 5)), (growing, "top", (1000, 10, 500))])
def test_frames_are_the_pictures_and_move_nothing(make, name, values):
    live = make()
    start, before, sent = live.controls[name].value, live.png(), []
    live._image.observe(sent.append, "value")
    seen = [frame[..., :3].copy() for frame in live.frames([{name: value} for value in values])]
    assert (live.controls[name].value, live.png(), sent) == (start, before, [])
    live.redraw()
    assert live.png() == before, "the artists stand where they stood"
    for value, frame in zip(values, seen):
        live.set(**{name: value})
        assert (frame == pixels(live.png())).all()


# Threads


def test_after_moves_from_four_threads_the_picture_is_that_of_the_last_values():
    def update(line, level, other):
        time.sleep(0.002)
        height(line, level + other)

    live = dot(update, level=slider("level", 0, 5), other=slider("other", 0, 5))
    live.png()

    def work(start):
        for step in range(6):
            live.controls["level" if start % 2 else "other"].value = (start + step) % 6

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert live.artists["line"].get_ydata()[0] == sum(control.value for control in live.controls.values())
    picture = live.png()
    live.redraw()
    assert live.png() == picture


@pytest.mark.parametrize("more", [None, 7])
def test_who_comes_while_a_move_is_drawn_waits_and_is_drawn(more):
    started, done = threading.Event(), []

    def update(line, level):
        if level == 1:
            started.set()
            time.sleep(0.1)
        height(line, level)
        done.append(level)

    live = dot(update)
    live.png()
    worker = threading.Thread(target=live.set, kwargs={"level": 1})
    worker.start()
    started.wait()
    if more is None:
        live.redraw()
    else:
        live.controls["level"].value = more
    assert done[:2] == [0, 1] and done[-1] == (more or 1)
    assert live.png() == dot(level=slider("level", 0, 9, value=more or 1)).png()
    worker.join()


def test_in_a_thread_a_callback_needs_no_gradients_and_may_ask_for_another_figures_picture():
    other, seen = dot(), []
    live = dot(lambda line, level: seen.append((torch.is_grad_enabled(), other.png())))
    worker = threading.Thread(target=live.set, kwargs={"level": 1}, daemon=True)
    worker.start()
    worker.join(10)
    assert seen == [(False, other.png())]
    assert torch.is_grad_enabled()


# What the page gets


def test_the_bundle_has_the_view_the_picture_and_the_words():
    live = heat_map()
    data, metadata = live._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == live.view.model_id
    assert base64.b64decode(data["image/png"], validate=True) == live.png()
    assert metadata == {"image/png": {"width": 800, "alt": "A matrix of scores."}}
    assert data["text/plain"] == "Figure: A matrix of scores. Controls: turn, 0 to 5 places, at 0."
    assert (live._image.layout.width, live._image.layout.max_width) == ("800px", "100%")  # it shrinks with the page


def test_slider_handles_get_their_names_from_one_hidden_child():
    def names(live):
        return [child for child in live.view.children if "aria-label" in str(getattr(child, "value", ""))]

    (hidden,) = names(heat_map())
    assert hidden.layout.display == "none" and not names(dot(lambda line, on: None, on=switch("on")))


def test_controls_are_labelled_with_name_and_unit_and_a_slider_keeps_its_stops():
    turn, share = slider("turn", 0, 5, unit="places"), slider("m", 0, 9, value=3, step=0.5, stops=range(0, 10, 5))
    assert [each.description for each in (turn, share, switch("x"), text("y"))] == ["turn (places)", "m", "x", "y"]
    assert (type(turn).__name__, type(share).__name__) == ("IntSlider", "FloatSlider")
    assert turn.continuous_update and not text("sentence").continuous_update
    assert turn.stops is None and share.stops == [0, 3, 5]


def test_watch_pushes_frames_while_work_goes_on_and_stores_the_last_one_where_it_is_stopped(monkeypatch):
    stored = []
    handle = types.SimpleNamespace(update=lambda live: stored.append(live.png()))
    monkeypatch.setattr("posenc.lesson.live.get_ipython", lambda: True)
    monkeypatch.setattr("posenc.lesson.live.display", lambda live, display_id: handle)
    live = dot()
    with pytest.raises(KeyboardInterrupt), live.watch():
        start = live.png()
        height(live.artists["line"], 5)
        assert live.png() == start
        live.redraw()
        middle = live.png()
        height(live.artists["line"], 9)
        raise KeyboardInterrupt
    assert stored == [live.png()] and len({start, middle, *stored}) == 3


# A learner's words


def test_any_word_may_be_a_label_and_a_dollar_sign_stays_one():
    words = ["$\\frac", "$\\frac$", "$5$", "狗", "a_b^c", "\\", "{", "%", "", "🐕"]
    live = heat_map(words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        live.png()
        for word in words:
            live.artists["title"].set_text(word)
            live.redraw()
    assert not any(label.get_parse_math() for label in live.figure.axes[0].get_xticklabels())


# A figure that is made again and again


@pytest.fixture
def rerun(monkeypatch):
    """From now on, figures are shown by this run of this cell."""
    return lambda cell, run: monkeypatch.setattr(posenc.lesson.following, "_running_cell", lambda: (cell, run))


def test_figures_of_other_cells_and_of_the_same_run_stay(rerun):
    level, moves = slider("level", 0, 9), []

    def figure(name):
        return dot(lambda line, level: moves.append(name), level=level)

    rerun("one", 1)
    first, second = figure("first"), figure("second")
    first._repr_mimebundle_(), second._repr_mimebundle_(), first._repr_mimebundle_()
    rerun("two", 2)
    figure("third")._repr_mimebundle_(), second._repr_mimebundle_()
    rerun("one", 3)
    fourth = figure("fourth")
    fourth._repr_mimebundle_()
    gc.collect()
    moves.clear()
    level.value = 2
    assert sorted(moves) == ["fourth", "second", "third"], "the second is shown elsewhere, the third has no name"
    rerun("one", 4)
    first._repr_mimebundle_()
    moves.clear()
    level.value = 3
    assert sorted(moves) == ["first", "second", "third"], "shown again, it follows again"


def test_a_figure_without_a_name_that_is_shown_nowhere_is_freed():
    level = slider("level", 0, 9)
    gone = weakref.ref(dot(level=level))
    gc.collect()
    assert gone() is None and not posenc.lesson.following._followers[level]


def test_a_control_is_answered_in_the_thread_that_the_page_asks_for():
    """The name is private. When ipykernel asks for it no more, see in a browser whether a slider that was never touched
    answers while a cell runs (test_browser does), and take `answer_beside_a_cell` away if it does."""
    assert "_reply_subshell_for" in inspect.getsource(ipykernel.kernelbase.Kernel.shell_channel_thread_main)
    comm = ipykernel.comm.comm.BaseComm()
    assert [*inspect.signature(comm._reply_subshell_for).parameters] == ["data", "default"]
    comm._reply_subshell_id = None  # it was last spoken to by the main thread
    control = slider("level", 0, 9)
    control.comm = comm
    dot(level=control)
    assert comm._reply_subshell_for({}, "the page's") == "the page's"
