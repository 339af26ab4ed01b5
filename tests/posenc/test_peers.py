"""Independent implementations from PyPI: which of them agree with the paper, and with the course."""

import pytest
import torch

from posenc.additive import sinusoidal
from posenc.rotary import angles, rotate

pytestmark = pytest.mark.slow  # their import takes longer than the quick tests of a folder

LENGTH, WIDTH = 50, 16


def transformers(name=""):
    """The module of this name, imported where it is needed."""
    return pytest.importorskip(f"transformers{name}", reason="it comes with the extra `dev`")


def interleaved(halves: torch.Tensor) -> torch.Tensor:
    return halves.unflatten(-1, (2, -1)).mT.flatten(-2)


def ours(**options) -> torch.Tensor:
    return sinusoidal(torch.arange(LENGTH), WIDTH, **options)


def test_marians_sinusoids_are_the_papers_in_halves():
    marian = transformers(".models.marian.modeling_marian")
    marian = marian.MarianSinusoidalPositionalEmbedding(LENGTH, WIDTH).create_weight()
    torch.testing.assert_close(interleaved(marian), ours(), rtol=0, atol=1e-6)
    assert (marian - ours()).abs().max() > 1  # the layouts do differ


def test_the_slowest_wave_of_others_reaches_the_base():
    """Exponent i / (d/2 - 1): not the paper's encoding, but ours with a larger base."""
    m2m100 = transformers(".models.m2m_100.modeling_m2m_100").M2M100SinusoidalPositionalEmbedding.get_embedding
    whisper = transformers(".models.whisper.modeling_whisper").sinusoids
    larger = 10_000 ** ((WIDTH / 2) / (WIDTH / 2 - 1))
    for table in (m2m100(LENGTH, WIDTH), whisper(LENGTH, WIDTH)):
        assert (interleaved(table) - ours()).abs().max() > 0.5
        # their float32 frequencies are off by 1e-7, fifty positions later the angles by 1e-5
        torch.testing.assert_close(interleaved(table), ours(base=larger), rtol=0, atol=3e-5)


# --- rotary ----------------------------------------------------------------------------------

HEADS, TOKENS, HEAD_DIM = 2, 300, 64

# A peer's float32 angles are rounded: at position 300 by up to 2e-5, and vectors here are shorter than 5 in a pair.
# Near position 0 there is next to nothing to round. The mistakes below are off by more than 0.5.
NEAR, FAR = 1e-6, 2e-4


def by_llama(x, start=0):
    llama = transformers(".models.llama.modeling_llama")
    rope = {"rope_type": "default", "rope_theta": 10_000.0}
    config = llama.LlamaConfig(head_dim=HEAD_DIM, rope_parameters=rope)
    cos, sin = llama.LlamaRotaryEmbedding(config)(x, start + torch.arange(x.shape[2])[None])
    return llama.apply_rotary_pos_emb(x, x, cos, sin)[0]


def by_neox(x, start=0):
    neox = transformers(".models.gpt_neox.modeling_gpt_neox")
    config = neox.GPTNeoXConfig(
        hidden_size=HEADS * HEAD_DIM,
        num_attention_heads=HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.25},
    )
    cos, sin = neox.GPTNeoXRotaryEmbedding(config)(x, start + torch.arange(x.shape[2])[None])
    return neox.apply_rotary_pos_emb(x, x, cos, sin)[0]


def by_gptj(x, start=0):
    """Interleaved, tokens before heads; the result is float32 whatever x is."""
    gptj = transformers(".models.gptj.modeling_gptj")
    table = gptj.create_sinusoidal_positions(start + x.shape[2], HEAD_DIM)[None, start:]
    sin, cos = table.chunk(2, dim=-1)
    return gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)


def by_rotary_embedding_torch(x, start=0):
    peer = pytest.importorskip("rotary_embedding_torch", reason="it comes with the extra `dev`")
    return peer.RotaryEmbedding(HEAD_DIM, cache_if_possible=False).rotate_queries_or_keys(x, offset=start)


def by_x_transformers(x, start=0):
    peer = pytest.importorskip("x_transformers.x_transformers", reason="it comes with the extra `dev`")
    freqs, scale = peer.RotaryEmbedding(HEAD_DIM)(start + torch.arange(x.shape[2]))
    return peer.apply_rotary_pos_emb(x, freqs, scale)


def error(theirs, x, layout, *, part=1, start=0, sign=1):
    """The largest difference from our rotation, by position."""
    theta = sign * angles(start + torch.arange(x.shape[2]), HEAD_DIM // part)
    return (theirs - rotate(x, theta, layout=layout)).abs().amax(dim=(0, 1, 3))


@pytest.mark.parametrize(
    "peer, layout, part",
    [
        (by_gptj, "interleaved", 1),
        (by_rotary_embedding_torch, "interleaved", 1),
        (by_x_transformers, "interleaved", 1),
        (by_llama, "half_split", 1),
        (by_neox, "half_split", 4),
    ],
)
def test_a_peer_rotates_as_we_do(peer, layout, part):
    x = torch.randn(1, HEADS, TOKENS, HEAD_DIM, generator=torch.Generator().manual_seed(0))
    theirs, late = peer(x), x[:, :, :20]
    near = error(theirs, x, layout, part=part)
    assert near[:4].max() < NEAR and near.max() < FAR
    assert error(peer(late, 280), late, layout, part=part, start=280).max() < FAR
    for mistake in ({"layout": "half_split" if layout == "interleaved" else "interleaved"}, {"sign": -1}, {"start": 1}):
        assert error(theirs, x, **{"layout": layout, "part": part} | mistake)[1] > 0.5
