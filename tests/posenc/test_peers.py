"""Independent implementations from PyPI: which of them agree with the paper, and with the course."""

import pytest
import torch

from posenc.additive import sinusoidal
from posenc.rotary import angles, rotate, to_half_split, to_interleaved

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


def m2m100():
    module = transformers(".models.m2m_100.modeling_m2m_100")
    return module.M2M100SinusoidalPositionalEmbedding.get_embedding(LENGTH, WIDTH)


def whisper():
    return transformers(".models.whisper.modeling_whisper").sinusoids(LENGTH, WIDTH)


@pytest.mark.parametrize("table", [m2m100, whisper])
def test_the_slowest_wave_of_others_reaches_the_base(table):
    """Exponent i / (d/2 - 1): not the paper's encoding, but ours with a larger base."""
    assert (interleaved(table()) - ours()).abs().max() > 0.5
    larger = 10_000 ** ((WIDTH / 2) / (WIDTH / 2 - 1))
    # their float32 frequencies are off by 1e-7, fifty positions later the angles by 1e-5
    torch.testing.assert_close(interleaved(table()), ours(base=larger), rtol=0, atol=3e-5)


# --- rotary ----------------------------------------------------------------------------------

HEADS, TOKENS, HEAD_DIM = 2, 300, 64

# A peer's float32 angles are rounded: at position 300 by up to 2e-5, and vectors here are shorter than 5 in a pair.
# Near position 0 there is next to nothing to round. The mistakes below are off by more than 0.5.
NEAR, FAR = 1e-6, 2e-4
BFLOAT16 = 4e-2  # cosines rounded to bfloat16, and their products


def vectors(dtype=torch.float32):
    x = torch.randn(1, HEADS, TOKENS, HEAD_DIM, generator=torch.Generator().manual_seed(0))
    return x.to(dtype)


def by_llama(x, start=0):
    llama = transformers(".models.llama.modeling_llama")
    rope = {"rope_type": "default", "rope_theta": 10_000.0}
    config = llama.LlamaConfig(head_dim=HEAD_DIM, rope_parameters=rope)
    cos, sin = llama.LlamaRotaryEmbedding(config)(x, start + torch.arange(x.shape[2])[None])
    q, k = llama.apply_rotary_pos_emb(x, x, cos, sin)
    assert torch.equal(q, k)
    return q


def by_neox(x, start=0, part=0.25):
    neox = transformers(".models.gpt_neox.modeling_gpt_neox")
    config = neox.GPTNeoXConfig(
        hidden_size=HEADS * HEAD_DIM,
        num_attention_heads=HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": part},
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


INTERLEAVED = [by_gptj, by_rotary_embedding_torch, by_x_transformers]
HALF_SPLIT = [by_llama, by_neox]
PEERS = [*((peer, "interleaved") for peer in INTERLEAVED), *((peer, "half_split") for peer in HALF_SPLIT)]


def turned(x, layout, peer, *, start=0, sign=1):
    pairs = HEAD_DIM // (4 if peer is by_neox else 1)
    return rotate(x, sign * angles(start + torch.arange(x.shape[2]), pairs), layout=layout)


@pytest.mark.parametrize("peer, layout", PEERS)
def test_a_peer_rotates_as_we_do(peer, layout):
    x = vectors()
    error = (peer(x) - turned(x, layout, peer)).abs().amax(dim=(0, 1, 3))  # by position
    assert error[:4].max() < NEAR and error.max() < FAR
    late = x[:, :, :20]
    torch.testing.assert_close(peer(late, 280), turned(late, layout, peer, start=280), rtol=0, atol=FAR)


@pytest.mark.parametrize("peer, layout", PEERS)
def test_the_tolerances_can_fail(peer, layout):
    x = vectors()
    other = "half_split" if layout == "interleaved" else "interleaved"
    for mistake in (turned(x, other, peer), turned(x, layout, peer, sign=-1), turned(x, layout, peer, start=1)):
        error = (peer(x) - mistake).abs().amax(dim=(0, 1, 3))
        assert error[1] > 0.5 and error.max() > 1


@pytest.mark.parametrize("peer, layout", PEERS)
def test_a_converted_vector_is_rotated_by_a_peer_of_the_other_layout(peer, layout):
    x, part = vectors(), HEAD_DIM // (4 if peer is by_neox else 1)
    there, back = (to_interleaved, to_half_split) if layout == "interleaved" else (to_half_split, to_interleaved)
    got = back(peer(there(x, HEAD_DIM, rotary_dim=part)), HEAD_DIM, rotary_dim=part)
    other = "half_split" if layout == "interleaved" else "interleaved"
    torch.testing.assert_close(got, turned(x, other, peer), rtol=0, atol=FAR)


@pytest.mark.parametrize("peer, layout", [pair for pair in PEERS if pair[0] is not by_rotary_embedding_torch])
def test_a_peer_agrees_in_bfloat16(peer, layout):
    x = vectors(torch.bfloat16)
    assert (peer(x).double() - turned(x, layout, peer).double()).abs().max() < BFLOAT16
    mistake = turned(x.roll(1, dims=2), layout, peer)
    assert (peer(x).double() - mistake.double()).abs().max() > 1


def test_a_peer_that_counts_in_the_dtype_of_its_input_goes_wrong_in_bfloat16():
    """rotary-embedding-torch 0.9.1 takes the positions in x's dtype, so that 257 is 256; the course does not."""
    x = vectors(torch.bfloat16)
    error = (by_rotary_embedding_torch(x) - turned(x, "interleaved", None)).abs().amax(dim=(0, 1, 3))
    assert error[:256].max() < BFLOAT16 * 1.5 and error[257] > 0.3
