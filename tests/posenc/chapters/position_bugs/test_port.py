"""Chapter 8's port and what is measured of it: what sinks and layers do, and the losses."""

import math

import pytest
import torch

from posenc.chapters.position_bugs.measuring import (
    after_prompt,
    apart,
    decoded_loss,
    held_out_passages,
    loss_by_place,
    second_text_costs,
    streamed_loss,
    with_projections,
    written,
)
from posenc.chapters.position_bugs.port import RIGHT, Port
from posenc.models import Transformer
from posenc.probe import Convention
from posenc.rotary import to_half_split, to_interleaved
from posenc.tasks import CHARACTERS


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    model = Transformer(len(CHARACTERS), len(CHARACTERS), width=64, heads=4, layers=2, causal=True, rotate=RIGHT.rotate)
    for parameter in model.parameters():
        parameter.data.mul_(1.5)  # untrained scores are small
    return model.requires_grad_(False)


@pytest.fixture(scope="module")
def port(model):
    return Port(model)


PASSAGES = held_out_passages(4, 129)


def test_sinks_stay_and_the_oldest_behind_them_go(port):
    _, cache = port(PASSAGES[:, :10])
    kept = [0, 1, 5, 6, 7, 8, 9]
    for (key, value), (old_key, old_value) in zip(port.evict(cache, 3, sinks=2).layers, cache.layers):
        assert torch.equal(key, old_key[..., kept, :]) and torch.equal(value, old_value[..., kept, :])
    assert port.evict(cache, 3).seen == 10 and len(port.evict(cache, 3)) == 7
    assert len(port.evict(cache, 0)) == 10


def test_each_layer_may_have_its_own_rotation(model):
    expected = Port(model)(PASSAGES)[0]
    assert torch.equal(Port(model, rotate=[RIGHT.rotate, RIGHT.rotate])(PASSAGES)[0], expected)
    other = Convention(16, scale=1 / 8).rotate
    found = [Port(model, rotate=each)(PASSAGES)[0] for each in ([other, RIGHT.rotate], [RIGHT.rotate, other])]
    assert all(apart(one, expected) > 0.01 for one in found) and apart(*found) > 0.01
    with pytest.raises(ValueError):
        Port(model, rotate=[other])(PASSAGES)


def test_losses_are_those_of_the_log_probabilities(model, port):
    logs = model(PASSAGES[:, :-1]).log_softmax(-1)
    by_hand = -logs.gather(-1, PASSAGES[:, 1:, None])[..., 0].mean(0)
    torch.testing.assert_close(loss_by_place(port, PASSAGES), by_hand, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(decoded_loss(port, PASSAGES, start=120), by_hand[120:], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(after_prompt(port, PASSAGES, 20), logs[:, 20], rtol=1e-4, atol=1e-4)
    assert apart(logs + 3, logs) < 1e-4


def test_a_packed_text_costs_nothing_under_a_mask(port):
    for reset in (True, False):
        assert abs(second_text_costs(port, PASSAGES, masked=True, reset=reset)) < 1e-4
        assert abs(second_text_costs(port, PASSAGES, masked=False, reset=reset)) > 1e-3


def test_a_stream_without_eviction_is_the_text_decoded(port):
    found = streamed_loss(port, PASSAGES, lambda cache, n: cache, window=8)
    assert math.isclose(found, decoded_loss(port, PASSAGES, start=15)[1:].mean().item(), rel_tol=1e-4)
    assert streamed_loss(port, PASSAGES, port.evict, window=8) != pytest.approx(found, rel=1e-3)


def test_projections_are_changed_in_a_copy(model):
    moved = with_projections(model, lambda rows: to_interleaved(rows, 16, dim=0))
    back = with_projections(moved, lambda rows: to_half_split(rows, 16, dim=0))
    for one, other, between in zip(model.parameters(), back.parameters(), moved.parameters()):
        assert torch.equal(one, other) and one is not between
    assert not torch.equal(moved.blocks[0].attention.query.weight, model.blocks[0].attention.query.weight)
    assert torch.equal(moved.blocks[0].attention.value.weight, model.blocks[0].attention.value.weight)


def test_the_text_written_goes_on_from_the_prompt_and_is_drawn_by_the_seed(port):
    prompt = PASSAGES[:1, :5]
    text, again = (written(port, prompt, length=6, seed=1) for _ in range(2))
    assert text == again and len(text) == 11
    assert text.startswith("".join(CHARACTERS[code] for code in prompt[0]))
