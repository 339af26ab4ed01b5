"""The sinusoidal encoding: its formula, its properties, and inputs it refuses."""

import math

import pytest
import torch

from posenc.additive import sinusoidal


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
    assert encoding[1, 0, 0].item() == pytest.approx(
        math.sin(1e6), abs=1e-6
    )  # float32 angles miss this by 1e-2


@pytest.mark.parametrize(
    "positions", [torch.arange(3.0), torch.arange(3).bfloat16(), torch.ones(3, dtype=torch.bool)]
)
def test_refuses_positions_that_are_not_integers(positions):
    with pytest.raises(TypeError, match="pass integers"):
        sinusoidal(positions, 4)


@pytest.mark.parametrize("width", [0, -2, 5])
def test_refuses_a_width_without_pairs(width):
    with pytest.raises(ValueError, match=f"d_model is {width}.*positive even"):
        sinusoidal(torch.arange(3), width)
