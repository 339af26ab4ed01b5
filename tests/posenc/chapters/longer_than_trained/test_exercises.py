"""Chapter 5's checks: every mistake is planted and must be called by its name."""

import math
from functools import partial

import torch

from posenc.rotary import angles
from posenc.tasks import ASK, FACT_KEYS, FACT_VALUES, fact_token

TURN = 2 * math.pi

# --- 5.1 unseen_weight


def right_unseen(weights, trained, *, more=0, sign=1, dim=-1, reduce=torch.sum, seen=False):
    places = torch.arange(len(weights))
    chosen = sign * (places[:, None] - places) >= trained + more
    return reduce(weights * (chosen ^ seen), dim=dim)


def late_positions(weights, trained):
    return (weights * (torch.arange(len(weights)) >= trained)).sum(-1)


# --- 5.2 place_needle


def right_needle(
    text,
    distance,
    key,
    value,
    *,
    off=0,
    from_start=False,
    asks=False,
    keep=False,
    question=True,
    wrong_value=0,
    spoil=0,
    another=lambda key: (key + 1) % FACT_KEYS,
    exchanged=False,
):
    key = torch.tensor(key)
    text = text.clone()
    if not keep:
        there = text // (FACT_VALUES + 1) == key
        new = another(key), text[there] % (FACT_VALUES + 1)
        text[there] = fact_token(*(reversed(new) if exchanged else new))
    place = distance if from_start else len(text) - 1 - distance - off
    if place >= 0:
        text[place] = fact_token(key, ASK if asks else (value + wrong_value) % FACT_VALUES)
    text[-1] = fact_token(key, ASK) if question else fact_token(key, value)
    if spoil:
        others = [p for p in range(len(text) - 1) if text[p] // (FACT_VALUES + 1) != key][:spoil]
        text[others] = fact_token((key + 2) % FACT_KEYS, 1)
    return text


def needle_with(**options):
    return partial(right_needle, **options)


def no_tokens(text, distance, key, value):
    return right_needle(text, distance, key, value) + 1000


def forgets_the_fact(text, distance, key, value):
    text = right_needle(text, distance, key, value)
    text[-1 - distance] = fact_token(torch.tensor((key + 1) % FACT_KEYS), value)
    return text


# --- 5.5 stretched_base


def power(exponent):
    return lambda base, d, scale: base * scale ** exponent(d)


# --- 5.6 left_alone


def right_alone(d, base, trained, fast, *, turn=TURN, more=0, pairs=1, slow=False):
    turns = trained * base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d) / turn
    return pairs * int(((turns > fast) ^ slow).sum()) + more


def by_wavelength(d, base, trained, fast, *, longer=True):
    wavelengths = TURN / angles(torch.tensor(1), d, base=base)
    return int(((wavelengths > fast) if longer else (wavelengths < fast)).sum())


def by_logarithm(d, base, trained, fast):
    return min(d // 2, math.ceil(d / 2 * math.log(trained / (TURN * fast)) / math.log(base)))


def every_dimension(d, base, trained, fast):
    return sum(trained / (TURN * base ** (2 * i / d)) > fast for i in range(d))


# --- 5.3 reach


def right_reach(speeds, before, trained, *, known=1, turn=TURN, pick=torch.min, by=None):
    seen = before * (trained - known)
    still_open = (seen if by is None else by(speeds, trained)) < turn
    return pick((seen / speeds)[still_open]).item() if still_open.any() else math.inf


def rounded(*a):
    found = right_reach(*a)
    return found if found == math.inf else math.floor(found) + 1


# --- 5.4 read_config


def right_config(config, *, size=None, part=True, dims=False, length=None):
    own = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    own = config.get("qk_rope_head_dim", own) if size is None else size(config)
    own = own * config.get("partial_rotary_factor", 1) if part else own
    scaling, longest = config["rope_scaling"], config["max_position_embeddings"]
    before, factor = scaling.get("original_max_position_embeddings"), scaling["factor"]
    made_for = before * factor if before else longest
    return int(own) // (1 if dims else 2), length(before or longest / factor, longest, factor) if length else int(
        made_for
    )


def divided(config):
    return config["hidden_size"] // config["num_attention_heads"]


PLANTED = [
    ("unseen_weight", partial(right_unseen, more=1), "≥, not >"),
    ("unseen_weight", partial(right_unseen, more=-1), "one distance too many"),
    ("unseen_weight", partial(right_unseen, seen=True), "distances that training has shown; the question is the rest"),
    ("unseen_weight", partial(right_unseen, dim=0), "summed over the queries"),
    ("unseen_weight", late_positions, "late positions"),
    ("unseen_weight", partial(right_unseen, sign=-1), "the sign is wrong"),
    ("unseen_weight", partial(right_unseen, reduce=torch.mean), "a mean over all keys"),
    ("unseen_weight", lambda w, t: 2 * right_unseen(w, t), "for 6 tokens and trained = 4, every number is 2 times"),
    ("place_needle", no_tokens, "holds a number that is no token"),
    ("place_needle", needle_with(question=False), "the last token has to ask"),
    ("place_needle", needle_with(spoil=5), "tokens about other keys have changed"),
    ("place_needle", needle_with(off=1), "stands 13 before the question, not 12"),
    ("place_needle", needle_with(off=-1), "stands 11 before the question, not 12"),
    ("place_needle", needle_with(from_start=True), "counted from the start"),
    ("place_needle", forgets_the_fact, "no fact about the key stands 12 before"),
    ("place_needle", needle_with(asks=True), "the token at the distance asks"),
    ("place_needle", needle_with(wrong_value=1), "the fact tells value 6, expected 5"),
    ("place_needle", needle_with(keep=True), "key 3 is told or asked 5 times before the question"),
    ("place_needle", needle_with(another=lambda key: torch.tensor(1)), "key 1 is told or asked 2 times"),
    ("place_needle", needle_with(exchanged=True), "before the question: only the needle may be about it"),
    ("stretched_base", power(lambda d: 1), "base·scale: the slowest pair is then slowed by less"),
    ("stretched_base", power(lambda d: d / (d - 1)), "the exponent d/(d - 1)"),
    ("stretched_base", power(lambda d: (d - 2) / d), "the exponent is upside down"),
    ("stretched_base", power(lambda d: -d / (d - 2)), "a smaller base makes the pairs faster"),
    ("stretched_base", power(lambda d: 0), "the base is unchanged"),
    ("stretched_base", power(lambda d: 2), "for base 10000 and d = 16, the slowest pair now turns at 0.0884"),
    ("stretched_base", lambda *a: round(power(lambda d: d / (d - 2))(*a)), "48761.0 is right to a few digits"),
    ("left_alone", partial(right_alone, turn=1), "radians as turns"),
    ("left_alone", partial(right_alone, slow=True), "the pairs that turn less often"),
    ("left_alone", partial(right_alone, more=-1), "the index of the last pair"),
    ("left_alone", partial(right_alone, more=1), "one pair too many"),
    ("left_alone", partial(right_alone, pairs=2), "those are dimensions"),
    ("left_alone", by_wavelength, "a long wavelength is a slow pair"),
    ("left_alone", partial(by_wavelength, longer=False), "has come round trained_length / fast times"),
    ("left_alone", lambda d, b, t, f: right_alone(d, b, t - 1, f), "the turns within 31 positions"),
    ("left_alone", lambda d, b, t, f: right_alone(d, b, t + 1, f), "the turns within 32 positions"),
    ("left_alone", by_logarithm, "-11 with d = 64, base 10000, 8 positions and fast = 32: it is at least 0"),
    ("left_alone", every_dimension, "5 with d = 8, base 16, 4096 positions and fast = 32: it is at least 0"),
    ("left_alone", lambda *a: 3, "3 of 64 pairs, expected those"),
    ("reach", lambda *a: "32", "it returned a str"),
    ("reach", rounded, "don't round"),
    ("reach", partial(right_reach, by=lambda speeds, trained: 0 * speeds), "come round in training know every angle"),
    ("reach", partial(right_reach, known=0), "distances 0 to T - 1, not T"),
    ("reach", partial(right_reach, pick=torch.max), "one pair with a new angle"),
    ("reach", partial(right_reach, turn=1.0), "after 2π radians, not after 1"),
    ("reach", partial(right_reach, turn=math.pi), "after 2π, not after π"),
    ("reach", partial(right_reach, turn=9.0), "it has come round after 2π already"),
    ("reach", partial(right_reach, by=lambda s, t: s * (t - 1)), "a matter of its trained speed"),
    ("reach", partial(right_reach, pick=lambda x: x[0]), "the first open pair need not be the first"),
    ("reach", lambda s, b, t: t - 1.0, "that is what training showed"),
    ("reach", lambda s, b, t: min(right_reach(s, b, t), 10_000), "return math.inf"),
    ("reach", lambda s, b, t: 5, "5, expected 244.9"),
    ("read_config", lambda config: 64, "it returned 64: return two numbers"),
    ("read_config", partial(right_config, dims=True), "those are dimensions"),
    ("read_config", partial(right_config, part=False), "only a part of the head has angles"),
    (
        "read_config",
        partial(right_config, size=lambda c: c.get("qk_rope_head_dim", divided(c))),
        "only where no key says otherwise",
    ),
    (
        "read_config",
        partial(right_config, size=lambda c: c.get("head_dim", divided(c)) + (64 if "qk_rope_head_dim" in c else 0)),
        "of DeepSeek's 192 dimensions",
    ),
    ("read_config", lambda config: (3, 32_768), "3 pairs, expected 64"),
    (
        "read_config",
        partial(right_config, length=lambda before, longest, factor: before),
        "before stretching: times the factor",
    ),
    (
        "read_config",
        partial(right_config, length=lambda before, longest, factor: longest),
        "how long a text the makers allow",
    ),
    (
        "read_config",
        partial(right_config, length=lambda before, longest, factor: longest * factor),
        "the factor counts from T₀",
    ),
    (
        "read_config",
        lambda c: right_config(
            c,
            length=lambda before, longest, factor: (
                before * (factor if "original_max_position_embeddings" in c["rope_scaling"] else 1)
            ),
        ),
        "that is T₀: times the factor",
    ),
    ("read_config", partial(right_config, length=lambda *a: 7), "7 positions, expected 65536"),
]

RIGHT = [
    ("unseen_weight", right_unseen),
    ("place_needle", right_needle),
    ("stretched_base", power(lambda d: d / (d - 2))),
    ("left_alone", right_alone),
    ("reach", right_reach),
    ("reach", lambda *a: torch.tensor(right_reach(*a))),
    ("read_config", right_config),
    ("read_config", lambda config: [*right_config(config)]),
]
