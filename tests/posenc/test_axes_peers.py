"""Qwen2-VL and Qwen3-VL of transformers: the same angles and the same coordinates."""

import pytest
import torch

from posenc.axes import axial, decoding_delta, grid, sections, text_and_images
from posenc.rotary import rotate

pytestmark = pytest.mark.slow  # their import takes longer than the quick tests of a folder

HEAD_DIM, TEXT, IMAGE = 128, 5, (3, 4)
PLACES = text_and_images(TEXT, IMAGE, 6)
ROUNDING = 1e-5  # their angles are float32, and no coordinate is above 20; the mistakes below move x by 0.1 or more


def qwen(version, part="modeling"):
    """A module of Qwen2-VL or Qwen3-VL, imported where it is needed."""
    name = f"transformers.models.qwen{version}_vl.{part}_qwen{version}_vl"
    return pytest.importorskip(name, reason="it comes with the extra `dev`")


def vectors():
    return torch.randn(1, 2, len(PLACES), HEAD_DIM, generator=torch.Generator().manual_seed(0))


def by_qwen(version, sizes):
    """What a peer makes of vectors (1, heads, T, d) at coordinates (T, 3)."""
    x, text = vectors(), "Text" if version == 3 else ""
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sizes}
    size = {"hidden_size": 2 * HEAD_DIM, "head_dim": HEAD_DIM, "num_attention_heads": 2, "rope_parameters": rope}
    config = getattr(qwen(version, "configuration"), f"Qwen{version}VLTextConfig")(**size)
    cos, sin = getattr(qwen(version), f"Qwen{version}VL{text}RotaryEmbedding")(config)(x, PLACES.T[:, None])
    return qwen(version).apply_rotary_pos_emb(x, x, cos, sin)[0]


def ours(sizes, **options):
    return rotate(vectors(), sections(PLACES, HEAD_DIM, sizes, base=1e6, **options), layout="half_split")


@pytest.mark.parametrize("version, interleaved", [(2, False), (3, True)])
def test_qwen2_has_its_sections_in_blocks_and_qwen3_interleaved(version, interleaved):
    sizes = [24, 20, 20]
    theirs = by_qwen(version, sizes)
    torch.testing.assert_close(ours(sizes, interleaved=interleaved), theirs, rtol=0, atol=ROUNDING)
    wrong = (ours(sizes, interleaved=not interleaved) - theirs).abs()
    assert wrong.max() > 0.1 and wrong[:, :, :TEXT].max() < ROUNDING  # no test on text would notice


def test_the_vision_towers_axes_are_axial():
    vision = qwen(2, "configuration").Qwen2VLVisionConfig(embed_dim=32, num_heads=2)
    places = grid(3, 4)
    cos, sin = qwen(2).Qwen2VLVisionRotaryEmbedding(vision)(torch.zeros(1), places)
    theta = axial(places, 16)
    for theirs, mine in ((cos, theta.cos()), (sin, theta.sin())):
        torch.testing.assert_close(theirs.squeeze().double()[:, :8], mine, rtol=0, atol=1e-6)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("image", [(3, 4), (4, 3), (1, 6), (5, 5)])
def test_text_goes_on_where_the_peer_goes_on(version, image):
    model = getattr(qwen(version), f"Qwen{version}VLModel")
    peer = object.__new__(model)  # only its counting is wanted, not its layers
    torch.nn.Module.__init__(peer)
    peer.config = getattr(qwen(version, "configuration"), f"Qwen{version}VLConfig")()
    merge = peer.config.vision_config.spatial_merge_size
    places = text_and_images(TEXT, image, 6)
    is_image = torch.zeros(1, len(places), dtype=torch.int32)
    is_image[0, TEXT : TEXT + image[0] * image[1]] = 1
    size = torch.tensor([[1, image[0] * merge, image[1] * merge]])
    theirs, delta = peer.get_rope_index(torch.zeros_like(is_image).long(), is_image, image_grid_thw=size)
    assert torch.equal(theirs[:, 0].T, places)
    assert delta.item() == decoding_delta(places)
