"""Two exact accounts of GPT-2's first scores: by the vectors that they are made of, and by what they depend on."""

import torch
from torch import Tensor, nn

from posenc.chapters.models_you_use.checkpoints import gpt2_terms
from posenc.probe import energies, orthogonal_texts, score_table, tabulate
from posenc.terms import layer_norm_parts

TERMS = ("content_content", "content_position", "position_content", "position_position")
CONSTANTS = ("constant_content", "constant_position")


@torch.no_grad()
def products(model: nn.Module, tokens: Tensor) -> dict[str, Tensor]:
    """The scores of GPT-2's first layer as a sum of six products: what all queries share is set apart.

    Args:
        model: a GPT-2 of transformers, with a head or without.
        tokens: the p different ones of p² texts, shape (p,); p is a prime.

    Returns:
        TERMS and CONSTANTS, each (p², heads, p, p); a query's means are taken over those in the second half of a
        text. Keys have no bias: it would be the same for all keys of a query.
    """
    model = getattr(model, "transformer", model)
    first, texts = model.h[0], tokens[orthogonal_texts(len(tokens))]
    x = model.wte(texts)
    e = model.wpe.weight[: len(tokens)].expand_as(x)
    content, position = layer_norm_parts([x, e], first.ln_1)
    size = first.attn.head_dim
    w_query, w_key = first.attn.c_attn.weight.T.unflatten(0, (3, -1, size))[:2]  # (heads, d_head, d)
    bias = first.attn.c_attn.bias.unflatten(0, (3, -1, size))[0]
    shared = [part[:, len(tokens) // 2 :].mean((0, 1)) for part in (content, position)]
    constant = w_query @ (sum(shared) + first.ln_1.bias) + bias  # (heads, d_head)
    queries = [(part - mean)[:, None] @ w_query.mT for part, mean in zip((content, position), shared)]
    queries.append(constant[None, :, None].expand_as(queries[0]))
    keys = [part[:, None] @ w_key.mT for part in (content, position)]
    return {
        name: query @ key.mT / size**0.5
        for name, (query, key) in zip(TERMS + CONSTANTS, ((query, key) for query in queries for key in keys))
    }


def two_accounts(model: nn.Module, tokens: Tensor) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Shares by the split of GPT-2's vectors and by the table of its scores.

    Args:
        model, tokens: as in `products`.

    Returns:
        "split" and "table" → the shares of TERMS; and the same → those of TERMS and CONSTANTS. Each list sums to 1,
        except that the table's lacks what no sum of a content and a position says.
    """
    drawn = orthogonal_texts(len(tokens))

    def shares(terms) -> list[float]:
        sizes = [sum(energies(tabulate(term, drawn)).values()) for term in terms]
        return [size / sum(sizes) for size in sizes]

    parts = energies(score_table(model, tokens)[0])
    total = sum(parts.values())
    asked = [("V", "UV"), ("UN", "UMN"), ("VM", "VN", "VMN"), ("N", "MN")]
    whole = {
        "split": shares(gpt2_terms(model, tokens[drawn])),
        "table": [sum(parts[name] for name in names) / total for names in asked],
    }
    apart = {
        "split": shares(products(model, tokens).values()),
        "table": [parts[name] / total for name in ("UV", "UN", "VM", "MN", "V", "N")],
    }
    return whole, apart
