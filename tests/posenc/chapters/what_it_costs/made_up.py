"""Chapter 7's figures of measured data, from data that is made up."""

from posenc.chapters.what_it_costs import figures
from posenc.timing import Traffic


def call_by_call():
    times = [5e-3, 2e-4] + [1e-4 + 1e-6 * (call % 7) for call in range(48)]
    return figures.call_by_call(times, [2**n for n in range(12, 27, 2)], [2e9 * n for n in (1, 3, 6, 9, 9, 7, 4, 4)])


def predicted_and_measured():
    rows = {"a": (1, 1.2), "b": (4, 9), "c": (3, None)}
    return figures.predicted_and_measured(rows, missing="no compiler")


def bytes_by_operation():
    return figures.bytes_by_operation(
        {"one": Traffic((("mul", 40, 40),)), "two": Traffic((("neg", 10, 10), ("cat", 60, 80)))}, copy=80
    )


def bytes_by_length():
    return figures.bytes_by_length(
        {T: {"added": 10**4 * T, "rotated": 3 * 10**4 * T, "bias": 100 * T**2} for T in (64, 512, 4096)}
    )
