"""Hidden tests of chapter 8: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
"""


def steps_apart(answer):
    """A bigram model that agrees with itself; one whose steps shift every logit; ones with one probability moved."""
    import math

    import torch

    generator = torch.Generator().manual_seed(800)
    table = torch.randn(7, 7, generator=generator, dtype=torch.float64)
    tokens = torch.randint(7, (3, 6), generator=generator)
    for constant, where, factor in ((0.0, None, 1.0), (-40.0, None, 1.0), (0.0, 2, 1.5), (3.0, 0, 0.25), (0.0, 5, 2.0)):

        def step(token, cache, constant=constant, where=where, factor=factor):
            place = 0 if cache is None else cache
            logits = table[token] + constant
            if place == where:  # the likelihood of token 3, against all others
                logits = logits + math.log(factor) * (torch.arange(7) == 3).double()
            return logits, place + 1

        got = answer(lambda t: table[t], step, tokens)
        assert type(got) in (float, int) or type(got) is torch.Tensor and got.numel() == 1, f"not a number: {got!r}"
        got = float(got)
        if where is None:
            assert abs(got) < 1e-9, (
                f"two runs with the same probabilities, logits {constant:g} apart, are called apart by {got}"
            )
            continue
        change = []
        for token in tokens[:, where]:
            chance = table[token].softmax(-1)[3].item()
            total = 1 - chance + factor * chance
            change += [abs(math.log(total)), abs(math.log(factor / total))]
        here = f"with token 3 made {factor} times as likely at place {where}"
        assert abs(got - max(change)) < 1e-6, f"{here} a log-probability differs by {max(change):.6f}, not by {got:.6f}"


def layout_of(answer):
    """Rotations written as complex numbers, of several sizes, ways round and parts of a head."""
    import torch

    def rotation(size, speed, halves, first_place):
        def rotate(x, positions):
            part = x[..., :size].double()
            first, second = part.chunk(2, dim=-1) if halves else (part[..., 0::2], part[..., 1::2])
            turn = torch.polar(
                torch.tensor(1.0).double(), (positions[:, None] + first_place) * speed ** torch.arange(1, size // 2 + 1)
            )
            z = torch.complex(first, second) * turn
            made = torch.cat([z.real, z.imag], -1) if halves else torch.stack([z.real, z.imag], -1).flatten(-2)
            return torch.cat([made.to(x.dtype), x[..., size:]], dim=-1)

        return rotate

    for head_dim, size, place in ((4, 4, 0), (64, 64, 2), (10, 6, 0), (128, 32, 0)):
        for speed in (0.7, -0.6):
            for halves, name in ((False, "interleaved"), (True, "half_split")):
                got = answer(rotation(size, torch.tensor(speed).double(), halves, place), head_dim)
                assert type(got) is str and got == name, (
                    f"{size} of {head_dim} dimensions, speeds ±0.7 and less, {name}: called {got!r}"
                )


def base_of(answer):
    """The last pair goes round in 2π·base^((d-2)/d)/s positions."""
    import torch

    for d, base, scale in ((4, 100.0, 1.0), (24, 26_000.0, 1.0), (128, 1e6, 0.125), (10, 50.0, 2.0)):

        def rotate(x, positions, d=d, base=base, scale=scale):
            speeds = scale * torch.logspace(0, -(d - 2) / d, d // 2, base=base, dtype=torch.float64)
            z = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
            return torch.view_as_real(z * torch.exp(1j * positions[:, None] * speeds)).flatten(-2).to(x.dtype)

        got = float(answer(rotate, d))
        assert abs(got / base - 1) < 1e-2, f"base {base}, positions times {scale}, head of {d}: {got}"


def part_of_repaired(answer, biases=0.0):
    """Where all biases are 0, the port's scores are those of the first model; values and the old state stay."""
    import torch

    from posenc.rotary import angles, rotate

    generator = torch.Generator().manual_seed(801)
    for heads, d in ((1, 4), (2, 6), (5, 16)):
        width = heads * d
        state = {}
        for part in ("query", "key", "value"):
            state[f"{part}.weight"] = torch.randn(width, width, generator=generator, dtype=torch.float64)
            state[f"{part}.bias"] = biases * torch.randn(width, generator=generator, dtype=torch.float64)
        before = {name: rows.clone() for name, rows in state.items()}
        new = answer(state, heads)
        here = f"with {heads} heads of {d}"
        assert isinstance(new, dict), f"{here} it returned no dict"
        plain = all(type(rows) is torch.Tensor for rows in new.values())
        assert plain, f"{here} the new state holds something that is no tensor, or a Parameter"
        assert all(torch.equal(state[name], rows) for name, rows in before.items()), f"{here} the old state has changed"
        values = all(torch.equal(new[f"value.{kind}"], before[f"value.{kind}"]) for kind in ("weight", "bias"))
        assert values, f"{here} the values' weight or bias has changed"
        x = torch.randn(7, width, generator=generator, dtype=torch.float64)
        scores = {}
        for layout, weights in (("interleaved", before), ("half_split", new)):
            q, k = (
                rotate(
                    torch.nn.functional.linear(x, weights[f"{part}.weight"], weights[f"{part}.bias"])
                    .unflatten(-1, (heads, d))
                    .transpose(0, 1),
                    angles(torch.arange(7), d),
                    layout=layout,
                )
                for part in ("query", "key")
            )
            scores[layout] = q @ k.mT
        apart = (scores["half_split"] - scores["interleaved"]).abs().max()
        assert apart < 1e-9, f"{here} the port's scores are {apart:.2g} off those of the first model"


def repaired(answer):
    """Scores of the port of halves are then those of neighbours, with biases too."""
    part_of_repaired(answer, biases=1.0)


def positions_from_mask(answer):
    """Row by row, the real tokens are counted from 0."""
    import torch

    generator = torch.Generator().manual_seed(802)
    for rows, length in ((1, 1), (3, 7), (6, 20)):
        pads = torch.randint(length, (rows, 1), generator=generator)
        places, ends = torch.arange(length), torch.randint(length // 2 + 1, (rows, 1), generator=generator)
        real = (places >= pads) & (places < length - ends)
        got = answer(real.clone())
        here = f"for a mask of shape {tuple(real.shape)}"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor"
        kind = (tuple(got.shape), got.is_floating_point())
        assert kind == (tuple(real.shape), False), f"{here} the positions are {got.dtype} of shape {tuple(got.shape)}"
        for row, (mask, found) in enumerate(zip(real, got)):
            count = int(mask.sum())
            assert found[mask].tolist() == [*range(count)], f"row {row} with {length - count} pads: {found.tolist()}"
            assert not found[~mask].any(), f"the padding of row {row} is at {found[~mask].tolist()}, not at 0"


def packing_mask(answer):
    """Entry by entry: not later, and of the same text."""
    import torch

    for numbers in ([3], [0, 0, 1, 1, 1, 2], [9, 9, 9, 9], [5, 1, 1, 5]):
        got = answer(torch.tensor(numbers))
        assert type(got) is torch.Tensor, f"for texts {numbers} it returned no tensor"
        kind = (tuple(got.shape), got.dtype)
        wanted = ((len(numbers), len(numbers)), torch.bool)
        assert kind == wanted, f"for texts {numbers} shape and dtype are {kind}"
        for m, row in enumerate(got.tolist()):
            for n, seen in enumerate(row):
                allowed = n <= m and numbers[n] == numbers[m]
                assert seen == allowed, f"texts {numbers}: query {m} and key {n} give {seen}"
