"""The probe for ports: rotations named from outside, runs that must agree, conventions by loss.

The rotations are in tests/rotations.py, written as people write them and without the course's own.
"""

import copy
import doctest
import importlib
import math
import random
import re
from dataclasses import replace

import pytest
import rotations
import torch
from mistaken import HIDING, ORDER, PARTS, usual
from rotations import Setting
from thorough import ALL, thorough

from posenc.additive import Learned
from posenc.chapters.position_bugs.port import MISTAKES, RIGHT, Port
from posenc.models import Transformer
from posenc.probe import Calls, Convention, agreement, best_convention, convention, conventions
from posenc.probe.loss import BASES, LEAST
from posenc.probe.precision import reproduced
from posenc.rotary import angles, rotate, to_interleaved

ROTATIONS = rotations.rotations()
PLAIN = Setting(64, 64)


def mistaken(found: Convention, setting: Setting, layout: str, precision: str) -> dict:
    """The fields that are not what was planted. A factor on a rounded table is known to two digits."""
    wanted = vars(setting) | {"layout": layout, "start": 0, "precision": precision}
    near = {"base": 1e-5, "scale": 1e-5, "length": 2e-3}
    wrong = {}
    for name, value in wanted.items():
        got = getattr(found, name)
        if got != value and not (name in near and got is not None and abs(got - value) <= near[name] * value):
            wrong[name] = (got, value)
    return wrong


# ------------------------------------------------------------------ convention


def drawn(draw: random.Random) -> Setting:
    """One that the rules were not made on, mostly with several things unusual at once."""
    pairs = draw.randint(3, 90)
    return Setting(
        2 * pairs + draw.choice([0, 0, 2 * draw.randint(1, 40)]),
        2 * pairs,
        base=draw.choice([1e4, 5e5, 1e6, 3e4, 160_000.0, 20.0, 123.0, 420_000.0, 77_000.0, 9500.0]),
        direction=draw.choice([1, -1]),
        scale=draw.choice([1.0, 1.0, 0.5, 0.25, 1 / 6, 0.1, 1 / 7, 1.5]),
        offset=draw.choice([0, 0, 1, 2, -2, 5, 17, 100]),
        length=draw.choice([1.0, 1.0, 1.0986, 0.77, 1.34657]),
    )


@pytest.mark.slow
def test_rotations_are_named_or_declined():
    """Never a wrong name; at most one in twenty is declined."""
    draw, declined, count = random.Random(2026), [], 0
    for make, layout, precision in [*ROTATIONS.values()] * (10 if ALL else 3):
        setting, count = drawn(draw), count + 1
        found = convention(make(setting), setting.head_dim)
        wrong = mistaken(found, setting, layout, precision)
        assert all(found.unknown.get(name) for name in wrong), (setting, wrong)
        if wrong:
            declined.append((setting, precision, wrong))
    assert len(declined) <= count / 20, declined


def turned(speeds):
    """Interleaved, at these speeds."""

    def rotate(x, positions):
        theta = positions[:, None] * speeds
        return rotations.by_stack(x, theta.cos().float(), theta.sin().float())

    return rotate


def test_where_it_cannot_tell_it_says_so():
    one = convention(turned(torch.ones(1).double()), 2)
    assert one.layout is None and one.base is None and one.scale == 1
    assert set(one.unknown) == {"layout", "base"}
    short = convention(rotations.dynamic(PLAIN, switch=4096), 64)  # its switch is beyond the probes
    assert short.base == 10_000 and "probed up to position 1,023" in repr(short)
    switched = repr(convention(rotations.dynamic(PLAIN, switch=4096), 64, longest=8192))
    assert "base unknown" in switched and "depends on the other positions of the call" in switched
    order = torch.randperm(64, generator=torch.Generator().manual_seed(1))
    inner = rotations._partial(rotations.by_stack, rotations.exact)(PLAIN)
    mixed = convention(lambda x, p: inner(x[..., order], p)[..., order.argsort()], 64)
    assert mixed.layout is None and mixed.unknown["layout"].startswith("its pairs are (")
    basis = torch.linalg.qr(torch.randn(64, 64, generator=torch.Generator().manual_seed(2)))[0]
    assert "mixes more than two" in repr(convention(lambda x, p: inner(x @ basis, p) @ basis.T, 64))
    assert "turns nothing" in repr(convention(lambda x, p: x, 64))
    by_no_law = 1000 / (1 + torch.arange(32).double()) ** 3 % 3
    assert "its speeds are not the powers of one base" in repr(convention(turned(by_no_law), 64))
    assert "not finite" in repr(convention(lambda x, p: x * math.nan, 64))


def test_precision_is_that_of_the_dtype_it_is_asked_in():
    def exact(x, p):
        return rotate(x, angles(p, 64))

    found = {dtype: convention(exact, 64, dtype=dtype).precision for dtype in (torch.float32, torch.bfloat16)}
    assert found == {torch.float32: "float64 angles", torch.bfloat16: "bfloat16 results"}
    assert convention(exact, 64, dtype=torch.float64).precision == "float64"


@pytest.mark.parametrize(
    "wrong, options, words",
    [(lambda x, p: x[0], {}, "wrap it"), (lambda x, p: None, {}, "wrap it"), (lambda x, p: x, {"longest": 32}, "64")],
)
def test_wrong_shapes_are_refused(wrong, options, words):
    with pytest.raises(ValueError, match=words):
        convention(wrong, 64, **options)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("turn, layout", [(rotations.by_complex, "interleaved"), (rotations.by_halves, "half_split")])
def test_a_convention_that_was_read_can_be_applied(turn, layout, seed):
    setting = drawn(random.Random(seed))
    theirs = rotations._partial(turn, rotations.exact)(setting)
    found = convention(theirs, setting.head_dim)
    x = torch.randn(2, 3, 50, setting.head_dim, generator=torch.Generator().manual_seed(0))
    places = torch.arange(300, 350)
    # float32 tables on their side, and a base that is known to six digits
    torch.testing.assert_close(found.rotate(x, places), theirs(x, places), rtol=0, atol=2e-5)
    written = Convention(setting.head_dim, layout, **{k: v for k, v in vars(setting).items() if k != "head_dim"})
    torch.testing.assert_close(written.rotate(x, places), theirs(x, places), rtol=0, atol=2e-5)


def test_an_unknown_convention_is_not_applied():
    unclear = convention(rotations.along_heads(PLAIN), 64)
    with pytest.raises(ValueError, match="cannot be applied"):
        unclear.rotate(torch.zeros(1, 1, 3, 64), torch.arange(3))


# ------------------------------------------------------------------ agreement


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    model = Transformer(97, 97, width=64, heads=4, layers=2, causal=True, rotate=RIGHT.rotate)
    for parameter in model.parameters():
        parameter.data.mul_(1.5)  # untrained scores are small
    return model.requires_grad_(False)


TOKENS = torch.randint(97, (2, 48), generator=torch.Generator().manual_seed(3))


DISAGREE = {
    "values turned": ("shift", "far"),
    "positions in bfloat16": ("far",),
    "cache from 0": ("steps", "chunks", "eviction"),
    "cache + 1": ("steps", "chunks", "eviction"),
    "count after eviction": ("eviction",),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_runs_catch_what_they_can_and_nothing_else(model, mistake):
    found = agreement(Port(model, mistake=mistake).calls(), TOKENS)
    assert found.disagree == DISAGREE.get(mistake, ())
    # quiet by a factor of ten, loud by a factor of ten
    assert all(size < 1e-4 or size > 1e-2 for size in found.differences.values())


def test_a_model_without_rotation_has_to_count_its_padding():
    sizes, table = {"width": 64, "heads": 4, "layers": 2}, Learned(256, 64)
    model = Transformer(97, 97, **sizes, causal=True, encode=lambda x, places: x + table(places)).requires_grad_(False)
    for mistake, expected in (("none", ()), ("padding counted", ("padding",)), ("packing not reset", ("packing",))):
        found = agreement(Port(model, convention=None, mistake=mistake).calls(), TOKENS, relative=False)
        assert found.disagree == expected
        assert set(found.left_out) == {"shift", "far"}


def test_what_was_not_given_is_left_out_and_said(model):
    found = agreement(Calls(whole=model), TOKENS)
    assert set(found.differences) == {"rows"} and "no step given" in repr(found)
    assert re.search(r"✓ rows +< 1e-06 ", repr(found)), "the digits of rounding are another processor's others"
    assert "eviction" in found.left_out and found.left_out["eviction"].startswith("no step and no evict")
    with pytest.raises(ValueError, match="two rows"):
        agreement(Calls(whole=model), TOKENS[:1])


def test_an_agreement_is_true_only_where_all_runs_agree(model):
    assert agreement(Port(model).calls(), TOKENS).check() is None
    wrong = agreement(Port(model, mistake="cache from 0").calls(), TOKENS)
    assert not wrong
    with pytest.raises(AssertionError, match="steps, chunks, eviction disagree") as report:
        wrong.check()
    assert "✗ steps" in str(report.value) and "✓ shift" in str(report.value)
    without = agreement(Calls(whole=model, at=lambda tokens, start: model(tokens) * math.nan), TOKENS)
    assert without.disagree == ("shift", "far") and "✗ shift" in repr(without)


def test_an_error_in_one_run_is_its_result_and_the_others_are_made(model):
    table = torch.zeros(256)

    def at(tokens, start):
        places = start + torch.arange(tokens.shape[1])
        table[places]
        return model(tokens, places)

    found = agreement(Calls(whole=model, at=at), TOKENS)
    assert found.disagree == ("far",) and found.errors["far"].startswith("IndexError")
    assert "✗ far         error" in repr(found) and found.differences["shift"] < 1e-4
    # a model that says how long it is, is not asked for more
    assert agreement(Calls(whole=model, at=at, longest=256), TOKENS)
    assert "208 positions on" in repr(agreement(Calls(whole=model, at=at, longest=256), TOKENS))
    short = agreement(Calls(whole=model, at=at, longest=50), TOKENS)
    assert set(short.left_out) >= {"shift", "far"} and "50 positions" in repr(short)


def test_half_precision_is_given_its_rounding_and_no_more(model):
    half = copy.deepcopy(model).bfloat16()
    calls = Calls(whole=half, at=lambda tokens, start: half(tokens, start + torch.arange(tokens.shape[1])))
    found = agreement(calls, TOKENS)
    assert not found.disagree and found.differences["shift"] > 1e-3  # more than float32 may
    as_float = Calls(whole=lambda t: half(t).float(), at=lambda t, start: calls.at(t, start).float())
    assert agreement(as_float, TOKENS).quiet == found.quiet
    wrong = Calls(whole=half, at=lambda tokens, start: half(tokens, 2 * torch.arange(tokens.shape[1])))
    assert agreement(wrong, TOKENS).disagree == ("shift", "far")


@pytest.mark.slow  # its classes take seconds to import
def test_the_calls_of_a_model_of_transformers_are_written():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=97, max_position_embeddings=512, **sizes)
    model = transformers.LlamaForCausalLM(config).eval().requires_grad_(False)
    for layer in model.model.layers:  # untrained scores are so small that a wrong place hardly shows
        layer.self_attn.q_proj.weight.mul_(8)
        layer.self_attn.k_proj.weight.mul_(8)
    calls = Calls.of(model)
    found = agreement(calls, TOKENS)
    found.check()
    assert set(found.differences) == {"shift", "far", "steps", "chunks", "padding", "rows", "ragged", "behind"}
    assert found.far == 512 - 48
    assert agreement(Calls.of(copy.deepcopy(model).bfloat16()), TOKENS)

    def fed(tokens, cache, places, **options):
        out = model(tokens, past_key_values=cache, use_cache=True, position_ids=places, **options)
        return out.logits, out.past_key_values

    def counting(places):
        """Decodes at the places that this makes of what is real."""

        def step(tokens, real, cache):
            counted = (real.cumsum(1) - 1).clamp(min=0) if cache is None else places(real)
            return fed(tokens, cache, counted[:, -tokens.shape[1] :], attention_mask=real.long())

        return agreement(replace(calls, padded_step=step), TOKENS).disagree

    def columns(real):
        return torch.arange(real.shape[1]).expand(real.shape)

    assert counting(lambda real: real.cumsum(1) - 1) == ()
    assert counting(lambda real: columns(real) + 4) == ("ragged", "behind")
    # as if all padding stood in front
    assert counting(lambda real: columns(real) - real.int().argmax(1, keepdim=True)) == ("behind",)

    def from_0(tokens, cache):
        return fed(tokens, cache, columns(tokens))

    assert agreement(replace(calls, step=from_0), TOKENS).disagree == ("steps", "chunks")
    with pytest.raises(TypeError, match="causal head"):
        agreement(Calls.of(model.model), TOKENS)
    with pytest.raises(TypeError, match="write its Calls"):
        Calls.of(Transformer(9, 9))


# ------------------------------------------------------------------ conventions by loss


class LooksBack:
    """Weights made by hand: attends to the token three places before, and says it again.

    `trained` is the convention that its query and key are made for.
    """

    def __init__(self, trained: Convention):
        draw = torch.Generator().manual_seed(1)
        key = 6**0.5 * torch.randn(1, trained.head_dim, generator=draw, dtype=torch.float64)
        # R(m) query meets R(m - 3) key: the query is the key turned back
        self.key, self.query = key[0].float(), trained.rotate(key, torch.tensor([-3]))[0].float()

    def __call__(self, tokens, rotate):
        batch, length = tokens.shape
        where = torch.arange(length)
        query, key = (x.expand(batch, 1, length, -1) for x in (self.query, self.key))
        scores = rotate(query, where) @ rotate(key, where).mT
        scores = scores + torch.full((length, length), -math.inf).triu(1)
        values = torch.nn.functional.one_hot(tokens, 16).float()
        return 6 * (scores.softmax(-1)[:, 0] @ values)


def repeating(rows: int, length: int) -> torch.Tensor:
    """Texts in which the next token is the one three before this."""
    start = torch.randint(16, (rows, 4), generator=torch.Generator().manual_seed(0))
    return start.repeat(1, length // 4 + 1)[:, :length]


@pytest.mark.parametrize("index", [0, 5, 7, 10, 12, 15])  # interleaved, half of base 100 is nearly all of base 10,000
def test_the_loss_names_the_convention_that_weights_were_made_for(index):
    candidates = conventions(32, bases=(100.0, 10_000.0), parts=(1.0, 0.5))
    found = best_convention(LooksBack(candidates[index]), repeating(32, 64), candidates)
    assert found.best == candidates[index] and not found.open
    assert found.margin == pytest.approx(found.losses[1] - found.losses[0], abs=1e-9) and found.margin > LEAST


def test_a_short_context_leaves_the_base_open_and_says_so():
    candidates = [Convention(32, base=base) for base in (5e5, 500_001.0)]
    found = best_convention(LooksBack(candidates[0]), repeating(32, 8), candidates)
    assert found.open and "too short to tell base" in found.warning and "warning" in repr(found)


def test_candidates_are_needed():
    for options in ({}, {"candidates": []}):
        with pytest.raises(ValueError, match="candidates"):
            best_convention(LooksBack(RIGHT), repeating(4, 16), **options)
    assert len(conventions(64)) == 12 * len(BASES) == 96 and len(conventions(6, parts=(1.0, 0.5))) == 32


def judged(mistakes, draw, head_dim: int, dtype: torch.dtype) -> tuple[str, str]:
    """Right, "not named" or wrong, and the sentence. Wrong is a sentence that sounds as if nothing were left open."""
    parts, words = usual(head_dim), []
    for mistake in mistakes:
        parts, more = mistake(parts, draw)
        words += more
    found = convention(parts.rotate(), head_dim, dtype=dtype)
    sentence = f"{[mistake.__name__ for mistake in mistakes]}, {head_dim}, {dtype}: {found!r}"
    if all(word in repr(found) for word in words):
        return "right", sentence
    if found.unknown or found.depends_on:
        return "not named", sentence
    # the same turns may have other names: exponents from 1 are positions × 0.75
    x, near = torch.randn(1, 1, 64, head_dim, generator=torch.Generator().manual_seed(0)), torch.arange(64)
    off = (found.rotate(x, near) - parts.rotate()(x.to(dtype), near)).abs().max()
    return "right" if off < 0.1 else "wrong", sentence


SINGLE = [mistake for part in PARTS.values() for mistake in part]


@pytest.mark.parametrize("number", range(len(SINGLE)), ids=lambda number: SINGLE[number].__name__)
@pytest.mark.slow
def test_a_mistake_is_named(number):
    head_dim, dtype = (64, 96, 128, 256)[number % 4], (torch.float32, torch.bfloat16)[number // 4 % 2]
    how, sentence = judged([SINGLE[number]], random.Random(number), head_dim, dtype)
    assert how == "right", sentence


def two_mistakes(draw):
    while True:
        first, second = sorted(draw.sample(ORDER, 2), key=ORDER.index)
        mistakes = [draw.choice(PARTS[first]), draw.choice(PARTS[second])]
        if not HIDING.intersection(mistakes):
            return mistakes


@pytest.mark.slow
@pytest.mark.parametrize("head_dim", [64, *(pytest.param(size, marks=thorough) for size in (96, 128, 256))])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_two_mistakes_are_named_and_never_wrongly(head_dim, dtype):
    """At most one in twenty is left open, and none has a wrong name."""
    draw = random.Random(head_dim)
    plants = [two_mistakes(draw) for _ in range(40 if ALL else 8)] + [[one] for one in SINGLE if ALL]
    judgements = [judged(mistakes, draw, head_dim, dtype) for mistakes in plants]
    assert not [sentence for how, sentence in judgements if how == "wrong"]
    open_ones = [sentence for how, sentence in judgements if how == "not named"]
    assert len(open_ones) <= max(1, len(plants) / 20), open_ones  # of eight, one is no more than chance


@pytest.mark.slow
def test_the_first_position_that_departs_is_said_and_differs():
    expected = Convention(64)
    table = torch.arange(700).double()
    short = convention(lambda x, p: expected.rotate(x, table[p].long()), 64)
    assert short.base == 10_000 and short.probed_to == 699
    assert short.differs(expected) == "it raises an IndexError from position 700 on"
    wrapped = convention(lambda x, p: expected.rotate(x, p % 300), 64)
    assert wrapped.base == 10_000 and wrapped.differs(expected) == "its positions start again at 300"
    with pytest.raises(IndexError):
        convention(lambda x, p: expected.rotate(x, table[:40][p].long()), 64)
    # digits that are lost are no departure, also where the base is no round number
    speeds = 10_000 ** -(torch.arange(48).double() / 47)
    lost = convention(lambda x, p: turned(speeds)(x, p.bfloat16().double()), 96)
    assert lost.precision == "bfloat16 positions" and not lost.besides
    assert lost.base == pytest.approx(10_000 ** (48 / 47))
    longer = convention(lambda x, p: 1.001 * expected.rotate(x, p), 64)
    assert longer.length == pytest.approx(1.001, abs=1e-6)
    # a length is no more than its digits
    halved = 10_000 ** -(torch.arange(24).double() / 48)
    grouped = convention(lambda x, p: turned(halved)(x, p // 4), 48, dtype=torch.bfloat16)
    assert grouped.length == 1 and grouped.besides == "position 1 is turned as 0"
    # rows that come out in another order hide nothing
    flipped = convention(lambda x, p: expected.rotate(x, p % 300).flip(2), 64)
    assert flipped.base == 10_000 and flipped.differs(expected) == (
        "its tokens come out in another order; its positions start again at 300"
    )


TURN = Convention(16).rotate


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "rotate, words",
    [
        (lambda x, p: TURN(x, p.clamp(min=1)), "position 1 is turned as 0; base, scale and offset: "),
        (lambda x, p: TURN(x, p ^ 1), "base, scale and offset: cannot tell, its turns do not grow"),
        (lambda x, p: TURN(x, torch.where(p == 700, 0, p)), "; position 700 is turned as 0"),
        (lambda x, p: to_interleaved(TURN(x, p % 256), 16), "; its positions start again at 256; it puts"),
        (lambda x, p: TURN(x, p + 2).flip(-1), "in another order, and position 0 is turned too"),
        # a kernel that starts its positions again in each block of 16 tokens
        (lambda x, p: TURN(x, p[torch.arange(len(p)) % 16]), "depends on the other positions of the call"),
    ],
)
def test_no_cause_is_named_that_is_none(rotate, words, dtype):
    assert words in repr(convention(rotate, 16, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_turns_slowly_departs_nowhere(dtype):
    for scale in (1 / 100, 1 / 1000, 1 / 4000):
        slow = convention(Convention(16, scale=scale).rotate, 16, dtype=dtype)
        assert slow.scale == pytest.approx(scale, rel=1e-2) and not slow.besides


@pytest.mark.parametrize("name", ["convention", "agreement"])
def test_the_examples_of_the_help_are_true(name):
    module = importlib.import_module(f"posenc.probe.{name}")
    found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0


@pytest.mark.parametrize(
    "pairs, pair, factor, dtype",
    [(128, 60, 1.005, torch.float32), (128, 60, 1.005, torch.bfloat16), (64, 25, 1.004, torch.bfloat16)],
)
@pytest.mark.slow
def test_one_wrong_pair_of_many_is_not_explained_by_a_precision(pairs, pair, factor, dtype):
    """What rounding misses is spread over all pairs."""
    speeds = 10_000.0 ** -(torch.arange(pairs, dtype=torch.float64) / pairs)
    assert convention(turned(speeds), 2 * pairs, dtype=dtype).base == 10_000
    speeds[pair] *= factor
    found = convention(turned(speeds), 2 * pairs, dtype=dtype)
    assert found.unknown["base"] == f"pair {pair} turns {factor:g} times as fast as base 10,000 has it"
    assert found.base is None and found.precision in ("float64 angles", "bfloat16 results")


def test_a_precision_that_loses_nothing_explains_nothing():
    """float16 holds every whole number up to 2,048."""
    places = torch.arange(1024).double()
    series = 10_000.0 ** -(torch.arange(16).double() / 16)
    turn = torch.polar(torch.ones(1024, 16).double(), places[:, None] * series)
    assert reproduced(turn, places, series, 1.0, torch.float16, ("positions",)) is None
    assert reproduced(turn, places, series, 1.0, torch.bfloat16, ("positions",)) is None
    rounded = torch.polar(torch.ones(1024, 16).double(), places[:, None].bfloat16().double() * series)
    assert reproduced(rounded, places, series, 1.0, torch.bfloat16, ("positions",)) == 1
