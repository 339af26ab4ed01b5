"""Hidden tests of chapter 3: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong. It is copied into a learner's notebook to give marks, and learners
read it afterwards, so it imports what it needs and holds no solution.
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
        assert type(got) is torch.Tensor and got.shape == (4, length, length), f"shape for {length} tokens"
        query, key = (linear(x + e, w, b) for w, b in zip(weights, biases))
        assert torch.allclose(got.sum(0) * head**0.5, query @ key.T), f"their sum, d {d} and d_head {head}"
        plain = answer(x, e, *weights, *(0 * biases))
        without_content = (
            plain[0, 0].abs().max() == plain[1, 0].abs().max() == plain[2, :, 0].abs().max() == 0
        )
        assert without_content, "a token whose content is 0, without biases"
        without_place = plain[3, 1].abs().max() == plain[1, :, 1].abs().max() == plain[2, 1].abs().max() == 0
        assert without_place, "a token whose position is 0"
        assert all(part.abs().max() > 0.01 for part in plain), "each of the four without biases"
        assert torch.allclose(got[3], plain[3]), "position with position, with biases and without"
        louder = answer(3 * x, 5 * e, *weights, *(0 * biases))
        factors = torch.tensor([9.0, 15.0, 15.0, 25.0])[:, None, None]
        assert torch.allclose(louder, plain * factors), "contents 3 times and positions 5 times as large"
        bias_alone = answer(0 * x, e, *weights, *biases)
        rows, columns = bias_alone[1, :1].expand(length, -1), bias_alone[2, :, :1].expand(-1, length)
        assert torch.allclose(bias_alone[1], rows), "content with position, where the biases are all content"
        assert torch.allclose(bias_alone[2], columns), (
            "position with content, where the biases are all content"
        )


def joint(answer):
    """Between two vectors it is the dot product of what the two layers make of them."""
    import torch
    from torch.nn.functional import linear

    generator = torch.Generator().manual_seed(41)
    for head, d in ((2, 5), (5, 5), (7, 3)):
        weights = torch.randn(2, head, d, generator=generator, dtype=torch.float64)
        x, y = torch.randn(2, 9, d, generator=generator, dtype=torch.float64)
        got = answer(*weights)
        assert type(got) is torch.Tensor and got.shape == (d, d), f"shape for d {d} and d_head {head}"
        queries, keys = (linear(vectors, weight) for vectors, weight in zip((x, y), weights))
        same = torch.allclose(torch.einsum("ti,ij,tj->t", x, got, y), (queries * keys).sum(-1))
        assert same, f"nine pairs of vectors, d {d} and d_head {head}"


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
        assert type(got) is torch.Tensor and got.shape == (4,), "shape"
        assert torch.allclose(got, factors**2 / (factors @ factors)), (
            "rows of ±1 times a factor for each term"
        )
        noise = torch.randn(4, rows, columns, generator=generator, dtype=torch.float64)
        assert torch.allclose(answer(noise + constants), answer(noise)), "a number more in each row"
        assert torch.allclose(answer(noise).sum(), torch.tensor(1.0, dtype=torch.float64)), "their sum"
        assert torch.allclose(answer(noise.flip(0)), answer(noise).flip(0)), "the four in another order"


def realise(answer):
    """Between any two of the vectors stands the number that was wanted for them."""
    import torch

    generator = torch.Generator().manual_seed(43)
    for count, d in ((3, 3), (4, 9), (8, 8), (1, 5)):
        vectors = torch.randn(count, d, generator=generator, dtype=torch.float64)
        wanted = torch.randn(count, count, generator=generator, dtype=torch.float64)
        got = answer(vectors.clone(), wanted.clone())
        assert type(got) is torch.Tensor and got.shape == (d, d), f"shape for {count} vectors, d {d}"
        found = torch.einsum("mi,ij,nj->mn", vectors, got, vectors)
        assert torch.allclose(found, wanted, atol=1e-6), f"{count} vectors in {d} dimensions"


def tied(answer):
    """Side by side, content and position give what their sum gives."""
    import torch
    from torch.nn.functional import linear

    generator = torch.Generator().manual_seed(44)
    for out, d in ((2, 7), (6, 4), (5, 5)):
        w = torch.randn(out, d, generator=generator, dtype=torch.float64)
        x, e = torch.randn(2, 3, d, generator=generator, dtype=torch.float64)
        got = answer(w.clone())
        assert type(got) is torch.Tensor and got.shape == (out, 2 * d), f"shape for {out} outputs, d {d}"
        assert torch.allclose(linear(torch.hstack([x, e]), got), linear(x + e, w)), f"{out} outputs, d {d}"


def untied(answer):
    """One scaled dot product of vectors twice as wide, content in front and position behind."""
    import torch
    from torch.nn.functional import linear

    generator = torch.Generator().manual_seed(45)
    for length, d, head in ((5, 4, 4), (3, 8, 2)):
        x, e = torch.randn(2, length, d, generator=generator, dtype=torch.float64)
        w_query, w_key, u_query, u_key = torch.randn(4, head, d, generator=generator, dtype=torch.float64)
        got = answer(x, e, w_query, w_key, u_query, u_key)
        assert type(got) is torch.Tensor and got.shape == (length, length), f"shape for {length} tokens"
        queries = torch.hstack([linear(x, w_query), linear(e, u_query)])
        keys = torch.hstack([linear(x, w_key), linear(e, u_key)])
        same = torch.allclose(got, torch.einsum("mi,ni->mn", queries, keys) * (2 * head) ** -0.5)
        assert same, f"{length} tokens, d {d} and d_head {head}"
