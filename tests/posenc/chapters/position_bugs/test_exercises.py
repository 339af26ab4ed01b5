"""Chapter 8's checks: every mistake is planted and must be called by its name."""

import math
from functools import partial

import torch

from posenc.rotary import to_half_split, to_interleaved

# --- 8.1 steps_apart

log_softmax = partial(torch.log_softmax, dim=-1)


def right_steps(whole, step, tokens, *, of=log_softmax, summary=None, cached=True):
    cache, parts = None, []
    for token in tokens.split(1, dim=1):
        logits, new = step(token, cache)
        cache = new if cached else None
        parts.append(logits)
    off = of(torch.cat(parts, dim=1)) - of(whole(tokens))
    return (summary or (lambda x: x.abs().max()))(off).item()


def two_at_once(whole, step, tokens):
    return step(tokens[:, :2], None)[0].sum().item()


def by_argmax(whole, step, tokens):
    return right_steps(whole, step, tokens, of=lambda x: x.argmax(-1, keepdim=True).double())


# --- 8.4 positions_from_mask


def right_positions(real):
    return (real.cumsum(1) - 1) * real


def less_the_padding(real):
    return (torch.arange(real.shape[1]) - (~real).sum(1, keepdim=True)).clamp(min=0)


# --- 8.2 layout_of


def right_layout(rotate, head_dim, *, position=3, from_zero=False):
    unit = torch.eye(head_dim)[0].view(1, 1, 1, -1)
    got = rotate(unit, torch.tensor([position]))
    if from_zero:
        got = got - rotate(unit, torch.tensor([0]))
    return "interleaved" if got[..., 1].abs().max() > 1e-6 else "half_split"


def by_sign(rotate, head_dim):
    got = rotate(torch.eye(head_dim)[0].view(1, 1, 1, -1), torch.tensor([1]))
    return "interleaved" if got[..., 1] > 0 else "half_split"


def by_half(rotate, head_dim):
    got = rotate(torch.eye(head_dim)[0].view(1, 1, 1, -1), torch.tensor([1]))
    return "half_split" if got[..., head_dim // 2].abs() > 1e-6 else "interleaved"


def by_change(rotate, head_dim):
    """Compares with position 0, where the turn of an offset is 5."""
    unit = torch.eye(head_dim)[0].view(1, 1, 1, -1)
    still = rotate(unit, torch.tensor([0]))
    if not torch.equal(still, unit):
        return "half_split"
    return right_layout(rotate, head_dim)


def exchanged(rotate, head_dim):
    return {"interleaved": "half_split", "half_split": "interleaved"}[right_layout(rotate, head_dim)]


# --- 8.3 base_of


def right_base(rotate, head_dim, *, power=None, invert=False, log=False, plain=False, position=1):
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(head_dim // 2).view(1, 1, 1, -1)
    pairs = torch.view_as_complex(rotate(x, torch.tensor([position]))[0, 0, 0].unflatten(-1, (-1, 2)))
    speed = pairs.angle()
    first = 1.0 if plain else speed[0]
    ratio = (first / speed[-1]) ** (power(head_dim) if power else head_dim / (head_dim - 2))
    ratio = 1 / ratio if invert else ratio
    return math.log(ratio) if log else ratio.item()


# --- 8.5 repaired


def right_repair(state, heads, *, parts=("query", "key"), kinds=("weight", "bias"), move=None):
    new = dict(state)
    for part in parts:
        for kind in kinds:
            rows = state[f"{part}.{kind}"]
            new[f"{part}.{kind}"] = (move or (lambda rows, d: to_half_split(rows, d, dim=0)))(rows, len(rows) // heads)
    return new


def columns(rows, d):
    return to_half_split(rows, d, dim=rows.ndim - 1)


def bias_lost(state, heads):
    new = right_repair(state, heads)
    return new | {"query.bias": to_interleaved(state["query.bias"], len(state["query.bias"]) // heads)}


# --- 8.6 packing_mask


def right_mask(documents):
    return (documents[:, None] == documents) & causal(documents)


def causal(documents):
    return torch.ones(len(documents), len(documents), dtype=torch.bool).tril()


PLANTED = [
    ("steps_apart", partial(right_steps, cached=False), "the cache is not handed on"),
    ("steps_apart", two_at_once, "step takes one token of each text, (B, 1), not (2, 2)"),
    ("steps_apart", lambda *a: 1.0, "two runs that agree to the last digit are apart by 1"),
    ("steps_apart", partial(right_steps, of=lambda x: x), "compare log_softmax of both, not logits"),
    ("steps_apart", by_argmax, "it says 0"),
    ("steps_apart", partial(right_steps, summary=lambda x: x.max()), "either sign"),
    ("steps_apart", partial(right_steps, summary=lambda x: -x.min()), "either sign"),
    ("steps_apart", partial(right_steps, summary=lambda x: x[:, -1].abs().max()), "the last token alone"),
    ("steps_apart", partial(right_steps, summary=lambda x: x.abs().mean()), "that is the mean"),
    ("steps_apart", partial(right_steps, of=partial(torch.softmax, dim=-1)), "it compares probabilities"),
    ("steps_apart", partial(right_steps, summary=lambda x: 3 * x.abs().max()), "the largest difference of a log-prob"),
    ("positions_from_mask", lambda r: torch.arange(r.shape[1]).expand(r.shape).clone(), "it counts the padding too"),
    ("positions_from_mask", lambda r: r.cumsum(1) * r, "take 1 off the count"),
    ("positions_from_mask", lambda r: r.cumsum(0) - 1, "down the columns"),
    ("positions_from_mask", lambda r: r.cumsum(1) - 1, "the padding has -1 to -1"),
    ("positions_from_mask", less_the_padding, "padding may stand at the end, too"),
    (
        "positions_from_mask",
        lambda r: 7 * right_positions(r),
        "for [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]] it gives [[0, 7, 14, 21, 28], [0, 0, 0, 7, 14]] and "
        "should give [[0, 1, 2",
    ),
    ("layout_of", lambda *a: None, "it returned None"),
    ("layout_of", lambda *a: "neighbours", "it returned 'neighbours'"),
    ("layout_of", exchanged, "have changed places"),
    ("layout_of", by_sign, "right for counter-clockwise turns"),
    ("layout_of", by_half, "wrong where 8 of 32 dimensions are turned"),
    ("layout_of", by_change, "wrong where position 0 is turned too"),
    ("layout_of", partial(right_layout, position=0), "a position other than 0"),
    ("base_of", partial(right_base, power=lambda d: 1), "raise it to the power d/(d-2)"),
    ("base_of", partial(right_base, invert=True), "upside down"),
    ("base_of", partial(right_base, log=True), "the logarithm"),
    ("base_of", partial(right_base, plain=True), "right for plain positions"),
    (
        "base_of",
        partial(right_base, position=2),
        "base 100 with positions times 2.0: use the ratio of two pairs, at position 1",
    ),
    ("base_of", lambda *a: 10_000.0, "it gives 10000 for base 500,000"),
    ("repaired", lambda state, heads: [1], "return a dict"),
    ("repaired", lambda state, heads: {name: rows[:1] for name, rows in state.items()}, "no tensor of shape"),
    ("repaired", lambda state, heads: dict(state), "nothing has changed"),
    ("repaired", partial(right_repair, parts=("query", "key", "value")), "values are not turned"),
    ("repaired", partial(right_repair, parts=("query",)), "the query is reordered and the key is not"),
    ("repaired", partial(right_repair, parts=("key",)), "the key is reordered and the query is not"),
    ("repaired", partial(right_repair, move=lambda rows, d: to_interleaved(rows, d, dim=0)), "that is the way back"),
    ("repaired", partial(right_repair, move=lambda rows, d: to_half_split(rows, len(rows), dim=0)), "different heads"),
    ("repaired", partial(right_repair, move=columns), "columns are reordered"),
    ("repaired", partial(right_repair, move=lambda rows, d: rows.flip(0)), "is not in the half-split order"),
    ("repaired", partial(right_repair, kinds=("weight",)), "the biases stand where they stood"),
    ("repaired", bias_lost, "query.bias is not in the half-split order"),
    ("packing_mask", lambda d: d[:, None] == d, "it has to be causal too"),
    ("packing_mask", causal, "texts see each other"),
    ("packing_mask", lambda d: (d[:, None] == d) & causal(d).tril(-1), "no token sees itself"),
    ("packing_mask", lambda d: right_mask(d).T, "it looks ahead"),
    ("packing_mask", lambda d: ~right_mask(d), "upside down"),
    (
        "packing_mask",
        lambda d: torch.zeros(len(d), len(d), dtype=torch.bool),
        "for the documents [0, 0, 0, 1, 1], query 0 is to see key 0, and it gives False",
    ),
    ("packing_mask", lambda d: right_mask(d) | causal(d).tril(-3), "query 3 is not to see key 0, and it gives True"),
]

RIGHT = [
    ("steps_apart", right_steps),
    ("positions_from_mask", right_positions),
    ("positions_from_mask", lambda r: (r.cumsum(1) - 1).clamp(min=0) * r),
    ("layout_of", right_layout),
    ("layout_of", partial(right_layout, position=1)),
    ("base_of", right_base),
    ("repaired", right_repair),
    ("packing_mask", right_mask),
]
