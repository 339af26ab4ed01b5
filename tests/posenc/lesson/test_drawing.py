import pytest

from posenc.lesson.drawing import bare, blank, dial, hand, log_axis, signed


def test_a_panel_stands_where_it_is_put():
    figure = blank(2.5)
    panel = figure.add_axes((0.2, 0.1, 0.7, 0.8))
    panel.set_ylabel("a label for which\nanother layout\nwould make room")
    figure.canvas.draw()
    assert panel.get_position().bounds == pytest.approx((0.2, 0.1, 0.7, 0.8))
    assert (figure.get_figwidth(), figure.get_figheight()) == (8, 2.5)


def test_a_bare_panel_is_white_paper():
    figure = blank(1)
    figure.canvas.draw()
    paper = bytes(figure.canvas.buffer_rgba())
    panel = figure.add_axes((0.2, 0.2, 0.6, 0.6), facecolor="red")
    assert bare(panel) is panel
    figure.canvas.draw()
    assert bytes(figure.canvas.buffer_rgba()) == paper


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_logarithmic_axis_has_its_ticks_alone(name):
    panel = blank(2).add_subplot()
    axis = getattr(panel, f"{name}axis")
    log_axis(axis, [0.001, 1, 65_536], base=2)
    assert axis.get_scale() == "log" and axis.get_transform().base == 2
    assert [label.get_text() for label in axis.get_ticklabels()] == ["0.001", "1", "65,536"]
    assert len(axis.get_minorticklocs()) == 0
    assert (panel.get_yscale() if name == "x" else panel.get_xscale()) == "linear"


def test_a_hand_on_its_dial():
    panel = dial(blank(2).add_subplot(), 1.5)
    assert panel.get_xlim() == panel.get_ylim() == (-1.5, 1.5) and panel.get_aspect() == 1
    (rim,) = panel.lines
    assert [x**2 + y**2 for x, y in rim.get_xydata()] == pytest.approx([1] * len(rim.get_xydata()))
    drawn, empty = hand(panel, "red", (0.6, 0.8)), hand(panel, "red", linewidth=1)
    assert drawn.get_xydata().tolist() == [[0, 0], [0.6, 0.8]] and drawn.get_markevery() == [1]
    assert len(empty.get_xydata()) == 0 and empty.get_linewidth() == 1


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [signed(x) for x in (-0.504, -0.001, 1.0)] == ["−0.50", "0.00", "1.00"]
    assert signed(-12.34, ".3g") == "−12.3"
