"""Chapter 5's exercises: longer than trained."""

import math
from functools import partial

import torch

from posenc.additive import frequencies
from posenc.attention import causal_bias
from posenc.lesson.exercises import Answer, difference, exercise, normal, shown, wrong
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
    for length, trained in ((6, 4), (20, 7), (5, 9)):
        weights = (normal(length, length) + causal_bias(length, length)).softmax(dim=-1)
        got = answer.tensor(weights, trained, shape=(length,))
        places = torch.arange(length)
        distance = places[:, None] - places

        def same(chosen, dim=-1):
            return torch.allclose(got, (weights * chosen).sum(dim=dim))

        if same(distance >= trained):
            continue
        if same(distance > trained):
            wrong("the first distance that training has not shown is the length itself: ≥, not >")
        if same(distance >= trained - 1):
            wrong("that counts one distance too many: training has shown 0 to trained - 1")
        if same(distance < trained):
            wrong("that is the weight on distances that training has shown; the question is the rest")
        if same(distance >= trained, dim=0):
            wrong("that is summed over the queries: a query's share is the sum over its row")
        if same(places >= trained):
            wrong("that is the weight on late positions: where a key stands does not matter, how far back it is does")
        if same(-distance >= trained):
            wrong("the sign is wrong: a key n lies m - n before the query m")
        right = (weights * (distance >= trained)).sum(dim=-1)
        if torch.allclose(got, right / length):
            wrong("that is a mean over all keys: the weights of a row add up to 1, so take their sum")
        wrong(
            f"row m should be the sum of its weights on the keys with m - n ≥ trained: for {length} tokens and trained = {trained}, {difference(got, right)}"
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
                wrong("tokens about other keys have changed: only the question, the fact and the key's others may")
            continue
        for off in (-1, 1):
            if told.get(distance + off) == value and distance not in told:
                wrong(
                    f"the fact stands {distance + off} before the question, not {distance}: the question itself is text[-1]"
                )
        if told.get(length - 1 - distance) == value and told.get(distance) != value:
            wrong(f"{distance} is counted from the start of the text: count back from the question")
        if distance not in told:
            wrong(f"no fact about the key stands {distance} before the question")
        if told[distance] == ASK:
            wrong("the token at the distance asks; it has to tell: fact_token(key, value)")
        if told[distance] != value:
            wrong(f"the fact tells value {told[distance]}, expected {value}")
        wrong(
            f"key {key} is told or asked {len(told)} times before the question: only the needle may be about it, and what else was gets another key"
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
        if same(base * scale):
            wrong("base·scale: the slowest pair is then slowed by less than the scale, since its exponent is below 1")
        if same(base * scale ** (head_dim / (head_dim - 1))):
            wrong("the exponent d/(d - 1) belongs to a last exponent (d - 1)/d: pairs end at (d - 2)/d")
        if same(base * scale ** ((head_dim - 2) / head_dim)):
            wrong("the exponent is upside down: you want base'^((d-2)/d) = scale·base^((d-2)/d)")
        if same(base**2 / right):
            wrong("a smaller base makes the pairs faster: multiply, don't divide")
        if same(base):
            wrong("the base is unchanged: the angles of a longer text are then unseen ones")
        slowest = (got / base) ** (-(head_dim - 2) / head_dim) if got > 0 else math.nan
        wrong(
            f"for base {base:g} and d = {head_dim}, the slowest pair now turns at {slowest:.3g} of its speed, not at 1/{scale:g} of it"
        )


@exercise(
    "How many radians has pair i turned after trained_length positions? And how many whole turns is that?",
    "A whole turn is 2π. The fast pairs come first, so the number of them says which they are.",
    "An example: within 4096 positions the five pairs of a head of 10, base 10,000, make 651.9, 103.3, 16.4, 2.6 and 0.4 turns. With fast = 32, two of them stay as they are.",
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
        got, speeds = answer.number(head_dim, base, trained, fast), frequencies(head_dim, base=base)

        def number(positions: float) -> int:
            return int((positions * speeds / TURN > fast).sum())

        pairs, right = head_dim // 2, number(trained)
        if got == right:
            continue
        if not 0 <= got <= pairs:
            wrong(
                f"{got:g} with d = {head_dim}, base {base:g}, {trained} positions and fast = {fast:g}: it is at least 0, and at most the number of pairs, {pairs}"
            )
        for other in (trained - 1, trained + 1):
            if got == number(other):
                wrong(f"that counts the turns within {other} positions, and trained is {trained}")
        if got == number(trained * TURN):
            wrong("that counts radians as turns: a turn is 2π radians")
        if got == pairs - right:
            wrong("those are the pairs that turn less often: the fast ones stay, the slow ones are stretched")
        if got == right - 1:
            wrong("that is the index of the last pair that stays; pairs count from 0, so there is one more")
        if got == right + 1:
            wrong("that is one pair too many: the first that turns at most `fast` times is on the ramp")
        if got == 2 * right:
            wrong("those are dimensions, two a pair, or pairs with the exponent i/d: pair i has 2i/d")
        if got == (TURN / speeds > fast).sum():
            wrong("a long wavelength is a slow pair; and it is to be compared with trained_length / fast")
        if got == (TURN / speeds < fast).sum():
            wrong(
                "a wavelength of `fast` positions has come round trained_length / fast times by the end, not `fast` times"
            )
        wrong(f"{got:g} of {pairs} pairs, expected those that turn more than {fast:g} times within {trained} positions")


@exercise(
    "One pair first. Training showed it the angles up to speed · (trained_length - 1).",
    "If that is a whole turn or more, it has met every angle, and it never limits the text.",
    """A pair of 0.1 radians a position, trained on 32, has seen 3.1 radians. Slowed by 4 it gets there at
>>> round(3.1 / (0.1 / 4), 6)
124.0""",
    well_done="the number that a configuration gives away before anyone has run it.",
)
def reach(answer: Answer) -> None:
    plain, fast, pair = frequencies(16), frequencies(16, base=4.0), partial(torch.tensor, dtype=torch.float64)
    for speeds, trained_speeds, trained, name in (
        (plain / 7.9, plain, 32, "with all speeds divided by 7.9"),
        (plain, plain, 32, "with the angles as trained"),
        (frequencies(16, base=10_000.0 * 8 ** (16 / 14)), plain, 32, "with NTK's larger base"),
        (fast, fast, 64, "where every pair has come round"),
        (plain, plain, 30, "with the angles as trained on 30 positions"),
        (pair([0.3, 0.03]), pair([0.3, 0.05]), 16, "where a pair has turned by 4.5 radians"),
        (pair([0.5, 0.04]), pair([0.5, 0.05]), 17, "where a pair has turned by 8 radians"),
        (pair([0.1, 0.02]), pair([0.3, 0.03]), 16, "where the slower pair is lost first"),
        (pair([0.4, 0.01]), pair([0.7, 0.03]), 16, "where a pair came round in training and is slowed now"),
    ):
        got = answer(speeds, trained_speeds, trained)
        if isinstance(got, torch.Tensor) and got.numel() == 1:
            got = got.item()
        if isinstance(got, bool) or not isinstance(got, (int, float)):
            wrong(f"it returned a {type(got).__name__}: return one number, or math.inf where no angle is ever new")
        got = min(got, 10**300) if isinstance(got, int) else got  # what no float can hold
        seen = trained_speeds * (trained - 1)

        def least(turned, reached=seen, pick=torch.min) -> float:
            there = (reached / speeds)[~turned]
            return pick(there).item() if len(there) else math.inf

        right, near = least(seen >= TURN), partial(math.isclose, got, rel_tol=1e-6)
        if near(right):
            continue
        if right < math.inf and near(math.floor(right) + 1):
            wrong(f"{name}: don't round: return the distance itself, a real number")
        if near(least(seen >= math.pi)):
            wrong(f"{name}: it has come round after 2π, not after π")
        if near(least(seen >= 3 * math.pi)):
            wrong(f"{name}: it has come round after 2π already")
        if near(least(speeds * (trained - 1) >= TURN)):
            wrong(f"{name}: whether a pair has come round is a matter of its trained speed")
        if near(least(seen < 0)):
            wrong(f"{name}: the pairs that have come round in training know every angle; leave them out")
        if near(least(seen >= TURN, trained_speeds * trained)):
            wrong(f"{name}: training on T positions shows the distances 0 to T - 1, not T")
        if near(least(seen >= TURN, pick=lambda distances: distances[0])):
            wrong(f"{name}: the first open pair need not be the first that is lost: look at all")
        if near(least(seen >= TURN, pick=torch.max)):
            wrong(f"{name}: one pair with a new angle is enough; take the smallest of the distances")
        if near(least(seen >= 1)):
            wrong(f"{name}: a pair has come round after 2π radians, not after 1")
        if near(trained - 1):
            wrong(
                f"{name}: that is what training showed; how far do the new speeds go before they pass the old angles?"
            )
        if right == math.inf:
            wrong(f"{name}, no angle is ever new: return math.inf")
        wrong(f"{name}: {got:g}, expected {right:g}")


@exercise(
    "head_dim where it stands, else hidden_size // num_attention_heads. DeepSeek keeps qk_rope_head_dim of a head for it.",
    "partial_rotary_factor says which part of d has angles, and a pair is two dimensions.",
    """With 3,072 / 24 = 128 dimensions of which a half has angles, there are
>>> int(3072 // 24 * 0.5) // 2
32""",
    well_done="four keys, and you know what the model was told about length.",
)
def read_config(answer: Answer) -> None:
    plain = {"hidden_size": 3072, "num_attention_heads": 24, "max_position_embeddings": 131_072}
    kept = {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64}

    def by(kind, factor, **more):
        return {"rope_scaling": {"rope_type": kind, "factor": factor, **more}}

    old, at_8 = {"original_max_position_embeddings": 4096}, {"original_max_position_embeddings": 8192}
    for config in (
        plain | by("llama3", 8.0, **at_8),
        plain | {"head_dim": 256} | by("linear", 8.0),
        plain | {"partial_rotary_factor": 0.25} | by("yarn", 32.0, **old),
        plain | kept | by("yarn", 40, **old) | {"max_position_embeddings": 163_840},
        plain | {"max_position_embeddings": 32_768} | by("yarn", 4.0, original_max_position_embeddings=32_768),
        plain | {"rope_scaling": {"type": "yarn", "factor": 2.0, **old}},
    ):
        got = answer(config)
        many = not isinstance(got, (tuple, list)) or any(math.prod(getattr(each, "shape", ())) != 1 for each in got)
        if many or len(got) != 2:
            wrong(f"it returned {shown(got)}: return two numbers, the pairs and the length")
        scaling, longest = config["rope_scaling"], config["max_position_embeddings"]
        divided = config["hidden_size"] // config["num_attention_heads"]
        size = config.get("qk_rope_head_dim") or config.get("head_dim") or divided
        part = config.get("partial_rotary_factor", 1.0)
        before, factor = scaling.get("original_max_position_embeddings"), scaling["factor"]
        pairs, length = int(size * part) // 2, round(before * factor) if before else longest
        if got[0] != pairs:
            if got[0] == int(size * part):
                wrong("those are dimensions: a pair has two of them")
            if got[0] == size // 2:
                wrong("partial_rotary_factor says that only a part of the head has angles")
            if got[0] in (divided // 2, int(divided * part) // 2):
                wrong("hidden_size / num_attention_heads is the head's size only where no key says otherwise")
            if got[0] == (128 + 64) // 2:
                wrong("of DeepSeek's 192 dimensions only qk_rope_head_dim have angles")
            wrong(f"{shown(got[0])} pairs, expected {pairs} for {shown(config)}")
        if got[1] != length:
            if got[1] == before:
                wrong("that is T₀, before stretching: times the factor")
            if got[1] == longest:
                wrong("max_position_embeddings is how long a text the makers allow; the method is made for s·T₀")
            if got[1] == longest * factor:
                wrong("the factor counts from T₀, not from max_position_embeddings")
            if got[1] == longest / factor:
                wrong("that is T₀: times the factor")
            wrong(
                f"{shown(got[1])} positions, expected {length} for a factor of {factor:g} and {before or longest / factor:,.0f}"
            )
