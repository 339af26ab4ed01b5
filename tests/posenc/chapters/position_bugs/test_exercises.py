"""Chapter 8's planted mistakes, and right answers of another kind."""

import torch
from slips import mistakes

HALVES = "to_half_split(rows, len(rows) // heads, dim=0)"


def of_ones(rotate, head_dim):
    turned = rotate(torch.ones(1, 1, 1, head_dim), torch.tensor([1])).flatten()
    return "interleaved" if turned[1] > turned[head_dim // 2] else "half_split"


PLANTED = mistakes(
    steps_apart={
        "the cache is not handed on": "logits, cache = → logits, _ =",
        "step takes one token of each text, (B, 1), not (2, 2)": "step(tokens[:, :2], None)",
        "two runs that agree to the last digit are apart by 1": "1.0",
        "compare log_softmax of both, not logits": ".log_softmax(-1) →",
        "it says 0": "log_softmax(-1) → argmax(-1)",
        "either sign": ".abs() →",
        "either sign: take": "difference.abs() → (-difference)",
        "the last token alone": "difference.abs() → difference[:, -1].abs()",
        "that is the mean": "max() → mean()",
        "it compares probabilities": "log_softmax → softmax",
        "the largest difference of a log-prob": "3 * result",
    },
    positions_from_mask={
        "it counts the padding too": "torch.arange(real.shape[1]).expand(real.shape).clone()",
        "take 1 off the count": "- 1 →",
        "down the columns": "dim=1 → dim=0; .clamp(min=0) * real →",
        "the padding has -1 to -1": ".clamp(min=0) * real →",
        "padding may stand at the end, too": "(torch.arange(real.shape[1]) - (~real).sum(1, keepdim=True)).clamp(min=0)",
        "it gives [[0, 7, 14, 21, 28], [0, 0, 0, 7, 14]] and should give [[0, 1, 2": "7 * result",
    },
    layout_of={
        "it returned None": "None",
        "it returned 'neighbours'": "'neighbours'",
        "it returned array([1., 1., 1.]": "torch.ones(3).numpy()",
        "have changed places": "1 in awake → 1 not in awake",
        "wrong for clockwise ones": of_ones,
        "right for counter-clockwise turns": "in awake → in (rotate(unit, torch.tensor([1])).flatten() > 1e-6).nonzero()",
        "wrong where 8 of 32 dimensions are turned": "1 in awake → head_dim // 2 not in awake",
        "wrong where position 0 is turned too": "if → if torch.equal(rotate(unit, torch.tensor([0])), unit) and",
        "a position other than 0": "torch.tensor([1]) → torch.tensor([0])",
    },
    base_of={
        "raise it to the power d/(d-2)": "(head_dim / (head_dim - 2)) → 1",
        "upside down": "1 / result",
        "the logarithm": "math.log(result)",
        "right for plain positions": "speeds[0] / → 1 /",
        "base 100 with positions times 2.0: use the ratio of two pairs, at position 1": "torch.tensor([1]) → torch.tensor([2])",
        "it gives 10000 for base 500,000": "10_000.0",
    },
    repaired={
        "return a dict": "[1]",
        "no tensor of shape": "{name: rows[:1] for name, rows in state.items()}",
        "nothing has changed": "dict(state)",
        "values are not turned": '"key") → "key", "value")',
        "the query is reordered and the key is not": ', "key" →',
        "the key is reordered and the query is not": '"query", →',
        "that is the way back": f"{HALVES} → rows.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)",
        "different heads": "// heads →",
        "columns are reordered": "heads, dim=0) → heads, dim=rows.ndim - 1)",
        "is not in the half-split order": f"{HALVES} → rows.flip(0)",
        "the biases stand where they stood": 'name.startswith(("query", "key")) → name in ("query.weight", "key.weight")',
        "query.bias is not in the half-split order": "result | {'query.bias': -result['query.bias']}",
    },
    packing_mask={
        "it has to be causal too": ".tril() →",
        "texts see each other": "same & →",
        "no token sees itself": "tril() → tril(-1)",
        "it looks ahead": "result.T",
        "upside down": "~result",
        "for the documents [0, 0, 0, 1, 1], query 0 is to see key 0, and it gives False": "result & False",
        "query 3 is not to see key 0, and it gives True": "result | torch.ones_like(result).tril(-3)",
    },
)

RIGHT = [("positions_from_mask", lambda real: (real.cumsum(1) - 1) * real)]
