"""What chapter 3 asks: the four terms, one of them alone, what the softmax sees, which is which, and what M can do."""

import math
from functools import partial

import torch
from torch import Tensor

from posenc.lesson.exercises import Answer, difference, exercise, normal, shown, wrong
from posenc.terms import FourTerms, centre, four_terms
from posenc.text import words as words_of

NAMES = ("content → content", "content → position", "position → content", "position → position")
ORDER = "content with content, content with position, position with content, position with position"


def _parts(x, e, w_query, w_key, b_query=None, b_key=None) -> Tensor:
    return torch.stack(four_terms(x, e, w_query, w_key, query_bias=b_query, key_bias=b_key))


@exercise(
    "Make four small things first: the query and the key of the content, the query and the key of the position.",
    "nn.Linear stores (out, in), so its weight is transposed on the way, and then comes the bias. The position's query has none, or the sum would hold it twice.",
    """Each term is one of the two queries against one of the two keys, and then over √d_head. A double loop has them in
the order of the table:
>>> [f"{one}-{other}" for one in ("content", "position") for other in ("content", "position")]
['content-content', 'content-position', 'position-content', 'position-position']""",
    well_done="four matrices, and their sum is the score.",
)
def parts(answer: Answer) -> None:
    x, e = normal(2, 5, 6)
    square, flat = normal(2, 6, 6, seed=1), normal(2, 3, 6, seed=2)
    for w_query, w_key in (square, flat):  # with square weights every mistake still has the right shape
        head = len(w_query)
        biases = normal(2, head, seed=3)
        inputs = (x, e, w_query, w_key, *biases)
        got = answer.tensor(*inputs, shape=(4, 5, 5))
        right = _parts(*inputs)
        same = partial(torch.allclose, got, atol=1e-6)
        bare = _parts(x, e, w_query, w_key)
        if same(right):
            continue
        if same(right * math.sqrt(head)):
            wrong("the scale is missing: divide each term by √d_head")
        if same(right / math.sqrt(head)):
            wrong("it divides by d_head: the scale is its square root")
        if same(right * math.sqrt(head / 6)):
            wrong("it divides by √d_model: the dot product has d_head summands")
        if same(right[[0, 2, 1, 3]]):
            wrong("the cross terms are exchanged: content with position has the content on the query's side")
        if same(right.mT):
            wrong("transposed: rows are queries, columns are keys")
        if same(bare):
            wrong("the biases are forgotten: add b_query and b_key to the content's query and key")
        if same(_parts(x, e, w_query, w_key, b_query=biases[0])):
            wrong("b_key is forgotten")
        if same(_parts(x, e, w_query, w_key, b_key=biases[1])):
            wrong("b_query is forgotten")
        if same(_parts(e, x, w_query, w_key, *biases).flip(0)):
            wrong("the biases went with the position: here they count as content")
        if same(_both_biased(*inputs)):
            wrong("the biases are counted twice: content and position share one bias, which counts as content")
        if same(_parts(x, e, w_query.T, w_key.T, *biases)):
            wrong("W_q W_kᵀ stands between the vectors: nn.Linear stores (out, in), so multiply by w.T from the right")
        if same(_parts(x, e, w_query.T, w_key.T)):
            wrong("W_q W_kᵀ stands between the vectors, and the biases are forgotten: a query is x @ w.T + b")
        if same(_parts(x, e, w_key, w_query, *biases.flip(0))):
            wrong("query and key have changed places: the first vector takes w_query, the second w_key")
        if torch.allclose(got.sum(0), right.sum(0), atol=1e-6):
            wrong(f"the sum is the score, but the parts are not in the order: {ORDER}")
        for name, one, other in zip(FourTerms._fields, got, right):
            if not torch.allclose(one, other, atol=1e-6):
                wrong(
                    f"the term {name.replace('_', ' with ')} is not right: with d_head = {head}, {difference(one, other)}. Write that product out for two tokens"
                )


def _both_biased(x, e, w_query, w_key, b_query, b_key) -> Tensor:
    queries, keys = ((x @ w.T + b, e @ w.T + b) for w, b in ((w_query, b_query), (w_key, b_key)))
    return torch.stack([q @ k.T for q in queries for k in keys]) / math.sqrt(len(w_query))


@exercise(
    "Rows of length 1 at right angles: what is x @ x.T, and what is x @ e.T?",
    "Look at the shapes. wanted is (N, T) and M is (d, d), so something of shape (d, N) has to stand on its left and something of shape (T, d) on its right.",
    """Read from the right. A place comes in: first let M find out which one it is. Then look it up in wanted, and last
give back the words that ask for it. The middle step, for place 2 of three and two words:
>>> wanted = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
>>> (wanted @ torch.tensor([0.0, 0.0, 1.0])).tolist()
[3.0, 6.0]""",
    well_done="words ask places as you wanted, and the same matrix leaves the three other questions at 0.",
)
def one_question(answer: Answer) -> None:
    for count, length, d in ((3, 3, 8), (4, 2, 9)):
        rows = torch.linalg.qr(normal(d, count + length, seed=count)).Q.T
        x, e = rows.split((count, length))
        wanted = normal(count, length, seed=1)
        got = answer.tensor(x, e, wanted, shape=(d, d))
        tables = [one @ got @ other.T for one in (x, e) for other in (x, e)]
        asked = [table.abs().max() > 1e-6 for table in tables]
        right = torch.allclose(tables[1], wanted, atol=1e-6)
        if right and not (asked[0] or asked[2] or asked[3]):
            continue
        if torch.allclose(tables[2], wanted.T, atol=1e-6):
            wrong(
                "it asks position → content: the query stands on the left of M, and here the words ask"
                if not asked[1]
                else "it asks two questions: position → content as well; "
                "with M alone, words ask places and not places words"
            )
        if not any(asked):
            wrong("every score is 0: nobody asks anything")
        if torch.allclose(got, x.T @ torch.eye(count, length, dtype=wanted.dtype) @ e, atol=1e-6):
            wrong("wanted is not in it: who asks for which place should be as the table says")
        for name, table in zip(NAMES, tables):
            if name != "content → position" and table.abs().max() > 1e-6:
                wrong(f"it asks {name} too, up to {table.abs().max():.2g}: that table should be 0")
        wrong(f"x @ M @ e.T is not wanted: {difference(tables[1], wanted)}")


@exercise(
    "A number that is added to a whole row of scores changes no weight in it. Take such numbers off first.",
    "Subtract from each row its mean, then compare the sums of squares of the four.",
    """A sum or a mean that keeps its axis can stand beside what it was taken of; a sum may run over several axes:
>>> numbers = torch.tensor([[1.0, 3.0], [4.0, 8.0]])
>>> numbers.mean(dim=-1, keepdim=True).tolist(), numbers.sum(dim=(-1, -2)).item()
([[2.0], [6.0]], 16.0)""",
    well_done="four numbers with sum 1, and the constants of a query do not count.",
)
def seen(answer: Answer) -> None:
    terms = normal(4, 5, 7) * torch.tensor([1.0, 2.0, 0.5, 1.0])[:, None, None]
    terms = terms + 3 * normal(4, 5, 1, seed=1) + normal(4, 1, 7, seed=2)
    got = answer.tensor(terms, shape=(4,))
    centred = terms - terms.mean(-1, keepdim=True)

    def share(matrices: Tensor, power: float = 1.0) -> Tensor:
        energy = matrices.square().sum((-1, -2)) ** power
        return energy / energy.sum()

    same = partial(torch.allclose, got, atol=1e-6)
    if same(share(centred)):
        return
    if same(share(terms)):
        wrong("the row means are still in: the softmax does not see them, so subtract them")
    if same(share(terms - terms.mean(-2, keepdim=True))):
        wrong("that takes the mean of each column, over the queries: the softmax runs along the keys")
    if same(share(terms - terms.mean((-1, -2), keepdim=True))):
        wrong("that takes off one mean a matrix: every row has its own")
    if same(share(centred, 0.5)):
        wrong("those are shares of the root: compare the sums of squares themselves")
    if same(centred.abs().sum((-1, -2)) / centred.abs().sum()):
        wrong("those are sums of sizes: compare sums of squares")
    if same(centred.square().sum((-1, -2)) / centred.sum(0).square().sum()):
        wrong("it divides by the energy of the sum, in which terms cancel: divide by the four energies' sum")
    if same(centred.square().sum((-1, -2))):
        wrong("those are the energies: divide by their sum, so that they add up to 1")
    wrong(f"these are not the shares of the centred terms' sums of squares: {difference(got, share(centred))}")


@exercise(
    "You want vectors @ M @ vectors.T = wanted. Undo vectors on the left, then vectors.T on the right.",
    "torch.linalg.pinv(v) @ v is not the identity, but v @ torch.linalg.pinv(v) is, if the rows of v are independent.",
    "(v A)ᵀ = Aᵀ vᵀ. So where v A is the identity, which matrix undoes vᵀ from the other side?",
    well_done="independent vectors are enough, at any angle; what a small one costs comes next.",
)
def realise(answer: Answer) -> None:
    for count in (8, 6):
        vectors, wanted = normal(count, 8, seed=count), normal(count, count, seed=1)
        got = answer.tensor(vectors, wanted, shape=(8, 8))
        back = torch.linalg.pinv(vectors)
        near = partial(torch.allclose, atol=1e-6)
        if near(vectors @ got @ vectors.T, wanted):
            continue
        if near(vectors @ got @ vectors.T, wanted.T):
            wrong("it realises the transpose: the left vector is the query's, the row of wanted")
        if near(got, vectors.T @ wanted @ vectors):
            wrong(
                "the transpose undoes them only if the vectors are at right angles and of length 1: use torch.linalg.pinv"
            )
        if count == 8 and near(got, back @ wanted @ back):
            wrong("the transpose is missing on the right: there stands vectors.T, so undo that")
        if count == 8 and near(got, back @ wanted):
            wrong("it undoes the left side alone: M has vectors on both")
        unit = torch.nn.functional.normalize(vectors, dim=-1)
        if near(got, unit.T @ wanted @ unit):
            wrong("length 1 is not enough: the vectors are not at right angles, so use torch.linalg.pinv")
        wrong(
            f"vectors @ M @ vectors.T is not wanted: with {count} vectors in 8 dimensions, {difference(vectors @ got @ vectors.T, wanted)}"
        )


@exercise(
    "Take two places where the same word stands. What is the same in a panel if the query's part is the word, and what if the key's part is?",
    "Equal words give equal rows where the query's part is content, and equal columns where the key's part is.",
    """Rounding makes equal rows differ in their last digits, so compare with a tolerance:
>>> one = torch.tensor([0.25, 0.5], dtype=torch.float64)
>>> torch.equal(one, one + 1e-12), torch.allclose(one, one + 1e-12)
(False, True)""",
    well_done="equal words are all that you need to tell the four apart.",
)
def which(answer: Answer) -> None:
    calls = []
    for number, sentence in enumerate(("to be or not to be", "a rose is a rose", "so it goes, so it goes")):
        words = words_of(sentence)
        for noise in (0.0, 1e-9):
            panels = _panels(words, seed=number) + noise * normal(4, len(words), len(words), seed=9)
            for name, panel in zip(NAMES, panels):
                got = answer(panel, words)
                if not isinstance(got, str):
                    wrong(f"it returned {_a(got)}: return a name, one of {', '.join(map(repr, NAMES))}")
                if got not in NAMES:
                    wrong(f"{shown(got)} is no name of a panel: there are {', '.join(map(repr, NAMES))}")
                calls.append((name, got, noise, sentence))

    def as_if(*order: int) -> bool:
        """Whether each exact panel has the name that stands at its place in this order."""
        return all(got == NAMES[order[NAMES.index(name)]] for name, got, noise, _ in calls if not noise)

    if all(name == got for name, got, *_ in calls):
        return
    if len({got for _, got, *_ in calls}) == 1:
        wrong(f"it calls every panel {calls[0][1]!r}")
    if as_if(0, 1, 2, 3):
        wrong("equal rows differ in their ninth digit by rounding: compare with torch.allclose")
    if as_if(0, 2, 1, 3):
        wrong("the mixed two are exchanged: rows are queries, columns are keys")
    if as_if(3, 2, 1, 0):
        wrong("words and places are exchanged: where the query's part is content, equal words have equal rows")
    name, got, _, sentence = next(call for call in calls if call[0] != call[1])
    wrong(f"of “{sentence}” it calls {name} {got!r}: look at the rows and the columns of words that come twice")


def _panels(words: list[str], seed: int) -> Tensor:
    """The four terms of a sentence, rows without their means, from a draw of everything."""
    kinds = sorted({*words})
    x = normal(len(kinds), 8, seed=seed)[[kinds.index(word) for word in words]]
    e, weights = normal(len(words), 8, seed=seed + 10), normal(2, 4, 8, seed=seed + 20)
    visible = torch.ones(len(words), len(words), dtype=torch.bool)
    terms = torch.stack([centre(term, visible) for term in four_terms(x, e, *weights)])
    return terms.round(decimals=9)  # so that what is equal is equal to the last digit


def _a(value: object) -> str:
    kind = type(value).__name__
    return "a NumPy array" if kind == "ndarray" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
