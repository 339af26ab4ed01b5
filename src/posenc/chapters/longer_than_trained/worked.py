"""Chapter 5's worked solutions, with the names that the notebook has above each exercise."""

import math

import torch

from posenc.rotary import angles
from posenc.tasks import ASK, FACT_KEYS, FACT_VALUES, fact_token


def unseen_weight(weights, trained):
    places = torch.arange(len(weights))
    return (weights * (places[:, None] - places >= trained)).sum(dim=-1)


def place_needle(text, distance, key, value):
    text, key = text.clone(), torch.tensor(key)
    others = text // (FACT_VALUES + 1) == key
    text[others] = fact_token((key + 1) % FACT_KEYS, text[others] % (FACT_VALUES + 1))
    text[-1], text[-1 - distance] = fact_token(key, ASK), fact_token(key, value)
    return text


def reach(speeds, trained_speeds, trained_length):
    seen = trained_speeds * (trained_length - 1)
    open_pairs = seen < 2 * math.pi
    return (seen / speeds)[open_pairs].min().item() if open_pairs.any() else math.inf


def read_config(config):
    size = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    size = config.get("qk_rope_head_dim", size) * config.get("partial_rotary_factor", 1)
    scaling = config["rope_scaling"]
    before = scaling.get("original_max_position_embeddings")
    return int(size) // 2, round(before * scaling["factor"]) if before else config["max_position_embeddings"]


def stretched_base(base, d, scale):
    return base * scale ** (d / (d - 2))


def left_alone(d, base, trained_length, fast):
    turns = angles(torch.tensor(trained_length), d, base=base) / (2 * math.pi)
    return int((turns > fast).sum())
