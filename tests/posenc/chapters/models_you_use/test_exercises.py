"""Chapter 9's checks: every mistake is planted and must be called by its name."""

import math

import torch
from planted import verdict


def own(scores):
    return scores - scores.diagonal()[:, None]


def own_by_loop(scores):
    return torch.stack([row - row[m] for m, row in enumerate(scores)])


def texts(p):
    start, step = torch.cartesian_prod(torch.arange(p), torch.arange(p)).T
    return (start[:, None] + step[:, None] * torch.arange(p)) % p


def texts_by_loops(p):
    """Another order of the texts, and tokens counted down."""
    return torch.tensor([[(start - step * i) % p for i in range(p)] for step in range(p) for start in range(p)])


def at_random(p):
    return torch.randint(p, (p * p, p), generator=torch.Generator().manual_seed(0))


def places(table):
    mean = table.mean((0, 1))
    return mean - mean.mean(-1, keepdim=True)


def parts(x, e, weight, eps, *, whose="both", correction=0, with_eps=True, with_weight=True, centre=True):
    both = torch.stack([x, e])
    of = both if whose == "own" else (x + e)
    deviation = (of.var(-1, correction=correction, keepdim=True) + (eps if with_eps else 0)).sqrt()
    centred = both - both.mean(-1, keepdim=True) if centre else both
    return (weight if with_weight else 1) * centred / deviation


def mistaken(function, **options):
    def answer(*inputs):
        return function(*inputs, **options)

    return answer


def content_takes_all_means(x, e, weight, eps):
    deviation = ((x + e).var(-1, correction=0, keepdim=True) + eps).sqrt()
    return weight * torch.stack([x - (x + e).mean(-1, keepdim=True), e]) / deviation


def constant(content, weight, bias, norm_bias):
    return weight @ (content.mean(0) + norm_bias) + bias


def turn(before, after):
    cross = (before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]).sum()
    return math.atan2(cross, (before * after).sum())


def turn_of_complex(before, after):
    return (torch.view_as_complex(before).conj() * torch.view_as_complex(after)).sum().angle()


def each_turn(before, after):
    return (torch.view_as_complex(before).conj() * torch.view_as_complex(after)).angle()


def by_arc_cosine(before, after):
    return torch.acos((before * after).sum() / (before.norm(dim=1) * after.norm(dim=1)).sum())


PLANTED = [
    ("less_own", lambda s: s - s.diagonal(), "each column"),
    ("less_own", lambda s: own(s).nan_to_num(neginf=0.0), "lost its -inf"),
    ("less_own", lambda s: s - s.amax(-1, keepdim=True), "each row's largest"),
    ("less_own", lambda s: s - s.mean(-1, keepdim=True), "you took off each row's mean"),
    ("less_own", lambda s: s - s.exp().sum(-1, keepdim=True).log(), "not the score at the query's own place"),
    ("less_own", lambda s: own(s) * 2, "its own score; now every number is 2 times"),
    ("pair_texts", lambda p: texts(p) + 1, "take them modulo p"),
    ("pair_texts", lambda p: (torch.arange(p * p)[:, None] + torch.zeros(p, dtype=torch.int64)) % p, "the same token"),
    ("pair_texts", at_random, "of the 25 pairs of tokens: they have to meet all"),
    ("place_part", lambda t: t.mean((0, 1)), "a row's mean is still in it"),
    ("place_part", lambda t: t.mean((0, 1)) - t.mean(), "one number for each row"),
    ("place_part", lambda t: t.mean((0, 1)) - t.mean((0, 1, 2)), "the mean of each column"),
    ("place_part", lambda t: places(t) * 2, "for a table of shape (5, 5, 3, 2), every number is 2 times"),
    ("norm_parts", mistaken(parts, whose="own"), "its own deviation"),
    ("norm_parts", mistaken(parts, with_weight=False), "the weight of LayerNorm is missing"),
    ("norm_parts", mistaken(parts, centre=False), "its mean over the last axis"),
    ("norm_parts", mistaken(parts, correction=1), "correction=0"),
    ("norm_parts", mistaken(parts, with_eps=False), "eps is missing"),
    ("norm_parts", content_takes_all_means, "the sum is right, but the summands are not"),
    ("norm_parts", lambda x, e, weight, eps: torch.stack([x, e]), "without its bias: of the sum, at [0, 0] it is"),
    (
        "constant_query",
        lambda c, w, b, n: (w.T if w.shape[0] == w.shape[1] else w) @ (c.mean(0) + n) + b,
        "the wrong way round",
    ),
    ("constant_query", lambda c, w, b, n: w @ (c.mean(0) + n), "the query's own bias is missing"),
    ("constant_query", lambda c, w, b, n: w @ c.mean(0) + b, "LayerNorm's bias is missing"),
    ("constant_query", lambda c, w, b, n: w @ n + b, "the mean content is missing"),
    ("constant_query", lambda c, w, b, n: w @ (c.sum(0) + n) + b, "take the mean over the tokens"),
    (
        "constant_query",
        lambda c, w, b, n: 2 * constant(c, w, b, n),
        "for a weight of shape (3, 5), every number is 2 times",
    ),
    ("turn_between", lambda before, after: -turn(before, after), "wrong way round"),
    ("turn_between", lambda before, after: math.degrees(turn(before, after)), "degrees"),
    ("turn_between", by_arc_cosine, "an arc cosine does not know"),
    ("turn_between", lambda before, after: each_turn(before, after).mean(), "half a turn"),
    ("turn_between", lambda before, after: each_turn(before, after)[0], "one of the vectors"),
    ("turn_between", lambda *a: round(turn(*a), 3), "-2.011 is right to a few digits"),
    (
        "turn_between",
        lambda before, after: (
            (torch.view_as_complex(before) * torch.view_as_complex(after.contiguous())).sum().angle().item()
        ),
        "take conj(before), or divide",
    ),
    (
        "turn_between",
        lambda *both: -sum(s * v[:, 1].atan2(v[:, 0]).mean() for s, v in zip((1, -1), both)),
        "half a turn",
    ),
    ("turn_between", lambda before, after: 0.123, "these eight vectors turn by"),
]

RIGHT = [
    ("less_own", own),
    ("less_own", own_by_loop),
    ("pair_texts", texts),
    ("pair_texts", texts_by_loops),
    ("place_part", places),
    ("place_part", lambda t: (t - t.mean(-1, keepdim=True)).mean((0, 1))),
    ("norm_parts", parts),
    ("constant_query", constant),
    ("constant_query", lambda c, w, b, n: ((c + n) @ w.T + b).mean(0)),
    ("turn_between", turn),
    ("turn_between", turn_of_complex),
    ("turn_between", lambda before, after: turn(before, after) % (2 * math.pi)),
]


def test_a_longer_array_than_asked_for_is_refused(capsys):
    line = verdict(capsys, "pair_texts", lambda p: texts(p)[:, :-1])
    assert line.startswith("✗") and "expected (25, 5)" in line
