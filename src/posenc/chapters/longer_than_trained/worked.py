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


def stretched_base(base, d, scale):
    return base * scale ** (d / (d - 2))


def left_alone(d, base, trained_length, fast):
    turns = angles(torch.tensor(trained_length), d, base=base) / (2 * math.pi)
    return int((turns > fast).sum())


def first_unseen(speeds, trained_speeds, trained_length):
    seen = trained_speeds * (trained_length - 1)
    reached = (seen / speeds + 1e-9).floor() + 1  # the first distance beyond
    return reached.where(seen < 2 * math.pi, torch.tensor(math.inf).double()).min().item()
