"""What chapter 3 asks: the four terms, their joint matrix, what the softmax sees, and what can be realised."""

import math
from functools import partial

import torch
from torch import Tensor

from posenc.lesson.exercises import Answer, difference, exercise, wrong
from posenc.terms import FourTerms, four_terms

ORDER = "content with content, content with position, position with content, position with position"


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _parts(x, e, w_query, w_key, b_query=None, b_key=None) -> Tensor:
    return torch.stack(four_terms(x, e, w_query, w_key, query_bias=b_query, key_bias=b_key))


@exercise(
    "Make four small things first: the query and the key of the content, the query and the key of the "
    "position.",
    "nn.Linear stores (out, in), so its weight is transposed on the way, and then comes the bias. The "
    "position's query "
    "has none, or the sum would hold it twice.",
    """Each term is one of the two queries against one of the two keys, and then over √d_head. A double loop has them in
the order of the table:
>>> [f"{one}-{other}" for one in ("content", "position") for other in ("content", "position")]
['content-content', 'content-position', 'position-content', 'position-position']""",
    well_done="four matrices, and their sum is the score.",
)
def parts(answer: Answer) -> None:
    x, e = _random(2, 5, 6)
    square, flat = _random(2, 6, 6, seed=1), _random(2, 3, 6, seed=2)
    for w_query, w_key in (square, flat):  # with square weights every mistake still has the right shape
        head = len(w_query)
        biases = _random(2, head, seed=3)
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
            wrong(
                "the biases are counted twice: content and position share one bias, which counts as content"
            )
        if same(_parts(x, e, w_query.T, w_key.T, *biases)):
            wrong(
                "W_q W_kᵀ stands between the vectors: nn.Linear stores (out, in), so multiply by w.T "
                "from the right"
            )
        if same(_parts(x, e, w_query.T, w_key.T)):
            wrong("W_q W_kᵀ stands between the vectors, and the biases are forgotten: a query is x @ w.T + b")
        if same(_parts(x, e, w_key, w_query, *biases.flip(0))):
            wrong("query and key have changed places: the first vector takes w_query, the second w_key")
        if torch.allclose(got.sum(0), right.sum(0), atol=1e-6):
            wrong(f"the sum is the score, but the parts are not in the order: {ORDER}")
        for name, one, other in zip(FourTerms._fields, got, right):
            if not torch.allclose(one, other, atol=1e-6):
                wrong(
                    f"the term {name.replace('_', ' with ')} is not right: with d_head = {head}, "
                    f"{difference(one, other)}. "
                    "Write that product out for two tokens"
                )


def _both_biased(x, e, w_query, w_key, b_query, b_key) -> Tensor:
    queries, keys = ((x @ w.T + b, e @ w.T + b) for w, b in ((w_query, b_query), (w_key, b_key)))
    return torch.stack([q @ k.T for q in queries for k in keys]) / math.sqrt(len(w_query))


@exercise(
    "Write the query as W_q x and the key as W_k y, both columns. Their dot product is (W_q x)ᵀ (W_k y).",
    "The transpose of a product turns its order round: (W_q x)ᵀ = xᵀ W_qᵀ.",
    "Which two matrices now stand between xᵀ and y? Look at the shape: with d_head = 2 and d = 6, M is "
    "6 by 6; the other "
    "way round, 2 by 2.",
    well_done="one matrix that both contents and positions have to pass through.",
)
def joint(answer: Answer) -> None:
    for head in (6, 2):
        w_query, w_key = _random(2, head, 6, seed=head)
        right = w_query.T @ w_key
        got = answer.tensor(w_query, w_key, shape=(6, 6))
        same = partial(torch.allclose, got, atol=1e-6)
        if same(right):
            continue
        if same(w_query @ w_key.T):
            wrong(
                "that is W_q W_kᵀ, which compares rows of the weights: the sum goes over d_head, so W_qᵀ W_k"
            )
        if same(right.T):
            wrong("transposed, W_kᵀ W_q: it gives the score of y and x; the query stands on the left")
        if same(right / math.sqrt(head)):
            wrong("the 1/√d_head is not part of it here: the score is xᵀ M y / √d_head")
        if same((right + right.T) / 2):
            wrong("that is its symmetric half: word A may want word B without being wanted by it")
        wrong(f"xᵀ M y is not (W_q x)ᵀ (W_k y): for weights of shape ({head}, 6), {difference(got, right)}")


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
    terms = _random(4, 5, 7) * torch.tensor([1.0, 2.0, 0.5, 1.0])[:, None, None]
    terms = terms + 3 * _random(4, 5, 1, seed=1) + _random(4, 1, 7, seed=2)
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
    wrong(
        f"these are not the shares of the centred terms' sums of squares: {difference(got, share(centred))}"
    )


@exercise(
    "You want S M Sᵀ = wanted, with the vectors as rows of S. Undo S on the left, then Sᵀ on the right.",
    "torch.linalg.pinv(S) @ S is not the identity, but S @ torch.linalg.pinv(S) is, if the rows are "
    "independent.",
    "(S A)ᵀ = Aᵀ Sᵀ. So where S A is the identity, which matrix undoes Sᵀ from the other side?",
    well_done="independent vectors are enough, at any angle; what a small one costs comes next.",
)
def realise(answer: Answer) -> None:
    for count in (8, 6):
        vectors, wanted = _random(count, 8, seed=count), _random(count, count, seed=1)
        got = answer.tensor(vectors, wanted, shape=(8, 8))
        back = torch.linalg.pinv(vectors)
        near = partial(torch.allclose, atol=1e-6)
        if near(vectors @ got @ vectors.T, wanted):
            continue
        if near(vectors @ got @ vectors.T, wanted.T):
            wrong("it realises the transpose: the left vector is the query's, the row of wanted")
        if near(got, vectors.T @ wanted @ vectors):
            wrong(
                "Sᵀ undoes S only if the vectors are at right angles and of length 1: use torch.linalg.pinv"
            )
        if count == 8 and near(got, back @ wanted @ back):
            wrong("the transpose is missing on the right: there stands Sᵀ, so undo Sᵀ")
        if count == 8 and near(got, back @ wanted):
            wrong("it undoes the left side alone: S M Sᵀ has vectors on both")
        unit = torch.nn.functional.normalize(vectors, dim=-1)
        if near(got, unit.T @ wanted @ unit):
            wrong("length 1 is not enough: the vectors are not at right angles, so use torch.linalg.pinv")
        wrong(
            f"vectors @ M @ vectors.T is not wanted: with {count} vectors in 8 dimensions, "
            f"{difference(vectors @ got @ vectors.T, wanted)}"
        )


@exercise(
    "Write (x + e) Wᵀ as two products. Which matrix does x meet, and which does e?",
    "The new weight reads 2·d numbers: its first d columns meet x, its last d columns meet e.",
    "In x Wᵀ + e Wᵀ, does anything treat x and e differently? What does that say of the two halves?",
    well_done="addition is concatenation whose two halves share their weights.",
)
def tied(answer: Answer) -> None:
    w = _random(3, 5)
    x, e = _random(2, 7, 5, seed=1)
    got = answer.tensor(w, shape=(3, 10))
    nothing = torch.zeros_like(w)
    same = partial(torch.allclose, got, atol=1e-6)
    if torch.allclose(torch.cat([x, e], dim=-1) @ got.T, (x + e) @ w.T, atol=1e-6):
        return
    if same(torch.cat([w, w], dim=-1) / 2):
        wrong("it halves both: that is the weight of the mean of x and e")
    if same(torch.cat([w, nothing], dim=-1)) or same(torch.cat([nothing, w], dim=-1)):
        wrong("one half is 0: that weight is blind to x or to e")
    if same(torch.cat([w, -w], dim=-1)):
        wrong("that is the weight of x - e")
    if same(w.repeat_interleave(2, dim=-1)):
        wrong("columns alternate: the first d columns meet x, the last d meet e")
    wrong(
        "torch.cat([x, e], dim=-1) @ new.T is not (x + e) @ w.T: compare what x meets, the first 5 "
        "columns, and what e "
        f"meets, the last 5; {difference(got, torch.cat([w, w], dim=-1))}"
    )


@exercise(
    "Two of the four terms are kept. Which two have no mixture of content and position?",
    "Call four_terms twice, once with each pair of weights, and take one term from each.",
    """Two summands instead of one: the spread of a sum of two is √2 times as large.
>>> round(math.sqrt(1 + 1), 3)
1.414""",
    well_done="content asks content and place asks place, each through matrices of its own.",
)
def untied(answer: Answer) -> None:
    x, e = _random(2, 5, 8)
    weights = _random(4, 3, 8, seed=1)
    got = answer.tensor(x, e, *weights, shape=(5, 5))
    w, u = _parts(x, e, *weights[:2]), _parts(x, e, *weights[2:])
    right = (w[0] + u[3]) / math.sqrt(2)
    same = partial(torch.allclose, got, atol=1e-6)
    if same(right):
        return
    if same(right * math.sqrt(2)):
        wrong("the √2 is missing: two summands of variance 1 have variance 2")
    if same(right / math.sqrt(2)):
        wrong("it divides by 2: the spread of two summands grows by √2")
    if same(right * math.sqrt(3)) or same(right * math.sqrt(6)):
        wrong("1/√d_head is missing")
    if same((w[0] + w[3]) / math.sqrt(2)):
        wrong("the positions still pass through w_query and w_key: they have u_query and u_key")
    if same((w.sum(0) + u[3]) / math.sqrt(2)) or same((w[:3].sum(0) + u[3]) / math.sqrt(2)):
        wrong("the cross terms are still in: keep content with content and position with position")
    if same((u[0] + w[3]) / math.sqrt(2)):
        wrong("the weights are exchanged: content takes w, position takes u")
    wrong(
        f"this is not (content with content by w + position with position by u) / √2: {difference(got, right)}"
    )
