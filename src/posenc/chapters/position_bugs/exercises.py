"""What chapter 8 asks: runs that agree, positions and masks of a batch, a rotation's layout and base, a repair."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from posenc.lesson.exercises import Answer, exercise, normal, shown, wrong
from posenc.probe import Convention
from posenc.rotary import to_half_split, to_interleaved


class _Toy:
    """A causal model without layers: the logits are those of the tokens so far, plus what the place adds.

    Args:
        late: how much is added to the place when a text is read step by step.
        only: the one place at which that happens; everywhere unless given.
        constant: added to all logits of a step.
    """

    def __init__(self, late: float = 0.0, *, only: int | None = None, constant: float = 0.0):
        self.tokens, self.place = 3 * normal(11, 11, seed=80), normal(11, seed=81)
        self.late, self.only, self.constant = late, only, constant

    def whole(self, tokens: Tensor) -> Tensor:
        return self._logits(self.tokens[tokens].cumsum(dim=1), torch.arange(tokens.shape[1]).double())

    def step(self, tokens: Tensor, cache: tuple[Tensor, int] | None) -> tuple[Tensor, tuple[Tensor, int]]:
        if tokens.shape[1:] != (1,):
            raise ValueError(f"step takes one token of each text, (B, 1), not {tuple(tokens.shape)}")
        before, count = cache or (0.0, 0)
        total = before + self.tokens[tokens].cumsum(dim=1)
        places = count + torch.arange(tokens.shape[1]).double()
        wrong_here = places > 0 if self.only is None else places == self.only
        logits = self._logits(total, places + self.late * wrong_here) + self.constant
        return logits, (total[:, -1:], count + tokens.shape[1])

    def _logits(self, total: Tensor, places: Tensor) -> Tensor:
        return total + places[:, None] * self.place


def _apart(toy: _Toy, tokens: Tensor, of: Callable, *, cached: bool = True) -> Tensor:
    """What the two runs differ by, of log-probabilities or of something else: step by step minus whole."""
    cache, parts = None, []
    for token in tokens.split(1, dim=1):
        logits, new = toy.step(token, cache)
        cache = new if cached else None
        parts.append(logits)
    return of(torch.cat(parts, dim=1)) - of(toy.whole(tokens))


@exercise(
    "Feed one token at a time, and hand on the cache that each step returns.",
    "Put the steps' logits side by side, (B, T, V), and compare them with those of the whole text.",
    """The softmax does not see a constant that is added to all logits:
>>> logits = torch.tensor([1.0, 3.0, 0.5])
>>> torch.allclose(logits.log_softmax(-1), (logits + 7).log_softmax(-1))
True""",
    well_done="it also sees what no argmax shows.",
)
def steps_apart(answer: Answer) -> None:
    tokens = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(90))
    log = partial(torch.log_softmax, dim=-1)
    agreeing = _Toy()
    got = answer.number(agreeing.whole, agreeing.step, tokens)
    if abs(got) > 1e-9:
        if math.isclose(got, _apart(agreeing, tokens, log, cached=False).abs().max().item(), abs_tol=1e-9):
            wrong("the cache is not handed on: each step needs the one that the step before returned")
        wrong(
            f"two runs that agree to the last digit are apart by {got:.3g}: compare the logits of each step with those of the same place in the whole text"
        )
    shifted = _Toy(constant=5.0)
    if abs(answer.number(shifted.whole, shifted.step, tokens)) > 1e-9:
        wrong("logits that differ by one constant give the same probabilities: compare log_softmax of both, not logits")
    for toy in (_Toy(0.02), _Toy(0.3, only=4), _Toy(-0.05)):
        off = _apart(toy, tokens, log)
        got = answer.number(toy.whole, toy.step, tokens)
        if math.isclose(got, off.abs().max().item(), rel_tol=1e-6):
            continue
        same = partial(math.isclose, got, rel_tol=1e-6)
        if got == 0:
            wrong(
                "the runs differ and it says 0: the likeliest token may stay the same, so compare all log-probabilities"
            )
        if same(off.max().item()) or same(-off.min().item()):
            wrong("a difference may have either sign: take abs() before the maximum")
        if same(off[:, -1].abs().max().item()):
            wrong("it compares the last token alone: a wrong place in the middle is not seen")
        if same(off.abs().mean().item()):
            wrong("that is the mean: one wrong token in a thousand would vanish in it; take the maximum")
        if same(_apart(toy, tokens, partial(torch.softmax, dim=-1)).abs().max().item()):
            wrong("it compares probabilities: those of rare tokens are too small to differ; take their logarithms")
        wrong(f"it gives {got:.4g}, and the largest difference of a log-probability is {off.abs().max():.4g}")


@exercise(
    "A token's position is the number of real tokens before it in its own row.",
    "cumsum counts the real tokens up to and including each.",
    """Booleans add up as 0 and 1:
>>> torch.tensor([False, False, True, True, True]).cumsum(0).tolist()
[0, 0, 1, 2, 3]""",
    well_done="each row counts its own tokens, from 0.",
)
def positions_from_mask(answer: Answer) -> None:
    masks = (
        [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]],
        [[0, 0, 0, 0, 1, 1], [0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]],
        [[1, 1, 1, 0], [0, 1, 1, 0]],
    )
    for rows in masks:
        real = torch.tensor(rows, dtype=torch.bool)
        got = answer.tensor(real, shape=real.shape, dtype=torch.int64)
        wanted = (real.cumsum(dim=1) - 1) * real
        if torch.equal(got, wanted):
            continue
        if torch.equal(got[real], torch.arange(real.shape[1]).expand(real.shape)[real]):
            wrong("it counts the padding too: the first real token of every row has position 0")
        if torch.equal(got[real], wanted[real] + 1):
            wrong("the first real token has position 1: take 1 off the count")
        if torch.equal(got[real], (real.cumsum(dim=0) - 1)[real]):
            wrong("it counts down the columns: a row is one text, so add up along dim=1")
        if torch.equal(got[real], wanted[real]):
            wrong(f"real tokens are right; the padding has {got[~real].min()} to {got[~real].max()} and is to have 0")
        if torch.equal(got, (torch.arange(real.shape[1]) - (~real).sum(dim=1, keepdim=True)).clamp(min=0)):
            wrong("padding may stand at the end, too: count the real tokens before each, not the padding of the row")
        wrong(f"for {rows} it gives {got.tolist()} and should give {wanted.tolist()}")


@exercise(
    "Turn a vector that is 1 in dimension 0 and 0 elsewhere. Which other dimension wakes up?",
    "With neighbours it is dimension 1. With halves it is further away: how far depends on how much is turned.",
    """The dimensions of a vector that are not 0:
>>> torch.tensor([0.5, 0.0, -0.8, 0.0]).nonzero().flatten().tolist()
[0, 2]""",
    well_done="whichever way round it turns, and however much of the head.",
)
def layout_of(answer: Answer) -> None:
    for head_dim, rotary_dim, direction, offset in ((16, 16, 1, 0), (16, 16, -1, 0), (32, 8, 1, 0), (12, 12, 1, 5)):
        said = {}
        for layout in ("interleaved", "half_split"):
            rotate = Convention(head_dim, layout, rotary_dim, base=100.0, direction=direction, offset=offset).rotate
            said[layout] = answer(rotate, head_dim)
            if not isinstance(said[layout], str) or said[layout] not in ("interleaved", "half_split"):
                wrong(f'it returned {shown(said[layout])}: return "interleaved" or "half_split"')
        if all(layout == name for name, layout in said.items()):
            continue
        if direction == -1:
            wrong(
                "right for counter-clockwise turns, wrong for clockwise ones: look at which dimension moves, not at its sign"
            )
        if rotary_dim < head_dim:
            wrong(
                f"wrong where {rotary_dim} of {head_dim} dimensions are turned: the halves are those of the turned part"
            )
        if offset:
            wrong(
                "wrong where position 0 is turned too: don't compare with position 0, look at the zeros of one result"
            )
        if said["interleaved"] == "half_split" and said["half_split"] == "interleaved":
            wrong("the two names have changed places: neighbours are interleaved")
        wrong(
            f"both layouts are called {said['interleaved']}: is the vector turned at a position other than 0, and is it 0 in all dimensions but one?"
        )


@exercise(
    "How far does the first pair turn at position 1? And the last?",
    "Pair i turns by s·base^(-2i/d) radians, and s may be any number. The ratio of two pairs does not have it.",
    """The angle of a turned pair:
>>> round(torch.atan2(torch.tensor(0.4794), torch.tensor(0.8776)).item(), 3)
0.5""",
    well_done="also where positions are scaled.",
)
def base_of(answer: Answer) -> None:
    for head_dim, base, scale in (
        (16, 10_000.0, 1.0),
        (64, 500_000.0, 1.0),
        (8, 100.0, 0.25),
        (32, 10_000.0, 0.5),
        (4, 100.0, 2.0),
    ):
        got = answer.number(Convention(head_dim, "interleaved", base=base, scale=scale).rotate, head_dim)
        same = partial(math.isclose, got, rel_tol=1e-6)
        if math.isclose(got, base, rel_tol=1e-3):
            continue
        pairs = head_dim // 2
        if same(base ** ((pairs - 1) / pairs)):
            wrong(
                "that is the ratio of the first pair's speed to the last's, base^((d-2)/d): raise it to the power d/(d-2)"
            )
        if same(1 / base):
            wrong("upside down: divide the faster pair's angle by the slower's")
        if same(math.log(base)):
            wrong("that is the logarithm of the base")
        if scale != 1 and got > 0 and not math.isclose(got, base, rel_tol=0.1):
            wrong(
                f"right for plain positions, {got:.4g} for base {base:,.0f} with positions times {scale}: use the ratio of two pairs, at position 1, where neither has turned by more than π"
            )
        wrong(f"it gives {got:.6g} for base {base:,.0f}")


@exercise(
    "The rows of a projection's weight make the dimensions of its heads. The bias has one number a row.",
    "Queries meet keys, so both have to be reordered. Values meet neither.",
    """`to_half_split` reorders each head along an axis:
>>> from posenc.rotary import to_half_split
>>> to_half_split(torch.arange(8), 4).tolist()
[0, 2, 1, 3, 4, 6, 5, 7]""",
    well_done="weights and biases of queries and keys, and nothing else.",
)
def repaired(answer: Answer) -> None:
    heads, head_dim, width = 3, 8, 24
    state = {}
    for seed, part in enumerate(("query", "key", "value")):
        state[f"{part}.weight"] = normal(heads * head_dim, width, seed=seed)
        state[f"{part}.bias"] = normal(heads * head_dim, seed=9 + seed)
    got = answer(state, heads)
    if not isinstance(got, dict) or got.keys() != state.keys():
        wrong(f"return a dict with the keys {', '.join(state)}")
    for name, before in state.items():
        if not isinstance(got[name], Tensor) or got[name].shape != before.shape:
            wrong(f"{name} is no tensor of shape {tuple(before.shape)} any more")
    moved = {name for name, before in state.items() if not torch.equal(got[name], before)}
    if not moved:
        wrong("nothing has changed")
    if "value.weight" in moved or "value.bias" in moved:
        wrong("values are not turned, so their rows stay where they are")
    for one, other in (("query", "key"), ("key", "query")):
        if f"{one}.weight" in moved and f"{other}.weight" not in moved:
            wrong(f"the {one} is reordered and the {other} is not: their pairs no longer meet")
    weight = state["query.weight"]
    if torch.equal(got["query.weight"], to_interleaved(weight, head_dim, dim=0)):
        wrong("that is the way back: these rows are interleaved, and the port turns halves")
    if torch.equal(got["query.weight"], to_half_split(weight, len(weight), dim=0)):
        wrong("rows of different heads are mixed: reorder within each head")
    if torch.equal(got["query.weight"], to_half_split(weight, head_dim, dim=1)):
        wrong("columns are reordered: they belong to the input; the rows make the dimensions of a head")
    for name in sorted(moved):
        if not torch.equal(got[name], to_half_split(state[name], head_dim, dim=0)):
            wrong(f"{name} is not in the half-split order")
    if len(moved) < 4:
        wrong("the biases stand where they stood: a bias belongs to its row")


@exercise(
    "Two conditions: the key is not later than the query, and both are of the same text.",
    "Compare a column of document numbers with a row of them.",
    """A column against a row compares all pairs, and & asks for both conditions:
>>> rows, columns = torch.tensor([[1], [2], [3]]), torch.tensor([1, 2, 3])
>>> ((rows < columns) & (columns > 2)).int().tolist()
[[0, 0, 1], [0, 0, 1], [0, 0, 0]]""",
    well_done="causal, and blind to other texts.",
)
def packing_mask(answer: Answer) -> None:
    for numbers in ([0, 0, 0, 1, 1], [4, 4, 7, 7, 7, 4, 4], [0, 1, 2]):
        documents = torch.tensor(numbers)
        size = len(numbers)
        got = answer.tensor(documents, shape=(size, size), dtype=torch.bool)
        same = documents[:, None] == documents
        causal = torch.ones(size, size, dtype=torch.bool).tril()
        if torch.equal(got, same & causal):
            continue
        if torch.equal(got, same):
            wrong("every token sees the later ones of its text: it has to be causal too")
        if torch.equal(got, causal):
            wrong("texts see each other: a key must be of the query's text")
        if torch.equal(got, same & causal.tril(-1)):
            wrong("no token sees itself: the diagonal belongs to it")
        if torch.equal(got, same & causal.T):
            wrong("it looks ahead: row m is the query, column n the key, so n may be at most m")
        if torch.equal(got, ~(same & causal)):
            wrong("upside down: True is for what may be seen")
        m, n = (got != (same & causal)).nonzero()[0].tolist()
        wrong(
            f"for the documents {numbers}, query {m} is {'to' if same[m, n] and n <= m else 'not to'} see key {n}, and it gives {got[m, n].item()}"
        )
