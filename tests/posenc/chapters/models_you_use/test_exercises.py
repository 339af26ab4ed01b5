"""Chapter 9's planted mistakes, and right answers of another kind."""

import math

import torch
from slips import mistakes


def texts_by_loops(p):
    """Another order of the texts, and tokens counted down."""
    return torch.tensor([[(start - step * i) % p for i in range(p)] for step in range(p) for start in range(p)])


PLANTED = mistakes(
    less_own={
        "each column": "[:, None] →",
        "lost its -inf": "result.nan_to_num(neginf=0.0)",
        "each row's largest": "scores.diagonal()[:, None] → scores.amax(-1, keepdim=True)",
        "you took off each row's mean": "scores.diagonal()[:, None] → scores.mean(-1, keepdim=True)",
        "not the score at the query's own place": "scores.log_softmax(-1)",
        "its own score; now every number is 2 times": "2 * result",
    },
    pair_texts={
        "take them modulo p": "result + 1",
        "the same token": "step[:, None] → 0 * step[:, None]",
        "of the 25 pairs of tokens: they have to meet all": (
            "torch.randint(p, (p * p, p), generator=torch.Generator().manual_seed(0))"
        ),
        "expected (25, 5)": "result[:, :-1]",
    },
    place_part={
        "a row's mean is still in it": "- mean.mean(1, keepdim=True) →",
        "one number for each row": "mean.mean(1, keepdim=True) → mean.mean()",
        "the mean of each column": "mean.mean(1, → mean.mean(0,",
        "for a table of shape (5, 5, 3, 2), every number is 2 times": "2 * result",
    },
    norm_parts={
        "its own deviation": "(x + e).var → torch.stack([x, e]).var",
        "the weight of LayerNorm is missing": "weight * →",
        "its mean over the last axis": "- both.mean(-1, keepdim=True) →",
        "correction=0": "correction=0 → correction=1",
        "eps is missing": "+ eps →",
        "the sum is right, but the summands are not": (
            "both.mean(-1, keepdim=True) → torch.stack([(x + e).mean(-1, keepdim=True), torch.zeros(len(x), 1)])"
        ),
        "without its bias: of the sum, at [0, 0] it is": "torch.stack([x, e])",
    },
    constant_query={
        "the wrong way round": "weight @ → (weight.T if len(weight) == 4 else weight) @",
        "the query's own bias is missing": "+ bias →",
        "LayerNorm's bias is missing": "+ norm_bias →",
        "the mean content is missing": "content.mean(0) + →",
        "take the mean over the tokens": "mean → sum",
        "for a weight of shape (3, 5), every number is 2 times": "2 * result",
    },
    turn_between={
        "wrong way round": "-result",
        "degrees": "math.degrees(result)",
        "an arc cosine does not know": "math.acos((before * after).sum() / (before.norm(dim=1) @ after.norm(dim=1)))",
        "half a turn": ".sum().angle() → .angle().mean()",
        "one of the vectors": ".sum() → [0]",
        "-2.011 is right to a few digits": "round(result, 3)",
        "take conj(before), or divide": ".conj() →",
        "the mean of angles goes": "(before.conj() * after).sum().angle() → (after.angle() - before.angle()).mean()",
        "these eight vectors turn by": "0.123",
    },
)

RIGHT = [
    ("less_own", lambda scores: torch.stack([row - row[m] for m, row in enumerate(scores)])),
    ("pair_texts", texts_by_loops),
    ("place_part", lambda t: (t - t.mean(-1, keepdim=True)).mean((0, 1))),
    ("constant_query", lambda c, w, b, n: ((c + n) @ w.T + b).mean(0)),
    (
        "turn_between",
        lambda b, a: math.atan2(torch.stack([b, a], dim=-1).det().sum(), (b * a).sum()) % (2 * math.pi),
    ),
]
