"""What a stored picture does not show of what figures are drawn with."""

from posenc.lesson.drawing import bare, blank, signed


def test_a_bare_panel_is_white_paper():
    figure = blank(1)
    figure.canvas.draw()
    paper = bytes(figure.canvas.buffer_rgba())
    panel = figure.add_axes((0.2, 0.2, 0.6, 0.6), facecolor="red")
    assert bare(panel) is panel
    figure.canvas.draw()
    assert bytes(figure.canvas.buffer_rgba()) == paper


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [signed(x) for x in (-0.504, -0.001, 1.0)] == ["−0.50", "0.00", "1.00"]
    assert signed(-12.34, ".3g") == "−12.3"
