"""Chapter 3's worked solutions, with the names that the notebook has above each exercise."""

import math

import torch

from posenc.terms import four_terms


def parts(x, e, w_query, w_key, b_query, b_key):
    queries = x @ w_query.T + b_query, e @ w_query.T
    keys = x @ w_key.T + b_key, e @ w_key.T
    return torch.stack([q @ k.T for q in queries for k in keys]) / math.sqrt(len(w_query))


def joint(w_query, w_key):
    return w_query.T @ w_key


def seen(terms):
    centred = terms - terms.mean(dim=-1, keepdim=True)
    energy = centred.square().sum(dim=(-1, -2))
    return energy / energy.sum()


def realise(vectors, wanted):
    back = torch.linalg.pinv(vectors)
    return back @ wanted @ back.T


def tied(w):
    return torch.cat([w, w], dim=-1)


def untied(x, e, w_query, w_key, u_query, u_key):
    content = four_terms(x, e, w_query, w_key).content_content
    position = four_terms(x, e, u_query, u_key).position_position
    return (content + position) / math.sqrt(2)
