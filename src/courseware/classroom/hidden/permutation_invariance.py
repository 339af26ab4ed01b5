"""Hidden tests of chapter 1: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong. It is copied into a learner's notebook to give marks, and learners
read it afterwards, so it imports what it needs and holds no solution.
"""


def hide_the_future(answer):
    """Behind the softmax, a query shares its attention equally among what it may see."""
    import torch

    for queries, keys in ((1, 1), (5, 5), (3, 7), (1, 9)):
        bias = answer(queries, keys)
        assert type(bias) is torch.Tensor and bias.shape == (queries, keys) and bias.dtype == torch.float32
        weights = bias.double().softmax(dim=-1)
        for row in range(queries):
            hidden = queries - 1 - row  # this many of the newest keys are later than the query
            assert (weights[row, keys - hidden :] == 0).all()
            assert torch.allclose(weights[row] * (keys - hidden), (weights[row] > 0).double())
            assert (weights[row] > 0).sum() == keys - hidden


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
        for order in (torch.arange(length - 1), torch.randperm(length - 1, generator=generator)):
            row = answer(x[-1].clone(), key[order], value[order], w_query, w_key, w_value)
            assert type(row) is torch.Tensor and row.shape == (d,)
            assert torch.allclose(row, expected, atol=1e-9)


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
            assert type(back) is torch.Tensor and torch.allclose(back, layer(x), atol=1e-9)
            assert any(torch.equal(rows, x[p]) for rows in seen)
        places = torch.arange(length)[:, None] * torch.ones(4, dtype=torch.float64)
        told = answer(lambda rows, places=places: rows + places, x.clone(), cycle)
        assert torch.allclose((told - x).sort(dim=0).values, places) and not torch.allclose(told, x + places)


def failing_twin(answer):
    """Another order of the same words, which ends in the same word."""
    import random

    words = random.Random(22)
    for length in (3, 5, 11):
        sentence = [f"{words.choice('bcdfg')}{words.choice('aeiou')}{number}" for number in range(length)]
        twin = answer(list(sentence))
        assert type(twin) in (list, tuple) and all(type(word) is str for word in twin)
        assert list(twin) != sentence
        assert sorted(twin) == sorted(sentence)
        assert twin[-1] == sentence[-1]


def expected_accuracy(answer):
    """Counted: over all places of a and b, the last token decides or one of two twins is right."""
    from itertools import permutations

    for length in (2, 3, 7, 16):
        places = list(permutations(range(length), 2))
        share = sum(1.0 if length - 1 in pair else 0.5 for pair in places) / len(places)
        assert abs(float(answer(length)) - share) < 1e-9


def position_from_share(answer):
    """The position that a row of a causal pass with equal scores was taken from."""
    import torch

    weights = torch.full((40, 40), -torch.inf, dtype=torch.float64).triu(1).softmax(dim=-1)
    for position in (0, 1, 7, 39):
        assert abs(float(answer(weights[position, 0].clone())) - position) < 1e-6
        assert abs(float(answer(weights[position, 0].item())) - position) < 1e-6
