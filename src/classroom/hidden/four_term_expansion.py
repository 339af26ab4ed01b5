"""Hidden tests of chapter 3: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
"""


def parts(answer):
    """They sum to the score of x + e, grow as their factors do, and vanish where a factor does."""
    import torch
    from torch.nn.functional import linear

    generator = torch.Generator().manual_seed(40)
    for length, d, head in ((4, 6, 6), (7, 5, 3)):
        x, e = torch.randn(2, length, d, generator=generator, dtype=torch.float64)
        weights = torch.randn(2, head, d, generator=generator, dtype=torch.float64)
        biases = torch.randn(2, head, generator=generator, dtype=torch.float64)
        x[0], e[1] = 0, 0
        got = answer(x, e, *weights, *biases)
        here = f"with {length} tokens, d = {d} and d_head = {head}"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert got.shape == (4, length, length), f"{here} the terms have shape {tuple(got.shape)}"
        query, key = (linear(x + e, w, b) for w, b in zip(weights, biases))
        away = (got.sum(0) - query @ key.T / head**0.5).abs().max()
        assert away < 1e-6, f"{here} the sum of the four is {away:.2g} off the scores of x + e"
        plain = answer(x, e, *weights, *(0 * biases))
        names = ("content with content", "content with position", "position with content", "position with position")
        silent = [plain[0, 0], plain[1, 0], plain[2, :, 0]], [plain[1, :, 1], plain[2, 1], plain[3, 1]]
        for token, what, parts in ((0, "content", silent[0]), (1, "position", silent[1])):
            for name, part in zip([name for name in names if what in name], parts):
                left = part.abs().max()
                assert left < 1e-9, f"{here}, without biases, token {token} has no {what}, and {left:.2g} in {name}"
        for name, part in zip(names, plain):
            assert part.abs().max() > 0.01, f"{here}, without biases, all of {name} is 0"
        same = torch.allclose(got[3], plain[3])
        assert same, f"{here} position with position is another one with biases than without: they count as content"
        louder = answer(3 * x, 5 * e, *weights, *(0 * biases))
        factors = torch.tensor([9.0, 15.0, 15.0, 25.0])[:, None, None]
        for name, part, once, factor in zip(names, louder, plain, factors.flatten().tolist()):
            grown = torch.allclose(part, factor * once)
            assert grown, f"{here}, contents 3 and positions 5 times as large, {name} is not {factor:g} times as large"
        bias_alone = answer(0 * x, e, *weights, *biases)
        rows, columns = bias_alone[1, :1].expand(length, -1), bias_alone[2, :, :1].expand(-1, length)
        told = f"{here}, where biases are all the content, content with position differs from query to query"
        assert torch.allclose(bias_alone[1], rows), told
        told = f"{here}, where biases are all the content, position with content differs from key to key"
        assert torch.allclose(bias_alone[2], columns), told


def one_question(answer):
    """Words read places as wanted, places read nothing, words read no words; what is at right angles to all is not read."""
    import torch

    generator = torch.Generator().manual_seed(41)
    for count, length, d in ((2, 3, 5), (5, 1, 9), (4, 4, 12)):
        rows = torch.linalg.qr(torch.randn(d, count + length, generator=generator, dtype=torch.float64)).Q.T
        x, e = rows[:count], rows[count:]
        wanted = torch.randn(count, length, generator=generator, dtype=torch.float64)
        got = answer(x.clone(), e.clone(), wanted.clone())
        here = f"with {count} words and {length} places in {d} dimensions"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert got.shape == (d, d), f"{here} M has shape {tuple(got.shape)}"
        away = (torch.einsum("mi,ij,nj->mn", x, got, e) - wanted).abs().max()
        assert away < 1e-6, f"{here} the scores of words with places are up to {away:.2g} off what was wanted"
        for name, queries, keys in (
            ("words with words", x, x),
            ("places with words", e, x),
            ("places with places", e, e),
        ):
            left = torch.einsum("mi,ij,nj->mn", queries, got, keys).abs().max()
            assert left < 1e-6, f"{here} the scores of {name} should be 0, and one is {left:.2g}"


def seen(answer):
    """Matrices of ±1 with level rows count by the square of their factor, and a number for a row does not count."""
    import torch

    generator = torch.Generator().manual_seed(42)
    for rows, columns in ((3, 4), (6, 10)):
        signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(columns // 2)
        terms = torch.stack([signs.roll(shift).expand(rows, -1) for shift in range(4)])
        factors = torch.rand(4, generator=generator, dtype=torch.float64) + 0.2
        constants = 5 * torch.randn(4, rows, 1, generator=generator, dtype=torch.float64)
        got = answer(factors[:, None, None] * terms + constants)
        here = f"with {rows} queries and {columns} keys"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert got.shape == (4,), f"{here} the shares have shape {tuple(got.shape)}"
        shares = factors**2 / (factors @ factors)
        right = torch.allclose(got, shares)
        assert right, f"{here}, rows of ±{factors.tolist()} plus a number a row, the shares are {got.tolist()}"
        noise = torch.randn(4, rows, columns, generator=generator, dtype=torch.float64)
        same = torch.allclose(answer(noise + constants), answer(noise))
        assert same, f"{here} a number more in each row of random terms changes the shares"
        total = answer(noise).sum()
        assert abs(total - 1) < 1e-6, f"{here} the shares of random terms sum to {total:.6f}, not to 1"
        same = torch.allclose(answer(noise.flip(0)), answer(noise).flip(0))
        assert same, f"{here} random terms in another order have other shares"


def realise(answer):
    """Between any two of the vectors stands the number that was wanted for them."""
    import torch

    generator = torch.Generator().manual_seed(43)
    for count, d in ((3, 3), (4, 9), (8, 8), (1, 5)):
        vectors = torch.randn(count, d, generator=generator, dtype=torch.float64)
        wanted = torch.randn(count, count, generator=generator, dtype=torch.float64)
        got = answer(vectors.clone(), wanted.clone())
        here = f"with {count} vectors in {d} dimensions"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert got.shape == (d, d), f"{here} M has shape {tuple(got.shape)}"
        away = (torch.einsum("mi,ij,nj->mn", vectors, got, vectors) - wanted).abs().max()
        assert away < 1e-5, f"{here} the scores are up to {away:.2g} off what was wanted"


def which(answer):
    """Whatever the draw, the name is that of the term, also where words are many, or only one comes twice."""
    import torch

    generator = torch.Generator().manual_seed(44)
    for sentence in ("the dog bit the man", "row row row your boat", "one two three four five six seven one"):
        tokens = sentence.split()
        kinds = sorted({*tokens})
        here = f"of “{sentence}”"
        for _ in range(4):
            vectors = torch.randn(len(kinds), 7, generator=generator, dtype=torch.float64)
            x = vectors[[kinds.index(token) for token in tokens]]
            e = torch.randn(len(tokens), 7, generator=generator, dtype=torch.float64)
            middle = torch.randn(7, 7, generator=generator, dtype=torch.float64)
            for query, left in (("content", x), ("position", e)):
                for key, right in (("content", x), ("position", e)):
                    panel = torch.einsum("mi,ij,nj->mn", left, middle, right)
                    panel = panel - panel.mean(dim=-1, keepdim=True)
                    panel += 1e-10 * torch.randn(panel.shape, generator=generator, dtype=torch.float64)
                    name = answer(panel, list(tokens))
                    assert type(name) is str, f"{here} it returned no text"
                    assert name == f"{query} → {key}", f"{here} it calls {query} → {key} {name!r}"
