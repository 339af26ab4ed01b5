"""What the softmax of a model sees, without a hook for any model.

Whatever a model does with positions has to reach its attention scores. So nothing is asked of a model but
that it runs: while it does, every operation of torch passes by here, and the softmax over (heads, queries,
keys) shows its input. The product of queries and keys is the one just before it.

Conventions: a layer is the place of its softmax in the order of the run, from 0. A model with an encoder and
a decoder is read in its encoder. Scores are what the softmax gets: scaled, with every bias, and -inf at keys
that are hidden; where a model has a sink, a score that no key has, they are the excess over it. The model's own weights, mode and device are left as they are.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

HIDDEN = 5_000  # a score so far below its row's largest is a mask: models write -inf, -10,000 or their dtype's least

_aten = torch.ops.aten
_SOFTMAXES = (_aten._softmax.default, _aten._safe_softmax.default)
_PRODUCTS = {_aten.bmm.default: 0, _aten.baddbmm.default: 1}  # where the first factor stands
_FUSED = ("_scaled_dot_product", "_flash_attention", "_efficient_attention", "_native_multi_head_attention")


class Attended(NamedTuple):
    """One layer's attention: its scores (B, heads, T, T), and what was multiplied just before them."""

    scores: Tensor
    query: Tensor  # (B, heads, T, d)
    key: Tensor  # (B, heads, T, d)


def scores(model: nn.Module, tokens: Tensor, *, layer: int = 0, **inputs: Tensor) -> Tensor:
    """What the softmax of one layer gets to see.

    Args:
        model: the course's `Transformer`, a model of transformers, or any module that is called with tokens.
        tokens: integers, shape (B, T) or (T,).
        layer: which softmax, from 0; negative ones count from the last.
        inputs: passed on to the model, for example attention_mask or position_ids.

    Returns:
        float64 on the CPU, shape (B, heads, T, T), or (heads, T, T) for tokens (T,); queries by keys, and
        -inf where a key is hidden.

    Raises:
        ValueError: no softmax over these tokens was seen, there is no such layer, or a fused kernel hides it.
        TypeError: tokens are no integers, or the model reads something else.
    """
    one = isinstance(tokens, Tensor) and tokens.ndim == 1
    seen = attended(model, tokens[None] if one else tokens, layer=layer, **inputs).scores
    return seen[0] if one else seen


def attended(model: nn.Module, tokens: Tensor, *, layer: int = 0, **inputs: Tensor) -> Attended:
    """The scores of one layer with the queries and keys that they were made of; arguments as in `scores`.

    Where a model adds several products, query and key are those of the last.
    """
    require_tokens(tokens)
    model = _readable(model)
    named = (f"{path} {type(layer).__name__}".lower() for path, layer in model.named_modules())
    if hasattr(model, "config") and not any("att" in name for name in named):
        raise ValueError(  # before it runs: a state space needs minutes and gigabytes without its kernels
            f"{type(model).__name__} has no attention, so there are no scores and nothing is turned by them; "
            "agreement(Calls.of(model), tokens) compares its runs with each other"
        )
    recorder = _Recorder(tokens.shape, layer)
    # torch's attention function takes its plain path: one step after another, so that its softmax passes by
    with _ready(model), recorder, sdpa_kernel(SDPBackend.MATH):
        device = next((weight.device for weight in model.parameters()), tokens.device)
        inputs = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in inputs.items()}
        try:
            model(tokens.to(device), **inputs)
        except _SeenEnough:
            pass
    return recorder.found(type(model).__name__)


def require_tokens(tokens: Tensor) -> None:
    if not isinstance(tokens, Tensor) or tokens.is_floating_point() or tokens.dtype == torch.bool:
        kind = tokens.dtype if isinstance(tokens, Tensor) else type(tokens).__name__
        raise TypeError(f"tokens are {kind}: pass a tensor of integers, shape (B, T)")
    if tokens.ndim != 2 or not tokens.numel():
        raise ValueError(f"tokens have shape {tuple(tokens.shape)}: pass B texts of T tokens each, (B, T)")


def vocabulary(model: nn.Module) -> int:
    """How many tokens a model can read: the rows of the table that it looks them up in."""
    model = _readable(model)
    table = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    table = table or next((module for module in model.modules() if isinstance(module, nn.Embedding)), None)
    if table is None:
        raise ValueError(f"{type(model).__name__} has no table of tokens: it reads something else")
    return table.weight.shape[0]


def some_tokens(model: nn.Module, count: int) -> Tensor:
    """Tokens spread over a model's vocabulary, none of them special: padding would move the positions of some."""
    config = getattr(model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    special = {
        value
        for name, value in (vars(config) if config is not None else {}).items()
        if name.endswith("_token_id") and isinstance(value, int)
    }
    usual = [token for token in range(vocabulary(model)) if token not in special]
    if len(usual) < count:
        raise ValueError(f"{type(model).__name__} reads {len(usual)} tokens, and {count} different ones are needed")
    return torch.tensor(usual)[torch.linspace(0, len(usual) - 1, count + 2).long()[1:-1]]


class _SeenEnough(BaseException):  # not an Exception: no model shall catch it
    pass


class _Recorder(TorchDispatchMode):
    """Sees every operation of torch, and keeps the softmax of one layer (of all, for a negative one)."""

    def __init__(self, shape: torch.Size, layer: int):
        super().__init__()
        self.batch, self.length = shape
        self.layer, self.kept, self.products, self.fused = layer, [], (), ""
        self.others = ()  # the shape of a softmax over something else

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function in _PRODUCTS:
            self._product(*args[_PRODUCTS[function] :][:2])
        elif function in _SOFTMAXES:
            self._softmax(*args[:2])
        elif any(name in function.name() for name in _FUSED):
            self.fused = function.name().split("::")[-1].split(".")[0]
        return function(*args, **(kwargs or {}))

    def _product(self, first: Tensor, second: Tensor) -> None:
        if first.shape[-2] == second.shape[-1] == self.length and first.shape[-1] != self.length:
            self.products = first, second

    def _softmax(self, logits: Tensor, axis: int) -> None:
        self.others = tuple(logits.shape)
        if axis not in (-1, logits.ndim - 1) or logits.shape[-2:-1] != (self.length,):
            return
        if logits.ndim == 3 and logits.shape[0] % self.batch == 0 and logits.shape[-1] == self.length:
            logits = logits.unflatten(0, (self.batch, -1))  # older models put heads and texts on one axis
        if logits.ndim != 4 or logits.shape[0] != self.batch or not 0 <= logits.shape[-1] - self.length <= 1:
            return
        self.kept.append((logits, *self.products))
        self.products = ()
        if self.layer < 0:
            return
        if len(self.kept) > self.layer:
            raise _SeenEnough
        self.kept[-1] = ()  # an earlier layer's: counted, not kept

    def found(self, name: str) -> Attended:
        if not -len(self.kept) <= self.layer < len(self.kept):
            if self.fused and not self.kept:
                raise ValueError(
                    f"{name} computes its softmax inside the fused kernel {self.fused}, where nobody can look: load "
                    'it with attn_implementation="eager", or call model.set_attn_implementation("eager")'
                )
            if not self.kept and self.others:
                raise ValueError(
                    f"the softmax of {name} is over {self.others}, not over {self.length} queries by {self.length} "
                    "keys: its scores are in windows or blocks, of which no table can be made; load it with full "
                    'attention where it has that (BigBird: attention_type="original_full")'
                )
            if not self.kept:
                raise ValueError(
                    f"no softmax over {self.length} keys was seen in {name}: either it has no attention, or a kernel "
                    'of its own hides it; then load it with attn_implementation="eager" and without torch.compile'
                )
            raise ValueError(f"there is no layer {self.layer} in {name}: it has {len(self.kept)}, from 0")
        logits, *products = self.kept[self.layer]
        logits = logits.detach().double().cpu()
        if logits.shape[-1] > self.length:  # beyond the keys stands a sink, and all scores are relative to it
            logits = logits[..., : self.length] - logits[..., self.length :]
        largest = logits.amax(-1, keepdim=True)
        hidden = (logits < largest - HIDDEN) | (largest < -HIDDEN)
        query, key = products or (None, None)
        if query is not None and query.numel() % (self.batch * logits.shape[1]) == 0:
            query, key = (
                factor.detach().double().cpu().reshape(*logits.shape[:2], *factor.shape[-2:])
                for factor in (query, key.mT)
            )
        return Attended(logits.masked_fill(hidden, -math.inf), query, key)


@contextmanager
def _ready(model: nn.Module) -> Iterator[None]:
    """No gradient, no dropout and no kernel that fuses a whole layer; all of it as before, afterwards."""
    training = [module for module in model.modules() if module.training]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for module in training:
            module.training = True


def _readable(model: nn.Module) -> nn.Module:
    """The module that reads tokens: behind torch.compile, and the encoder where there is a decoder too."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"this is a {type(model).__name__}, no model: pass a torch module that is called with tokens")
    model = getattr(model, "_orig_mod", model)
    if getattr(model, "main_input_name", "input_ids") != "input_ids":
        raise TypeError(f"{type(model).__name__} reads {model.main_input_name}, no tokens")
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return model.get_encoder()
    return model
