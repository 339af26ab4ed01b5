"""What chapter 4 asks: turning, a head that looks back, a score that grows, layouts, a cache and a table."""

import math
from functools import partial

import torch
from torch import Tensor

from posenc.additive import frequencies
from posenc.attention import causal_bias
from posenc.lesson.exercises import Answer, difference, exercise, normal, wrong
from posenc.rotary import angles, rotate, to_half_split, to_interleaved


@exercise(
    "Where does (1, 0) go? And (0, 1)? Every vector is a sum of these two.",
    "The point (1, 0) goes to (cos, sin), the point (0, 1) goes to (-sin, cos).",
    """Turned by π/2, the first goes to where the second was:
>>> angle = math.pi / 2
>>> [round(math.cos(angle), 2), round(math.sin(angle), 2)]
[0.0, 1.0]""",
    well_done="counter-clockwise, and the length stays.",
)
def turn(answer: Answer) -> None:
    for vector, angle in (([3.0, -4.0], 1.0), ([1.0, 0.0], 0.5), ([0.0, 2.0], -2.5), ([0.3, 0.7], 40.0)):
        v = torch.tensor(vector, dtype=torch.float64)
        got = answer.tensor(v, angle, shape=(2,))
        c, s, small = math.cos(angle), math.sin(angle), math.radians(angle)

        def same(*rows: float, atol: float = 1e-6) -> bool:
            return torch.allclose(got, torch.tensor(rows, dtype=v.dtype).view(2, 2) @ v, rtol=0, atol=atol)

        if same(c, -s, s, c, atol=1e-12):
            continue
        if same(c, -s, s, c):
            wrong("right to six digits: the cosine is rounded to float32 on the way; math.cos and math.sin keep all")
        if same(c, s, -s, c):
            wrong("right length, wrong way round: you turned by -angle. Look at the sign of sin")
        if same(math.cos(small), -math.sin(small), math.sin(small), math.cos(small)):
            wrong("the angle is taken for degrees: torch and the course count in radians")
        if same(s, c, c, -s) or same(-s, c, c, s):
            wrong("the two numbers have changed places: (1, 0) goes to (cos, sin)")
        if same(c, s, s, -c) or same(-c, s, -s, -c):
            wrong("it mirrors the vector: the sines of the two rows have different signs, the cosines do not")
        if same(c, 0, s, 0):
            wrong("it turns (v[0], 0): the second number is lost")
        if same(c, -s, s * c, c - s * s):
            wrong("the second line used the first number after its turn: keep both as they were until the end")
        if same(c, s, s, c):
            wrong("one of the two sines needs a minus: (0, 1) goes to (-sin, cos)")
        length = f"; the length went from {v.norm():.2f} to {got.norm():.2f}, and a turn keeps it"
        kept = torch.isclose(got.norm(), v.norm(), atol=1e-6)
        wrong(f"{vector} by {angle} radians is not {[round(x, 2) for x in got.tolist()]}{'' if kept else length}")


@exercise(
    "First the angles, (T, d/2): position times base^(-2i/d). Then turn each pair of neighbours.",
    """The firsts of all pairs are one tensor, the seconds another: slices with a step.
>>> torch.arange(10, 16)[1::2].tolist()
[11, 13, 15]""",
    """Turned, each first goes back beside its second. Pairs side by side have an axis more than x:
>>> torch.stack([torch.tensor([1, 3]), torch.tensor([2, 4])], dim=-1).tolist()
[[1, 2], [3, 4]]""",
    well_done="every pair at its own speed, and position 0 stays as it is.",
)
def rotary(answer: Answer) -> None:
    positions, bases = torch.tensor([3, 0, 1, 40]), (10_000.0, 50.0)
    x = normal(4, 4, 8)  # (heads, T, d)
    results = {base: answer.tensor(x, positions, base, shape=x.shape) for base in bases}
    for base, got in results.items():
        right, theta = _rotary(x, positions, base), positions[:, None] * frequencies(8, base=base)
        same, turned = partial(torch.allclose, got, rtol=0, atol=1e-4), partial(_rotary, x)
        if same(right):
            continue
        if same(turned(-positions, base)):
            wrong("it turns clockwise: look at the sign of sin; (1, 0) goes to (cos, sin)")
        if same(turned(positions * math.pi / 180, base)):
            wrong("the angles are in degrees: p·base^(-2i/d) already is in radians")
        if same(turned(positions * 2 * math.pi, base)):
            wrong("a factor 2π too much: pair 0 turns by 1 radian a position")
        if same(turned(positions, base**0.5)):
            wrong("the exponent is wrong: i/d, so that the pairs slow down half as fast; pair i has 2i/d")
        if same(turned(positions, base**2)):
            wrong("the exponent is wrong: 4i/d; if your index already counts 0, 2, 4, …, don't double it again")
        if same(turned(positions, base ** (8 / 6))):
            wrong("the exponent is wrong: i/(d/2 - 1), with which the last pair reaches the base; the paper has 2i/d")
        if same(turned(positions, 1 / base)):
            wrong("the exponent has the wrong sign: the pairs get faster; multiply by base^(-2i/d)")
        if same(turned(positions, 1)):
            wrong("every pair turns at the speed of pair 0: multiply the position by base^(-2i/d)")
        if same(turned(positions, base, layout="half_split")):
            wrong("the other layout: it turns dimension i with i + d/2; here pairs are neighbours, 2i and 2i + 1")
        if same(right.unflatten(-1, (-1, 2)).mT.flatten(-2)):
            wrong("right numbers, wrong places: put firsts and seconds back in turns, not one after the other")
        firsts, seconds = right[..., 0::2], x[..., 1::2]
        seconds = firsts * theta.sin() + seconds * theta.cos()
        if same(torch.stack([firsts, seconds], dim=-1).flatten(-2)):
            wrong(
                "the seconds are turned with firsts that have been turned already: keep both as they were until the end"
            )
        if same(turned(positions + 1, base)):
            wrong("that is the turn of the next position: positions count from 0, and position 0 stays as it is")
        if same(turned(torch.arange(4), base)):
            wrong("it turns by 0, 1, 2, … whatever the positions are: use the argument")
        if same(_rotary(x.transpose(0, 1), positions, base).transpose(0, 1)):
            wrong("the positions are taken along the first axis, the heads: tokens stand on the axis before the last")
        if same(x + torch.stack([theta.cos(), theta.sin()], dim=-1).flatten(-2)):
            wrong("it adds cosines and sines: multiply, pair by pair")
        if torch.equal(*results.values()):
            wrong("the base is not used: results for 10000 and 50 are the same")
        if not torch.allclose(got[:, 1], x[:, 1], rtol=0, atol=1e-4):
            wrong(f"the token at position 0 has changed, where the angle is 0: {difference(got[:, 1], x[:, 1])}")
        if not torch.allclose(got.norm(dim=-1), x.norm(dim=-1), atol=1e-4):
            wrong("the lengths have changed: a turn has sin twice, with both signs")
        turns = torch.remainder(_angles(got) - _angles(x) + math.pi, 2 * math.pi) - math.pi
        head, token, pair = ((turns - theta).cos() < 1 - 1e-9).nonzero()[0].tolist()
        wrong(
            f"pair {pair} at position {positions[token]} and base {base:g} turns by {turns[head, token, pair]:.4g}, and p·base^(-2i/d) is {theta[token, pair]:.4g} there"
        )
    far = torch.tensor([1_000_000, 1_000_257, 0, 131_071])
    if not torch.allclose(answer.tensor(x, far, 50.0, shape=x.shape), _rotary(x, far, 50.0), rtol=0, atol=1e-6):
        wrong(
            "right near 0, wrong at position 1,000,000: the angles have too few digits; compute exponents and angles in torch.float64"
        )
    if not torch.allclose(got, right, rtol=0, atol=1e-9):
        wrong("right to six digits: it is rounded to float32 on the way, so keep all of it in torch.float64")


def _rotary(x: Tensor, positions: Tensor, base: float, *, layout: str = "interleaved") -> Tensor:
    """The encoding of x, (…, T, d), at positions that need not be whole."""
    return rotate(x, positions[:, None] * frequencies(x.shape[-1], base=base), layout=layout)


def _angles(x: Tensor) -> Tensor:
    """The angle of each pair of neighbours, (…, d) → (…, d/2)."""
    return torch.atan2(x[..., 1::2], x[..., 0::2])


@exercise(
    "Without positions in their vectors, query and key can be the same two vectors for all tokens.",
    "Start with equal ones: their score is largest at offset 0. Then turn one of them, once and for all.",
    "Turns add up: what was turned by 2 beforehand looks at position 7 as if it stood at 9. Where should the query at m seem to stand, so that it meets the key at m - back at offset 0?",
    """The longer both vectors, the larger the difference of their scores, and the sharper the softmax:
>>> [round(torch.tensor([length * 1.0, length * 0.8]).softmax(-1)[0].item(), 2) for length in (1, 10, 100)]
[0.55, 0.88, 1.0]""",
    well_done="rotary encoding can point at an offset without looking at any token.",
)
def look_back(answer: Answer) -> None:
    length, head_dim = 48, 64
    for back in (3, 0, 12):
        query, key = answer.tensor(back, head_dim, shape=(2, head_dim))
        m = torch.arange(length)
        q, k = (rotate(x.expand(length, -1), angles(m, head_dim)) for x in (query, key))
        everywhere = (q @ k.T / math.sqrt(head_dim)).softmax(dim=-1)
        weights = (q @ k.T / math.sqrt(head_dim) + causal_bias(length, length)).softmax(dim=-1)
        best = weights[back:].argmax(dim=-1)
        if (best == m[back:] - back).all():
            weight = weights[back:].gather(1, (m[back:] - back)[:, None]).min()
            if weight > 0.9:
                continue
            wrong(
                f"it looks {back} back, with a weight of {weight:.2f} only: make the vectors longer, so that the softmax gets sharp"
            )
        if back and (everywhere[:-back].argmax(dim=-1) == m[:-back] + back).all():
            wrong(f"it looks {back} ahead: turn the other way, or turn the other vector")
        if (best == m[back:]).all():
            wrong("it looks at the token itself: query and key have to differ by a turn")
        if (best == 0).all():
            wrong("it looks at position 0 whatever the query's position: is a vector zero, or a sign wrong?")
        query_at = (best != m[back:] - back).nonzero()[0].item() + back
        wrong(
            f"the query at {query_at} has its largest weight {query_at - best[query_at - back]} positions back, not {back}: the turn of every pair is its own speed times {back}"
        )


@exercise(
    "Start from k = q, whose score falls from 1. What does k = -q do?",
    "Over all pairs that ends higher than it starts, but on the way the fast pairs come round and pull it down. It takes one pair only.",
    "In one pair of speed ω the score of k = -q is -cos(ω·distance). It rises until the hand has made half a turn. So 64 steps must stay within half a turn; but a hand that hardly moves hardly raises the score.",
    well_done="no decay at all; which way the score goes, the vectors decide.",
)
def break_decay(answer: Answer) -> None:
    distances = torch.arange(65)
    for head_dim in (64, 32, 128):
        query, key = both = answer.tensor(head_dim, shape=(2, head_dim))
        lengths = both.norm(dim=1).tolist()
        if max(abs(length - 1) for length in lengths) > 1e-6:
            wrong(f"query and key have the lengths {lengths[0]:.3g} and {lengths[1]:.3g}: divide each by its own")
        scores, ahead = (rotate(query.expand(65, -1), angles(way * distances, head_dim)) @ key for way in (1, -1))
        steps, rise = scores.diff(), (scores[-1] - scores[0]).item()
        rises = steps > 1e-12
        if rises.all() and rise >= 1:
            continue
        if rises.all():
            wrong(f"with d = {head_dim} it rises all the way, but by {rise:.3g} only: take a faster pair")
        if (steps.abs() < 1e-12).all():
            wrong("the score is the same at every distance: query and key need numbers in the same pair")
        if (ahead.diff() > 1e-12).all():
            wrong("it rises with n - m, towards keys that stand ahead: turn the key in advance the other way")
        if not rises.any():
            wrong(f"it falls with every step, from {scores[0]:.2f} to {scores[-1]:.2f}: what does -key do?")
        falls = (~rises).nonzero()[0].item()
        if falls and not rises[falls:].any():
            wrong(
                f"with d = {head_dim} it rises up to distance {falls} and falls from there: by then the hand has made half a turn; take a slower pair"
            )
        wrong(
            f"with d = {head_dim} it goes from {scores[0]:.2f} to {scores[-1]:.2f}, but falls from distance {falls} to {falls + 1}: fast pairs come round and pull it down; use one pair that does not"
        )


@exercise(
    "Take a head of four. Interleaved, the pairs are (0, 1) and (2, 3). Half-split they are (0, 2) and (1, 3).",
    "A row of the weight makes one dimension of a query. Reorder the rows of each head, never across heads.",
    """In a head of four, first the firsts of all pairs, then the seconds:
>>> torch.arange(4).unflatten(0, (2, 2)).T.flatten().tolist()
[0, 2, 1, 3]""",
    well_done="with both weights reordered, the other convention gives the same scores.",
)
def half_split_weight(answer: Answer) -> None:
    heads, head_dim, width = 3, 8, 24
    weight = normal(heads * head_dim, width, seed=2)
    got = answer.tensor(weight, head_dim, shape=weight.shape)
    if torch.equal(got, to_half_split(weight, head_dim, dim=0)):
        return
    if torch.equal(got, weight):
        wrong("the weight is unchanged: its rows are still interleaved")
    if torch.equal(got.sort(dim=1).values, weight.sort(dim=1).values):
        wrong("columns are reordered: they belong to the input; the rows make the query's dimensions")
    if torch.equal(got, to_interleaved(weight, head_dim, dim=0)):
        wrong("that is the way back, from half-split to interleaved")
    if torch.equal(got, to_half_split(weight, heads * head_dim, dim=0)):
        wrong("rows of different heads are mixed: reorder within each head of head_dim rows")
    if torch.equal(got, to_half_split(weight, head_dim, dim=0).unflatten(0, (heads, 2, -1)).flip(1).flatten(0, 2)):
        wrong("seconds come first: the first half holds the even dimensions; the pairs turn the other way")
    if not torch.equal(got.sort(dim=0).values, weight.sort(dim=0).values):
        wrong("these are not the rows of the weight in another order")
    wrong("the rows are in another order: within a head first 0, 2, 4, …, then 1, 3, 5, …")


@exercise(
    "A key at position n has been turned by n. Which turn is it to have now?",
    "From n to n - dropped is the same turn for every key, wherever it stands.",
    "Turns add up, also with a turn backwards: a negative position turns clockwise.",
    well_done="the keys count from 0 again, and nobody had to know the tokens.",
)
def move_keys(answer: Answer) -> None:
    head_dim, length = 16, 6
    key = normal(2, length, head_dim, seed=5)
    places = torch.arange(length)
    wanted = rotate(key, angles(places, head_dim))
    for dropped in (1, 100, 5000):
        cached = rotate(key, angles(places + dropped, head_dim))

        got, turned = answer.tensor(cached, dropped, shape=key.shape), partial(rotate, cached)
        along, further = angles(places, head_dim), angles(torch.tensor([dropped]), head_dim)
        same = partial(torch.allclose, got, rtol=0, atol=1e-6)
        if same(wanted):
            continue
        if same(cached):
            wrong("the keys are unchanged: they are still turned by their old positions")
        if same(turned(further)):
            wrong(f"the keys are turned {dropped} further instead: turn them back")
        if same(turned(-further, layout="half_split")):
            wrong("the other layout: these keys were turned as neighbours")
        if same(key):
            wrong("every turn is taken off: the first key stands at 0 now, but the next at 1, and so on")
        if same(turned(along)):
            wrong("the keys are turned a second time, by their new positions: the old turn is still on them")
        if same(turned(-along)):
            wrong("the new positions are taken off; what has to go is the turn of the dropped tokens")
        wrong(f"with {dropped} dropped, these are not the keys at positions 0, 1, 2, … ({difference(got, wanted)})")


@exercise(
    "You know the key before and after the turn. Every position turns it another way.",
    "Turn the key by all positions at once, and see which result lies next to the cached one.",
    """That gives `length` rows, and for each a distance to the cached key. Which row is the nearest?
>>> torch.tensor([2.2, 0.2, 3.4]).argmin().item()
1""",
    well_done="a cached key carries its position; a cache that forgets the offset stores the wrong one.",
)
def cached_position(answer: Answer) -> None:
    length, head_dim = 2048, 32
    key = normal(head_dim, seed=3)
    for position, rounded in ((3, False), (0, False), (1000, False), (1613, True)):
        cached = rotate(key, angles(torch.tensor(position), head_dim))
        if rounded:
            cached = cached.bfloat16().double()  # as a cache may store it
        got = answer.number(key, cached, length)
        if got == position:
            continue
        if got == position + 1:
            wrong(f"{got:.0f} for the key at {position}: positions count from 0")
        if position and got == position - 1 and not rounded:
            wrong(f"{got:.0f} for the key at {position}: row 0 has to be the turn of position 0, so count from 0")
        if got == -position or got == length - position:
            wrong(f"{got:.0f} for the key at {position}: the turn is counted the wrong way round")
        if position > 6 and abs(got - position % (2 * math.pi)) <= 1:
            wrong("pair 0 comes round every 6.28 positions: one pair alone does not tell them apart, use all")
        if rounded:
            wrong(
                f"{got:g} for a key at {position} that was stored in bfloat16: a slow pair alone is too rough, and no pair agrees to the last digit; take the nearest over all pairs"
            )
        wrong(f"{got:g} for the key at {position}: turned by {got:g} positions, the key is not the cached one")


@exercise(
    "Which tensors of the listing have the model's dtype before their product is taken?",
    "Keep positions as integers and angles in float64. Cast cos and sin, at the very end.",
    """The same angle, rounded before the cosine and after it:
>>> angle = torch.tensor(1001.0, dtype=torch.float64)
>>> [round(x.item(), 2) for x in (angle.bfloat16().double().cos(), angle.cos().bfloat16())]
[0.56, -0.39]""",
    well_done="a cosine needs few digits; the angle in it needs many.",
)
def tables(answer: Answer) -> None:
    length, head_dim = 4096, 16
    exact = angles(torch.arange(length), head_dim)
    for dtype, limit in ((torch.bfloat16, 4.1e-3), (torch.float32, 2e-7)):
        got = answer.tensor(length, head_dim, dtype, shape=(2, length, head_dim // 2), dtype=dtype).double()

        def near(theta: Tensor, tolerance: float = limit) -> bool:
            return bool((got - torch.stack([theta.cos(), theta.sin()])).abs().max() <= tolerance)

        if near(exact):
            continue
        low = torch.bfloat16 if dtype == torch.bfloat16 else torch.float32
        speed = exact[1]
        if (got.flip(0) - torch.stack([exact.cos(), exact.sin()])).abs().max() <= limit:
            wrong("sines first: the table holds the cosines, then the sines")
        if low == torch.bfloat16:
            if near(torch.arange(length).to(low).double()[:, None] * speed, 0.01):
                wrong(
                    "the positions are still in bfloat16, and 257 becomes 256: keep them as integers until they are multiplied"
                )
            if near(torch.arange(length)[:, None] * speed.to(low).double(), 0.01):
                wrong("the speeds are still rounded to bfloat16, and a position of 4000 makes the rounding large")
            if near(exact.to(low).double(), 0.01):
                wrong("the angles are rounded to bfloat16 before cos and sin: cast their results instead")
            if near((torch.arange(length).to(low)[:, None] * speed.to(low)).double(), 0.5):
                wrong("the angles are computed in bfloat16: use float64, and cast cos and sin at the end")
        elif near(exact, 2e-3):
            wrong("right for bfloat16; for a float32 model the angles need more than float32: compute them in float64")
        wrong(
            f"the table is off by more than rounding its numbers explains: it should hold cos and sin of p·10000^(-2i/d), and in {dtype} {difference(got, torch.stack([exact.cos(), exact.sin()]))}"
        )
