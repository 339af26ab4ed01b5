"""A rotation read inside of a model, without a look at its code.

In a text of one token, repeated, attention finds the same thing wherever it looks. So in every layer a query
differs from the one at place 0 only by what the place did to it: q(p) = R(p) q(0) where queries are turned.

Conventions: an angle is positive counter-clockwise, from the first dimension of a pair to its second; dimensions
and pairs count from 0; pairs are sorted by their first dimension.
"""

import inspect
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from posenc.probe.inside import attended, some_tokens, vocabulary


@dataclass(frozen=True)
class Rotation:
    """What a layer does to queries as the place grows.

    Attributes:
        pairs: the dimensions that are turned with each other, shape (P, 2). Those that no place moves are in no pair.
        speeds: radians a position, shape (P,).
        angles: as measured at each place, less than half a turn from what the speed says, shape (T, P).
        residual: the part of the query's norm that turning leaves unexplained.
        head_dim: size of a head.
        precision: the part of a norm that rounding may change.
        model, layer: what was read.
    """

    pairs: Tensor
    speeds: Tensor
    angles: Tensor = field(repr=False)
    residual: float
    head_dim: int
    precision: float
    model: str
    layer: int

    @property
    def found(self) -> bool:
        """Whether turning is all that a place does to a query."""
        return self.residual < 10 * self.precision

    @property
    def layout(self) -> str:
        """ "interleaved", "half_split", "none" where nothing turns, "other"."""
        first, second = self.pairs.T.tolist() if len(self.pairs) else ([], [])
        if not first:
            return "none"
        if all(a % 2 == 0 and b == a + 1 for a, b in zip(first, second)):
            return "interleaved"
        return "half_split" if len({b - a for a, b in zip(first, second)}) == 1 else "other"

    @property
    def rotary_dim(self) -> int:
        """How many dimensions of a head are turned, as its layout says, or as were seen to turn."""
        if self.layout == "half_split":
            return 2 * (self.pairs[0, 1] - self.pairs[0, 0]).item()
        return 2 * len(self.pairs)

    @property
    def base(self) -> float | None:
        """The base of the speeds base^(-2i/rotary_dim), or None where they follow no such law."""
        if self.layout not in ("interleaved", "half_split") or len(self.pairs) < 2:
            return None
        if self.layout == "interleaved" and self.precision > 1e-5:
            return None  # how many slow pairs follow, unseen, decides what the base is
        index = self.pairs[:, 0] / (2 if self.layout == "interleaved" else 1)
        speeds = self.speeds.abs()
        certain = speeds * (len(self.angles) - 1) > 1e3 * self.precision
        if certain.sum() < 2:
            return None
        for start in {0, index[0].item()}:  # some models turn the last dimensions of a head
            exponent = -2 * (index[certain, None].double() - start) / self.rotary_dim
            logarithm = torch.linalg.lstsq(exponent, speeds[certain, None].log()).solution
            if (exponent @ logarithm - speeds[certain, None].log()).abs().max() < 0.01:
                return logarithm.exp().item()
        return None

    def __repr__(self) -> str:
        where = f"{self.model}, layer {self.layer}"
        if not self.found:
            return f"{where}: no rotation; turning leaves {self.residual:.2g} of a query unexplained"
        if not len(self.pairs):
            return f"{where}: nothing turns; a query is the same at every place"
        ways = {True: "counter-clockwise", False: "clockwise"}
        way = " and ".join(ways[sign] for sign in sorted({speed > 0 for speed in self.speeds.tolist()}))
        base = "speeds of no single base" if self.base is None else f"base {float(f'{self.base:.3g}'):,.0f}"
        return f"{where}: {len(self.pairs)} pairs of {self.head_dim} dimensions turn {way}, {self.layout}, {base}"


def rotation(
    model: nn.Module,
    *,
    layer: int = 0,
    length: int | None = None,
    positions: Tensor | None = None,
    tokens: Tensor | None = None,
) -> Rotation:
    """Read how a layer turns its queries.

    Args:
        model, layer: as in `posenc.probe.scores`.
        length: T, the number of places that are looked at, 0 to T - 1; a pair is seen to turn if it turns visibly
            within them. The slowest pair of base 10⁶ needs 64 in float32; half precision sees fast pairs only.
            64 unless given, and 72 where a head has 64 dimensions.
        positions: what to pass as position_ids, shape (T,), or (axes, T) for a model that counts along several
            axes. The first is the reference, and neighbours differ by 1 or not at all. The model's own unless given.
        tokens: one text of each; 8 unless given.

    Returns:
        what was read. `found` says whether it is a rotation at all: a table that is added is none.

    Raises:
        ValueError, TypeError: as in `posenc.probe.scores`; ValueError too where queries cannot be told apart from
            the scores, or positions have the wrong shape.
    """
    inputs = {}
    if positions is not None:
        positions = torch.as_tensor(positions)
        if positions.is_floating_point() or positions.ndim not in (1, 2):
            raise ValueError(
                f"positions have shape {tuple(positions.shape)}: pass integers, (T,) or (axes, T)"
            )
        length = positions.shape[-1]
    if tokens is None:
        tokens = some_tokens(model, min(8, vocabulary(model) // 2))
    lengths = (64, 72) if length is None else (length,)
    for (
        length
    ) in lengths:  # as long as a head is large, a text hides which product is that of queries and keys
        texts = tokens[:, None].expand(-1, length)
        if positions is not None:
            if "positions" in inspect.signature(model.forward).parameters:  # the course's own
                inputs["positions"] = positions
            else:
                inputs["position_ids"] = positions[..., None, :].expand(
                    *positions.shape[:-1], len(texts), length
                )
        query = attended(model, texts, layer=layer, **inputs).query
        if query is not None:
            break
    name = type(model).__name__
    if query is None or query.ndim != 4:
        raise ValueError(
            f"no product of queries and keys was seen in {name}, layer {layer}: try another length"
        )
    vectors = query.flatten(0, 1).transpose(0, 1)  # (T, texts · heads, d)
    dtypes = {weight.dtype for weight in model.parameters() if weight.is_floating_point()}
    dtypes.add(torch.float32)  # in which many turn, also in float64
    precision = max(torch.finfo(dtype).eps for dtype in dtypes)
    pairs, speeds, angles, residual = _planes(vectors, precision)
    return Rotation(pairs, speeds, angles, residual, vectors.shape[-1], precision, name, layer)


def _planes(vectors: Tensor, precision: float) -> tuple[Tensor, Tensor, Tensor, float]:
    """The planes in which vectors (T, n, d) turn: pairs (P, 2), speeds (P,), angles (T, P), what is left.

    For a pair of dimensions read as a complex number z, the turn that takes z(0) nearest to z(p) is the angle of
    Σ conj(z(0)) z(p), and its length says how near that comes.
    """
    start = vectors[0]
    products = torch.einsum("ni,tnj->tij", start, vectors)  # what each dimension at 0 has of each at p
    own = products.diagonal(dim1=1, dim2=2)
    turned = torch.complex(own[:, :, None] + own[:, None, :], products - products.mT)  # (T, d, d)
    energy = vectors.square().sum(1)
    size = energy[:, :, None] + energy[:, None, :]
    agreement = turned.abs() / (size[:1] * size).sqrt().clamp_min(1e-300)
    unexplained = (1 - agreement).clamp_min(0).mean(0)  # (d, d)
    moved = (vectors - start).square().sum(1).amax(0) > (10 * precision) ** 2 * energy[0]
    unexplained[~moved], unexplained[:, ~moved] = torch.inf, torch.inf
    unexplained.fill_diagonal_(torch.inf)
    pairs = []
    while unexplained.isfinite().any():  # the best pair first
        first, second = divmod(unexplained.argmin().item(), len(unexplained))
        pairs.append(sorted((first, second)))
        unexplained[[first, second]] = torch.inf
        unexplained[:, [first, second]] = torch.inf
    pairs = torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2)
    steps = turned[:, pairs[:, 0], pairs[:, 1]]  # (T, P)
    angles = _unwrap(steps.angle())
    predicted = start.expand_as(vectors).clone()
    z = torch.complex(start[:, pairs[:, 0]], start[:, pairs[:, 1]])
    z = z * torch.polar(torch.ones_like(angles), angles)[:, None]
    predicted[..., pairs[:, 0]], predicted[..., pairs[:, 1]] = z.real, z.imag
    residual = ((predicted - vectors).square().sum() / vectors.square().sum()).sqrt().item()
    return pairs, angles[-1] / max(len(angles) - 1, 1), angles, residual


def _unwrap(angles: Tensor) -> Tensor:
    """Angles (T, P) that start at 0, each less than half a turn from the one before."""
    steps = torch.diff(angles, dim=0, prepend=torch.zeros_like(angles[:1]))
    return (steps - 2 * torch.pi * (steps / (2 * torch.pi)).round()).cumsum(0)
