"""The wish list of chapter 2: each wish has an encoding that breaks it, and one that grants it."""

import pytest
import torch

from posenc.additive import binary, integer, sinusoidal
from posenc.chapters.additive_encodings.wishes import WISHES, WishList, granted, missed_by_a_map

POSITIONS = torch.arange(1000)


def along_one_direction(p, d):
    return p[:, None] * torch.linspace(-1, 1, d, dtype=torch.float64)


def sines_alone(p, d):
    return sinusoidal(p, 2 * d, dtype=torch.float64)[:, 0::2]


def drawn(p, d):
    return torch.randn(1000, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[p]


def few_digits(p, d):
    return binary(p % 512, d, dtype=torch.float64)


BROKEN = [
    (integer, {"bounded", "not the same everywhere"}),
    (along_one_direction, {"bounded"}),
    (binary, {"smooth", "one step", "offset readable"}),
    (few_digits, {"unique", "smooth", "one step", "offset readable"}),
    (sines_alone, {"one step", "offset readable"}),
    (drawn, {"smooth", "one step", "offset readable"}),
    (sinusoidal, set()),
]


@pytest.mark.parametrize("encode, broken", BROKEN, ids=[encode.__name__ for encode, _ in BROKEN])
def test_what_an_encoding_breaks(encode, broken):
    found = granted(encode(POSITIONS, 32).double())
    assert tuple(found) == WISHES
    assert {wish for wish, (kept, _) in found.items() if not kept} == broken


def test_the_numbers_are_those_of_the_codes():
    found = {wish: number for wish, (_, number) in granted(binary(POSITIONS, 32).double()).items()}
    assert found["unique"] == "1,000 of 1,000" and found["bounded"] == "1"
    assert found["one step"] == "1.00 to 3.16"  # one digit, and from 511 to 512 ten
    assert granted(integer(POSITIONS, 32).double())["bounded"][1] == "999"


def test_a_map_reads_what_is_linear_in_the_code_and_what_float32_rounds_away_is_no_other_step():
    codes = along_one_direction(POSITIONS, 32)
    assert missed_by_a_map(codes, 7) < 1e-9 and missed_by_a_map(codes**2, 7) > 1e-3
    assert granted(codes.float().double())["one step"][0]


def test_the_table_says_the_same_in_words_and_on_the_page():
    table = WishList({"digits <2>": binary, "waves": sinusoidal})
    lines = repr(table).splitlines()
    assert lines[1].startswith("digits <2>") and [line.count("✗") for line in lines[1:]] == [3, 0]
    page = table._repr_html_()
    assert "digits &lt;2&gt;" in page and page.count("✗") == 3 and page.count("✓") == 9
    assert all(word in page for word in WISHES)
