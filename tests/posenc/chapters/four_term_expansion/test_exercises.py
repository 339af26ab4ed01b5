"""Chapter 3's planted mistakes, and right answers of another kind."""

import torch
from slips import mistakes

PLANTED = mistakes(
    parts={
        "the scale is missing": "/ math.sqrt(len(w_query)) →",
        "it divides by d_head": "math.sqrt(len(w_query)) → len(w_query)",
        "it divides by √d_model": "len(w_query) → x.shape[1]",
        "the cross terms are exchanged": "result[[0, 2, 1, 3]]",
        "transposed: rows are queries": "result.mT",
        "the biases are forgotten": "+ b_query →; + b_key →",
        "b_key is forgotten": "+ b_key →",
        "b_query is forgotten": "+ b_query →",
        "the biases went with the position": "worked(e, x, w_query, w_key, b_query, b_key).flip(0)",
        "the biases are counted twice": "e @ w_query.T → e @ w_query.T + b_query; e @ w_key.T → e @ w_key.T + b_key",
        "W_q W_kᵀ stands between the vectors: nn": "worked(x, e, w_query.T, w_key.T, b_query, b_key)",
        "W_q W_kᵀ stands between the vectors, and": "worked(x, e, w_query.T, w_key.T, 0 * b_query, 0 * b_key)",
        "query and key have changed places": "worked(x, e, w_key, w_query, b_key, b_query)",
        "the parts are not in the order": "result[[3, 1, 2, 0]]",
        "the term position with position is not right: with d_head = 6, at [0, 0] it is": "result[[0, 1, 2, 2]]",
    },
    one_question={
        "it asks position → content: the query stands on the left": "result.T",
        "it asks two questions": "result + result.T",
        "every score is 0": "0 * result",
        "wanted is not in it": "x.T @ torch.eye(len(x), len(e)).double() @ e",
        "it asks content → content too, up to 1": "result + x.T @ x",
        "every number is 2 times": "2 * result",
    },
    seen={
        "the row means are still in": "- terms.mean(dim=-1, keepdim=True) →",
        "the mean of each column": "mean(dim=-1 → mean(dim=-2",
        "one mean a matrix": "mean(dim=-1 → mean(dim=(-1, -2)",
        "shares of the root": "sum(dim=(-1, -2)) → sum(dim=(-1, -2)).sqrt()",
        "sums of sizes": "square() → abs()",
        "it divides by the energy of the sum": "energy.sum() → centred.sum(0).square().sum()",
        "those are the energies": "/ energy.sum() →",
        "sums of squares: at [0] it is 0.25 and should be": "torch.full((4,), 0.25).double()",
    },
    realise={
        "it realises the transpose": "@ wanted → @ wanted.T",
        "only if the vectors are at right angles and of length 1": "torch.linalg.pinv(vectors) → vectors.T",
        "length 1 is not enough": "torch.linalg.pinv(vectors) → torch.nn.functional.normalize(vectors).T",
        "the transpose is missing on the right": "back.T → (back if len(vectors) == 8 else back.T)",
        "it undoes the left side alone": "@ back.T → @ (back.T if len(vectors) < 8 else torch.eye(8).double())",
        "with 8 vectors in 8 dimensions, at [0, 0] it is": "torch.eye(8).double()",
    },
    which={
        "it returned an int: return a name": "3",
        "it returned a NumPy array: return a name": "panel.numpy()",
        "'words' is no name of a panel": "'words'",
        "it calls every panel 'content → position'": "(rows, columns) → (True, False)",
        "compare with torch.allclose": "torch.allclose → torch.equal",
        "the mixed two are exchanged": "(rows, columns) → (columns, rows)",
        "words and places are exchanged": "if equal → if not equal",
        "of “to be or not to be” it calls position → position 'position → content'": "columns) → columns or not rows)",
    },
)

RIGHT = [
    ("one_question", lambda x, e, wanted: torch.einsum("ni,nt,tj->ij", x, wanted, e)),
    ("realise", lambda vectors, wanted: by_least_squares(vectors, by_least_squares(vectors, wanted).T).T),
]


def by_least_squares(vectors, wanted):
    return torch.linalg.lstsq(vectors, wanted, driver="gelsd").solution
