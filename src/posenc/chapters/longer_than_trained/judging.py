"""A card for an encoding of your own: two exact rows and three tasks, beside nine encodings that are known.

An encoding is a function without arguments that returns the hooks of `posenc.models.Transformer`, as a dictionary:
encode, rotate, bias, any of them. It is called once for every model, so a hook with parameters starts afresh.

A card tells what models of one layer, width 32 and two heads learn in a few hundred steps. It does not tell what
deeper or longer trained ones would.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.additive import Learned, binary, sinusoidal
from posenc.biases import T5, Kerple, alibi
from posenc.models import Ensemble, Transformer, train
from posenc.rotary import angles, rotate
from posenc.tasks import UNASKED, answer_loss, answer_share

LENGTH, VOCABULARY, CLASSES = 24, 8, 10
Encoding = Callable[[], Mapping[str, Callable]]

# What stands in a row of the card, in its order. The first two are changes of an output, 0 where nothing changes;
# the others are shares of right answers.
ROWS = (
    "prefix reordered",
    "moved by 100",
    "three back ×1",
    "three back ×2",
    "three back ×8",
    "reverse ×1",
    "since last 0 ×1",
    "since last 0 ×8",
)


def three_back(generator: torch.Generator, *, seeds: int, batch: int = 16, length: int = LENGTH):
    """Random tokens, and at each place the one three places before: two tensors (seeds, batch, length)."""
    tokens = torch.randint(0, VOCABULARY, (seeds, batch, length), generator=generator)
    return tokens, F.pad(tokens[..., :-3], (3, 0), value=UNASKED)


def reverse(generator: torch.Generator, *, seeds: int, batch: int = 16, length: int = LENGTH):
    """A half of random tokens, and a half of marks at which the first is to be said backwards."""
    first = torch.randint(1, VOCABULARY, (seeds, batch, length // 2), generator=generator)
    tokens = torch.cat([first, torch.zeros_like(first)], dim=-1)
    return tokens, torch.cat([torch.full_like(first, UNASKED), first.flip(-1)], dim=-1)


def since_last_zero(generator: torch.Generator, *, seeds: int, batch: int = 16, length: int = LENGTH):
    """Random tokens, and at each place how many places ago the last 0 stood, 9 for more."""
    tokens = torch.randint(0, VOCABULARY, (seeds, batch, length), generator=generator)
    places = torch.arange(length)
    last = torch.where(tokens == 0, places, -1).cummax(-1).values
    return tokens, torch.where(last < 0, UNASKED, (places - last).clamp(max=CLASSES - 1))


TASKS = {
    "three back": (three_back, (1, 2, 8)),
    "reverse": (reverse, (1,)),
    "since last 0": (since_last_zero, (1, 8)),
}


def judge(
    encoding: Encoding, *, steps: int = 200, learning_rate: float = 1e-2, seeds: Iterable[int] = range(3)
) -> dict[str, float]:
    """The row of the card that belongs to an encoding, from every name in `ROWS` to its number.

    Args:
        encoding: returns the hooks.
        steps: of each of the three trainings.
        learning_rate: the highest one.
        seeds: of the models, whose mean is taken; the first also draws the data.
    """
    seeds = list(seeds)
    row = dict(zip(ROWS, _exact(encoding, seeds[0])))
    for name, (batch, lengths) in TASKS.items():
        ensemble = Ensemble(partial(_model, encoding), seeds)
        draw = partial(batch, torch.Generator().manual_seed(seeds[0]), seeds=len(seeds))
        train(ensemble, lambda step: draw(), answer_loss, steps=steps, learning_rate=learning_rate)
        for times in lengths:
            row[f"{name} ×{times}"] = _share(ensemble, batch, times * LENGTH)
    return row


def _model(encoding: Encoding) -> Transformer:
    return Transformer(VOCABULARY, CLASSES, causal=True, **encoding())


@torch.no_grad()
def _share(ensemble: Ensemble, batch: Callable, length: int) -> float:
    """Share of right answers in the last quarter of texts of this length; 0 where the encoding ends before."""
    generator = torch.Generator().manual_seed(2**20)
    tokens, targets = batch(generator, seeds=len(ensemble.seeds), batch=32, length=length)
    try:
        outputs = ensemble(tokens)
    except (ValueError, IndexError):  # a table or a number of digits that does not reach so far
        return 0.0
    last = length // 4
    return answer_share(outputs[..., -last:, :], targets[..., -last:]).double().mean().item()


@torch.no_grad()
def _exact(encoding: Encoding, seed: int) -> tuple[float, float]:
    """How much an untrained model's last output changes: with its prefix reordered, and with its text moved by 100."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _model(encoding).double()
        for value in model.parameters():
            value.add_(0.1 * torch.randn_like(value))  # a bias that starts at 0 would pass for none
        tokens = torch.randint(0, VOCABULARY, (8, 12))
    places = torch.arange(12)
    swapped = tokens[:, [*range(10, -1, -1), 11]]
    before = model(tokens, places)[:, -1]
    changes = [(model(swapped, places)[:, -1] - before).abs().max().item()]
    try:
        changes.append((model(tokens, places + 100)[:, -1] - before).abs().max().item())
    except (ValueError, IndexError):
        changes.append(float("inf"))
    return changes[0], changes[1]


# ------------------------------------------------------------------ nine that are known


class _Added(nn.Module):
    """The encode hook with a module: token vectors with its vectors added."""

    def __init__(self, table: nn.Module):
        super().__init__()
        self.table = table

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table(positions)


class _Random(nn.Module):
    """A vector for every position that is never trained."""

    def __init__(self, length: int, width: int):
        super().__init__()
        self.register_buffer("table", torch.randn(length, width))

    def forward(self, positions: Tensor) -> Tensor:
        return self.table[positions]


KNOWN: dict[str, Encoding] = {
    "none": dict,
    "sinusoidal": lambda: {"encode": lambda x, p: x + sinusoidal(p, x.shape[-1], dtype=x.dtype)},
    "learned": lambda: {"encode": _Added(Learned(8 * LENGTH, 32, std=0.5))},
    "binary": lambda: {"encode": lambda x, p: x + binary(p, 10, dtype=x.dtype) @ _wide(10, x)},
    "random": lambda: {"encode": _Added(_Random(8 * LENGTH, 32))},
    "rotary": lambda: {"rotate": lambda x, p: rotate(x, angles(p, x.shape[-1]))},
    "ALiBi": lambda: {"bias": partial(alibi, heads=2)},
    "T5": lambda: {"bias": T5(2, buckets=12, max_distance=16, gain=10.0)},
    "Kerple": lambda: {"bias": Kerple(2, gain=3.0)},
}


def _wide(digits: int, x: Tensor) -> Tensor:
    """Each digit in a dimension of its own, the first ones."""
    return torch.eye(digits, x.shape[-1], dtype=x.dtype)


# What `judge` gave for them, in the order of ROWS; a test computes it again.
MEASURED: dict[str, tuple[float, ...]] = {
    "none": (0.00, 0.00, 0.27, 0.20, 0.16, 0.31, 0.44, 0.39),
    "sinusoidal": (0.14, 1.07, 1.00, 0.27, 0.16, 1.00, 0.93, 0.21),
    "learned": (0.21, 0.95, 1.00, 0.15, 0.13, 1.00, 0.91, 0.21),
    "binary": (0.11, 0.48, 0.48, 0.15, 0.17, 1.00, 0.72, 0.24),
    "random": (0.24, 1.34, 1.00, 0.15, 0.14, 1.00, 0.75, 0.22),
    "rotary": (0.20, 0.00, 1.00, 0.92, 0.37, 0.36, 0.99, 0.24),
    "ALiBi": (0.11, 0.00, 0.28, 0.28, 0.28, 0.28, 0.54, 0.47),
    "T5": (0.82, 0.00, 1.00, 1.00, 1.00, 0.32, 0.94, 0.75),
    "Kerple": (0.48, 0.00, 0.30, 0.29, 0.30, 0.25, 0.85, 0.87),
}
