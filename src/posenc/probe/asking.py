"""Which questions the scores of a model ask, found from outside.

Feed a layer enough texts and its scores become a table: token at the query's place, token at the key's place,
and the two places. An analysis of variance splits such a table into parts that add up: what changes with the
two tokens alone, with one token and the other's place, with the places alone, and what only a token together
with its own place decides.

Conventions: query first, as in `posenc.terms`; a number that is the same for all keys of a query changes no
weight and is left out; queries stand in the second half of a text and keys in the first, so that every query
sees every key, with a causal mask or without one.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posenc.probe.inside import scores, some_tokens

EFFECTS = {  # which share a part belongs to, by what it depends on: U, M token and place of the query, V, N of the key
    "content_content": ("V", "UV"),
    "content_position": ("UN", "UMN"),
    "position_content": ("VM", "VN", "VMN"),
    "position_position": ("N", "MN"),
    "together": ("UVM", "UVN", "UVMN"),
}
ROW_CONSTANTS = ("", "U", "M", "UM")


@dataclass(frozen=True)
class Questions:
    """How much of what a softmax sees depends on what; the six shares add up to 1.

    Attributes:
        content_content: which token does this token look for?
        content_position: which place does this token look for?
        position_content: which token does this place look for?
        position_position: which place does this place look for?
        together: what only both tokens and the places decide at once: no sum of content and position asks this.
        others: what tokens at other places decide; in layer 0 there is none of it.
        any_token: the part of content_content that every query at every place shares: a token that all look for.
        any_place: the same of position_position: a place that all look for.
        drift: of what depends on places at all, the part that m - n does not decide; nan where nothing does. Above
            layer 0 a place also differs by what could be read from it, so even without positions there is some.
        relative: whether that part is rounding.
        model, layer: what was asked.
    """

    content_content: float
    content_position: float
    position_content: float
    position_position: float
    together: float
    others: float
    any_token: float
    any_place: float
    drift: float
    relative: bool
    model: str
    layer: int

    @property
    def shares(self) -> dict[str, float]:
        """The six, by name."""
        return {name: getattr(self, name) for name in (*EFFECTS, "others")}

    def __repr__(self) -> str:
        shares = ", ".join(f"{name.replace('_', ' → ')} {share:.3f}" for name, share in self.shares.items())
        if self.drift != self.drift:
            return f"{self.model}, layer {self.layer}: {shares}; no score depends on a place"
        relative = "places count by m - n alone" if self.relative else "places count for themselves"
        if self.layer and not self.relative:
            relative = "places count for themselves, or by what was read there"
        return f"{self.model}, layer {self.layer}: {shares}; {relative} (drift {self.drift:.2g})"


def questions(
    model: nn.Module, *, layer: int = 0, tokens: Tensor | None = None, arrays: int | None = None
) -> Questions:
    """Split the scores of one layer into what they depend on.

    p tokens, p prime, make p² texts of p tokens in which any two places meet each pair of tokens once.

    Args:
        model: as in `posenc.probe.scores`.
        layer: which softmax, from 0. Above layer 0 a place also holds what it has read, so its score depends on
            other tokens too, and the shares are averages over them.
        tokens: the p different tokens, shape (p,); p is a prime from 5 on. 11 of the model's vocabulary, or as
            many as it allows, unless given.
        arrays: how many times p² texts, in each of them the tokens named anew; 1 in layer 0 and 8 above unless
            given. With more of them less of the others' share is mistaken for `together`.

    Returns:
        the shares over all heads.

    Raises:
        ValueError: p is no prime from 5 on, a token comes twice, some query does not see some key (a window, or
            a mask that looks ahead), or as `posenc.probe.scores`.
        TypeError: as `posenc.probe.scores`.

    Source: Rao 1947, "Factorial experiments derivable from combinatorial arrangements of arrays", for the texts.
    """
    tokens = _default_tokens(model) if tokens is None else torch.as_tensor(tokens)
    arrays = arrays or (1 if layer == 0 else 8)
    table, rest = score_table(model, tokens, layer=layer, arrays=arrays)
    parts = effects(table)
    # of the others' part, what did not average out
    mistaken = {name: len(table) * rest / arrays * _freedom(name, table.shape[1:]) for name in parts}
    energy = {name: max(value - mistaken[name], 0.0) for name, value in energies(table).items()}
    others = rest * table.numel()
    total = sum(energy.values()) + others
    precision = torch.finfo(next(model.parameters()).dtype).eps
    if total <= precision**2 * table.square().sum():
        raise ValueError(f"layer {layer} of {type(model).__name__} gives every key the same score: it asks nothing")
    drift, rounding = _drift(table, parts, precision, len(table) * rest / arrays)
    return Questions(
        **{share: sum(energy[name] for name in names) / total for share, names in EFFECTS.items()},
        others=others / total,
        any_token=energy["V"] / total,
        any_place=energy["N"] / total,
        drift=drift,
        relative=drift < max(1e-6, 10 * rounding),
        model=type(model).__name__,
        layer=layer,
    )


def orthogonal_texts(p: int) -> Tensor:
    """p² texts of p symbols from 0 to p - 1: any two places meet each pair of symbols exactly once.

    Raises:
        ValueError: p is no prime (then two places would meet some pairs twice and others never).
    """
    if p < 2 or any(p % factor == 0 for factor in range(2, int(p**0.5) + 1)):
        raise ValueError(f"{p} is no prime: take 5, 7, 11 or 13 tokens")
    start, step = torch.cartesian_prod(torch.arange(p), torch.arange(p)).T
    return (start[:, None] + step[:, None] * torch.arange(p)) % p


def score_table(model: nn.Module, tokens: Tensor, *, layer: int = 0, arrays: int = 1) -> tuple[Tensor, float]:
    """The scores of one layer by tokens and places, and what they leave open.

    Args:
        model, layer: as in `questions`.
        tokens: p different ones, shape (p,).
        arrays: how many times p² texts are averaged.

    Returns:
        scores of (query token, key token, query place, key place), shape (heads, p, p, p - p // 2, p // 2): queries
        at places p // 2 to p - 1, keys at 0 to p // 2 - 1; and the mean square of what the average leaves of each
        score, without what is the same for all keys of a query.

    Raises:
        ValueError: as in `questions`.
    """
    p = len(tokens)
    if tokens.ndim != 1 or p < 5 or len(tokens.unique()) < p:
        raise ValueError(f"tokens {tokens.tolist()}: pass a prime number of different ones, at least 5")
    symbols = orthogonal_texts(p)
    generator = torch.Generator().manual_seed(0)
    names = torch.arange(p).expand(p, p)  # at each place, the token that a symbol stands for
    runs, tables = [], []
    for _ in range(arrays):
        drawn = names[torch.arange(p), symbols]  # (p², p), which of the tokens
        seen = scores(model, tokens[drawn], layer=layer)
        if not seen[:, :, p // 2 :, : p // 2].isfinite().all():
            raise ValueError(
                f"layer {layer} of {type(model).__name__} hides keys that this has to see: queries {p // 2} to "
                f"{p - 1} must see keys 0 to {p // 2 - 1}. Pass fewer tokens, or make its window longer"
            )
        runs.append((seen, drawn))
        tables.append(tabulate(seen, drawn))
        names = torch.stack([torch.randperm(p, generator=generator) for _ in range(p)])
    mean = torch.stack(tables).mean(0)
    if arrays == 1:
        return mean, 0.0
    left = torch.stack([_untabulate(tabulate(seen, drawn) - mean, drawn) for seen, drawn in runs])
    left = left - left.mean(-1, keepdim=True)
    taken = (p // 2 - 1) / (p // 2) * (arrays - 1) / arrays  # by the means
    return mean, left.square().mean().item() / taken


def tabulate(seen: Tensor, drawn: Tensor) -> Tensor:
    """Scores of p² texts, by tokens and places.

    Args:
        seen: scores or a term of them, shape (p², heads, p, p).
        drawn: the texts, as numbers from 0 to p - 1, shape (p², p); any two places meet each pair of them once.

    Returns:
        shape (heads, p, p, p - p // 2, p // 2), as `score_table` has it.
    """
    table = seen.new_empty(*_levels(drawn), seen.shape[1])
    table[_cells(drawn)] = seen[:, :, drawn.shape[1] // 2 :, : drawn.shape[1] // 2].permute(0, 2, 3, 1)
    return table.permute(4, 0, 1, 2, 3)


def _untabulate(table: Tensor, drawn: Tensor) -> Tensor:
    """A table as scores of texts again, shape (p², queries, heads, keys)."""
    return table.permute(1, 2, 3, 4, 0)[_cells(drawn)].transpose(-1, -2)


def _levels(drawn: Tensor) -> tuple[int, int, int, int]:
    p = drawn.shape[1]
    return p, p, p - p // 2, p // 2


def _cells(drawn: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Where in a table each score of a text stands; the four broadcast to (p², queries, keys)."""
    _, _, m, n = _levels(drawn)
    return drawn[:, n:, None], drawn[:, None, :n], torch.arange(m)[:, None], torch.arange(n)


def energies(table: Tensor) -> dict[str, float]:
    """The sum of squares of each part of a table that a softmax sees, by what it depends on.

    Args:
        table: as `score_table` gives it.
    """
    parts = effects(table).items()
    return {name: part.square().sum().item() for name, part in parts if name not in ROW_CONSTANTS}


def effects(table: Tensor) -> dict[str, Tensor]:
    """The parts of an analysis of variance of a full table; orthogonal to each other, and they add up to it.

    Args:
        table: shape (heads, U, V, M, N), as `score_table` gives it.

    Returns:
        16 parts by the factors that they depend on, "" (the mean), "U", …, "UVMN"; each broadcasts to the table.
    """
    parts = {"": table}
    for axis, factor in enumerate("UVMN", start=1):
        parts = {
            name + kept: part.mean(axis, keepdim=True) if not kept else part - part.mean(axis, keepdim=True)
            for name, part in parts.items()
            for kept in ("", factor)
        }
    return {name: part.expand_as(table) for name, part in parts.items()}


def _freedom(name: str, levels: torch.Size) -> int:
    """How many numbers of one head's part can be chosen."""
    freedom = 1
    for factor, count in zip("UVMN", levels):
        freedom *= count - 1 if factor in name else 1
    return freedom


def _drift(table: Tensor, parts: dict[str, Tensor], precision: float, noise: float) -> tuple[float, float]:
    """Of all that depends on places, the share that no function of tokens and m - n can say, and that of rounding.

    Noise is what other tokens leave in each cell, summed over the heads; each sum of squares has its part of it.
    """
    names = [name for name in parts if set(name) & set("MN") and name not in ROW_CONSTANTS]
    energy = sum(parts[name] for name in names).square().sum()
    energy = energy - noise * sum(_freedom(name, table.shape[1:]) for name in names)
    rounding = precision**2 * table.square().sum()
    if energy <= rounding:
        return torch.nan, torch.nan
    heads, u, v, m, n = table.shape
    key, row, column = torch.meshgrid(*map(torch.arange, (v, m, n)), indexing="ij")
    offset = row - column + n - 1
    regressors = torch.cat(
        [
            torch.nn.functional.one_hot(row.flatten(), m),
            torch.nn.functional.one_hot((key * (m + n - 1) + offset).flatten(), v * (m + n - 1)),
        ],
        dim=1,
    ).double()
    basis, sizes, _ = torch.linalg.svd(regressors, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes[0]]
    values = table.reshape(heads * u, v * m * n).T  # for each query token, its rows are free
    left = values - basis @ (basis.T @ values)
    drifting = left.square().sum() - noise * u * (v * m * n - basis.shape[1])
    return (drifting / energy).clamp(0, 1).item(), (rounding / energy).item()


def _default_tokens(model: nn.Module) -> Tensor:
    """The most that a vocabulary allows of 11, 7 or 5."""
    for count in (11, 7):
        try:
            return some_tokens(model, count)
        except ValueError:
            continue
    return some_tokens(model, 5)
