"""Chapter 5's exercises: longer than trained."""

import math
from functools import partial

import torch

from posenc.lesson.exercises import Answer, difference, exercise, wrong
from posenc.rotary import angles
from posenc.tasks import ASK, FACT_KEYS, FACT_VALUES, fact_batch, fact_token

TURN = 2 * math.pi


@exercise(
    "A row is a query m, a column a key n. How far is the key from the query?",
    "Training with texts of T tokens has shown the distances 0 to T - 1, so T is the first new one.",
    """Numbers times a comparison keep those for which it is true:
>>> (torch.tensor([[0.2, 0.3, 0.5]]) * (torch.tensor([2, 1, 0]) > 0)).tolist()
[[0.20000000298023224, 0.30000001192092896, 0.0]]""",
    well_done="this is the weight that nothing in training has ever put right.",
)
def unseen_weight(answer: Answer) -> None:
    generator = torch.Generator().manual_seed(51)
    for length, trained in ((6, 4), (20, 7), (5, 9)):
        scores = torch.randn(length, length, generator=generator, dtype=torch.float64)
        hidden = torch.full_like(scores, -math.inf).triu(1)
        weights = (scores + hidden).softmax(dim=-1)
        got = answer.tensor(weights, trained, shape=(length,))
        places = torch.arange(length)
        distance = places[:, None] - places

        def share(chosen, dim=-1):
            return (weights * chosen).sum(dim=dim)

        same = partial(torch.allclose, got)
        if same(share(distance >= trained)):
            continue
        for chosen, dim, message in (
            (
                distance > trained,
                -1,
                "the first distance that training has not shown is the length itself: ≥, not >",
            ),
            (
                distance >= trained - 1,
                -1,
                "that counts one distance too many: training has shown 0 to trained - 1",
            ),
            (
                distance < trained,
                -1,
                "that is the weight on distances that training has shown; the question is the rest",
            ),
            (
                distance >= trained,
                0,
                "that is summed over the queries: a query's share is the sum over its row",
            ),
            (
                (places >= trained).expand(length, -1),
                -1,
                "that is the weight on late positions: where a key stands does not matter, how far back "
                "it is does",
            ),
            (-distance >= trained, -1, "the sign is wrong: a key n lies m - n before the query m"),
        ):
            if same(share(chosen, dim)):
                wrong(message)
        if same((weights * (distance >= trained)).mean(dim=-1)):
            wrong("that is a mean over all keys: the weights of a row add up to 1, so take their sum")
        wrong(
            f"row m should be the sum of its weights on the keys with m - n ≥ trained: for {length} "
            "tokens and trained = "
            f"{trained}, {difference(got, share(distance >= trained))}"
        )


@exercise(
    "The last token asks. Count back from it: distance 1 is the token just before it.",
    "All other tokens about this key have to go, or a nearer one, or an older one, answers instead.",
    """The token that asks for key 3, and the one that tells that its value is 5:
>>> from posenc.tasks import ASK, fact_token
>>> key = torch.tensor(3)
>>> fact_token(key, ASK).item(), fact_token(key, 5).item()
(51, 44)""",
    well_done="one fact, one question, and the distance between them is yours to choose.",
)
def place_needle(answer: Answer) -> None:
    generator = torch.Generator().manual_seed(52)
    every_key = ((30, 4, key, 9) for key in range(FACT_KEYS))
    for length, distance, key, value in ((40, 12, 3, 5), (64, 63, 0, 0), (30, 1, 15, 11), *every_key):
        text = fact_batch(generator, seeds=1, newest=True, batch=1, length=length)[0][0, 0]
        text[length // 2] = fact_token(torch.tensor(key), 7)  # there is always one that has to go
        got = answer.tensor(text, distance, key, value, shape=(length,), dtype=torch.long)
        keys, values = got // (FACT_VALUES + 1), got % (FACT_VALUES + 1)
        if ((keys < 0) | (keys >= FACT_KEYS)).any():
            wrong("the text holds a number that is no token: make tokens with fact_token(key, value)")
        if keys[-1] != key or values[-1] != ASK:
            wrong(f"the last token has to ask for key {key}: fact_token(key, ASK)")
        there = [place for place in range(length - 1) if keys[place] == key]
        told = {length - 1 - place: values[place].item() for place in there}
        if told == {distance: value}:
            if (got != text)[(text // (FACT_VALUES + 1) != key)].sum() > 2:
                wrong(
                    "tokens about other keys have changed: only the question, the fact and the key's others may"
                )
            continue
        if distance + 1 in told and told[distance + 1] == value and distance not in told:
            wrong(f"the fact stands {distance + 1} before the question, not {distance}: the last index is -1")
        if told.get(length - 1 - distance) == value and told.get(distance) != value:
            wrong(f"{distance} is counted from the start of the text: count back from the question")
        if distance not in told:
            wrong(f"no fact about the key stands {distance} before the question")
        if told[distance] == ASK:
            wrong("the token at the distance asks; it has to tell: fact_token(key, value)")
        if told[distance] != value:
            wrong(f"the fact tells value {told[distance]}, expected {value}")
        wrong(
            f"key {key} is told or asked {len(told)} times before the question: only the needle may be "
            "about it, and what "
            "else was gets another key"
        )


@exercise(
    "Only the base changes. Pair 0 has exponent 0, so it keeps its speed with any base.",
    "The last pair turns by base^(-(d-2)/d) a position. It is to turn by 1/scale of that.",
    """With d = 4, the last of two pairs has exponent -2/4. A base 9 times as large slows it by 3:
>>> base = 100.0
>>> round((9 * base) ** (-2 / 4) / base ** (-2 / 4), 3)
0.333""",
    well_done="the fastest pair keeps its speed, the slowest is slowed by exactly the scale.",
)
def stretched_base(answer: Answer) -> None:
    for base, head_dim, scale in ((10_000.0, 16, 4.0), (500.0, 4, 2.5)):
        got = answer.number(base, head_dim, scale)
        same = partial(math.isclose, got, rel_tol=1e-9)
        right = base * scale ** (head_dim / (head_dim - 2))
        if same(right):
            continue
        if math.isclose(got, right, rel_tol=1e-3):
            wrong(f"{got!r} is right to a few digits: don't round, and use Python floats")
        for exponent, message in (
            (
                1,
                "base·scale: the slowest pair is then slowed by less than the scale, since its exponent "
                "is below 1",
            ),
            (
                head_dim / (head_dim - 1),
                "the exponent d/(d - 1) belongs to a last exponent (d - 1)/d: pairs end at (d - 2)/d",
            ),
            (
                (head_dim - 2) / head_dim,
                "the exponent is upside down: you want base'^((d-2)/d) = scale·base^((d-2)/d)",
            ),
            (-head_dim / (head_dim - 2), "a smaller base makes the pairs faster: multiply, don't divide"),
            (0, "the base is unchanged: the angles of a longer text are then unseen ones"),
        ):
            if same(base * scale**exponent):
                wrong(message)
        slowest = (got / base) ** (-(head_dim - 2) / head_dim) if got > 0 else math.nan
        wrong(
            f"for base {base:g} and d = {head_dim}, the slowest pair now turns at {slowest:.3g} of its "
            "speed, not at "
            f"1/{scale:g} of it"
        )


@exercise(
    "How many radians has pair i turned after trained_length positions? And how many whole turns is that?",
    "A whole turn is 2π. The fast pairs come first, so the number of them says which they are.",
    "An example: within 4096 positions the five pairs of a head of 10, base 10,000, make 651.9, 103.3, "
    "16.4, 2.6 and 0.4 "
    "turns. With fast = 32, two of them stay as they are.",
    well_done="these pairs know every angle by heart, so YaRN does not touch them.",
)
def left_alone(answer: Answer) -> None:
    for head_dim, base, trained, fast in (
        (128, 10_000.0, 4096, 32.0),
        (64, 500_000.0, 8192, 32.0),
        (16, 1e4, 32, 1.0),
        (16, 1e4, 32, 5.0),
        (16, 1e4, 31, 5.0),
        (64, 10_000.0, 8, 32.0),
        (8, 16.0, 4096, 32.0),
    ):
        got = answer.number(head_dim, base, trained, fast)

        def number(positions: int) -> int:
            return int((angles(torch.tensor(positions), head_dim, base=base) / TURN > fast).sum())

        turns, right = angles(torch.tensor(trained), head_dim, base=base) / TURN, number(trained)
        if got == right:
            continue
        pairs = head_dim // 2
        if not 0 <= got <= pairs:
            wrong(
                f"{got:g} with d = {head_dim}, base {base:g}, {trained} positions and fast = {fast:g}: "
                "it is at least 0, and "
                f"at most the number of pairs, {pairs}"
            )
        for mistaken, message in (
            (
                number(trained - 1),
                f"that counts the turns within {trained - 1} positions, and trained is {trained}",
            ),
            (
                number(trained + 1),
                f"that counts the turns within {trained + 1} positions, and trained is {trained}",
            ),
            (int((turns * TURN > fast).sum()), "that counts radians as turns: a turn is 2π radians"),
            (
                pairs - right,
                "those are the pairs that turn less often: the fast ones stay, the slow ones are stretched",
            ),
            (
                right - 1,
                "that is the index of the last pair that stays; pairs count from 0, so there is one more",
            ),
            (
                right + 1,
                "that is one pair too many: the first that turns at most `fast` times is on the ramp",
            ),
            (2 * right, "those are dimensions: a pair has two of them"),
            (
                int((TURN / angles(torch.tensor(1), head_dim, base=base) > fast).sum()),
                "a long wavelength is a slow pair; and it is to be compared with trained_length / fast",
            ),
            (
                int((TURN / angles(torch.tensor(1), head_dim, base=base) < fast).sum()),
                "a wavelength of `fast` positions has come round trained_length / fast times by the "
                "end, not `fast` times",
            ),
        ):
            if got == mistaken:
                wrong(message)
        wrong(
            f"{got:g} of {pairs} pairs, expected those that turn more than {fast:g} times within "
            f"{trained} positions"
        )


def _speeds(*speeds: float) -> torch.Tensor:
    return torch.tensor(speeds, dtype=torch.float64)


@exercise(
    "One pair first. Training showed it the angles up to speed · (trained_length - 1).",
    "If that is a whole turn or more, it has met every angle, and nothing is new to it.",
    """A pair of 0.1 radians a position, trained on 32, has seen 3.1 radians. Slowed by 4 it reaches them at distance 124
and passes them at 125. Floating point may say less than 124, so allow for a little before you round down:
>>> 3.1 / (0.1 / 4), 0.3 / 0.1
(124.0, 2.9999999999999996)""",
    well_done="the number that a configuration gives away before anyone has run it.",
)
def first_unseen(answer: Answer) -> None:
    one = torch.tensor(1)
    plain = angles(one, 16)
    for speeds, trained_speeds, trained, name in (
        (plain, plain, 32, "with the angles as trained"),
        (plain / 7.9, plain, 32, "with all speeds divided by 7.9"),
        (angles(one, 16, base=10_000.0 * 7.9 ** (16 / 14)), plain, 32, "with NTK's larger base"),
        (angles(one, 16, base=4.0), angles(one, 16, base=4.0), 64, "where every pair has come round"),
        (plain, plain, 30, "with the angles as trained on 30 positions"),
        (_speeds(0.3, 0.03), _speeds(0.3, 0.05), 16, "where a pair has turned by 4.5 radians"),
        (_speeds(0.5, 0.04), _speeds(0.5, 0.05), 17, "where a pair has turned by 8 radians"),
    ):
        got = answer(speeds, trained_speeds, trained)
        if isinstance(got, torch.Tensor) and got.numel() == 1:
            got = got.item()
        if isinstance(got, bool) or not isinstance(got, (int, float)):
            wrong(
                f"it returned a {type(got).__name__}: return one number, or math.inf where no angle is ever new"
            )
        seen = trained_speeds * (trained - 1)

        def first(reach, turned, pick=torch.min, more=1e-9):
            there = ((reach / speeds + more).floor() + 1)[~turned]
            return pick(there).item() if len(there) else math.inf

        right = first(seen, seen >= TURN)
        if got == right:
            continue
        for value, message in (
            (
                first(seen, seen >= TURN, more=0),
                f"{name}, {got:g} instead of {right:g}: a quotient that should be whole came out a "
                "little less, so allow for "
                "that before you round down",
            ),
            (first(seen, seen >= math.pi), f"{name}: it has come round after 2π, not after π"),
            (first(seen, seen >= 3 * math.pi), f"{name}: it has come round after 2π already"),
            (
                first(seen, torch.zeros_like(seen, dtype=torch.bool)),
                f"{name}: the pairs that have come round in training know every angle; leave them out",
            ),
            (
                first(trained_speeds * trained, seen >= TURN),
                "training on T positions shows the distances 0 to T - 1, not T",
            ),
            (right - 1, "that is the last distance that is known; the first new one is the next"),
            (
                first(seen, seen >= TURN, torch.max),
                f"{name}: one pair with a new angle is enough; take the smallest of the distances",
            ),
            (
                first(seen, seen >= 1),
                "a pair has come round after 2π radians, not after 1",
            ),
            (
                float(trained),
                f"{name}: that is the trained length; how far the new speeds go before they pass the "
                "old angles?",
            ),
        ):
            if got == value:
                wrong(message)
        if right == math.inf:
            wrong(f"{name}, no angle is ever new: return math.inf")
        wrong(f"{name}: {got:g}, expected {right:g}")
