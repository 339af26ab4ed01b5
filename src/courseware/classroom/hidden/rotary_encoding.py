"""Hidden tests of chapter 4: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong. It is copied into a learner's notebook to give marks, and learners
read it afterwards, so it imports what it needs and holds no solution.
"""


def turn(answer):
    """A vector as a complex number, times e^(i·angle)."""
    import cmath
    import random

    import torch

    numbers = random.Random(60)
    for _ in range(20):
        v, angle = complex(numbers.gauss(0, 3), numbers.gauss(0, 3)), numbers.uniform(-20, 20)
        got = answer(torch.tensor([v.real, v.imag], dtype=torch.float64), angle)
        assert type(got) is torch.Tensor and got.shape == (2,) and got.dtype == torch.float64
        assert abs(complex(*got.tolist()) - v * cmath.exp(1j * angle)) < 1e-12


def rotary(answer):
    """Pairs as complex numbers turn at even steps of speed, position 0 stays, and two turns are one."""
    import torch

    generator = torch.Generator().manual_seed(61)
    for heads, length, d, base in ((1, 5, 2, 100.0), (3, 4, 8, 50.0), (2, 7, 64, 500_000.0)):
        x = torch.randn(heads, length, d, generator=generator, dtype=torch.float64)
        positions = torch.randint(0, 10**6, (length,), generator=generator)
        got = answer(x.clone(), positions.clone(), base)
        assert type(got) is torch.Tensor and got.shape == x.shape and got.dtype == x.dtype
        unit = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(d // 2).expand(1, 1, d)
        speed = torch.view_as_complex(
            answer(unit.clone(), torch.tensor([1]), base).unflatten(-1, (-1, 2))
        ).angle()[0, 0]
        assert abs(speed[0] - 1) < 1e-9
        assert torch.allclose(
            (speed[1:] / speed[:-1]) ** (d / 2), torch.tensor(1 / base, dtype=torch.float64), rtol=1e-6
        )
        numbers, turned = (torch.view_as_complex(t.contiguous().unflatten(-1, (-1, 2))) for t in (x, got))
        wanted = numbers * torch.polar(torch.ones_like(speed), speed) ** positions[:, None]
        assert torch.allclose(turned, wanted, rtol=0, atol=1e-6)
        assert torch.allclose(answer(x, 0 * positions, base), x)
        assert torch.allclose(answer(got, -positions, base), x, atol=1e-6)


def relative_scores(answer):
    """Equal positions leave the plain scores; a query turned by s places asks from s places on; so does a key."""
    import torch

    from posenc.rotary import angles, rotate

    generator = torch.Generator().manual_seed(62)
    for queries, keys, d in ((3, 5, 4), (1, 7, 16)):
        q = torch.randn(queries, d, generator=generator, dtype=torch.float64)
        k = torch.randn(keys, d, generator=generator, dtype=torch.float64)
        m = torch.randint(0, 300, (queries,), generator=generator)
        n = torch.randint(0, 300, (keys,), generator=generator)
        got = answer(q, k, m, n)
        assert type(got) is torch.Tensor and got.shape == (queries, keys)
        plain = torch.einsum("mi,ni->mn", q, k) * d**-0.5
        assert torch.allclose(answer(q, k, 0 * m + 9, 0 * n + 9), plain)
        further = rotate(q, angles(torch.tensor([5]), d))
        assert torch.allclose(answer(further, k, m, n), answer(q, k, m + 5, n), atol=1e-8)
        further = rotate(k, angles(torch.tensor([11]), d))
        assert torch.allclose(answer(q, further, m, n), answer(q, k, m, n + 11), atol=1e-8)
        assert torch.allclose(answer(q, k, m + 1000, n + 1000), got, atol=1e-8)


def look_back(answer):
    """Behind the mask and the softmax, nearly all weight lies as many places back as was asked."""
    import torch

    from posenc.rotary import angles, rotate

    for back, d in ((1, 64), (2, 32), (7, 64), (12, 128)):
        both = answer(back, d)
        assert type(both) is torch.Tensor and both.shape == (2, d) and both.dtype == torch.float64
        for length in (back + 1, 20, 48):
            query, key = (
                rotate(vector.expand(length, -1), angles(torch.arange(length), d)) for vector in both
            )
            logits = torch.einsum("mi,ni->mn", query, key) * d**-0.5
            future = torch.ones(length, length).triu(1).bool()
            weights = logits.masked_fill(future, -torch.inf).softmax(dim=-1)
            assert weights.diagonal(-back).min() > 0.9


def cached_position(answer):
    """The position that the key was turned to, also where the cache has rounded it."""
    import torch

    from posenc.rotary import angles, rotate

    generator = torch.Generator().manual_seed(63)
    for d, length in ((64, 500), (128, 3000), (32, 100)):
        for position in (0, 1, length - 1, int(torch.randint(length, (), generator=generator))):
            key = torch.randn(d, generator=generator, dtype=torch.float64)
            cached = rotate(key[None], angles(torch.tensor([position]), d))[0]
            for kept in (cached, cached.float().double(), cached.bfloat16().double()):
                assert float(answer(key.clone(), kept.clone(), length)) == position


def half_split_weight(answer):
    """Queries and keys through the converted weights have in the one layout the scores of the other."""
    import torch

    from posenc.rotary import angles, rotate

    generator = torch.Generator().manual_seed(64)
    for heads, d, width in ((1, 8, 3), (3, 6, 18), (4, 4, 5)):
        weights = torch.randn(2, heads * d, width, generator=generator, dtype=torch.float64)
        x = torch.randn(9, width, generator=generator, dtype=torch.float64)
        theta = angles(torch.arange(9), d)
        scores = {}
        for layout in ("interleaved", "half_split"):
            turned = []
            for weight in weights:
                used = weight if layout == "interleaved" else answer(weight.clone(), d)
                assert type(used) is torch.Tensor and used.shape == weight.shape
                assert torch.equal(used.sort(dim=0).values, weight.sort(dim=0).values)
                vectors = torch.einsum("oi,ti->to", used, x).unflatten(-1, (heads, d)).transpose(0, 1)
                turned.append(rotate(vectors, theta, layout=layout))
            scores[layout] = torch.einsum("hmi,hni->hmn", *turned)
        assert torch.allclose(scores["half_split"], scores["interleaved"], atol=1e-8)


def tables(answer):
    """The waves of chapter 2's encoding, cosines before sines, each rounded no more than its dtype rounds."""
    import torch

    from posenc.additive import sinusoidal

    for length, d, dtype, error in (
        (4000, 16, torch.bfloat16, 0.002),
        (4000, 64, torch.float32, 1e-6),
        (100, 6, torch.float64, 1e-12),
        (3000, 8, torch.float16, 0.0005),
    ):
        got = answer(length, d, dtype)
        assert type(got) is torch.Tensor and got.shape == (2, length, d // 2) and got.dtype == dtype
        waves = sinusoidal(torch.arange(length), d, dtype=torch.float64).unflatten(-1, (-1, 2))
        assert (got[1].double() - waves[..., 0]).abs().max() < error
        assert (got[0].double() - waves[..., 1]).abs().max() < error
