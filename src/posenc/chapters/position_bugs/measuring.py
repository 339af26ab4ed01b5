"""What chapter 8 measures of a port: its text, its loss at each place, and what a cache changes."""

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.chapters.position_bugs.port import Cache, Port
from posenc.tasks import CHARACTERS, character_text


def held_out_passages(count: int = 256, length: int = 129) -> Tensor:
    """Passages spread over the text on which nothing trains, (count, length)."""
    text = character_text(held_out=True)
    return text[torch.linspace(0, len(text) - length, count).long()[:, None] + torch.arange(length)]


def written(port: Port, prompt: Tensor, *, length: int = 200, seed: int = 0) -> str:
    """The prompt, (1, T), and what the port draws after it, one character at a time with its cache."""
    generator = torch.Generator().manual_seed(seed)
    logits, cache = port(prompt)
    for _ in range(length):
        chances = (logits[0, -1] / 0.4).softmax(-1)  # likely characters get likelier
        token = torch.multinomial(chances, 1, generator=generator)[None]
        prompt = torch.cat([prompt, token], dim=1)
        logits, cache = port(token, cache=cache)
    return "".join(CHARACTERS[code] for code in prompt[0])


def loss_by_place(port: Port, passages: Tensor) -> Tensor:
    """Nats a character at each place but the last, (T - 1,): the mean of passages, (N, T)."""
    logits, _ = port(passages[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), passages[:, 1:], reduction="none").mean(dim=0)


def decoded_loss(port: Port, passages: Tensor, *, start: int = 96) -> Tensor:
    """Nats of each character that is decoded, one by one, after a prompt of `start` characters."""
    logits, cache = port(passages[:, :start])
    found = []
    for place in range(start, passages.shape[1] - 1):
        logits, cache = port(passages[:, place : place + 1], cache=cache)
        found.append(F.cross_entropy(logits[:, 0], passages[:, place + 1]))
    return torch.stack(found)


def after_prompt(port: Port, passages: Tensor, length: int) -> Tensor:
    """Log-probabilities of the next character after a prompt of `length` and one decoded character.

    Passages (N, T) give both → (N, characters).
    """
    _, cache = port(passages[:, :length])
    return port(passages[:, length : length + 1], cache=cache)[0][:, 0].log_softmax(-1)


def apart(logits: Tensor, others: Tensor) -> Tensor:
    """The largest difference of a log-probability, in nats."""
    return (logits.log_softmax(-1) - others.log_softmax(-1)).abs().max()


def with_projections(model: nn.Module, change: Callable[[Tensor], Tensor]) -> nn.Module:
    """A copy of a Transformer; `change` gives it other rows of weights, and biases, for queries and keys."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for block in other.blocks:
            for part in (block.attention.query, block.attention.key):
                part.weight.copy_(change(part.weight))
                part.bias.copy_(change(part.bias))
    return other


def second_text_costs(port: Port, passages: Tensor, *, masked: bool, reset: bool) -> Tensor:
    """How much more the second of two packed texts of 64 costs than it costs alone, in nats a character.

    Args:
        passages: (N, T); a row's first text is its own, its second one is another's.
        masked: whether the texts are hidden from each other.
        reset: whether the second one starts again at position 0.
    """
    first, second = passages[:, :64], passages.roll(1, dims=0)[:, :65]
    documents = (torch.arange(128) // 64).expand(len(first), -1)
    packed = port.packed(torch.cat([first, second[:, :-1]], dim=1), documents, masked=masked, reset=reset)
    together, alone = (
        F.cross_entropy(logits.transpose(1, 2), second[:, 1:]) for logits in (packed[:, 64:], port(second[:, :-1])[0])
    )
    return together - alone


def streamed_loss(port: Port, passages: Tensor, shrink: Callable[[Cache, int], Cache], *, window: int = 64) -> float:
    """Nats a character of passages that are decoded with a cache of this many tokens, from 2 · window on.

    Args:
        passages: (N, T), T larger than 2 · window.
        shrink: (cache, n) → a cache with n tokens fewer.
    """
    _, cache = port(passages[:, :window])
    found = []
    for place in range(window, passages.shape[1] - 1):
        logits, cache = port(passages[:, place : place + 1], cache=cache)
        cache = shrink(cache, len(cache) - window)
        if place >= 2 * window:
            found.append(F.cross_entropy(logits[:, 0], passages[:, place + 1]).item())
    return sum(found) / len(found)
