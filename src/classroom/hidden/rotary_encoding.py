"""Hidden tests of chapter 4: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
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
        assert type(got) is torch.Tensor, "turn returned no tensor, or a Parameter"
        kind = (tuple(got.shape), got.dtype)
        assert kind == ((2,), torch.float64), f"turn returned shape and dtype {kind} for a float64 vector of 2"
        off = abs(complex(*got.tolist()) - v * cmath.exp(1j * angle))
        assert off < 1e-12, f"({v.real:.3f}, {v.imag:.3f}) turned by {angle:.3f} is off by {off:.1e}"


def part_of_rotary(answer, even=False):
    """Each pair turns by its position times a speed of its own, the first by 1, and two turns are one."""
    import torch

    generator = torch.Generator().manual_seed(61)
    sizes = ((3, 4, 8, 50.0), (2, 7, 64, 500_000.0))
    one_pair = ((1, 5, 2, 100.0),)  # who divides by d - 2 has no number here, which loses the whole but not the part
    for heads, length, d, base in one_pair + sizes if even else sizes:
        x = torch.randn(heads, length, d, generator=generator, dtype=torch.float64)
        positions = torch.randint(0, 10**6, (length,), generator=generator)
        got = answer(x.clone(), positions.clone(), base)
        here = f"with {heads} heads, {length} tokens, d = {d}, base {base:g}"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        kind = (tuple(got.shape), got.dtype)
        assert kind == (tuple(x.shape), x.dtype), f"{here} the result has shape and dtype {kind}"
        unit = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(d // 2).expand(1, 1, d)
        once = answer(unit.clone(), torch.tensor([1]), base)[0, 0]
        speed = torch.view_as_complex(once.unflatten(-1, (-1, 2)).contiguous()).angle()
        assert abs(speed[0] - 1) < 1e-9, f"{here} pair 0 at position 1 turns by {speed[0]:.9f}, not by 1"
        steps = (speed[1:] / speed[:-1]) ** (d / 2)
        evenly = torch.allclose(steps, torch.tensor(1 / base, dtype=torch.float64), rtol=1e-6)
        assert evenly or not even, (
            f"{here} the pairs turn by {speed.tolist()[:4]} …; the ratio of neighbours is another one"
        )
        numbers, turned = (torch.view_as_complex(t.contiguous().unflatten(-1, (-1, 2))) for t in (x, got))
        wanted = numbers * torch.polar(torch.ones_like(speed), speed) ** positions[:, None]
        there = torch.allclose(turned, wanted, rtol=0, atol=1e-6)
        assert there, f"{here} the tokens at {positions.tolist()} are not turned by position times speed"
        assert torch.allclose(answer(x, 0 * positions, base), x), f"{here} tokens that all stand at 0 have changed"
        back = torch.allclose(answer(got, -positions, base), x, atol=1e-6)
        assert back, f"{here} turned to {positions.tolist()} and by as much back, x is not x"


def rotary(answer):
    """Pairs as complex numbers turn at even steps of speed, position 0 stays, and two turns are one."""
    part_of_rotary(answer, even=True)


def look_back(answer):
    """Behind the mask and the softmax, nearly all weight lies as many places back as was asked."""
    import torch

    from posenc.rotary import angles, rotate

    for back, d in ((1, 64), (2, 32), (7, 64), (12, 128), (13, 64), (20, 64), (31, 128)):
        both = answer(back, d)
        assert type(both) is torch.Tensor, f"for {back} back, d = {d}, it returned no tensor, or a Parameter"
        kind = (tuple(both.shape), both.dtype)
        assert kind == ((2, d), torch.float64), f"for {back} back, d = {d}, shape and dtype are {kind}"
        for length in (back + 1, back + 8, 48):
            query, key = (rotate(vector.expand(length, -1), angles(torch.arange(length), d)) for vector in both)
            logits = torch.einsum("mi,ni->mn", query, key) * d**-0.5
            future = torch.ones(length, length).triu(1).bool()
            weights = logits.masked_fill(future, -torch.inf).softmax(dim=-1)
            least = weights.diagonal(-back).min()
            assert least > 0.9, f"{back} back, d = {d}, among {length} tokens: the weight there is only {least:.2f}"


def break_decay(answer):
    """Two arrows of length 1, and a score that no step of the distance lowers."""
    import torch

    from posenc.rotary import angles, rotate

    for d in (16, 48, 64, 256):
        both = answer(d)
        assert type(both) is torch.Tensor, f"for d = {d} it returned no tensor, or a Parameter"
        kind = (tuple(both.shape), both.dtype)
        assert kind == ((2, d), torch.float64), f"for d = {d}, shape and dtype are {kind}"
        lengths = both.square().sum(dim=1).sqrt()
        assert torch.allclose(lengths, torch.ones_like(lengths)), f"d = {d}: the lengths are {lengths.tolist()}"
        for start in (0, 700):
            m = torch.arange(start, start + 65)
            queries = rotate(both[:1].expand(65, -1), angles(m, d))
            scores = torch.einsum("mi,i->m", queries, rotate(both[1:], angles(m[:1], d))[0])
            lowest = (scores[1:] - scores[:-1]).min()
            assert lowest > 0, f"d = {d}, key at {start}: on one of the 64 steps the score changes by {lowest:.2g}"
            gained = scores[64] - scores[0]
            assert gained >= 1, f"d = {d}, key at {start}: over 64 steps the score gains {gained:.2g} only"


def move_keys(answer):
    """Scores of moved keys are those of keys that were never anywhere else, and two moves are one."""
    import torch

    from posenc.rotary import angles, rotate

    generator = torch.Generator().manual_seed(65)
    for heads, length, d, dropped in ((1, 1, 8, 7), (3, 5, 32, 1), (2, 9, 64, 3000)):
        key, query = torch.randn(2, heads, length, d, generator=generator, dtype=torch.float64)
        places = torch.arange(length)
        got = answer(rotate(key, angles(places + dropped, d)), dropped)
        here = f"{heads} heads, {length} keys of d = {d}, {dropped} dropped"
        assert type(got) is torch.Tensor, f"{here}: it returned no tensor, or a Parameter"
        kind = (tuple(got.shape), got.dtype)
        assert kind == ((heads, length, d), torch.float64), f"{here}: shape and dtype are {kind}"
        asked = rotate(query, angles(places + 4, d))
        scores, wanted = (torch.einsum("hmi,hni->hmn", asked, k) for k in (got, rotate(key, angles(places, d))))
        off = (scores - wanted).abs().max()
        assert off < 1e-6, f"{here}: scores with a query are off by {off:.2g}"
        twice = answer(answer(rotate(key, angles(places + 2 * dropped, d)), dropped), dropped)
        assert torch.allclose(twice, got, atol=1e-6), f"{here}: dropped twice, the keys are others than at once"


def cached_position(answer):
    """The position that the key was turned to, also where the cache has rounded it."""
    import torch

    from posenc.rotary import angles, rotate

    generator = torch.Generator().manual_seed(63)
    for d, length in ((64, 500), (128, 3000), (32, 100)):
        for position in (0, 1, length - 1, int(torch.randint(length, (), generator=generator))):
            key = torch.randn(d, generator=generator, dtype=torch.float64)
            cached = rotate(key[None], angles(torch.tensor([position]), d))[0]
            for kind in (torch.float64, torch.float32, torch.bfloat16):
                got = float(answer(key.clone(), cached.to(kind).double(), length))
                here = f"a key of d = {d} at {position} of {length}, kept in {kind}"
                assert got == position, f"{here}, was taken for one at {got:g}"


def half_split_weight(answer):
    """Queries and keys through the converted weights have in the one layout the scores of the other."""
    import torch

    from posenc.rotary import angles, rotate

    generator = torch.Generator().manual_seed(64)
    for heads, d, width in ((1, 8, 3), (3, 6, 18), (4, 4, 5)):
        here = f"with {heads} heads of d = {d} and {width} columns"
        weights = torch.randn(2, heads * d, width, generator=generator, dtype=torch.float64)
        x = torch.randn(9, width, generator=generator, dtype=torch.float64)
        theta = angles(torch.arange(9), d)
        scores = {}
        for layout in ("interleaved", "half_split"):
            turned = []
            for weight in weights:
                used = weight if layout == "interleaved" else answer(weight.clone(), d)
                assert type(used) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
                assert used.shape == weight.shape, f"{here} the weight has shape {tuple(used.shape)}"
                rows = torch.equal(used.sort(dim=0).values, weight.sort(dim=0).values)
                assert rows, f"{here} the columns hold other numbers than before"
                vectors = torch.einsum("oi,ti->to", used, x).unflatten(-1, (heads, d)).transpose(0, 1)
                turned.append(rotate(vectors, theta, layout=layout))
            scores[layout] = torch.einsum("hmi,hni->hmn", *turned)
        same = torch.allclose(scores["half_split"], scores["interleaved"], atol=1e-8)
        assert same, f"{here} the scores of the two layouts differ"


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
        here = f"of {length} positions, d = {d}, in {dtype}"
        assert type(got) is torch.Tensor, f"the table {here} is no tensor, or a Parameter"
        kind = (tuple(got.shape), got.dtype)
        assert kind == ((2, length, d // 2), dtype), f"the table {here} has shape and dtype {kind}"
        waves = sinusoidal(torch.arange(length), d, dtype=torch.float64).unflatten(-1, (-1, 2))
        for row, wave, name in ((got[0], 1, "cosines"), (got[1], 0, "sines")):
            off = (row.double() - waves[..., wave]).abs().max()
            assert off < error, f"the {name} {here} are off by up to {off:.1e}, and rounding explains {error:g}"
