"""The additive encodings: their formulas, their properties, and inputs they refuse."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.additive import Learned, binary, frequencies, integer, require_integers, shift_matrix, sinusoidal


def test_equals_the_formula_number_by_number():
    encoding = sinusoidal(torch.tensor([0, 1, 7]), 6, base=100.0, dtype=torch.float64)
    for row, position in enumerate((0, 1, 7)):
        for i in range(3):
            angle = position / 100 ** (2 * i / 6)
            assert encoding[row, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-15)
            assert encoding[row, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-15)


def test_positions_may_start_anywhere_repeat_and_have_any_shape():
    positions = torch.tensor([[5, 5], [1_000_000, -3]])
    encoding = sinusoidal(positions, 4)
    assert encoding.shape == (2, 2, 4) and encoding.dtype == torch.float32
    assert torch.equal(encoding[0, 0], encoding[0, 1])
    assert encoding[1, 0, 0].item() == pytest.approx(math.sin(1e6), abs=1e-6)  # float32 angles miss this by 1e-2


def test_integers_stand_in_every_dimension():
    encoding = integer(torch.tensor([[7, -2], [0, 7]]), 3, dtype=torch.float64)
    assert encoding.dtype == torch.float64 and encoding.shape == (2, 2, 3)
    assert encoding[0].tolist() == [[7, 7, 7], [-2, -2, -2]]


@given(st.integers(0, 2**62 - 1), st.integers(62, 80))
def test_binary_digits_are_pythons(position, width):
    digits = binary(torch.tensor(position), width)
    assert "".join(f"{digit:.0f}" for digit in digits.flip(0).tolist()) == f"{position:0{width}b}"


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("encode", [integer, binary, sinusoidal])
def test_any_integer_dtype_gives_the_same(encode, dtype):
    positions = torch.tensor([0, 1, 100, 127])
    assert torch.equal(encode(positions.to(dtype), 8), encode(positions, 8))
    assert encode(torch.zeros(2, 0, dtype=dtype), 8).shape == (2, 0, 8)  # no position gives no vector


@given(
    st.integers(-(10**6), 10**6),
    st.integers(-2000, 2000),
    st.sampled_from([2, 6, 64]),
    st.sampled_from([10_000.0, 100.0]),
)
def test_the_shift_matrix_shifts_every_position(position, offset, width, base):
    both = torch.tensor([position, position + offset])
    before, after = sinusoidal(both, width, base=base, dtype=torch.float64)
    # float64 angles near 10^6 are known to 1e-10
    torch.testing.assert_close(shift_matrix(offset, width, base=base) @ before, after, rtol=0, atol=1e-8)


# --- a learned table -------------------------------------------------------------------------


def test_a_table_gives_its_rows_and_learns_the_ones_that_were_used():
    torch.manual_seed(0)
    table = Learned(10, 4)
    positions = torch.tensor([[9, 0], [9, 3]], dtype=torch.int32)
    assert torch.equal(table(positions), table.table[positions.long()])
    table(positions).sum().backward()
    assert table.table.grad.sum(-1).tolist() == [4, 0, 0, 4, 0, 0, 0, 0, 0, 8]


def test_a_table_starts_with_the_spread_that_was_asked_for():
    torch.manual_seed(0)
    assert Learned(200, 100, std=0.02).table.std().item() == pytest.approx(0.02, rel=0.03)


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encode", [integer, binary, sinusoidal, lambda p, _: Learned(9, 4)(p), lambda p, _: require_integers(p)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
def test_refuses_positions_that_are_not_integers(encode, dtype):
    with pytest.raises(TypeError, match=f"positions are {dtype}: pass integers"):
        encode(torch.arange(3).to(dtype), 4)


@pytest.mark.parametrize("ask", [frequencies, partial(sinusoidal, torch.arange(3)), partial(shift_matrix, 1)])
def test_refuses_a_width_without_pairs_and_a_base_that_is_not_positive(ask):
    for width in (-2, 0, 1, 7):
        with pytest.raises(ValueError, match=f"{width} dimensions: .*positive even"):
            ask(width)
    for base in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="base is .* choose a positive number"):
            ask(4, base=base)


@pytest.mark.parametrize("size", [0, -3])
def test_refuses_a_size_that_is_not_positive(size):
    for make in (partial(integer, torch.arange(3)), partial(binary, torch.arange(1)), partial(Learned, 3)):
        with pytest.raises(ValueError, match=f"d_model is {size}: choose a positive number"):
            make(size)
    with pytest.raises(ValueError, match=f"length is {size}: a table needs at least one position"):
        Learned(size, 4)


@pytest.mark.parametrize("offset", [1.0, True, None, torch.tensor(1)])
def test_refuses_an_offset_that_is_no_integer(offset):
    with pytest.raises(TypeError, match=f"offset is a {type(offset).__name__}: pass an integer"):
        shift_matrix(offset, 4)


@given(st.integers(1, 70), st.integers(-(2**63), 2**63 - 1))
def test_binary_refuses_what_its_digits_cannot_hold(width, position):
    if 0 <= position < 2**width:
        assert binary(torch.tensor(position), width).sum() == position.bit_count()
    else:
        with pytest.raises(ValueError, match=f"position {position} does not fit: {width} binary digits hold"):
            binary(torch.tensor([0, position]), width)


@given(st.integers(-20, 30))
def test_a_table_refuses_what_it_does_not_hold(position):
    table = Learned(9, 4)
    if 0 <= position < 9:
        assert torch.equal(table(torch.tensor([position]))[0], table.table[position])
    else:
        with pytest.raises(ValueError, match=f"position {position} is not in the table.* 0 to 8"):
            table(torch.tensor([0, position]))


def test_a_table_refuses_positions_on_another_device():
    with pytest.raises(ValueError, match="positions are on meta and the table is on cpu: move one"):
        Learned(9, 4)(torch.arange(3, device="meta"))


@pytest.mark.parametrize("encode", [integer, sinusoidal])
def test_the_other_encodings_are_made_where_the_positions_are(encode):
    assert encode(torch.arange(3, device="meta"), 4).device.type == "meta"


@pytest.mark.parametrize("encode", [partial(binary, d_model=6), Learned(64, 4)], ids=["binary", "learned"])
def test_inside_vmap_a_position_that_does_not_fit_is_nan(encode):
    positions = torch.tensor([[0, 63], [64, -1]])
    found = torch.vmap(encode)(positions)
    assert torch.equal(found[0], encode(positions[0])) and found[1].isnan().all()
