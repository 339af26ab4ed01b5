"""Hidden tests of chapter 1: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
"""


def self_attention(answer):
    """It is torch's own attention, for any number of tokens and any size of a query."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    generator = torch.Generator().manual_seed(19)
    for length, width, d in ((2, 3, 7), (9, 5, 3), (1, 4, 4), (4, 2, 6)):
        x = torch.randn(length, width, generator=generator, dtype=torch.float64)
        w_query, w_key, w_value = torch.randn(3, width, d, generator=generator, dtype=torch.float64)
        expected = scaled_dot_product_attention((x @ w_query)[None], (x @ w_key)[None], (x @ w_value)[None])[0]
        output = answer(x.clone(), w_query, w_key, w_value)
        here = f"with {length} tokens of width {width} and queries of size {d}"
        assert type(output) is torch.Tensor, f"{here} the output is no tensor"
        assert output.shape == (length, d), f"{here} the output has shape {tuple(output.shape)}"
        away = (output - expected).abs().max()
        assert away < 1e-6, f"{here} the output is {away:.2g} off torch's scaled_dot_product_attention"


def hide_the_future(answer):
    """Behind the softmax, a query shares its attention equally among what it may see."""
    import torch

    for queries, keys in ((1, 1), (5, 5), (3, 7), (1, 9)):
        bias = answer(queries, keys)
        here = f"with {queries} queries and {keys} keys"
        assert type(bias) is torch.Tensor, f"{here} the bias is no tensor"
        assert bias.shape == (queries, keys), f"{here} the bias has shape {tuple(bias.shape)}"
        assert bias.dtype == torch.float32, f"{here} the bias is {bias.dtype}"
        weights = bias.double().softmax(dim=-1)
        for row in range(queries):
            hidden = queries - 1 - row  # this many of the newest keys are later than the query
            seen = int((weights[row] > 0).sum())
            told = f"{here}, query row {row} must see the first {keys - hidden} keys and no other; it sees {seen}"
            assert (weights[row, keys - hidden :] == 0).all(), told
            assert seen == keys - hidden, told
            equal = torch.allclose(weights[row] * (keys - hidden), (weights[row] > 0).double())
            assert equal, f"{here}, query row {row} gives the keys that it sees different weights"


def next_row(answer):
    """It is the last row of torch's own causal attention, whatever the order of the cache."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    generator = torch.Generator().manual_seed(20)
    for length, width, d in ((7, 8, 5), (2, 3, 9), (12, 4, 4)):
        x = torch.randn(length, width, generator=generator, dtype=torch.float64)
        w_query, w_key, w_value = torch.randn(3, width, d, generator=generator, dtype=torch.float64)
        query, key, value = x @ w_query, x @ w_key, x @ w_value
        expected = scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True)[0, -1]
        here = f"with {length} tokens of width {width} and a head of size {d}"
        for order in (torch.arange(length - 1), torch.randperm(length - 1, generator=generator)):
            row = answer(x[-1].clone(), key[order], value[order], w_query, w_key, w_value)
            assert type(row) is torch.Tensor, f"{here} the row is no tensor"
            assert row.shape == (d,), f"{here} the row has shape {tuple(row.shape)}"
            away = (row - expected).abs().max()
            assert away < 1e-6, f"{here} the row is {away:.2g} off torch's scaled_dot_product_attention"


def unpermute(answer):
    """Equal to the layer's answer where the layer is equivariant, and different where it is not."""
    import torch

    generator = torch.Generator().manual_seed(21)
    for length in (3, 6, 9):
        x = torch.randn(length, 4, generator=generator, dtype=torch.float64)
        cycle = torch.arange(length).roll(1)
        for p in (cycle, torch.randperm(length, generator=generator)):
            seen = []

            def layer(rows, seen=seen):
                seen.append(rows.clone())
                return rows.sin() + rows.mean(dim=0)

            back = answer(layer, x.clone(), p.clone())
            here = f"with {length} rows and p = {p.tolist()}"
            assert type(back) is torch.Tensor, f"{here} the answer is no tensor"
            asked = any(torch.equal(rows, x[p]) for rows in seen)
            right = torch.allclose(back, layer(x), atol=1e-9)
            assert right, f"{here} the rows of an equivariant layer are not back in the order of x"
            assert asked, f"{here} the layer was never given x[p]"
        places = torch.arange(length)[:, None] * torch.ones(4, dtype=torch.float64)
        told = answer(lambda rows, places=places: rows + places, x.clone(), cycle)
        message = f"with {length} rows, a layer that adds the row's number does not keep it while rows are sent back"
        assert torch.allclose((told - x).sort(dim=0).values, places), message
        blind = torch.allclose(told, x + places)
        assert not blind, f"with {length} rows, a layer that adds the row's number looks blind to order"


def failing_twin(answer):
    """Another order of the same words, in the same shares, which ends in the same word."""
    import random
    from collections import Counter

    words = random.Random(22)
    sentences = [["a", "b", "a", "c"], ["c", "b", "b", "c", "z"], ["d", "d", "e", "f"], ["d", "e", "e", "f"]]
    for length in (3, 5, 11):
        sentence = [f"{words.choice('bcdfg')}{words.choice('aeiou')}{number}" for number in range(length)]
        sentences += [sentence, sorted(sentence), sorted(sentence, reverse=True)]
    for sentence in sentences:
        twin = answer(list(sentence))
        here = f"for {' '.join(sentence)!r}"
        listed = type(twin) in (list, tuple) and all(type(word) is str for word in twin)
        assert listed, f"{here} the twin is no list of words"
        assert list(twin) != sentence, f"{here} the twin is the same sentence"
        assert len(twin) and twin[-1] == sentence[-1], f"{here} the twin ends in another word"
        found, asked = Counter(twin), Counter(sentence)
        shares = all(found[word] * len(sentence) == asked[word] * len(twin) for word in found | asked)
        assert shares, f"{here} the twin has other words, or has them in other shares"


def expected_accuracy(answer):
    """Counted: over all places of a and b, the last token decides or one of two twins is right."""
    from itertools import permutations

    for length in (2, 3, 7, 16):
        places = list(permutations(range(length), 2))
        share = sum(1.0 if length - 1 in pair else 0.5 for pair in places) / len(places)
        got = float(answer(length))
        assert abs(got - share) < 1e-9, f"for {length} tokens counting all places gives {share:.9f}, not {got:.9f}"


def position_from_share(answer):
    """The position that a row of a causal pass with equal scores was taken from."""
    import torch

    weights = torch.full((300, 300), -torch.inf, dtype=torch.float64).triu(1).softmax(dim=-1)
    for position in range(300):
        for share in (weights[position, 0].clone(), weights[position, 0].item()):
            got = float(answer(share))
            kind = type(share).__name__
            assert abs(got - position) < 1e-6, f"row {position} gives BOS {float(share):.6f} ({kind}), not row {got:g}"
