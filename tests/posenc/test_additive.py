"""The additive encodings: their formulas, their properties, and inputs they refuse."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from posenc.additive import Learned, binary, frequencies, integer, require_integers, shift_matrix, sinusoidal
from posenc.models import Ensemble, Transformer


def test_equals_the_formula_number_by_number():
    encoding = sinusoidal(torch.tensor([0, 1, 7]), 6, base=100.0, dtype=torch.float64)
    for row, position in enumerate((0, 1, 7)):
        for i in range(3):
            angle = position / 100 ** (2 * i / 6)
            assert encoding[row, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-15)
            assert encoding[row, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-15)


def test_every_encoding_has_the_same_length():
    lengths = sinusoidal(torch.arange(-5, 2000), 64, dtype=torch.float64).norm(dim=-1)
    torch.testing.assert_close(lengths, torch.full_like(lengths, math.sqrt(32)))


def test_the_dot_product_depends_on_the_offset_only():
    encoding = sinusoidal(torch.arange(100), 64, dtype=torch.float64)
    gram = encoding @ encoding.T
    assert (gram[1:, 1:] - gram[:-1, :-1]).abs().max() < 1e-12
    assert gram[0].std() > 1


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


def test_neighbours_in_binary_can_be_far_apart_and_strangers_near():
    seven, eight, fifteen = binary(torch.tensor([7, 8, 15]), 4)
    assert (seven - eight).square().sum() == 4
    assert (seven - fifteen).square().sum() == 1


def test_every_binary_code_occurs_once():
    assert len(binary(torch.arange(2**6), 6).unique(dim=0)) == 2**6


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("encode", [integer, binary, sinusoidal])
def test_any_integer_dtype_gives_the_same(encode, dtype):
    positions = torch.tensor([0, 1, 100, 127])
    assert torch.equal(encode(positions.to(dtype), 8), encode(positions, 8))


@given(st.integers(-(10**6), 10**6), st.integers(-2000, 2000), st.sampled_from([2, 6, 64]))
def test_the_shift_matrix_shifts_every_position(position, offset, width):
    before, after = sinusoidal(torch.tensor([position, position + offset]), width, dtype=torch.float64)
    # float64 angles near 10^6 are known to 1e-10
    torch.testing.assert_close(shift_matrix(offset, width) @ before, after, rtol=0, atol=1e-8)


@given(st.integers(-500, 500), st.integers(-500, 500), st.floats(2.0, 1e6))
def test_shifts_add_up_and_are_orthogonal(first, second, base):
    one, two = shift_matrix(first, 8, base=base), shift_matrix(second, 8, base=base)
    torch.testing.assert_close(one @ two, shift_matrix(first + second, 8, base=base), rtol=0, atol=1e-11)
    torch.testing.assert_close(one @ one.T, torch.eye(8, dtype=torch.float64), rtol=0, atol=1e-14)


def test_the_base_of_a_shift_is_that_of_the_encoding():
    before, after = sinusoidal(torch.tensor([3, 8]), 8, base=100.0, dtype=torch.float64)
    torch.testing.assert_close(shift_matrix(5, 8, base=100.0) @ before, after)
    assert (shift_matrix(5, 8) @ before - after).abs().max() > 0.1


def test_no_wave_is_longer_than_the_docstring_says():
    longest = 2 * math.pi * 10_000 ** ((512 - 2) / 512)
    angle = 1_000_000 * 2 * math.pi / longest
    last = sinusoidal(torch.tensor(1_000_000), 512, dtype=torch.float64)[-2:]
    torch.testing.assert_close(last, torch.tensor([math.sin(angle), math.cos(angle)], dtype=torch.float64))


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


class AddLearned(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = Learned(10, 32)

    def forward(self, x, positions):
        return x + self.positions(positions)


def test_an_ensemble_has_one_table_a_seed():
    ensemble = Ensemble(lambda: Transformer(12, 1, encode=AddLearned()), seeds=range(3))
    assert ensemble.parameters["encode.positions.table"].shape == (3, 10, 32)
    tokens = torch.zeros(3, 2, 10, dtype=torch.long)
    assert ensemble(tokens).shape == (3, 2, 10, 1)
    with pytest.raises(ValueError, match="position 10 is not in the table"):
        ensemble(torch.zeros(3, 2, 11, dtype=torch.long))


# --- what is refused -------------------------------------------------------------------------

ENCODINGS = [integer, binary, sinusoidal, lambda positions, d_model: Learned(9, 4)(positions)]


@pytest.mark.parametrize("encode", ENCODINGS)
@pytest.mark.parametrize(
    "positions", [torch.arange(3.0), torch.arange(3).bfloat16(), torch.ones(3).bool(), torch.ones(3).cfloat()]
)
def test_refuses_positions_that_are_not_integers(encode, positions):
    with pytest.raises(TypeError, match=f"positions are {positions.dtype}: pass integers"):
        encode(positions, 4)
    with pytest.raises(TypeError, match=f"positions are {positions.dtype}: pass integers"):
        require_integers(positions)


@pytest.mark.parametrize("encode", ENCODINGS)
def test_no_position_gives_no_vector(encode):
    assert encode(torch.zeros(2, 0, dtype=torch.long), 4).shape == (2, 0, 4)


@given(st.one_of(st.integers(-10, 0), st.integers(0, 50).map(lambda n: 2 * n + 1)))
def test_refuses_a_width_without_pairs(width):
    for ask in (frequencies, partial(sinusoidal, torch.arange(3)), partial(shift_matrix, 1)):
        with pytest.raises(ValueError, match=f"{width} dimensions: .*positive even"):
            ask(width)


@given(st.integers(-10, 0))
def test_refuses_a_size_that_is_not_positive(size):
    for make in (
        lambda: integer(torch.arange(3), size),
        lambda: binary(torch.arange(1), size),
        lambda: Learned(3, size),
    ):
        with pytest.raises(ValueError, match=f"d_model is {size}: choose a positive number"):
            make()
    with pytest.raises(ValueError, match=f"length is {size}: a table needs at least one position"):
        Learned(size, 4)


@pytest.mark.parametrize("base", [0.0, -1.0, math.nan])
def test_refuses_a_base_that_is_not_positive(base):
    for ask in (frequencies, partial(sinusoidal, torch.arange(3)), partial(shift_matrix, 1)):
        with pytest.raises(ValueError, match="base is .* choose a positive number"):
            ask(4, base=base)


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


@pytest.mark.parametrize("encode", [lambda p: Learned(10, 6)(p), lambda p: binary(p, 6)], ids=["learned", "binary"])
def test_positions_may_differ_from_seed_to_seed_inside_vmap(encode):
    positions = torch.tensor([[0, 1, 2], [7, 3, 9]])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        alone = torch.stack([encode(row) for row in positions[:1]])
        torch.manual_seed(0)
        together = torch.vmap(encode, randomness="same")(positions)
    assert torch.equal(together[:1], alone) and together.shape == (2, 3, 6)
    assert not together.isnan().any()


def test_inside_vmap_a_position_that_does_not_fit_is_nan():
    positions = torch.tensor([[0, 63], [64, -1]])
    assert torch.vmap(lambda p: binary(p, 6))(positions).isnan().any(-1).tolist() == [
        [False, False],
        [True, True],
    ]
    table = Learned(64, 4)
    assert torch.vmap(table)(positions).isnan().any(-1).tolist() == [[False, False], [True, True]]


def test_an_ensemble_of_tables_takes_positions_of_each_seed():
    class Look(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = Learned(10, 4)

        def forward(self, positions):
            return self.table(positions)

    ensemble = Ensemble(Look, seeds=range(3))
    positions = torch.tensor([[1, 2], [3, 4], [9, 0]])
    got = ensemble(positions)
    for seed in range(3):
        assert torch.equal(got[seed], ensemble.parameters["table.table"][seed][positions[seed]])
