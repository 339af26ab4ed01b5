"""What models do with positions, found from outside: on the course's own Transformer and on made-up modules.

Models of transformers are read in the tests of chapter 9, models_you_use.
"""

import math
import threading

import pytest
import torch
from torch import nn

from posenc.additive import sinusoidal
from posenc.attention import attention_weights, causal_bias
from posenc.models import Transformer
from posenc.probe import asking
from posenc.probe.asking import effects, energies, orthogonal_texts, questions, score_table, tabulate
from posenc.probe.inside import scores
from posenc.probe.turned import rotation
from posenc.rotary import angles, rotate

TOKENS = torch.arange(6)
ROUNDING = 1e-9  # of a squared share in float32; the smallest effect that a test here looks for is 1e-4


def turn(layout="interleaved", base=10_000.0, rotary_dim=None, sign=1):
    def turned(x, positions):
        return rotate(x, sign * angles(positions, rotary_dim or x.shape[-1], base=base), layout=layout)

    return turned


def transformer(seed=0, **options):
    torch.manual_seed(seed)
    return Transformer(30, 30, **{"width": 32, "heads": 2, "layers": 2, "causal": True} | options)


class Made(nn.Module):
    """A table of vectors, and what is made of them."""

    def __init__(self, make, width=24):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.make = nn.Embedding(30, width), make

    def forward(self, tokens):
        return self.make(self.table(tokens))


def in_heads(x, head_dim=12):
    return x.unflatten(-1, (-1, head_dim)).transpose(1, 2)


# scores


def test_scores_are_what_the_softmax_sees():
    model, tokens = transformer(rotate=turn()), torch.randint(30, (3, 7))
    attention = model.blocks[0].attention
    x = model.blocks[0].attention_norm(model.embedding(tokens))
    query, key = (
        turn()(part(x).unflatten(-1, (2, -1)).transpose(1, 2), torch.arange(7))
        for part in (attention.query, attention.key)
    )
    seen = scores(model, tokens)
    assert seen.dtype == torch.float64 and seen.shape == (3, 2, 7, 7)
    expected = attention_weights(query, key, bias=causal_bias(7, 7))
    torch.testing.assert_close(seen.softmax(-1).float(), expected, rtol=0, atol=1e-6)
    assert seen.isinf().equal(causal_bias(7, 7).isinf().expand_as(seen))


def test_one_text_has_no_batch_axis_and_layers_count_from_both_ends():
    model, tokens = transformer(), torch.arange(6)
    seen = {layer: scores(model, tokens, layer=layer) for layer in (0, 1, -1)}
    assert seen[0].shape == (2, 6, 6) and seen[-1].equal(seen[1]) and not seen[0].equal(seen[1])


def masked(mask):
    def make(x):
        bias = torch.full((x.shape[1],) * 2, mask).triu(1).to(x)
        return (in_heads(x) @ in_heads(x).mT + bias).softmax(-1)

    return Made(make)


@pytest.mark.parametrize("mask", [-math.inf, -1e10, torch.finfo(torch.float32).min, -100.0])
def test_a_score_far_below_is_no_mask_unless_it_is_a_mask(mask):
    assert scores(masked(mask), torch.arange(4)).isinf().sum() == (0 if mask == -100 else 12)
    half = masked(torch.finfo(torch.float16).min).half()
    assert scores(half, torch.arange(4)).isinf().sum() == 12


def test_the_model_is_left_as_it_was():
    model = transformer().train()
    model.blocks[1].eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    fast = torch.backends.mha.get_fastpath_enabled()
    scores(model, torch.arange(5))
    assert model.training and not model.blocks[1].training and model.blocks[0].mlp.training
    assert torch.is_grad_enabled() and torch.backends.mha.get_fastpath_enabled() == fast
    assert all(weight.equal(before[name]) for name, weight in model.state_dict().items())


def test_half_precision_and_float64_are_read():
    tokens = torch.arange(12).view(2, 6)
    exact = scores(transformer(rotate=turn()).double(), tokens)
    assert (scores(transformer(rotate=turn()), tokens) - exact).nan_to_num().abs().max() < 1e-5
    assert (scores(transformer(rotate=turn()).bfloat16(), tokens) - exact).nan_to_num().abs().max() < 0.1


@pytest.mark.skipif(not torch.accelerator.is_available(), reason="there is no accelerator here")
def test_a_model_on_an_accelerator_is_read():
    tokens = torch.arange(6)
    there = transformer().to(torch.accelerator.current_accelerator())
    assert (scores(there, tokens) - scores(transformer(), tokens)).nan_to_num().abs().max() < 1e-2


class Encoder(nn.Module):
    """Torch's own layers; in evaluation they run as one fused kernel."""

    def __init__(self):
        super().__init__()
        self.table, self.place = nn.Embedding(30, 32), nn.Embedding(64, 32)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)

    def forward(self, tokens):
        return self.layers(self.table(tokens) + self.place.weight[: tokens.shape[1]])


def test_torchs_own_layers_are_read():
    torch.manual_seed(0)
    model = Encoder().eval()
    assert scores(model, torch.arange(6), layer=1).shape == (4, 6, 6)
    found = questions(model)
    assert found.drift > 0.1 and found.together < ROUNDING  # its norm comes after attention: a plain sum


FUSED = Made(lambda x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[in_heads(x, 8)] * 3)[0])


@pytest.mark.parametrize("causal", [False, True])
def test_torchs_attention_function_is_read_by_its_plain_path(causal):
    """It chooses a kernel itself."""
    model = Made(lambda x: nn.functional.scaled_dot_product_attention(*[in_heads(x)] * 3, is_causal=causal))
    x = in_heads(model.table(torch.arange(5))[None])[0]
    expected = (x @ x.mT / 12**0.5).double()
    seen = scores(model, torch.arange(5))
    assert seen.isinf().sum() == (2 * 10 if causal else 0)
    torch.testing.assert_close(seen, expected.where(seen.isfinite(), -math.inf), rtol=1e-5, atol=1e-5)


def in_windows(x):
    """Each query with the three keys around it."""
    x = x.unflatten(-1, (2, 12))
    return (x[..., None, :] * nn.functional.pad(x, (0, 0, 0, 0, 1, 1)).unfold(1, 3, 1).mT).sum(-1).softmax(-1)


class StateSpace(nn.Module):
    """Of transformers, since it has a configuration; no part of it is called attention."""

    config = None

    def forward(self, tokens):
        raise AssertionError("it ran, which takes minutes")


@pytest.mark.parametrize(
    "model, tokens, options, error, words",
    [
        (StateSpace(), TOKENS, {}, ValueError, "StateSpace has no attention, .* agreement.Calls.of.model"),
        (Made(in_windows), TOKENS, {}, ValueError, r"over \(1, 6, 2, 3\), not over 6 .* in windows .*original_full"),
        (FUSED, TOKENS, {}, ValueError, r'fused kernel _scaled.*attn_implementation="eager"'),
        (nn.Sequential(nn.Embedding(9, 8), nn.LSTM(8, 8)), TOKENS, {}, ValueError, "no softmax .* was seen in Seq"),
        (transformer(), TOKENS, {"layer": 2}, ValueError, "no layer 2 in Transformer: it has 2, from 0"),
        (transformer(), TOKENS, {"layer": -3}, ValueError, "no layer -3"),
        (transformer(), TOKENS.float(), {}, TypeError, "float32: pass a tensor of integers"),
        (transformer(), [1, 2], {}, TypeError, "list: pass a tensor"),
        (transformer(), TOKENS[:0], {}, ValueError, r"\(B, T\)"),
        ("gpt2", TOKENS, {}, TypeError, "this is a str, no model"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(model, tokens, options, error, words):
    with pytest.raises(error, match=words):
        scores(model, tokens, **options)


def test_what_is_no_model_of_tokens_is_refused():
    with pytest.raises(TypeError, match="this is a str, no model"):
        rotation("gpt2")
    with pytest.raises(ValueError, match="no table of tokens"):
        questions(nn.Linear(3, 3))


def test_an_error_of_the_model_is_its_own():
    with pytest.raises(IndexError):
        scores(transformer(), torch.tensor([0, 31]))
    assert scores(transformer(), torch.arange(3)).isfinite().any()  # and nothing of it stays behind


def test_another_thread_is_not_recorded():
    """A slider's callback may run while a cell probes."""
    model, other = transformer(), transformer(seed=1)
    hook = model.blocks[0].register_forward_pre_hook(lambda *_: run())

    def run():
        thread = threading.Thread(target=lambda: other(torch.arange(6)[None]))
        thread.start()
        thread.join()

    seen = scores(model, torch.arange(6))
    hook.remove()
    assert seen.equal(scores(model, torch.arange(6)))


# questions


@pytest.mark.parametrize("p", [2, 5, 11])
def test_any_two_places_meet_each_pair_once(p):
    texts = orthogonal_texts(p)
    for m in range(p):
        for n in set(range(p)) - {m}:
            assert len({(a, b) for a, b in texts[:, [m, n]].tolist()}) == p * p
    with pytest.raises(ValueError, match="no prime"):
        orthogonal_texts(p * p)


def test_the_parts_add_up_and_are_orthogonal():
    table = torch.randn(2, 5, 5, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    parts = effects(table)
    assert len(parts) == 16
    torch.testing.assert_close(sum(parts.values()), table)
    torch.testing.assert_close(sum(part.square().sum() for part in parts.values()), table.square().sum())


def test_the_table_holds_the_scores_of_the_texts():
    model, tokens = transformer(encode=lambda x, p: x + sinusoidal(p, 32)), torch.tensor([3, 4, 9, 11, 20])
    table, rest = score_table(model, tokens)
    assert table.shape == (2, 5, 5, 3, 2) and rest == 0
    for u, v, m, n in ((0, 0, 2, 0), (1, 4, 3, 1), (4, 2, 4, 0)):
        text = tokens[torch.full((5,), 2)]
        text[m], text[n] = tokens[u], tokens[v]
        torch.testing.assert_close(scores(model, text)[:, m, n], table[:, u, v, m - 2, n], rtol=1e-5, atol=1e-6)


def test_the_energies_are_what_the_softmax_sees():
    texts = orthogonal_texts(5)
    seen = torch.randn(25, 2, 5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    table = tabulate(seen, texts)
    parts = energies(table)
    centred = table - table.mean((2, 4), keepdim=True)  # a query token at its place has a row of its own
    assert sum(parts.values()) == pytest.approx(centred.square().sum().item()) and len(parts) == 12


@pytest.mark.parametrize("layout", ["interleaved", "half_split"])
def test_a_rotation_asks_for_both_at_once_and_by_distance_alone(layout):
    found = questions(transformer(rotate=turn(layout)))
    assert found.together > 0.05 and found.position_position < 0.02
    assert found.relative and found.drift < 1e-10


def test_a_bias_by_distance_is_position_with_position_alone():
    slope = torch.tensor([0.5, 0.25])[:, None, None]
    found = questions(transformer(bias=lambda m, n: slope * (m[:, None] - n)))
    assert found.position_position > 0.1 and found.relative
    assert max(found.together, found.content_position, found.position_content) < ROUNDING
    raised = questions(transformer(bias=lambda m, n: slope * n))  # the same, but for each row's constant
    assert raised.relative and raised.position_position == pytest.approx(found.position_position, abs=1e-6)
    squared = questions(transformer(bias=lambda m, n: slope * n.square()))
    assert squared.drift > 0.01 and not squared.relative
    assert squared.any_place == pytest.approx(squared.position_position, abs=1e-6)  # no query's place enters


def test_without_positions_no_score_depends_on_a_place():
    found = questions(transformer())
    assert found.content_content > 1 - ROUNDING and math.isnan(found.drift)
    assert "no score depends on a place" in repr(found)


def test_a_product_of_two_tokens_and_their_distance_goes_where_it_belongs():
    """One term of each kind is planted in turn, and only its share is not 0."""
    g = torch.Generator().manual_seed(0)
    tokens = torch.arange(11)
    u, v, places = (torch.randn(11, generator=g) for _ in range(3))
    u, v = u - u.mean(), v - v.mean()  # a mean is nobody's: it would be a term of its own
    places = torch.cat([part - part.mean() for part in places.split([5, 6])])  # keys, queries

    def planted(term):
        def make(tokens):
            at = torch.arange(tokens.shape[1])
            row = term(u[tokens][..., None], v[tokens][:, None, :], at[:, None], at)
            return (row[:, None] + torch.zeros(len(tokens), 1, len(at), len(at))).softmax(-1)

        model = Made(None)
        model.forward = make
        return model

    terms = {
        "content_content": lambda a, b, m, n: a * b,
        "content_position": lambda a, b, m, n: a * places[n],
        "position_content": lambda a, b, m, n: places[m] * b,
        "position_position": lambda a, b, m, n: places[m] * places[n],
        "together": lambda a, b, m, n: a * b * places[m] * places[n],
    }
    for name, term in terms.items():
        assert questions(planted(term), tokens=tokens).shares[name] > 0.999, name
    for constant in (lambda a, b, m, n: a + 0 * b + 0 * n, lambda a, b, m, n: 7.0 + 0 * (a + b + n)):
        with pytest.raises(ValueError, match="same score"):
            questions(planted(constant), tokens=tokens)


def test_above_layer_0_the_others_have_a_share():
    model = transformer(rotate=turn())
    with torch.no_grad():
        for weight in model.blocks[0].attention.parameters():
            weight.mul_(3)
    found = questions(model, layer=1)
    assert found.others > 0.05 and sum(found.shares.values()) == pytest.approx(1)
    longer = questions(model, layer=1, arrays=24)  # what the others leave in the averages is taken off
    assert found.shares == pytest.approx(longer.shares, abs=0.05)
    assert found.drift == pytest.approx(longer.drift, abs=0.1)
    assert "or by what was read there" in repr(found)
    with torch.no_grad():  # a first layer that does nothing leaves the second as blind to others as the first
        for part in (model.blocks[0].attention.output, model.blocks[0].mlp[-1]):
            for weight in part.parameters():
                weight.zero_()
    assert questions(model, layer=1).others < ROUNDING
    assert questions(model, layer=1).relative


def test_noise_of_a_known_size_is_taken_off_the_drift():
    g = torch.Generator().manual_seed(0)
    m, n = torch.arange(6)[:, None], torch.arange(5)
    for share in (0.0, 0.5):  # of what places decide; the rest is by m - n alone
        level = torch.randn(64, 7, 7, 10, generator=g, dtype=torch.float64)[..., m - n + 4]
        own = torch.randn(64, 7, 7, 6, 5, generator=g, dtype=torch.float64)
        clean = (1 - share) ** 0.5 * level + share**0.5 * own
        noisy = clean + torch.randn(clean.shape, generator=g, dtype=torch.float64)
        expected, _ = asking._drift(clean, effects(clean), 1e-7, 0.0)
        taken_off, _ = asking._drift(noisy, effects(noisy), 1e-7, 64.0)
        left_in, _ = asking._drift(noisy, effects(noisy), 1e-7, 0.0)
        assert abs(taken_off - expected) < 0.02 < 0.1 < left_in - expected


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: questions(transformer(), tokens=torch.tensor([1, 1, 2, 3, 4])), "different ones"),
        (lambda: questions(transformer(), tokens=torch.arange(6)), "no prime"),
        (lambda: questions(transformer(), tokens=torch.arange(3)), "at least 5"),
        (lambda: score_table(transformer(), torch.tensor([1, 1, 2, 3, 4])), "different ones"),
        (lambda: questions(Transformer(4, 4)), "reads 4 tokens"),
    ],
)
def test_tokens_that_cannot_be_asked_with_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
    assert questions(Transformer(9, 9)).shares  # a small vocabulary: 7 of them


def test_a_window_is_refused():
    def window(m, n):
        return torch.zeros(1, len(m), len(n)).masked_fill((m[:, None] - n).abs() > 3, -math.inf)

    with pytest.raises(ValueError, match="queries 5 to 10 must see keys 0 to 4"):
        questions(transformer(bias=window))
    with pytest.raises(ValueError, match="hides keys"):
        questions(transformer(bias=lambda m, n: causal_bias(len(m), len(n)).mT[None], causal=False))


# rotation


@pytest.mark.parametrize("layout", ["interleaved", "half_split"])
@pytest.mark.parametrize(
    "layer, base, rotary_dim, sign", [(0, 100.0, None, -1), (1, 10_000.0, 8, 1), (0, 1e6, 8, -1), (1, 1e6, None, 1)]
)
def test_a_rotation_is_read_in_any_layer(layer, layout, base, rotary_dim, sign):
    found = rotation(transformer(rotate=turn(layout, base, rotary_dim, sign)), layer=layer)
    assert found.found and found.layout == layout and found.residual < 1e-6
    assert found.rotary_dim == (rotary_dim or 16) and found.head_dim == 16
    assert found.base == pytest.approx(base, rel=2e-3)
    expected = sign * base ** -(torch.arange(0, found.rotary_dim, 2).double() / found.rotary_dim)
    torch.testing.assert_close(found.speeds, expected, rtol=1e-3, atol=1e-8)
    assert f" turn {'counter-' if sign > 0 else ''}clockwise, " in repr(found)


def test_what_is_added_is_no_rotation_and_what_does_nothing_turns_nothing():
    added = rotation(transformer(encode=lambda x, p: x + sinusoidal(p, 32)))
    assert not added.found and added.residual > 0.1 and "no rotation" in repr(added)
    still = rotation(transformer(bias=lambda m, n: -(m[:, None] - n).abs().float()[None]), layer=1)
    assert still.found and not len(still.pairs) and still.layout == "none" and still.base is None
    assert "nothing turns" in repr(still)


def test_the_last_dimensions_of_a_head_may_turn():
    def turned(x, positions):
        return torch.cat([x[..., :8], rotate(x[..., 8:], angles(positions, 8), layout="half_split")], dim=-1)

    found = rotation(transformer(rotate=turned), layer=1)
    assert found.pairs.tolist() == [[8, 12], [9, 13], [10, 14], [11, 15]]
    assert found.rotary_dim == 8 and found.base == pytest.approx(10_000, rel=2e-3)


def test_speeds_of_no_single_base_are_said_to_be_so():
    def turned(x, positions):
        return rotate(x, positions[:, None] * torch.tensor([1.0, 0.5, 0.01, 0.3]).double())

    found = rotation(transformer(rotate=turned))
    assert found.found and found.base is None and "no single base" in repr(found)
    torch.testing.assert_close(found.speeds, torch.tensor([1.0, 0.5, 0.01, 0.3]).double(), rtol=1e-5, atol=0)


class OnKeys:
    """A rotation that does something else to keys, which the course's attention turns second."""

    def __init__(self, turned, keys):
        self.rotations, self.calls = (turned, keys), 0

    def __call__(self, x, positions):
        self.calls += 1
        return self.rotations[(self.calls + 1) % 2](x, positions)


@pytest.mark.parametrize(
    "keys, words",
    [
        (turn(), ""),
        (lambda x, positions: x, "its keys are not turned"),
        (turn(sign=-1), "its keys turn the other way round"),
        (turn(base=100.0), "its keys turn at other speeds"),
        (turn("half_split"), "its keys are turned in other pairs than (0, 1)"),
        (lambda x, positions: x + positions[:, None], "its keys are not turned alike"),
    ],
)
def test_keys_that_are_turned_otherwise_are_seen(keys, words):
    found = rotation(transformer(rotate=OnKeys(turn(), keys)))
    assert found.found and found.keys.startswith(words) and bool(found.keys) == bool(words)
    assert found.keys in repr(found)


class Counting(nn.Module):
    """A state that grows from place to place, then attention with a sink, both before the attention that is read."""

    def __init__(self, turned):
        super().__init__()
        self.table, self.turned = nn.Embedding(30, 32), turned
        self.mix = nn.Linear(32, 32)

    def forward(self, tokens, position_ids=None):
        length = tokens.shape[1]
        places = torch.arange(length).expand(tokens.shape) if position_ids is None else position_ids
        x = self.table(tokens)
        x = x + self.mix(x).cumsum(1)
        for _ in range(2):
            q = k = self.turned(x.unflatten(-1, (2, 16)).transpose(1, 2), places[:, None])
            scores = q @ k.mT / 4 + causal_bias(length, length)
            sink = torch.zeros(*scores.shape[:-1], 1)
            weights = torch.cat([scores, sink], dim=-1).softmax(-1)[..., :-1]
            x = x + (weights @ x.unflatten(-1, (2, 16)).transpose(1, 2)).transpose(1, 2).flatten(-2)
        return x


@pytest.mark.parametrize("layer", [0, 1])
def test_layers_that_tell_places_apart_by_themselves_hide_no_rotation(layer):
    """As those of gpt-oss, Qwen3-Next and Bamba: the whole text is moved then."""
    torch.manual_seed(0)
    assert not rotation(Counting(turn("half_split")), layer=layer).found
    torch.manual_seed(0)
    found = rotation(Counting(turn("half_split")), layer=layer, moved=True)
    assert found.found and found.layout == "half_split" and found.base == pytest.approx(10_000, rel=2e-3)
    assert len(found.pairs) == 8 and not found.keys
    still = rotation(Counting(lambda x, positions: x), layer=layer, moved=True)
    assert still.found and still.layout == "none"
    added = rotation(Counting(lambda x, positions: x + sinusoidal(positions, 16)), layer=layer, moved=True)
    assert not added.found
    table = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))  # it ends where the text does
    assert not rotation(Counting(lambda x, positions: x + table[positions]), layer=layer, moved=True).found


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [64, 128])
def test_half_precision_is_read_with_its_base(width, dtype):
    model = transformer(width=2 * width, heads=2, rotate=turn("half_split")).to(dtype)
    for layer in (0, 1):
        found = rotation(model, layer=layer)
        assert found.found and found.layout == "half_split" and (found.speeds > 0).all()
        assert found.base == 10_000 and "base about 10,000" in repr(found)


def test_positions_can_be_given():
    model = transformer(rotate=turn())
    shifted = rotation(model, positions=torch.arange(100, 164))
    torch.testing.assert_close(shifted.speeds, rotation(model).speeds, rtol=1e-4, atol=1e-8)
    with pytest.raises(ValueError, match="pass integers"):
        rotation(model, positions=torch.zeros(3))
    for uneven in (torch.arange(48) // 8, torch.arange(48) % 8, 2 * torch.arange(48)):  # a picture's rows and columns
        with pytest.raises(ValueError, match="grow unevenly"):
            rotation(model, positions=torch.stack([torch.arange(48), uneven]))


def test_a_length_like_the_head_is_refused_not_misread():
    with pytest.raises(ValueError, match="try another length"):
        rotation(transformer(rotate=turn()), length=16)


@pytest.mark.parametrize("size", [64, 72])
def test_a_head_of_any_size_is_read_without_a_length(size):
    """64 places would hide a head of 64: a product of queries and keys looks like one of weights and values."""
    found = rotation(transformer(width=size, heads=1, rotate=turn("half_split")))
    assert found.found and found.head_dim == size and found.layout == "half_split"
    assert found.base == pytest.approx(10_000, rel=2e-3)
