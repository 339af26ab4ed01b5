"""Chapter 5's planted mistakes, and right answers of another kind."""

import torch
from slips import mistakes, slip

LENGTH = 'round(before * scaling["factor"]) if before else config["max_position_embeddings"]'


PLANTED = mistakes(
    unseen_weight={
        "≥, not >": ">= → >",
        "one distance too many": ">= trained → >= trained - 1",
        "distances that training has shown; the question is the rest": ">= → <",
        "summed over the queries": "dim=-1 → dim=0",
        "late positions": "places[:, None] - places → places",
        "the sign is wrong": "places[:, None] - places → places - places[:, None]",
        "a mean over all keys": "sum → mean",
        "for 6 tokens and trained = 4, every number is 2 times": "2 * result",
    },
    place_needle={
        "holds a number that is no token": "result + 1000",
        "the last token has to ask": "fact_token(key, ASK), → fact_token(key, value),",
        "tokens about other keys have changed": "text // (FACT_VALUES + 1) == key → text >= 0",
        "stands 13 before the question, not 12": "-1 - distance → -2 - distance",
        "stands 11 before the question, not 12": "-1 - distance → -distance",
        "counted from the start": "-1 - distance → distance",
        "no fact about the key stands 12 before": "fact_token(key, value) → fact_token((key + 1) % FACT_KEYS, value)",
        "the token at the distance asks": "fact_token(key, value) → fact_token(key, ASK)",
        "the fact tells value 6, expected 5": "fact_token(key, value) → fact_token(key, (value + 1) % FACT_VALUES)",
        "key 3 is told or asked 5 times before the question": "text[others] = → _ =",
        "key 1 is told or asked 2 times": "(key + 1) % FACT_KEYS → torch.tensor(1)",
        "before the question: only the needle may be about it": (
            "(key + 1) % FACT_KEYS, text[others] % (FACT_VALUES + 1) → text[others] % (FACT_VALUES + 1), 1 + key"
        ),
    },
    stretched_base={
        "base·scale: the slowest pair is then slowed by less": "** (d / (d - 2)) →",
        "the exponent d/(d - 1)": "d - 2 → d - 1",
        "the exponent is upside down": "d / (d - 2) → (d - 2) / d",
        "a smaller base makes the pairs faster": "base * → base /",
        "the base is unchanged": "base",
        "for base 10000 and d = 16, the slowest pair now turns at 0.0884": "d / (d - 2) → 2",
        "48761.0 is right to a few digits": "round(result)",
    },
    left_alone={
        "radians as turns": "/ (2 * math.pi) →",
        "the pairs that turn less often": "> fast → <= fast",
        "the index of the last pair": "result - 1",
        "one pair too many": "result + 1",
        "those are dimensions": "2 * result",
        "with the exponent i/d": (
            "sum(trained_length / (2 * math.pi * base ** (i / d)) > fast for i in range(d // 2))"
        ),
        "a long wavelength is a slow pair": "turns > fast → trained_length / turns > fast",
        "has come round trained_length / fast times": "turns > fast → trained_length / turns < fast",
        "the turns within 31 positions": "worked(d, base, trained_length - 1, fast)",
        "the turns within 32 positions": "worked(d, base, trained_length + 1, fast)",
        "-11 with d = 64, base 10000, 8 positions and fast = 32: it is at least 0": (
            "min(d // 2, math.ceil(d / 2 * math.log(trained_length / (2 * math.pi * fast)) / math.log(base)))"
        ),
        "5 with d = 8, base 16, 4096 positions and fast = 32: it is at least 0": (
            "sum(trained_length / (2 * math.pi * base ** (2 * i / d)) > fast for i in range(d))"
        ),
        "3 of 64 pairs, expected those": "3",
    },
    reach={
        "it returned a str": "'32'",
        "don't round": "math.floor(result) + 1 if result < math.inf else result",
        "come round in training know every angle": "seen < 2 * math.pi → seen > 0",
        "distances 0 to T - 1, not T": "(trained_length - 1) → trained_length",
        "one pair with a new angle": "min() → max()",
        "after 2π radians, not after 1": "2 * math.pi → 1",
        "after 2π, not after π": "2 * math.pi → math.pi",
        "it has come round after 2π already": "2 * math.pi → 9",
        "a matter of its trained speed": "seen < → speeds * (trained_length - 1) <",
        "the first open pair need not be the first": ".min() → [0]",
        "that is what training showed": "trained_length - 1.0",
        "return math.inf": "min(result, 10_000)",
        "5, expected 244.9": "5",
    },
    read_config={
        "it returned 64: return two numbers": "64",
        "those are dimensions": "// 2, →,",
        "only a part of the head has angles": 'config.get("partial_rotary_factor", 1) → 1',
        "only where no key says otherwise": 'config.get("head_dim", config → (config',
        "of DeepSeek's 192 dimensions": 'config.get("qk_rope_head_dim", size) → (size + 64 * ("qk_rope_head_dim" in config))',
        "3 pairs, expected 64": "(3, 32_768)",
        "before stretching: times the factor": 'round(before * scaling["factor"]) → before',
        "how long a text the makers allow": f'{LENGTH} → config["max_position_embeddings"]',
        "the factor counts from T₀": f'{LENGTH} → config["max_position_embeddings"] * scaling["factor"]',
        "that is T₀: times the factor": 'before else config["max_position_embeddings"] → before else config["max_position_embeddings"] / scaling["factor"]',
        "7 positions, expected 65536": "(result[0], 7)",
    },
)

RIGHT = [
    ("reach", lambda *inputs: torch.tensor(slip("reach", "result")(*inputs))),
    ("read_config", slip("read_config", "[*result]")),
]
