"""Hidden tests of chapter 9: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong. It is copied into a learner's notebook to give marks, and learners
read it afterwards, so it imports what it needs and holds no solution.
"""


def less_own(answer):
    """The same weights; nothing at the query's own place; a slope over the keys becomes one over distances."""
    import torch

    generator = torch.Generator().manual_seed(90)
    for length in (4, 9):
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = torch.randn(length, length, generator=generator, dtype=torch.float64)
        scores = scores.masked_fill(hidden, -torch.inf)
        got = answer(scores.clone())
        assert type(got) is torch.Tensor
        assert torch.allclose(got.softmax(-1), scores.softmax(-1))
        assert got.diagonal().abs().max() < 1e-12
        assert got[hidden].isinf().all()
        slope = (0.3 * torch.arange(length, dtype=torch.float64)).expand(length, length)
        level = answer(slope.masked_fill(hidden, -torch.inf))
        for distance in range(length):
            assert level.diagonal(-distance).std(correction=0) < 1e-12


def pair_texts(answer):
    """Every pair of tokens at every pair of places, for primes that the check does not use."""
    import torch

    for p in (2, 11, 13):
        texts = answer(p)
        assert type(texts) is torch.Tensor
        assert tuple(texts.shape) == (p * p, p)
        for m in range(p):
            for n in range(m):
                assert len({tuple(pair) for pair in texts[:, [n, m]].tolist()}) == p * p
        assert set(texts.flatten().tolist()) == set(range(p))


def place_part(answer):
    """Nothing that only tokens or rows decide changes it; what is planted for places comes out."""
    import torch

    generator = torch.Generator().manual_seed(91)
    for p, queries, keys in ((5, 3, 2), (7, 4, 3)):
        places = torch.randn(queries, keys, generator=generator, dtype=torch.float64)
        places = places - places.mean(-1, keepdim=True)
        tokens = torch.randn(p, p, 1, 1, generator=generator, dtype=torch.float64)
        rows = torch.randn(p, 1, queries, 1, generator=generator, dtype=torch.float64)
        table = places + tokens + rows
        for factor in (1, 3):
            got = answer(factor * table)
            assert type(got) is torch.Tensor and got.shape == places.shape
            assert torch.allclose(got, factor * places)


def norm_parts(answer):
    """They sum to LayerNorm, and each is linear in its own summand where the deviation stays."""
    import torch

    generator = torch.Generator().manual_seed(92)
    for length, d, eps in ((5, 16, 1e-5), (2, 7, 0.3)):
        x, e = torch.randn(2, length, d, generator=generator, dtype=torch.float64)
        weight = torch.randn(d, generator=generator, dtype=torch.float64)
        parts = answer(x.clone(), e.clone(), weight.clone(), eps)
        assert type(parts) is torch.Tensor and parts.shape == (2, length, d)
        whole = torch.nn.functional.layer_norm(x + e, (d,), weight, eps=eps)
        assert torch.allclose(parts[0] + parts[1], whole)
        exchanged = answer(e.clone(), x.clone(), weight.clone(), eps)
        assert torch.allclose(parts[0], exchanged[1]) and torch.allclose(parts[1], exchanged[0])
        nothing = answer(x.clone(), torch.zeros_like(x), weight.clone(), eps)
        assert nothing[1].abs().max() == 0
        moved = answer(x + 5, e - 7, weight.clone(), eps)  # LayerNorm forgets both numbers
        assert torch.allclose(moved[0], parts[0])


def constant_query(answer):
    """What is left of a query without its token's own content."""
    import torch

    generator = torch.Generator().manual_seed(93)
    for tokens, d, head in ((7, 6, 4), (3, 5, 5)):
        content = torch.randn(tokens, d, generator=generator, dtype=torch.float64) + 2
        norm_bias = torch.randn(d, generator=generator, dtype=torch.float64)
        weight = torch.randn(head, d, generator=generator, dtype=torch.float64)
        bias = torch.randn(head, generator=generator, dtype=torch.float64)
        got = answer(content.clone(), weight.clone(), bias.clone(), norm_bias.clone())
        assert type(got) is torch.Tensor and got.shape == (head,)
        queries = torch.nn.functional.linear(content + norm_bias, weight, bias)
        assert torch.allclose(got, queries.mean(0))


def turn_between(answer):
    """The angle that was planted, both ways round, and with vectors of very different lengths."""
    import math

    import torch

    generator = torch.Generator().manual_seed(94)
    for theta in (0.2, -0.2, 1.5, -3.0, 3.0):
        before = (
            torch.randn(6, 2, generator=generator, dtype=torch.float64) * torch.logspace(-2, 1, 6)[:, None]
        )
        turned = torch.view_as_complex(before) * complex(math.cos(theta), math.sin(theta))
        got = float(answer(before.clone(), torch.view_as_real(turned).clone()))
        assert abs(math.remainder(got - theta, 2 * math.pi)) < 1e-9
    loud = torch.tensor([[0.001, 0.0], [100.0, 0.0]], dtype=torch.float64)
    after = torch.tensor([[0.0, 0.001], [100 * math.cos(1), 100 * math.sin(1)]], dtype=torch.float64)
    assert abs(float(answer(loud, after)) - 1) < 1e-3  # the small one's noise does not decide
