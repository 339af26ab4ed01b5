"""Hidden tests of chapter 9: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
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
        here = f"with {length} tokens"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert got.shape == scores.shape, f"{here} the scores have shape {tuple(got.shape)}"
        assert torch.allclose(got.softmax(-1), scores.softmax(-1)), f"{here} the softmax gives other weights"
        left = got.diagonal().abs().max()
        assert left < 1e-12, f"{here} a query's score with itself is {left:.2g}, not 0"
        assert got[hidden].isinf().all(), f"{here} a hidden key has lost its -inf"
        slope = (0.3 * torch.arange(length, dtype=torch.float64)).expand(length, length)
        level = answer(slope.masked_fill(hidden, -torch.inf))
        for distance in range(length):
            spread = level.diagonal(-distance).std(correction=0)
            told = f"{here}, scores that grow by 0.3 a key, the scores at distance {distance} differ from row to row"
            assert spread < 1e-12, told


def pair_texts(answer):
    """Every pair of tokens at every pair of places, for primes that the check does not use."""
    import torch

    for p in (2, 11, 13):
        texts = answer(p)
        assert type(texts) is torch.Tensor, f"for p = {p} it returned no tensor"
        assert tuple(texts.shape) == (p * p, p), f"for p = {p} the texts have shape {tuple(texts.shape)}"
        for m in range(p):
            for n in range(m):
                met = len({tuple(pair) for pair in texts[:, [n, m]].tolist()})
                assert met == p * p, f"for p = {p}, places {n} and {m} meet {met} of {p * p} pairs of tokens"
        used = set(texts.flatten().tolist())
        assert used == set(range(p)), f"for p = {p} the tokens are {sorted(used)}"


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
            here = f"with {p} tokens, {queries} queries and {keys} keys"
            assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
            assert got.shape == places.shape, f"{here} the result has shape {tuple(got.shape)}"
            away = (got - factor * places).abs().max()
            assert away < 1e-6, f"{here} what was planted for places is missed by {away:.2g}"


def norm_parts(answer):
    """They sum to LayerNorm, and each is linear in its own summand where the deviation stays."""
    import torch

    generator = torch.Generator().manual_seed(92)
    for length, d, eps in ((5, 16, 1e-5), (2, 7, 0.3)):
        x, e = torch.randn(2, length, d, generator=generator, dtype=torch.float64)
        weight = torch.randn(d, generator=generator, dtype=torch.float64)
        parts = answer(x.clone(), e.clone(), weight.clone(), eps)
        here = f"with {length} tokens, d = {d} and eps = {eps:g}"
        assert type(parts) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert parts.shape == (2, length, d), f"{here} the parts have shape {tuple(parts.shape)}"
        whole = torch.nn.functional.layer_norm(x + e, (d,), weight, eps=eps)
        away = (parts[0] + parts[1] - whole).abs().max()
        assert away < 1e-6, f"{here} the sum of both parts is {away:.2g} off LayerNorm(x + e)"
        exchanged = answer(e.clone(), x.clone(), weight.clone(), eps)
        same = torch.allclose(parts, exchanged.flip(0))
        assert same, f"{here} x and e exchanged do not give the same parts, exchanged"
        nothing = answer(x.clone(), torch.zeros_like(x), weight.clone(), eps)
        assert nothing[1].abs().max() < 1e-9, f"{here} an e of zeros has a part that is not 0"
        moved = answer(x + 5, e - 7, weight.clone(), eps)  # LayerNorm forgets both numbers
        assert torch.allclose(moved[0], parts[0]), f"{here} 5 added to x and 7 taken off e change the part of x"


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
        here = f"with {tokens} tokens, d = {d} and d_head = {head}"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert got.shape == (head,), f"{here} the query has shape {tuple(got.shape)}"
        queries = torch.nn.functional.linear(content + norm_bias, weight, bias)
        away = (got - queries.mean(0)).abs().max()
        assert away < 1e-6, f"{here} it is {away:.2g} off the mean of all tokens' queries"


def turn_between(answer):
    """The angle that was planted, both ways round, and with vectors of very different lengths."""
    import math

    import torch

    generator = torch.Generator().manual_seed(94)
    for theta in (0.21374, -0.21374, 1.51238, -3.01234, 3.01234):
        before = torch.randn(6, 2, generator=generator, dtype=torch.float64) * torch.logspace(-2, 1, 6)[:, None]
        turned = torch.view_as_complex(before) * complex(math.cos(theta), math.sin(theta))
        got = float(answer(before.clone(), torch.view_as_real(turned).clone()))
        off = abs(math.remainder(got - theta, 2 * math.pi))
        assert off < 1e-9, f"vectors turned by {theta:g} give {got:.9f}"
    loud = torch.tensor([[0.001, 0.0], [100.0, 0.0]], dtype=torch.float64)
    after = torch.tensor([[0.0, 0.001], [100 * math.cos(1), 100 * math.sin(1)]], dtype=torch.float64)
    got = float(answer(loud, after))
    told = f"of two vectors the longer, 100,000 times as long, is turned by 1, and both together by {got:.3f}"
    assert abs(got - 1) < 1e-3, told
