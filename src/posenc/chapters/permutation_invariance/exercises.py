"""What chapter 1 asks: attention's mask, its cache, its symmetry, and what that symmetry costs."""

import math
from collections import Counter
from functools import partial

import torch
from torch import Tensor

from posenc.attention import attention, causal_bias
from posenc.lesson.exercises import Answer, difference, exercise, normal, shown, wrong


@exercise(
    "Which two of query, key and value make the scores, and which one is summed?",
    """All dot products of two queries with three keys at once:
>>> asking, asked = torch.ones(2, 4), torch.ones(3, 4)
>>> (asking @ asked.T).shape
torch.Size([2, 3])""",
    """d is the size of a query, the last of its axes:
>>> asking = torch.ones(2, 4)
>>> asking.shape[-1]
4""",
    """Each row of scores, one row a query, becomes weights that sum to 1:
>>> torch.tensor([[0.0, 0.0], [5.0, 5.0]]).softmax(dim=-1)
tensor([[0.5000, 0.5000],
        [0.5000, 0.5000]])""",
    well_done="that is all of attention; everything below follows from these lines.",
)
def self_attention(answer: Answer) -> None:
    x, matrices = normal(5, 6), normal(3, 6, 4, seed=1) / math.sqrt(6)
    query, key, value = x @ matrices
    result = answer.tensor(x, *matrices, shape=(5, 4))
    same, products = partial(torch.allclose, result, atol=1e-9), query @ key.mT
    if same(products.softmax(-1) @ value):
        wrong("the scores are not scaled: divide them by the square root of the size of a query, here √4")
    if same((products / 4).softmax(-1) @ value):
        wrong("the scores are divided by d = 4: divide them by its square root")
    for size, name in ((6, "the width of x"), (5, "the number of tokens")):
        if same((products / math.sqrt(size)).softmax(-1) @ value):
            wrong(f"the scale is √{size}, {name}: divide by the square root of the size of a query, here √4")
    if same((products / 2).softmax(0) @ value):
        wrong("the columns of the weights sum to 1: the softmax runs along the keys, so that each row does")
    if same(products / 2 @ value):
        wrong("the softmax is missing: the weights of a row must be positive and sum to 1")
    if same(attention(key, query, value)):
        wrong("queries and keys have changed places: row m of the scores belongs to query m, column n to key n")
    if same(attention(query, value, key)):
        wrong("keys and values have changed places: the keys are scored, the values are summed")
    if same(attention(query, key, value, bias=causal_bias(5, 5))):
        wrong("it hides the later tokens: here every token sees all of them, and the mask comes in section 4")
    right = attention(query, key, value)
    if not same(right):
        wrong(f"this is not softmax(q·k / √d) times the values: check each step ({difference(result, right)})")


@exercise(
    "Adding 0 to a score changes nothing. What must you add so that the softmax gives exactly 0?",
    """A score of -inf gets no weight at all:
>>> torch.tensor([0.0, -math.inf]).softmax(dim=-1)
tensor([1., 0.])""",
    """torch.triu keeps the upper triangle; `diagonal` moves its edge to the right:
>>> torch.full((2, 2), -math.inf).triu(diagonal=1)
tensor([[0., -inf],
        [0., 0.]])""",
    """The queries are the newest tokens: of 2 queries against 5 keys, query 0 stands at position 3 and sees keys 0
to 3. By how many places must the edge move? Look at what `diagonal` does to a wide matrix:
>>> torch.ones(2, 5).triu(diagonal=2)
tensor([[0., 0., 1., 1., 1.],
        [0., 0., 0., 1., 1.]])""",
    well_done="and it lines up with the newest tokens when there are fewer queries than keys.",
)
def hide_the_future(answer: Answer) -> None:
    bias = answer.tensor(4, 4, shape=(4, 4), dtype=torch.float32)
    future = torch.ones(4, 4).triu(diagonal=1).bool()
    if bias[future].eq(math.inf).all():
        wrong("the future gets +inf, so it takes all the weight: look at the sign")
    if bias[future.mT].lt(-1e4).all() and bias[future].eq(0).all():
        wrong("the past is hidden and the future is visible: rows are queries, columns are keys")
    if not bias[future].lt(-1e4).all():
        row, key = (future & (bias >= -1e4)).nonzero()[0].tolist()
        wrong(
            f"a later key still gets weight: key {key} has the bias {bias[row, key]:g} for query {row}. It is added before the softmax, so hiding takes -math.inf"
        )
    if bias.diagonal().lt(-1e4).any():
        wrong("a token cannot see itself: row 0 then sees nothing, and its softmax is NaN")
    if bias[~future].ne(0).any():
        row, key = (~future & (bias != 0)).nonzero()[0].tolist()
        wrong(
            f"a visible key gets a bias other than 0: key {key} has {bias[row, key]:g} for query {row}, and that changes its weight"
        )
    tail = answer.tensor(1, 4, shape=(1, 4), dtype=torch.float32)
    if tail[0, 1:].lt(-1e4).any():
        wrong("right for a square, but one query against four keys must see all four: queries are the newest tokens")
    if not torch.equal(answer.tensor(2, 5, shape=(2, 5), dtype=torch.float32) == 0, causal_bias(2, 5) == 0):
        wrong(
            "right for a square and for one query, but wrong for 2 queries and 5 keys: move the edge by n_keys - n_queries"
        )


@exercise(
    "The cache holds keys and values of the earlier tokens. Does the new token attend to itself as well?",
    """Append before you score:
>>> cache, new = torch.zeros(3, 2), torch.ones(2)
>>> torch.cat([cache, new[None]]).shape
torch.Size([4, 2])""",
    """One query, a vector of d numbers, gives one row of scores; the softmax runs along that row:
>>> query, keys = torch.ones(2), torch.ones(4, 2)
>>> (keys @ query / math.sqrt(2)).softmax(dim=-1)
tensor([0.2500, 0.2500, 0.2500, 0.2500])""",
    well_done="the same numbers as the last row of the causal pass, for one query's work instead of T.",
)
def next_row(answer: Answer) -> None:
    x, matrices = normal(8, 6), normal(3, 6, 4, seed=1) / math.sqrt(6)
    query, keys, values = x @ matrices
    row = answer.tensor(x[-1], keys[:-1], values[:-1], *matrices, shape=(4,))
    same = partial(torch.allclose, row, atol=1e-9)

    def output(key: Tensor, value: Tensor) -> Tensor:
        """The row if this is taken for the new token's key and value."""
        return attention(query[-1:], torch.cat([keys[:-1], key]), torch.cat([values[:-1], value]))[0]

    products = keys @ query[-1]
    if same(attention(query[-1:], keys[:-1], values[:-1])[0]):
        wrong("the new token does not see itself: append its key and value before you score")
    if same(products.softmax(-1) @ values):
        wrong("the scores are not scaled: divide them by the square root of the head size, here √4")
    for size, name in ((6, "the width of x"), (7, "the length of the cache"), (8, "the number of tokens")):
        if same((products / math.sqrt(size)).softmax(-1) @ values):
            wrong(f"the scale is √{size}, {name}: divide by the square root of the head size, the width of q and k")
    if same(values.sum(dim=0)):
        wrong("every token has weight 1: the softmax runs over the wrong dimension; it belongs to the keys")
    if same(products / 2 @ values):
        wrong("the softmax is missing: the weights of a row must sum to 1")
    if same(attention(query[-1:], values, keys)[0]):
        wrong("keys and values have changed places: the keys are scored, the values are summed")
    if same(output(values[-1:], keys[-1:])):
        wrong("the new token's key and value have changed places: its key is new @ w_key, its value new @ w_value")
    if same(output(query[-1:], values[-1:])) or same(output(values[-1:], values[-1:])):
        wrong("the new token's key is made with another matrix: it is new @ w_key")
    if same(output(keys[-1:], keys[-1:])) or same(output(keys[-1:], query[-1:])):
        wrong("the new token's value is made with another matrix: it is new @ w_value")
    right = attention(query[-1:], keys, values)[0]
    if not same(right):
        wrong(
            f"this is not softmax(q·k / √d) over all 8 keys, times the 8 values: check each of the three steps ({difference(row, right)})"
        )


@exercise(
    "p says where each row comes from. Which permutation sends the rows back?",
    """Under a swap, p is its own inverse. Under a 3-cycle it is not:
>>> p = torch.tensor([1, 2, 0])
>>> p[p]
tensor([2, 0, 1])""",
    """argsort says which places bring the entries of p into order, 0, 1, 2, …:
>>> torch.tensor([1, 2, 0]).argsort()
tensor([2, 0, 1])""",
    well_done="a swap could not have told p from its inverse; the 3-cycle did.",
)
def unpermute(answer: Answer) -> None:
    x = normal(4, 3, seed=4)
    seen = []

    def layer(rows: Tensor) -> Tensor:
        seen.append(rows)
        return 2 * rows + 1

    swap, cycle = torch.tensor([1, 0, 2, 3]), torch.tensor([1, 2, 0, 3])
    for p in (swap, cycle):
        result = answer.tensor(layer, x, p, shape=(4, 3))
        if not any(rows.shape == x.shape and torch.equal(rows, x[p]) for rows in seen):
            if any(rows.shape == x.shape and torch.equal(rows, x[p.argsort()]) for rows in seen):
                wrong("the layer saw the rows of x sent by the inverse of p: give it x[p]")
            wrong("the layer never saw the permuted rows x[p]")
        if torch.equal(result, layer(x)):
            continue
        if torch.equal(result, layer(x)[p]):
            wrong("the rows are still permuted: send row p[i] of the answer back to row i")
        if p is cycle and torch.equal(result, layer(x)[p][p]):
            wrong("right for a swap, wrong for a 3-cycle: you applied p twice; undo it with its inverse")
        if any(torch.equal(result, layer(x).sort(dim=0, descending=down).values) for down in (False, True)):
            wrong("it sorts the numbers, which loses what belonged together: send back whole rows, by the inverse of p")
        if not all(any(torch.equal(row, other) for other in layer(x)) for row in result):
            wrong("these are not the rows that the layer returned: give them back as they are, in another order")
        wrong(f"for p = {p.tolist()} the rows are neither in the order of x nor in that of x[p]")
    if torch.equal(answer.tensor(lambda rows: rows.cumsum(0), x, cycle, shape=(4, 3)), x.cumsum(0)):
        wrong("a layer that sees order looks blind to it: return the answer to x[p], not the answer to x")


@exercise(
    "Which token asks the question when the next one is generated? That one must stay where it is.",
    "The words before it may stand in any order. Which change of order is never the same sentence again, also for “to be to sleep” and for words that are sorted already?",
    well_done="two sentences, one answer: no training can make one layer tell them apart.",
)
def failing_twin(answer: Answer) -> None:
    for sentence in (
        "the dog bit the man .",
        "not all who wander are lost",
        "a bird flew over",
        "to be to sleep",
        "very very good words",
        "we had had enough",
    ):
        tokens = sentence.split()
        twin = answer(tokens)
        if isinstance(twin, str):
            wrong("it returned one string: return a list of words")
        if not isinstance(twin, (list, tuple)):
            wrong(f"it returned {type(twin).__name__}: return a list of words")
        for word in twin:
            if not isinstance(word, str):
                wrong(f"it returned a list with {shown(word)} in it: return a list of words, as tokens is one")
        if list(twin) == tokens:
            wrong(f"for “{sentence}” this is the same sentence: a twin has another order")
        if not twin or twin[-1] != tokens[-1]:
            wrong("the last word has changed: its query asks the question, so the output changes")
        found, asked = Counter(twin), Counter(tokens)
        words = [word for word in found | asked if found[word] * len(tokens) != asked[word] * len(twin)]
        if words:
            word = min(words, key=lambda word: found[word] == asked[word])
            wrong(
                f"“{word}” is {asked[word]} of the {len(tokens)} words of “{sentence}”, and {found[word]} of the {len(twin)} of the twin: it needs the same words, each as often (or all of them twice as often), otherwise other values are averaged"
            )


@exercise(
    "When the last token is a or b, its own query knows which one it is. How often does that happen?",
    "In all other sentences one layer is order-blind: of each pair of twins it gets exactly one right.",
    """With 4 tokens, half of the sentences end in a or b. All of those are right, and half of the others:
>>> 1 / 2 + (1 / 2) / 2
0.75""",
    well_done="0.600 for ten tokens. The trained models below agree.",
)
def expected_accuracy(answer: Answer) -> None:
    for length in (10, 4, 25, 7):
        got = answer.number(length)
        same = partial(math.isclose, got, abs_tol=1e-9)
        if same(0.5):
            wrong("one half is right for a neutral last token; here the last token may be a or b itself")
        if same(2 / length):
            wrong("that counts the sentences that end in a or b; of the others it still gets half right by chance")
        if same(1 / length + (1 - 1 / length) / 2):
            wrong("either of the two can stand last, a or b: that is 2 of the places, not 1")
        if same(1.0):
            wrong("one layer is not that good: when neither a nor b stands last, twins get the same answer")
        if same(100 * (2 / length + (1 - 2 / length) / 2)):
            wrong("that is in per cent: return a share between 0 and 1")
        if not same(2 / length + (1 - 2 / length) / 2) and abs(got - 0.5 - 1 / length) < 0.006:
            wrong(f"right to 2 digits for {length} tokens, {got:g}: don't round, and use Python floats")
        if length == 10 and not same(0.6):
            wrong(
                f"for 10 tokens it is not {got:.3f}: when does the last token know the answer, and when does it toss a coin?"
            )
        if not same(2 / length + (1 - 2 / length) / 2):
            wrong(f"right for 10 tokens, wrong for {length}: let the length enter the formula")


@exercise(
    "Row m of a causal pass sees m + 1 tokens, the BOS token among them. What is the weight of each if all are equal?",
    """Row 3 sees four tokens and gives each of them a quarter. The other way round: how many tokens does a row see
that gives each of them 0.2, and which row is it?""",
    well_done="so a causal model can count without any encoding, if its first token differs from the rest.",
)
def position_from_share(answer: Answer) -> None:
    for position in (3, 0, *range(1, 200)):
        share = 1 / (position + 1)
        got = answer.number(torch.tensor(share, dtype=torch.float64) if position % 3 == 1 else share)
        if math.isclose(got, position, abs_tol=1e-6):
            continue
        if position == 3 and got == 4:
            wrong("off by one: that counts the tokens that the row sees; positions count from 0")
        if math.isclose(got, -position, abs_tol=1e-6):
            wrong("the sign is wrong: subtract 1 from the number of tokens, not the other way round")
        if position != 3 and got == position - 1 and 1 / share == position + 1:
            wrong(
                f"right at first, and {got:g} at position {position}, since 1 // {share} is {1 // share}: divide with /"
            )
        if position != 3 and got in (position - 1, position + 1):
            wrong(
                f"right at first, and {got:g} at position {position}, since 1/share is {1 / share!r} in floating point: int, floor and ceil cut; round, or return the fraction"
            )
        wrong(
            f"a share of {share:.3f} belongs to position {position}, not {got:.3f}: how many tokens share equally, if each gets as much?"
        )
