"""Hidden tests of chapter 7: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
"""


def rotation_bytes(answer):
    """The bytes that torch's operations were seen to read and write."""
    import torch

    from posenc.timing import count_bytes

    def rotate_with_cat(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-second, first], dim=-1) * sin

    for heads, length, d, dtype in ((2, 6, 8, torch.float32), (5, 3, 4, torch.bfloat16), (4, 16, 2, torch.float64)):
        x, cos, sin = (torch.ones(shape, dtype=dtype) for shape in ((heads, length, d), (length, d), (length, d)))
        counted = count_bytes(lambda x=x, cos=cos, sin=sin: rotate_with_cat(x, cos, sin)).bytes
        got = float(answer(heads, length, d, dtype.itemsize))
        here = f"for {heads} heads, {length} tokens, d = {d}, {dtype.itemsize} bytes a number"
        assert got == counted, f"{here} torch was seen to move {counted} bytes, not {got!r}"


def time_kernel(answer):
    """It reads off a made-up device what its kernel takes, whatever disturbs it."""
    from posenc.chapters.what_it_costs.simulated import SimulatedStream

    disturbances = {
        "": {},
        " that is faster when its data are in the cache": {"warm": 10e-6},
        " whose first calls are slow": {"compiling": 0.5, "slow_calls": 2},
    }
    for every in (*range(4, 14), 31, 41, 51, 101):
        disturbances[f" that is interrupted in call {every} and its multiples"] = {"every": every, "delay": 2e-3}
    for seconds in (25e-6, 90e-6):
        for words, disturbance in disturbances.items():
            stream = SimulatedStream()
            got = float(answer(stream.kernel(seconds, **disturbance), stream))
            here = f"off a kernel of {1e6 * seconds:g} µs{words}"
            assert abs(got / seconds - 1) < 0.05, f"{here} it reads {1e6 * got:.3g} µs"


def faster(answer):
    """Functions whose two times were chosen first, the bytes and launches after them."""
    import random

    from posenc.timing import Traffic

    def function(times, speed, launch):
        kernels = max(1, round(times["launches"] / launch))
        return Traffic((("kernel", round(times["bytes"] * speed / kernels), 0),) * kernels)

    draw = random.Random(50)
    for _ in range(200):
        longer = sorted(draw.uniform(100e-6, 900e-6) for _ in range(2))
        if longer[1] < 1.1 * longer[0]:
            continue
        speed, launch = draw.uniform(1e11, 4e12), draw.uniform(1e-6, 5e-6)
        pair = []
        for time in longer:
            names = draw.sample(["bytes", "launches"], 2)
            pair.append(function(dict(zip(names, (time, draw.uniform(0.05, 0.95) * time))), speed, launch))
        one, other = (f"{each.bytes:,} bytes in {each.kernels} kernels" for each in pair)
        here = f"{one} against {other}, {speed:.2g} bytes and {1 / launch:,.0f} launches a second"
        assert str(answer(*pair, speed, launch)) == "first", f"{here}: the first is faster"
        assert str(answer(*pair[::-1], speed, launch)) == "second", f"{here}, exchanged: the second is faster"


def decode_step(answer):
    """Token by token, it fills the cache and gives the scores that all tokens at once give."""
    import torch

    from posenc.rotary import angles, rotate

    generator = torch.Generator().manual_seed(51)
    for heads, d, start in ((1, 8, 0), (3, 8, 0), (2, 8, 1000)):
        queries, keys = torch.randn(2, heads, 6, d, generator=generator, dtype=torch.float64)
        places = angles(torch.arange(start, start + 6), d)
        turned, asked = rotate(keys, places), rotate(queries, places)
        every = torch.einsum("hmi,hni->hmn", asked, turned) * d**-0.5
        cache = keys[:, :0]
        for token in range(6):
            given = queries[:, token].clone(), keys[:, token].clone(), cache.clone()
            scores, cache = answer(*given, start + token)
            here = f"with {heads} heads, token {token} at position {start + token}:"
            assert type(scores) is type(cache) is torch.Tensor, f"{here} not two plain tensors"
            shapes = (tuple(scores.shape), tuple(cache.shape))
            wanted = ((heads, token + 1), (heads, token + 1, d))
            assert shapes == wanted, f"{here} scores and cache have the shapes {shapes}, not {wanted}"
            same = torch.allclose(cache, turned[:, : token + 1], rtol=0, atol=1e-9)
            assert same, f"{here} the cache does not hold the keys turned to their positions"
            same = torch.allclose(scores, every[:, token, : token + 1], rtol=0, atol=1e-9)
            assert same, f"{here} the scores are not those that all tokens at once give"


def longest_bias(answer):
    """A bias of that length fits, and one of the next length does not."""
    import random

    numbers = random.Random(52)
    for _ in range(50):
        memory, heads, itemsize = (
            numbers.randrange(10**6, 10**12),
            numbers.randrange(1, 65),
            numbers.choice([1, 2, 4]),
        )
        length = float(answer(memory, heads, itemsize))
        here = f"in {memory:,} bytes, with {heads} heads and {itemsize} bytes a number,"
        assert length.is_integer(), f"{here} {length} is no number of tokens"
        assert length**2 * heads * itemsize <= memory, f"{here} a bias for {length:.0f} tokens has no room"
        assert memory < (length + 1) ** 2 * heads * itemsize, f"{here} a token more than {length:.0f} has room"
    exact = float(answer(64 * 9**2, 32, 2))
    assert exact == 9, f"64·9² bytes, with 32 heads and 2 bytes a number, hold 9 tokens to the byte, not {exact:g}"
