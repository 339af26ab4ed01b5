"""The small models that the experiments train, several seeds side by side.

A model is an ordinary `nn.Module` for one seed. `Ensemble` stacks the parameters of several and
runs them in one batched call; every tensor then has a leading axis of seeds.
"""

import copy
import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from posenc.attention import attention, causal_bias


class SelfAttention(nn.Module):
    """Multi-head self-attention, (B, T, width) → (B, T, width)."""

    def __init__(self, width: int, heads: int, causal: bool, rotate: Callable | None, bias: Callable | None):
        super().__init__()
        self.heads, self.causal, self.rotate, self.bias = heads, causal, rotate, bias
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        query, key, value = (
            projection(x).unflatten(-1, (self.heads, -1)).transpose(-2, -3)  # (B, heads, T, d)
            for projection in (self.query, self.key, self.value)
        )
        if self.rotate is not None:
            query, key = self.rotate(query, positions), self.rotate(key, positions)
        bias = causal_bias(x.shape[-2], x.shape[-2]) if self.causal else None
        if self.bias is not None:
            learned = self.bias(positions, positions)
            bias = learned if bias is None else learned + bias
        return self.output(attention(query, key, value, bias=bias).transpose(-2, -3).flatten(-2))


class Block(nn.Module):
    """One transformer layer with LayerNorm in front of each half, (B, T, width) → the same."""

    def __init__(self, width: int, heads: int, causal: bool, rotate: Callable | None, bias: Callable | None):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, causal, rotate, bias)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), positions)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """A small transformer without positions, and three places where they can be put in.

    Args:
        vocabulary: number of tokens it can read.
        outputs: numbers it gives for each token.
        causal: whether a token sees only itself and the tokens before it.
        encode: (x, positions) → x, applied to the token vectors (B, T, width) once, before layer 0.
        rotate: (x, positions) → x, applied to queries and keys (B, heads, T, d) in every layer.
        bias: (query positions, key positions) → (heads, T, T), added to the scores in every layer.
            Each of the three may be a function, or a module with parameters of its own.
    """

    def __init__(
        self,
        vocabulary: int,
        outputs: int,
        *,
        width: int = 32,
        heads: int = 2,
        layers: int = 1,
        causal: bool = False,
        encode: Callable | None = None,
        rotate: Callable | None = None,
        bias: Callable | None = None,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.encode = encode
        self.blocks = nn.ModuleList(Block(width, heads, causal, rotate, bias) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, outputs)

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Tokens (B, T) at integer positions (T,), 0 to T - 1 unless given → (B, T, outputs)."""
        if positions is None:
            positions = torch.arange(tokens.shape[-1], device=tokens.device)
        x = self.embedding(tokens)
        if self.encode is not None:
            x = self.encode(x, positions)
        for block in self.blocks:
            x = block(x, positions)
        return self.head(self.norm(x))


class Ensemble:
    """Copies of one model that differ in their seed, run and trained as one.

    Args:
        build: makes one model; called once for each seed, after `torch.manual_seed(seed)`.
        seeds: which seeds.
    """

    def __init__(self, build: Callable[[], nn.Module], seeds: Iterable[int]):
        self.seeds = list(seeds)
        models = []
        with torch.random.fork_rng(devices=[]):
            for seed in self.seeds:
                torch.manual_seed(seed)
                models.append(build())
        self.parameters, self.buffers = stack_module_state(models)
        self._model = models[0].to("meta")  # only its code is used; the numbers are in the two dictionaries

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Each input and the result have a leading axis of seeds."""
        return vmap(lambda *state: functional_call(self._model, state[:2], state[2:]))(
            self.parameters, self.buffers, *inputs
        )

    def single(self, index: int = 0) -> nn.Module:
        """One seed's model, an ordinary module with a copy of its numbers, frozen."""
        model = copy.deepcopy(self._model).to_empty(device="cpu")
        numbers = self.parameters | self.buffers
        model.load_state_dict({name: value[index].detach().clone() for name, value in numbers.items()})
        return model.requires_grad_(False)

    def double(self) -> "Ensemble":
        """A frozen copy in float64, for comparisons in which rounding must not decide."""
        exact = object.__new__(Ensemble)
        exact.seeds, exact._model = self.seeds, self._model
        exact.parameters = {name: value.detach().double() for name, value in self.parameters.items()}
        exact.buffers = {
            name: value.double() if value.is_floating_point() else value for name, value in self.buffers.items()
        }
        return exact


def train(
    ensemble: Ensemble,
    batch: Callable[[int], tuple[Tensor | tuple[Tensor, ...], Tensor]],
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    steps: int = 300,
    learning_rate: float = 3e-3,
    every: int = 25,
    report: Callable[[int], None] | None = None,
) -> None:
    """Train all seeds of an ensemble in place; no seed sees another's gradient.

    AdamW; the learning rate rises over the first tenth of the steps and falls as a cosine.

    Args:
        batch: step → (inputs, targets), each with a leading axis of seeds. Several inputs are a tuple.
        loss: (outputs, targets) → one number per seed, shape (seeds,).
        steps: number of updates.
        learning_rate: the highest one.
        every: steps between two reports.
        report: called with the number of steps done: 0, every, 2·every, …, steps.
    """
    optimizer = torch.optim.AdamW(ensemble.parameters.values(), lr=learning_rate, fused=True)
    warm_up = steps // 10 + 1
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / warm_up) * (1 + math.cos(math.pi * step / steps)) / 2
    )
    for step in range(steps):
        if report is not None and step % every == 0:
            report(step)
        inputs, targets = batch(step)
        optimizer.zero_grad()
        outputs = ensemble(*inputs) if isinstance(inputs, tuple) else ensemble(inputs)
        loss(outputs, targets).sum().backward()  # a sum keeps the seeds' gradients apart
        optimizer.step()
        schedule.step()
    if report is not None:
        report(steps)
