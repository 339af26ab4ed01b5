"""Independent implementations from PyPI: which of them agree with the paper, and with the course."""

import pytest
import torch

from posenc.additive import sinusoidal

pytest.importorskip("transformers", reason="it comes with the extra `dev`, which `make test` installs")

from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.whisper.modeling_whisper import sinusoids

LENGTH, WIDTH = 50, 16


def interleaved(halves: torch.Tensor) -> torch.Tensor:
    return halves.unflatten(-1, (2, -1)).mT.flatten(-2)


def ours(**options) -> torch.Tensor:
    return sinusoidal(torch.arange(LENGTH), WIDTH, **options)


def test_marians_sinusoids_are_the_papers_in_halves():
    marian = MarianSinusoidalPositionalEmbedding(LENGTH, WIDTH).create_weight()
    torch.testing.assert_close(interleaved(marian), ours(), rtol=0, atol=1e-6)
    assert (marian - ours()).abs().max() > 1  # the layouts do differ


@pytest.mark.parametrize(
    "table",
    [
        lambda: M2M100SinusoidalPositionalEmbedding.get_embedding(LENGTH, WIDTH),
        lambda: sinusoids(LENGTH, WIDTH),
    ],
    ids=["M2M100", "Whisper"],
)
def test_the_slowest_wave_of_others_reaches_the_base(table):
    """Exponent i / (d/2 - 1): not the paper's encoding, but ours with a larger base."""
    assert (interleaved(table()) - ours()).abs().max() > 0.5
    larger = 10_000 ** ((WIDTH / 2) / (WIDTH / 2 - 1))
    # their float32 frequencies are off by 1e-7, fifty positions later the angles by 1e-5
    torch.testing.assert_close(interleaved(table()), ours(base=larger), rtol=0, atol=3e-5)
