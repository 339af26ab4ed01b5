"""Hidden tests of chapter 5: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
"""


def unseen_weight(answer):
    """Nothing within the trained length, and one new distance more for each query after it."""
    import torch

    generator = torch.Generator().manual_seed(71)
    for length, trained in ((12, 5), (9, 8), (7, 1), (4, 4)):
        weights = torch.rand(length, length, generator=generator, dtype=torch.float64).tril()
        weights = weights / weights.sum(dim=-1, keepdim=True)
        got = answer(weights.clone(), trained)
        here = f"with {length} tokens and trained = {trained}"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert got.shape == (length,), f"{here} the result has shape {tuple(got.shape)}"
        assert (got[:trained].abs() < 1e-9).all(), (
            f"{here} a query within the trained length has weight on new distances"
        )
        for query in range(trained, length):
            far = weights[query, : query + 1 - trained].sum()  # the keys that stand too far back
            assert abs(got[query] - far) < 1e-6, (
                f"{here} query {query} has {far:.6f} on new distances, not {got[query]:.6f}"
            )
        later = torch.cat([torch.zeros(length, 2, dtype=torch.float64), weights], dim=1)[:, :length]
        moved = not torch.allclose(answer(later, trained), got) or length <= trained
        assert moved, f"{here}, all keys two places later, the result is the same"


def place_needle(answer):
    """A reader who remembers what was told last finds the value, and with the needle cut out finds nothing."""
    import torch

    from posenc.tasks import ASK, FACT_KEYS, FACT_VALUES

    generator = torch.Generator().manual_seed(72)

    def draw(high):
        return int(torch.randint(high, (), generator=generator))

    for length in (20, 33, 200):
        for _ in range(10):
            text = torch.randint(FACT_KEYS * (FACT_VALUES + 1), (length,), generator=generator)
            distance, key, value = 1 + draw(length - 1), draw(FACT_KEYS), draw(FACT_VALUES)
            got = answer(text.clone(), distance, key, value)
            here = f"in a text of {length} with key {key} and value {value} at distance {distance},"
            assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
            assert got.shape == text.shape, f"{here} the text has shape {tuple(got.shape)}"
            *before, last = [divmod(token, FACT_VALUES + 1) for token in got.tolist()]
            assert last == (key, ASK), f"{here} the last token is not the question"
            distances = [length - 1 - place for place, token in enumerate(before) if token[0] == key]
            assert distances == [distance], f"{here} the key is told or asked at the distances {distances}"
            told = before[-distance][1]
            assert told == value, f"{here} the fact tells {told}"
            keys = {token[0] for token in before}
            assert keys <= set(range(FACT_KEYS)), f"{here} there are tokens with the keys {sorted(keys)}"
            others = [place for place in range(length) if text[place] // (FACT_VALUES + 1) != key]
            changed = sum(bool(got[place] != text[place]) for place in others)
            assert changed <= 2, f"{here} {changed} tokens about other keys have changed"


def stretched_base(answer):
    """The slowest pair takes scale times as long for a turn as before."""
    for base, d, scale in ((10_000.0, 64, 3.0), (500_000.0, 128, 16.0), (100.0, 6, 1.5), (10_000.0, 32, 1.0)):
        got = float(answer(base, d, scale))
        before, after = (abs(number) ** ((d - 2) / d) for number in (base, got))
        here = f"for base {base:g}, d = {d} and scale {scale:g}, {got!r}"
        assert got > 0, f"{here} is no base"
        slower = after / before
        assert abs(slower / scale - 1) < 1e-8, f"{here} makes a turn of the slowest pair {slower:.9f} times as long"


def left_alone(answer):
    """YaRN's own angles: without rounding, the pairs that keep their speed."""
    import torch

    from posenc.rotary import angles
    from posenc.stretching import yarn

    one = torch.tensor(1)
    for d, base, trained, fast in (
        (128, 10_000.0, 2048, 32.0),
        (96, 1e6, 32_768, 20.0),
        (32, 100.0, 512, 4.0),
        (8, 10_000.0, 440, 7.0),
        (8, 10_000.0, 439, 7.0),
    ):
        stretched = yarn(one, d, scale=16.0, trained_length=trained, fast=fast, truncate=False, base=base)
        kept = torch.isclose(stretched, angles(one, d, base=base), rtol=1e-12)
        got, stay = float(answer(d, base, trained, fast)), int(kept.sum())
        here = f"for d = {d}, base {base:g}, {trained} positions and fast = {fast:g}"
        assert got == stay, f"{here} YaRN leaves {stay} pairs alone, not {got:g}"
    every = float(answer(6, 2.0, 4096, 32.0))
    assert every == 3, (
        f"with base 2 and d = 6 each of 3 pairs makes 32 turns within 4096 positions, and it counts {every:g}"
    )
    got = float(answer(64, 10_000.0, 8, 32.0))
    assert got == 0, f"within 8 positions no pair makes 32 turns, and it counts {got:g}"


def part_of_reach(answer):
    """Some pair has not come round: to the distance it returns none passes the angles of training, then one does."""
    import math

    import torch

    from posenc.rotary import angles

    one = torch.tensor(1)
    cases = [(angles(one, 8, base=300.0), (1.0, 3.3), 20), (angles(one, 16, base=10_000.0), (1.0, 1.0), 48)]
    cases += [(angles(one, 6, base=50.0), (1.0, 1.7), 16), (angles(one, 8, base=300.0), (2.0, 5.0), 9)]
    cases += [(torch.tensor([0.3, 0.03], dtype=torch.float64), (3.0, 1.5), 16)]
    cases += [(torch.tensor([0.6, 0.05], dtype=torch.float64), (20.0, 1.1), 16)]
    for before, (first, last), trained in cases:
        after = before / torch.linspace(first, last, len(before), dtype=torch.float64)
        got = float(answer(after.clone(), before.clone(), trained))
        here = f"for {len(before)} pairs, {trained} positions, and pairs slowed by {first:g} to {last:g}"
        assert math.isfinite(got), f"{here} some pair has not come round, and it returned {got:g}"

        def lost(distance, after=after, before=before, trained=trained):
            seen = before * (trained - 1)
            return bool(((seen < 2 * math.pi) & (after * distance > seen)).any())

        assert not lost(got * (1 - 1e-7)), f"{here} an angle is new before distance {got:g}"
        assert lost(got * (1 + 1e-7)), f"{here} no angle is new beyond distance {got:g}"


def reach(answer):
    """And where every pair has come round, no distance is too far."""
    import math

    import torch

    part_of_reach(answer)
    fast = torch.tensor([3.0, 1.0], dtype=torch.float64)
    got = float(answer(fast.clone(), fast.clone(), 30))
    assert got == math.inf, f"where all pairs have come round no angle is new, and it returned {got:g}"


def part_of_read_config(answer):
    """The first of the two numbers: how many pairs have angles."""
    from posenc.chapters.longer_than_trained.published import CONFIGURATIONS

    names = {"Llama 3.1": 64, "Qwen2.5, YaRN": 64, "Gemma 3": 128, "DeepSeek V3": 32, "gpt-oss": 32}
    for name, pairs in names.items():
        got = answer(dict(CONFIGURATIONS[name]))[0]
        assert got == pairs, f"{name} has {pairs} pairs with angles, not {got}"
    got = answer(CONFIGURATIONS["gpt-oss"] | {"partial_rotary_factor": 0.5})[0]
    assert got == 16, f"gpt-oss with half of its dimensions turned would have 16 pairs, not {got}"


def read_config(answer):
    """The configurations of published models, by what their makers say of them."""
    from posenc.chapters.longer_than_trained.published import CONFIGURATIONS

    part_of_read_config(answer)
    lengths = {"Llama 3.1": 65_536, "Qwen2.5, YaRN": 131_072, "Gemma 3": 131_072}
    lengths |= {"DeepSeek V3": 163_840, "gpt-oss": 131_072}
    for name, length in lengths.items():
        _, got = answer(dict(CONFIGURATIONS[name]))
        assert got == length, f"{name} has a method for {length:,} positions, not {got:,}"
