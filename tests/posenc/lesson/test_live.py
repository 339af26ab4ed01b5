"""What a slider figure promises: the right picture, whatever the callback does."""

import base64
import gc
import inspect
import io
import textwrap
import threading
import time
import warnings
import weakref

import ipykernel.comm.comm
import ipykernel.kernelbase
import matplotlib.text
import nbclient
import nbformat
import numpy as np
import PIL.Image
import pytest
import torch

import posenc.lesson.following
import posenc.lesson.live
from posenc.lesson import png
from posenc.lesson.controls import choice, slider, switch, text
from posenc.lesson.live import Live, canvas, still

WORDS = ["the", "dog", "bit", "the", "man", "and", "the", "man", "bit", "the", "dog", "back"]


def heat_map(*, words=WORDS, update=None, **controls) -> Live:
    """A matrix that turns, beside a line that follows it; every kind of artist that the course moves."""
    size = len(words)
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(size, size, generator=generator).numpy()
    figure = canvas()
    left, right = figure.subplots(1, 2)
    image = left.imshow(scores, vmin=0, vmax=1)
    left.set_xticks(range(size), words, rotation=90)
    left.set_yticks(range(size), words)
    figure.colorbar(image, ax=left)
    title = left.set_title(" ")
    (line,) = right.plot(torch.arange(size), scores[0], linewidth=6, zorder=3)
    band = right.axvspan(0, 1, color="orange", zorder=1)
    right.set(xlim=(0, size - 1), ylim=(0, 1))

    def turn_matrix(turn):
        image.set_data(np.roll(scores, (turn, turn), (0, 1)))
        line.set_ydata(np.roll(scores, turn, 1)[0])
        band.set_x(turn)
        title.set_text(f"turned by {turn}")

    return Live(
        figure,
        update or turn_matrix,
        moving={"line": line, "band": band, "matrix": image, "title": title},
        controls=controls or {"turn": slider("turn", 0, size - 1, unit="places")},
        alt="A matrix of scores.",
    )


def dot(update, *, relayout=(), **controls) -> Live:
    """The smallest figure: a dot whose height the callback sets, `update(line, **values)`."""
    figure = canvas(2, 1)
    axes = figure.add_subplot()
    (line,) = axes.plot([0.5], [0], "o")
    axes.set(xlim=(0, 1), ylim=(-1, 10))
    return Live(
        figure,
        lambda **values: update(line, **values),
        moving={"line": line},
        controls=controls,
        alt="A dot.",
        relayout=relayout,
    )


def height(line, level):
    line.set_ydata([level])


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(PIL.Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def count_full_draws(live: Live) -> list:
    draws, draw = [], live.figure.canvas.draw
    live.figure.canvas.draw = lambda: (draws.append(1), draw())
    return draws


# The picture


@pytest.mark.parametrize("turn", [0, 3, 11])
def test_a_blitted_frame_is_the_full_picture(turn):
    live = heat_map()
    live.png()
    live.set(turn=turn)
    for artist in live.figure.findobj():
        artist.set_animated(False)
    live.figure.canvas.draw()
    full = np.asarray(live.figure.canvas.buffer_rgba())[..., :3].astype(int)
    assert (pixels(live.png()) == full).all()


@pytest.mark.parametrize("library", ["zlib", "isal.isal_zlib"])
def test_a_frame_is_read_back_pixel_by_pixel(library, monkeypatch):
    monkeypatch.setattr(png, "fast", pytest.importorskip(library))
    pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 4), dtype=np.uint8)
    assert (np.asarray(PIL.Image.open(io.BytesIO(png.encode(pixels)))) == pixels).all()


def test_the_picture_is_opaque_white_and_144_dots_an_inch():
    picture = PIL.Image.open(io.BytesIO(heat_map().png()))
    assert picture.size == (1152, 518)
    assert picture.getpixel((0, 0)) == (255, 255, 255, 255)


def test_a_move_back_gives_the_same_bytes():
    live = heat_map()
    before = live.png()
    live.set(turn=5)
    assert live.png() != before
    live.set(turn=0)
    assert live.png() == before


def test_nothing_is_drawn_before_it_is_asked_for():
    calls = []
    live = dot(lambda line, level: calls.append(level), level=slider("level", 0, 3))
    draws = count_full_draws(live)
    assert calls == draws == []
    live.png()
    live.png()
    assert (calls, draws) == ([0], [1])


def test_a_figure_without_controls():
    live = dot(lambda line: height(line, 4))
    lower = dot(lambda line: height(line, 3))
    assert live.png() == live.png() != lower.png()
    assert live.sweep() == 0


# Moving controls


def test_set_moves_several_controls_and_draws_once():
    seen = []
    live = dot(lambda line, a, b: seen.append((a, b)), a=slider("a", 0, 3), b=slider("b", 0, 3))
    live.png()
    live.set(a=2, b=3)
    assert seen == [(0, 0), (2, 3)]


def test_set_refuses_an_unknown_name_and_lists_the_known_ones():
    live = dot(height, level=slider("level", 0, 9))
    with pytest.raises(ValueError, match="no control named 'levle'; there are: level"):
        live.set(levle=1)


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
    live = dot(lambda line, x: None, x=control)
    with pytest.raises(ValueError) as caught:
        live.set(x=value)
    assert str(caught.value) == message


def test_a_shared_control_moves_every_figure():
    level = slider("level", 0, 9)
    one, other = dot(height, level=level), dot(height, level=level)
    before = one.png(), other.png()
    one.set(level=5)
    assert one.png() == other.png() not in before
    assert level in one.view.children and level in other.view.children


def test_a_figure_that_raises_does_not_stop_the_others():
    level = slider("level", 0, 9)

    def fail(line, level):
        raise ValueError("no")

    first, _, last = dot(height, level=level), dot(fail, level=level), dot(height, level=level)
    before = first.png()
    with pytest.raises(ValueError, match="no"):
        level.value = 5
    assert first.png() == last.png() != before


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


def test_on_a_narrow_page_the_picture_shrinks():
    layout = heat_map()._image.layout
    assert (layout.width, layout.max_width) == (f"{posenc.lesson.live.WIDTH}px", "100%")


def test_relayout_draws_everything_exactly_once():
    def update(line, shift, top):
        line.set_xdata([shift])
        line.axes.set_ylim(-1, top)

    live = dot(update, relayout=("top",), shift=slider("shift", 0.0, 1.0, step=0.1), top=slider("top", 10, 10_000))
    draws = count_full_draws(live)
    before = live.png()
    live.set(shift=0.5)
    assert len(draws) == 1
    live.set(top=10_000)
    assert len(draws) == 2
    live.set(shift=0.7)
    assert len(draws) == 2
    live.set(shift=0, top=10)
    assert len(draws) == 3
    assert live.png() == before
    assert live.artists["line"].get_animated()


def test_relayout_keeps_long_labels_in_the_picture():
    figure = canvas(4, 2)
    axes = figure.add_subplot()
    (line,) = axes.plot([0, 1], [0, 1])

    def update(words):
        axes.set_yticks([0, 1], words.split())

    live = Live(
        figure,
        update,
        moving={"line": line},
        alt="Words.",
        controls={"words": text("words", value="a b")},
        relayout=("words",),
    )
    before = live.png()
    live.set(words="incomprehensibilities antidisestablishment")
    assert (pixels(live.png())[:, :4] == 255).all()
    live.set(words="a b")
    assert live.png() == before


def test_relayout_must_name_a_control():
    with pytest.raises(ValueError, match="no control named 'size'; there are: none"):
        dot(height, relayout=("size",))


# Errors


def fails_at_3(line, level):
    height(line, level)
    if level == 3:
        raise ValueError("three\nis <b>too</b> many")


def test_an_error_is_shown_and_raised_and_goes_away():
    live = dot(fails_at_3, level=slider("level", 0, 9))
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
    live = dot(lambda line, level: line.set_alpha("much"), level=slider("level", 0, 9))
    with pytest.raises(TypeError, match="alpha"):
        live.png()
    assert live.error.startswith("TypeError: alpha")


def test_after_an_error_in_a_relayout_everything_is_drawn_again():
    def update(line, top):
        line.axes.set_ylim(-1, top)
        if top == 500:
            raise ValueError("no")

    live = dot(update, relayout=("top",), top=slider("top", 10, 1000))
    before = live.png()
    with pytest.raises(ValueError):
        live.set(top=500)
    live.set(top=10)
    assert live.png() == before


def test_a_message_stands_under_the_box_or_else_above_the_picture():
    box, level = text("words"), slider("level", 0, 9)
    with_a_box = dot(lambda line, words, level: None, words=box, level=level)
    assert with_a_box.view.children[:4] == (box, with_a_box._message, level, with_a_box._image)
    without = dot(height, level=level)
    assert without.view.children[:3] == (level, without._message, without._image)


# Sliders that are locked


def locked(*, value=True, low=0):
    controls = {"m": slider("m", 0, 24, value=7), "n": slider("n", low, 24, value=4)}
    live = dot(
        lambda line, m, n, lock: line.set_data([n / 30 + lock / 9], [m / 3]),
        lock=switch("lock", value=value),
        **controls,
    )
    live.together = {"lock": ("m", "n")}
    return live


def stands(live):
    return live.controls["m"].value, live.controls["n"].value


@pytest.mark.parametrize("drawn", [True, False])
def test_a_locked_slider_takes_the_other_one_along(drawn):
    live = locked()
    if drawn:
        live.png()
    live.controls["m"].value = 9
    assert stands(live) == (9, 6)
    live.controls["n"].value = 24
    assert stands(live) == (24, 21), "m can go no further, so n does not either"
    live.controls["n"].value = 0
    assert stands(live) == (3, 0)
    live.set(m=10, n=2)
    assert stands(live) == (10, 2), "both are told where to go"
    live.set(m=11)
    assert stands(live) == (11, 3)
    live.set(lock=False)
    live.set(m=20)
    assert stands(live) == (20, 3)
    live.set(lock=True)
    assert stands(live) == (20, 3), "the lock keeps what it finds"
    live.set(m=0)
    assert stands(live) == (17, 0)


def test_a_lock_stays_right_where_a_move_raises():
    def update(line, m, n, lock):
        if m == 9:
            raise ValueError("nine")

    live = dot(update, m=slider("m", 0, 24), n=slider("n", 0, 24, value=4), lock=switch("lock", value=True))
    live.together = {"lock": ("m", "n")}
    with pytest.raises(ValueError, match="nine"):
        live.controls["m"].value = 9
    live.controls["m"].value = 10
    assert stands(live) == (10, 14)


def test_locked_sliders_are_swept():
    assert locked().sweep() > 4


def test_a_lock_names_controls():
    with pytest.raises(ValueError, match="no control named 'n'; there are: m, lock"):
        Live(
            canvas(),
            lambda **_: None,
            moving={},
            controls={"m": slider("m", 0, 1), "lock": switch("lock")},
            alt="A dot.",
            together={"lock": ("m", "n")},
        )


# Pictures without a move


def test_frames_are_the_pictures_and_move_nothing():
    live = heat_map()
    before, sent = live.png(), []
    live._image.observe(sent.append, "value")
    seen = [frame[..., :3].astype(int) for frame in live.frames([{"turn": 3}, {"turn": 0}, {"turn": 11}])]
    assert (live.controls["turn"].value, live.png(), sent) == (0, before, [])
    live.redraw()
    assert live.png() == before, "the artists stand where they stood"
    for turn, frame in zip((3, 0, 11), seen):
        live.set(turn=turn)
        assert (frame == pixels(live.png())).all()


def test_frames_draw_all_where_a_control_changes_the_layout():
    def update(line, top):
        line.axes.set_ylim(-1, top)

    live = dot(update, relayout=("top",), top=slider("top", 10, 1000))
    (frame,) = (frame.copy() for frame in live.frames([{"top": 1000}]))
    before = live.png()
    live.set(top=1000)
    assert (frame[..., :3] == pixels(live.png())).all()
    live.set(top=10)
    assert live.png() == before


# Sweeping


def test_sweep_visits_both_ends_of_every_control_and_comes_back():
    seen = []

    def update(line, level, mask, shown, words):
        seen.append((level, mask, shown, words))
        line.set_data([0.5 + 0.1 * (mask == "causal") + 0.2 * shown], [level])

    controls = {
        "level": slider("level", -1, 4, value=2),
        "mask": choice("mask", ["none", "banded", "causal"]),
        "shown": switch("shown", value=True),
        "words": text("words", value="a b"),
    }
    live = dot(update, **controls)
    assert live.sweep() == 3 + 2 + 2
    assert {level for level, *_ in seen} == {-1, 2, 4}
    assert {mask for _, mask, *_ in seen} == {"none", "causal"}
    assert {shown for *_, shown, _ in seen} == {False, True}
    assert {words for *_, words in seen} == {"a b"}
    assert [control.value for control in controls.values()] == [2, "none", True, "a b"]


def test_sweep_finds_a_dead_slider():
    live = dot(lambda line, level, dead: height(line, level), level=slider("level", 0, 9), dead=slider("dead", 0, 9))
    with pytest.raises(AssertionError, match="dead, 0 to 9, at 0: it moves nothing"):
        live.sweep()


def test_sweep_finds_a_picture_that_remembers():
    line_widths = iter(range(1, 100))

    def update(line, level):
        line.set_markersize(next(line_widths))

    with pytest.raises(AssertionError, match="the picture is another one"):
        dot(update, level=slider("level", 0, 9)).sweep()


@pytest.mark.parametrize("end", [0, 9])
def test_sweep_raises_what_a_callback_raises_at_an_end(end):
    def update(line, level):
        height(line, level)
        if level == end:
            raise ZeroDivisionError("at the end")

    with pytest.raises(ZeroDivisionError):
        dot(update, level=slider("level", 0, 9, value=4)).sweep()


def test_a_matrix_that_shrinks_leaves_nothing_of_its_first_state():
    """matplotlib draws an animated image into the background all the same."""

    def shrinking(size):
        figure = canvas(2, 2)
        image = figure.add_subplot(xlim=(0, 9), ylim=(0, 9)).imshow([[1.0]], vmin=0, vmax=1)
        update = lambda size: image.set_extent((0, size, 0, size))
        controls = {"size": slider("size", 1, 9, value=size)}
        return Live(figure, update, moving={"image": image}, controls=controls, alt="A square.")

    live = shrinking(9)
    live.png()
    live.set(size=2)
    assert live.png() == shrinking(2).png()


# Threads


def test_callbacks_from_four_threads_take_turns():
    inside, most = 0, 0

    def update(line, level, other):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.002)
        height(line, level + other)
        inside -= 1

    live = dot(update, level=slider("level", 0, 5), other=slider("other", 0, 5))
    live.png()

    def work(start):
        for step in range(12):
            live.controls["level" if start % 2 else "other"].value = (start + step) % 6

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    picture = live.png()
    live.redraw()
    assert live.png() == picture
    values = [control.value for control in live.controls.values()]
    assert live.artists["line"].get_ydata()[0] == sum(values), "the last picture is not that of the last values"


def test_redraw_waits_for_a_move():
    started, done = threading.Event(), []

    def update(line, level):
        if level == 1:
            started.set()
            time.sleep(0.2)
            done.append("moved")
        height(line, level)

    live = dot(update, level=slider("level", 0, 9))
    live.png()
    worker = threading.Thread(target=live.set, kwargs={"level": 1})
    worker.start()
    started.wait()
    live.redraw()
    done.append("redrawn")
    worker.join()
    assert done == ["moved", "redrawn"]


def test_a_move_waits_for_the_one_before_and_then_is_drawn():
    started = threading.Event()

    def update(line, level):
        if level == 1:
            started.set()
            time.sleep(0.3)
        height(line, level)

    live = dot(update, level=slider("level", 0, 9))
    expected = dot(height, level=slider("level", 0, 9, value=7)).png()
    worker = threading.Thread(target=live.set, kwargs={"level": 1})
    worker.start()
    started.wait()
    live.controls["level"].value = 7
    assert live.png() == expected
    worker.join()
    assert live.png() == expected


def test_a_callback_may_ask_for_the_picture_of_another_figure():
    other = dot(height, level=slider("level", 0, 9))
    live = dot(lambda line, level: other.png(), level=slider("level", 0, 9))
    done = threading.Thread(target=live.png, daemon=True)
    done.start()
    done.join(10)
    assert not done.is_alive()


def test_the_callback_needs_no_gradients():
    seen = []
    live = dot(lambda line, level: seen.append(torch.is_grad_enabled()), level=slider("level", 0, 9))
    worker = threading.Thread(target=live.set, kwargs={"level": 1})
    worker.start()
    worker.join()
    assert seen == [False]
    assert torch.is_grad_enabled()


# What the page gets


def test_the_bundle_has_the_view_the_picture_and_the_words():
    live = heat_map()
    data, metadata = live._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == live.view.model_id
    assert base64.b64decode(data["image/png"], validate=True) == live.png()
    assert metadata == {"image/png": {"width": 800, "alt": "A matrix of scores."}}
    assert data["text/plain"] == "Figure: A matrix of scores. Controls: turn, 0 to 11 places, at 0."


def test_the_words_are_stable():
    def words():
        level = slider("level", 0, 1.5, value=0.5, step=0.1, unit="turns")
        live = dot(
            lambda line, **_: None,
            level=level,
            mask=choice("mask", ["none", "causal"]),
            shown=switch("shown"),
            words=text("words", value="the dog"),
        )
        return live._repr_mimebundle_()[0]["text/plain"]

    assert words() == words()
    assert words() == (
        "Figure: A dot. Controls: level, 0 to 1.5 turns, at 0.5; mask, one of none, causal, at none; "
        "shown, off; words, a text, now “the dog”."
    )


def test_a_text_alternative_is_required():
    with pytest.raises(ValueError, match="alt is empty"):
        Live(canvas(), lambda: None, moving={}, controls={}, alt=" ")


def test_a_figure_that_stands_still_needs_no_more_than_words():
    figure = canvas(2, 1)
    figure.add_subplot().plot([0, 1])
    live = still(figure, alt="A line.")
    assert live.png() == live.png()
    assert repr(live) == "Figure: A line."


def test_all_text_has_nine_points():
    figure = canvas()
    axes = figure.add_subplot()
    axes.plot([0, 1], label="a")
    axes.set(title="a", xlabel="a", ylabel="a")
    axes.legend(title="a")
    axes.text(0, 0, "a")
    figure.supxlabel("a")
    figure.suptitle("a")
    assert {item.get_fontsize() for item in figure.findobj(matplotlib.text.Text)} == {9}


def test_a_slider_keeps_the_stops_it_is_given_and_where_it_stands():
    assert slider("m", 0, 9).stops is None
    assert slider("m", 0, 9, value=3, stops=range(0, 10, 5)).stops == [0, 3, 5]


def test_slider_handles_get_their_names_from_one_hidden_child():
    live = heat_map()
    hidden = [child for child in live.view.children if "aria-label" in str(getattr(child, "value", ""))]
    assert len(hidden) == 1 and hidden[0].layout.display == "none"
    assert all("aria-label" not in child.value for child in dot(lambda line: None).view.children[:1])


def test_controls_are_labelled_with_name_and_unit():
    turn = slider("turn", 0, 5, unit="places")
    assert (turn.description, turn.style.description_width, turn.layout.width) == (
        "turn (places)",
        "190px",
        "540px",
    )
    assert type(turn).__name__ == "IntSlider" and turn.continuous_update
    assert type(slider("turn", 0, 1, step=0.25)).__name__ == "FloatSlider"
    assert not text("sentence").continuous_update
    assert {control("x").description for control in (switch, text)} == {"x"}
    assert choice("mask", ["none", "causal"]).value == "none"


def test_watch_pushes_frames_while_work_goes_on():
    live = dot(lambda line: height(line, 0))
    with live.watch():
        start = live.png()
        height(live.artists["line"], 5)
        assert live.png() == start
        live.redraw()
        middle = live.png()
        height(live.artists["line"], 9)
    assert len({start, middle, live.png()}) == 3


def test_watch_draws_the_last_frame_when_the_work_is_stopped():
    live = dot(lambda line: height(line, 0))
    start = live.png()
    with pytest.raises(KeyboardInterrupt), live.watch():
        height(live.artists["line"], 9)
        raise KeyboardInterrupt
    assert live.png() != start


@pytest.mark.slow
def test_a_notebook_stores_the_picture_and_after_watch_the_last_one():
    code = """
        from posenc.lesson.live import Live, canvas
        figure = canvas(2, 1)
        (line,) = figure.add_subplot(xlim=(0, 1), ylim=(-1, 10)).plot([0.5], [0], "o")
        live = Live(figure, lambda: None, moving={"line": line}, controls={}, alt="A dot.")
        with live.watch():
            line.set_ydata([5])
            live.redraw()
            line.set_ydata([9])
    """
    watching, showing = (nbformat.v4.new_code_cell(source) for source in (textwrap.dedent(code), "live"))
    notebook = nbformat.v4.new_notebook(cells=[watching, showing])
    nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
    stored, shown = (cell.outputs[0] for cell in (watching, showing))
    nbformat.validate(notebook)
    assert len(watching.outputs) == len(showing.outputs) == 1
    assert stored.data["text/plain"] == shown.data["text/plain"] == "Figure: A dot."
    assert stored.metadata["image/png"] == {"width": 800, "alt": "A dot."}
    last = dot(lambda line: height(line, 9))
    pictures = [pixels(base64.b64decode(output.data["image/png"], validate=True)) for output in (stored, shown)]
    assert (pictures[0] == pictures[1]).all()
    assert (pictures[0] == pixels(last.png())).all()


# A learner's words


def test_any_word_may_be_a_label():
    words = ["$\\frac", "$\\frac$", "狗", "a_b^c", "\\", "{", "%", "", "🐕"]
    live = heat_map(words=words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        live.png()
        for word in words:
            live.artists["title"].set_text(word)
            live.redraw()


def test_a_dollar_sign_stays_one():
    live = heat_map(words=["$5$", "b"])
    live.png()
    assert not any(label.get_parse_math() for label in live.figure.axes[0].get_xticklabels())


def test_a_log_axis_keeps_its_powers():
    def log_figure():
        figure = canvas(2, 2)
        axes = figure.add_subplot()
        axes.set(yscale="log", ylim=(1, 1e6))
        return figure

    live = Live(log_figure(), lambda: None, moving={}, controls={}, alt="An axis.")
    by_matplotlib = log_figure()
    by_matplotlib.canvas.draw()
    assert (pixels(live.png()) == np.asarray(by_matplotlib.canvas.buffer_rgba())[..., :3]).all()


# A figure that is made again and again


def rerun(monkeypatch, cell, run):
    """From now on, figures are shown by this run of this cell."""
    monkeypatch.setattr(posenc.lesson.following, "_running_cell", lambda: (cell, run))


def test_after_20_reruns_a_move_costs_what_it_cost_first(monkeypatch):
    moves, level, out = [], slider("level", 0, 9), []

    def run(count):
        rerun(monkeypatch, "a cell", count)
        live = dot(lambda line, level: moves.append(count), level=level)
        live._repr_mimebundle_()
        out.append(live)  # as IPython keeps them

    run(0)
    for count in range(1, 21):
        run(count)
    moves.clear()
    level.value = 1
    assert moves == [20]


def test_figures_of_other_cells_and_of_the_same_run_stay(monkeypatch):
    level, moves = slider("level", 0, 9), []

    def figure(name):
        return dot(lambda line, level: moves.append(name), level=level)

    rerun(monkeypatch, "one", 1)
    first, second = figure("first"), figure("second")
    first._repr_mimebundle_(), second._repr_mimebundle_(), first._repr_mimebundle_()
    rerun(monkeypatch, "two", 2)
    figure("third")._repr_mimebundle_(), second._repr_mimebundle_()
    rerun(monkeypatch, "one", 3)
    fourth = figure("fourth")
    fourth._repr_mimebundle_()
    gc.collect()
    moves.clear()
    level.value = 2
    assert sorted(moves) == ["fourth", "second", "third"], "the second is shown elsewhere, the third has no name"
    rerun(monkeypatch, "one", 4)
    first._repr_mimebundle_()
    moves.clear()
    level.value = 3
    assert sorted(moves) == ["first", "second", "third"], "shown again, it follows again"


def test_a_figure_without_a_name_that_is_shown_nowhere_is_freed():
    level = slider("level", 0, 9)
    gone = weakref.ref(dot(height, level=level))
    gc.collect()
    assert gone() is None and not posenc.lesson.following._followers[level]


def test_ipykernel_asks_a_control_which_thread_is_to_answer():
    """The name is private. When it is gone, see in a browser whether a slider that was never touched answers while
    a cell runs (test_browser does), and take `_answer_beside_a_cell` away if it does."""
    assert "_reply_subshell_for" in inspect.getsource(ipykernel.kernelbase.Kernel.shell_channel_thread_main)
    assert list(inspect.signature(ipykernel.comm.comm.BaseComm._reply_subshell_for).parameters) == [
        "self",
        "data",
        "default",
    ]


def test_a_control_is_answered_in_the_thread_that_the_page_asks_for():
    comm = ipykernel.comm.comm.BaseComm()
    comm._reply_subshell_id = None  # it was last spoken to by the main thread
    control = slider("level", 0, 9)
    control.comm = comm
    dot(height, level=control)
    assert comm._reply_subshell_for({}, "the page's") == "the page's"
