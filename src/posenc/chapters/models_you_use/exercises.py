"""The exercises of chapter 9."""

import math

import torch
from torch import Tensor

from posenc.attention import causal_bias
from posenc.lesson.exercises import Answer, difference, exercise, normal, wrong
from posenc.terms import layer_norm_parts


def _near(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=1e-9)


@exercise(
    "A row's own score stands on the diagonal: query m and key m.",
    "Subtract from each row m the number scores[m, m]. It has to stand beside the whole row, so it needs a second axis.",
    """[:, None] makes a column of numbers in a row:
>>> torch.tensor([1., 4.])[:, None]
tensor([[1.],
        [4.]])""",
    well_done="no weight of the softmax has changed, and what is left can be compared from row to row.",
)
def less_own(answer: Answer) -> None:
    for length, seed in ((5, 0), (3, 1)):
        scores = normal(length, length, seed=seed) + causal_bias(length, length).double()
        result = answer(scores)
        means = scores - scores.mean(-1, keepdim=True)
        if isinstance(result, Tensor) and result.shape == means.shape and result.isnan().equal(means.isnan()):
            wrong(
                "you took off each row's mean, and a row with hidden keys has the mean -inf: take its own score, which is never hidden"
            )
        got = answer.tensor(scores, shape=(length, length))
        own = scores.diagonal()
        if _same(got, scores - own[:, None]):
            continue
        if _same(got, scores - own):
            wrong("you took a number off each column: that changes the weights. [:, None] makes it one for each row")
        if not got.isinf().equal(scores.isinf()):
            wrong("a hidden key has lost its -inf: it must stay hidden")
        if _same(got, scores - scores.amax(-1, keepdim=True)):
            wrong("you took off each row's largest, and that is not at the same distance in each row: take its own")
        if _same(got.softmax(-1), scores.softmax(-1)):
            wrong("the weights are the same, but what you took off is not the score at the query's own place")
        wrong(
            f"the weights of the softmax have changed: take one number off each row, its own score; now {difference(got, scores - own[:, None])}"
        )


def _same(one: Tensor, other: Tensor) -> bool:
    """Also where both are infinite."""
    return one.shape == other.shape and bool(((one == other) | ((one - other).abs() < 1e-9)).all())


@exercise(
    "Two numbers make a text: where it starts, and how far it steps from place to place. Each has p values.",
    "Going on by the same step from place to place, modulo p, two texts that agree at two places have the same start and the same step.",
    """cartesian_prod gives all pairs, and a column beside a row gives a table:
>>> torch.tensor([[0], [1]]) + torch.tensor([[0, 2, 4]])
tensor([[0, 2, 4],
        [1, 3, 5]])""",
    well_done="p² texts do the work of p to the power p.",
)
def pair_texts(answer: Answer) -> None:
    for p in (5, 7, 3):
        got = answer.tensor(p, shape=(p * p, p), dtype=torch.int64)
        if got.min() < 0 or got.max() >= p:
            wrong(f"for p = {p} there are tokens from {got.min()} to {got.max()}: take them modulo p, from 0 to p - 1")
        for m in range(p):
            for n in range(m):
                pairs = {(a, b) for a, b in got[:, [n, m]].tolist()}
                if len(pairs) == p and all(a == b for a, b in pairs):
                    wrong(f"places {n} and {m} always hold the same token: a text has to step from place to place")
                if len(pairs) < p * p:
                    wrong(
                        f"for p = {p}, places {n} and {m} meet {len(pairs)} of the {p * p} pairs of tokens: they have to meet all of them, each once"
                    )


@exercise(
    "Average away what is not asked for: the two tokens. Then leave out what the softmax leaves out.",
    "The mean over the first two axes is left with a row for each query's place. What is the same for all keys of a row changes no weight.",
    """mean takes several axes at once, here the first and the last:
>>> torch.arange(8.0).view(2, 2, 2).mean((0, 2))
tensor([2.5000, 4.5000])""",
    well_done="this is what the share of position → position is made of.",
)
def place_part(answer: Answer) -> None:
    for seed, shape in enumerate([(5, 5, 3, 2), (3, 3, 2, 4)]):
        table = normal(*shape, seed=seed)
        got = answer.tensor(table, shape=shape[2:])
        mean = table.mean((0, 1))
        if _near(got, mean - mean.mean(1, keepdim=True)):
            continue
        if _near(got, mean):
            wrong("a row's mean is still in it, which no softmax sees: subtract it from each row")
        if _near(got, mean - mean.mean()):
            wrong("you subtracted one mean of the whole: the softmax forgets one number for each row")
        if _near(got, mean - mean.mean(0)):
            wrong("you subtracted the mean of each column: that is what all queries prefer, and the softmax sees it")
        wrong(
            f"average over both tokens, the first two axes, and subtract from each row its mean over the keys: for a table of shape {shape}, {difference(got, mean - mean.mean(1, keepdim=True))}"
        )


@exercise(
    "LayerNorm subtracts a mean, which can be done for each summand, and divides by one number, which cannot.",
    "That number is the deviation of x + e: the root of its variance plus eps, the variance with 1/d.",
    """var divides by d - 1 unless it is told otherwise:
>>> torch.tensor([0., 2.]).var(correction=0)
tensor(1.)""",
    well_done="they sum to LayerNorm without its bias, whatever the bias is.",
)
def norm_parts(answer: Answer) -> None:
    for seed, (length, d) in enumerate([(4, 8), (1, 3)]):
        x, e, weight = normal(length, d, seed=seed), 2 * normal(length, d, seed=9) + 1, normal(d, seed=5)
        eps = 0.1
        norm = torch.nn.LayerNorm(d, eps=eps, dtype=torch.float64)
        with torch.no_grad():
            norm.weight.copy_(weight)
            expected = torch.stack(layer_norm_parts([x, e], norm))
        got = answer.tensor(x, e, weight, eps, shape=(2, length, d))
        if _near(got, expected):
            continue
        both = torch.stack([x, e])
        centred = both - both.mean(-1, keepdim=True)
        deviation = ((x + e).var(-1, correction=0, keepdim=True) + eps).sqrt()
        if _near(got, weight * centred / (both.var(-1, correction=0, keepdim=True) + eps).sqrt()):
            wrong("each summand is divided by its own deviation: then they don't sum to LayerNorm(x + e)")
        if _near(got, centred / deviation):
            wrong("the weight of LayerNorm is missing")
        if _near(got, weight * both / deviation):
            wrong("subtract from each summand its mean over the last axis")
        if _near(got, weight * centred / ((x + e).var(-1, keepdim=True) + eps).sqrt()):
            wrong("LayerNorm's variance divides by d, and yours by d - 1: var(…, correction=0)")
        if _near(got, weight * centred / (x + e).std(-1, correction=0, keepdim=True)):
            wrong("eps is missing: it is added to the variance, under the root")
        if _near(got.sum(0), expected.sum(0)):
            wrong("the sum is right, but the summands are not: each keeps what comes from it alone")
        wrong(
            f"they don't sum to LayerNorm(x + e) without its bias: of the sum, {difference(got.sum(0), expected.sum(0))}"
        )


@exercise(
    "Ask what is in every query, whatever its token and its place: what biases add, and what all contents share.",
    "Two of the three parts are vectors of the model's width, and go through the query's weight. Which one comes after it?",
    """A Linear with weight W makes W v of a vector v:
>>> torch.tensor([[1., 2.], [0., 1.]]) @ torch.tensor([1., 1.])
tensor([3., 1.])""",
    well_done="this query belongs to no token and to no place.",
)
def constant_query(answer: Answer) -> None:
    for seed, (tokens, d, head) in enumerate([(6, 5, 3), (4, 4, 4)]):
        content, weight = normal(tokens, d, seed=seed) + 1, normal(head, d, seed=7)
        bias, norm_bias = normal(head, seed=8), normal(d, seed=9)
        got = answer.tensor(content, weight, bias, norm_bias, shape=(head,))
        mean = content.mean(0)
        if _near(got, weight @ (mean + norm_bias) + bias):
            continue
        if head == d and _near(got, weight.T @ (mean + norm_bias) + bias):
            wrong("the weight is the wrong way round: nn.Linear stores (d_head, d)")
        for missing, part in {
            "the query's own bias": weight @ (mean + norm_bias),
            "LayerNorm's bias": weight @ mean + bias,
            "the mean content": weight @ norm_bias + bias,
        }.items():
            if _near(got, part):
                wrong(f"{missing} is missing: it is in every query too")
        if _near(got, weight @ mean + norm_bias.sum() + bias) or _near(
            got, weight @ (content.sum(0) + norm_bias) + bias
        ):
            wrong("take the mean over the tokens, and put LayerNorm's bias through the weight")
        right = weight @ (mean + norm_bias) + bias
        wrong(
            f"it is not what all queries share, which comes from the mean content, LayerNorm's bias and the query's bias: for a weight of shape {(head, d)}, {difference(got, right)}"
        )


@exercise(
    "Read a pair of dimensions as a complex number. Turning it is one multiplication by e^iθ.",
    "For one vector, conj(before) · after is a number with the angle θ, and the longer the vectors, the larger it is. Put those of all vectors together before you take an angle.",
    """atan2 gives the angle, with its sign:
>>> math.atan2(1.0, 0.0) / math.pi
0.5""",
    well_done="no look at the model's code was needed.",
)
def turn_between(answer: Answer) -> None:
    for seed, theta in enumerate([-2.0, 0.7, 3.1, 0.0]):
        before = normal(8, 2, seed=seed)
        after = before @ torch.tensor(
            [[math.cos(theta), math.sin(theta)], [-math.sin(theta), math.cos(theta)]], dtype=torch.float64
        )
        after = after + 0.05 * normal(8, 2, seed=50 + seed)  # as rounding would, only larger
        cross = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
        dot = (before * after).sum(-1)
        exact = math.atan2(cross.sum(), dot.sum())
        got = answer.number(before, after)
        if abs(got - exact) < 1e-9 or abs(abs(got - exact) - 2 * math.pi) < 1e-9:
            continue
        if abs(got + exact) < 1e-9:
            wrong("right size, wrong way round: positive is counter-clockwise, from the first dimension to the second")
        if abs(got - exact) < 0.01:
            wrong(f"{got!r} is right to a few digits: don't round, and stay in float64")
        if abs(got - (_complex(before) * _complex(after)).sum().angle().item()) < 1e-9:
            wrong("that is the angle of before · after, where angles add up: take conj(before), or divide")
        if abs(got - math.degrees(exact)) < 1e-6:
            wrong("that is in degrees: return radians")
        each = torch.atan2(cross, dot)
        turned = (_complex(after).angle() - _complex(before).angle()).mean().item()
        if abs(got - each.mean().item()) < 1e-9 or abs(got - turned) < 1e-9:
            wrong("the mean of angles goes wrong near half a turn, where some read +π and some -π: add up first")
        if any(abs(got - one) < 1e-9 for one in each.tolist()):
            wrong("that is the angle of one of the vectors: use all of them")
        if exact < 0 and abs(got + exact) < 0.2:
            wrong("an arc cosine does not know which way it turned: use atan2 of the sines and the cosines")
        wrong(f"these eight vectors turn by {exact:.3f} radians, and it returned {got:.3f}")


def _complex(pairs: Tensor) -> Tensor:
    return torch.view_as_complex(pairs.contiguous())
