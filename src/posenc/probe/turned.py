"""A rotation read inside of a model, without a look at its code.

In a text of one token, repeated, attention finds the same thing wherever it looks. So in every layer a query
differs from the one at place 0 only by what the place did to it: q(p) = R(p) q(0) where queries are turned.

Some layers tell places apart all the same: a sink takes a share that shrinks, a recurrent state grows. Then the whole
text is moved, by p positions, and the query at one and the same place is compared: where only distances count, nothing
but R changes.

Conventions: an angle is positive counter-clockwise, from the first dimension of a pair to its second; dimensions
and pairs count from 0; pairs are sorted by their first dimension.
"""

import inspect
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from posenc.probe.inside import Attended, attended, some_tokens, vocabulary
from posenc.probe.speeds import rounded


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
        keys: what happens to keys otherwise than to queries, in words; "" where they are turned alike.
    """

    pairs: Tensor
    speeds: Tensor
    angles: Tensor = field(repr=False)
    residual: float
    head_dim: int
    precision: float
    model: str
    layer: int
    keys: str = ""

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
        turned = speeds * (len(self.angles) - 1)
        certain = turned > 1e3 * self.precision if self.precision < 1e-5 else turned > 10 * self.precision
        if certain.sum() < 2:
            return None
        weight = turned[certain, None].clamp(max=1.0)  # a slow pair's speed is known less well
        logs = speeds[certain, None].log()
        for start in {0, index[0].item()}:  # some models turn the last dimensions of a head
            exponent = -2 * (index[certain, None].double() - start) / self.rotary_dim
            logarithm = torch.linalg.lstsq(weight * exponent, weight * logs).solution
            if (weight * (exponent @ logarithm - logs)).abs().max() < max(0.01, 4 * self.precision):
                base = logarithm.exp().item()
                return base if self.precision < 1e-5 else rounded(base, 2e-2)
        return None

    def __repr__(self) -> str:
        where = f"{self.model}, layer {self.layer}"
        if not self.found:
            return f"{where}: no rotation; turning leaves {self.residual:.2g} of a query unexplained"
        if not len(self.pairs):
            return f"{where}: nothing turns; a query is the same at every place"
        ways = {True: "counter-clockwise", False: "clockwise"}
        way = " and ".join(ways[sign] for sign in sorted({speed > 0 for speed in self.speeds.tolist()}))
        rough = self.precision > 1e-5
        if self.base is not None:
            base = f"base {'about ' if rough else ''}{float(f'{self.base:.3g}'):,.0f}"
        else:
            base = "too few pairs seen for a base" if rough else "speeds of no single base"
        pairs = f"{len(self.pairs)} pairs of {self.head_dim} dimensions turn {way}"
        return f"{where}: {pairs}, {self.layout}, {base}" + (f"; {self.keys}" if self.keys else "")


def rotation(
    model: nn.Module,
    *,
    layer: int = 0,
    length: int | None = None,
    positions: Tensor | None = None,
    tokens: Tensor | None = None,
    moved: bool = False,
) -> Rotation:
    """Read how a layer turns its queries, and whether it turns its keys alike.

    Args:
        model, layer: as in `posenc.probe.scores`.
        length: T, the number of places that are looked at, 0 to T - 1; a pair is seen to turn if it turns visibly
            within them. The slowest pair of base 10⁶ needs 64 in float32; half precision sees fast pairs only.
            64 unless given, and 72 where a head has 64 dimensions.
        positions: what to pass as position_ids, shape (T,), or (axes, T) for a model that counts along several
            axes. The first is the reference; each axis stands still or grows by 1. The model's own unless given.
        tokens: one text of each; 8 unless given.
        moved: where no rotation is found, move the whole text too and compare the query at one and the same place.
            Sinks and recurrent layers need it, and position_ids must be taken.

    Returns:
        what was read. `found` says whether it is a rotation at all: a table that is added is none.

    Raises:
        ValueError, TypeError: as in `posenc.probe.scores`; ValueError too where queries cannot be told apart from
            the scores, or positions have the wrong shape or grow unevenly.
    """
    inputs = {}
    if positions is not None:
        positions = torch.as_tensor(positions)
        if positions.is_floating_point() or positions.ndim not in (1, 2):
            raise ValueError(f"positions have shape {tuple(positions.shape)}: pass integers, (T,) or (axes, T)")
        length = positions.shape[-1]
        steps = positions.diff()  # speeds are radians a step
        if ((steps != steps[..., :1]) | (steps != 0) & (steps != 1)).any():
            raise ValueError("positions grow unevenly: let each axis stand still or grow by 1 from place to place")
    if tokens is None:
        tokens = some_tokens(model, min(8, vocabulary(model) // 2))
    known = inspect.signature(model.forward).parameters if isinstance(model, nn.Module) else {}
    lengths = (64, 72) if length is None else (length,)
    for length in lengths:  # a text as long as a head hides which product is that of queries and keys
        texts = tokens[:, None].expand(-1, length)
        if positions is not None and "positions" in known:  # the course's own
            inputs["positions"] = positions
        elif positions is not None:
            inputs["position_ids"] = positions[..., None, :].expand(*positions.shape[:-1], len(texts), length)
        seen = attended(model, texts, layer=layer, **inputs)
        if seen.query is not None:
            break
    name = type(model).__name__
    if seen.query is None or seen.query.ndim != 4:
        raise ValueError(f"no product of queries and keys was seen in {name}, layer {layer}: try another length")
    dtypes = {weight.dtype for weight in model.parameters() if weight.is_floating_point()}
    dtypes.add(torch.float32)  # in which many turn, also in float64
    precision = max(torch.finfo(dtype).eps for dtype in dtypes)

    def read(vectors: Tensor) -> Rotation:  # (T, n, d)
        planes = _planes(vectors, precision)
        return Rotation(*planes, vectors.shape[-1], precision, name, layer)

    def both(query: Tensor, key: Tensor) -> Rotation:
        found = read(query)
        return replace(found, keys=_otherwise(found, read(key))) if found.found else found

    found = both(*(part.flatten(0, 1).transpose(0, 1) for part in (seen.query, seen.key)))
    if found.found or not moved or "position_ids" not in known:
        return found
    places = torch.arange(lengths[0]) if positions is None else positions
    try:
        seen = _moved(model, tokens, places, layer)
    except IndexError:  # a table has no row for the last of them: then it is no rotation
        return found
    if seen.query is None:
        return found
    again = both(*(part.flatten(1, 2) for part in (seen.query, seen.key)))
    return again if again.found else found


def _moved(model: nn.Module, tokens: Tensor, places: Tensor, layer: int) -> Attended:
    """One text of five tokens, with its first at each of the places in turn; eight at a time, since some states are large."""
    text = tokens[torch.arange(5) % len(tokens)]
    positions = places[..., None] + torch.arange(5)
    parts = [
        attended(model, text.expand(some.shape[-2], -1), layer=layer, position_ids=some)
        for some in positions.split(8, dim=-2)
    ]
    if any(part.query is None for part in parts):
        return parts[0]._replace(query=None)
    return Attended(*(torch.cat(factors) for factors in zip(*parts)))


def _otherwise(queries: Rotation, keys: Rotation) -> str:
    """What happens to keys and not to queries, in words."""
    if not keys.found:
        return f"its keys are not turned alike: turning leaves {keys.residual:.2g} of a key unexplained"
    theirs = {tuple(pair): angles for pair, angles in zip(keys.pairs.tolist(), keys.angles.T)}
    for pair, angles in zip(queries.pairs.tolist(), queries.angles.T):
        if angles.abs().max() < 100 * queries.precision:
            continue  # too slow to be sure
        if not theirs:
            return "its keys are not turned"
        if tuple(pair) not in theirs:
            return f"its keys are turned in other pairs than {tuple(pair)}"
        if (theirs[tuple(pair)] - angles).abs().max() > 0.02 + 10 * queries.precision:
            if (theirs[tuple(pair)] + angles).abs().max() < 0.02 + 10 * queries.precision:
                return "its keys turn the other way round"
            return f"its keys turn at other speeds, pair {tuple(pair)} by {theirs[tuple(pair)][1]:.3g} radians"
    return ""


def _planes(vectors: Tensor, precision: float) -> tuple[Tensor, Tensor, Tensor, float]:
    """The planes in which vectors (T, n, d) turn: pairs (P, 2), speeds (P,), angles (T, P), what is left.

    For a pair of dimensions read as a complex number z, the turn that takes z(0) nearest to z(p) is the angle of
    Σ conj(z(0)) z(p), and its length says how near that comes.
    """
    start = vectors[0]
    energy = vectors.square().sum(1)  # (T, d)
    unexplained = torch.zeros(start.shape[1], start.shape[1], dtype=torch.float64)
    for now, later in zip(vectors, energy):
        products = start.T @ now  # what each dimension at 0 has of each at p
        own = products.diagonal()
        turned = torch.hypot(own[:, None] + own, products - products.T)
        sizes = (energy[0][:, None] + energy[0]) * (later[:, None] + later)
        unexplained += (1 - turned / sizes.sqrt().clamp_min(1e-300)).clamp_min(0) / len(vectors)
    moved = (vectors - start).square().sum(1).amax(0) > (10 * precision) ** 2 * energy[0]
    unexplained[~(moved[:, None] | moved)] = torch.inf
    unexplained.fill_diagonal_(torch.inf)
    pairs = []
    while unexplained.isfinite().any():  # the best pair first
        first, second = divmod(unexplained.argmin().item(), len(unexplained))
        pairs.append(sorted((first, second)))
        unexplained[[first, second]] = torch.inf
        unexplained[:, [first, second]] = torch.inf
    pairs = torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2)
    z = torch.complex(vectors[..., pairs[:, 0]], vectors[..., pairs[:, 1]])  # (T, n, P)
    angles = _unwrap((z[0].conj() * z).sum(1).angle())  # (T, P)
    turned = z[0] * torch.polar(torch.ones_like(angles), angles)[:, None]
    # rounding moves dimensions too: a pair that turns is one that turning explains
    explained = (turned - z).abs().square().sum((0, 1)) < 0.25 * (z - z[0]).abs().square().sum((0, 1))
    both = moved[pairs].all(dim=1) if precision < 1e-5 else torch.zeros_like(explained)
    pairs, angles, turned = (
        pairs[explained | both],
        angles[:, explained | both],
        turned[..., explained | both],
    )
    predicted = start.expand_as(vectors).clone()
    predicted[..., pairs[:, 0]], predicted[..., pairs[:, 1]] = turned.real, turned.imag
    residual = ((predicted - vectors).square().sum() / vectors.square().sum()).sqrt().item()
    return pairs, angles[-1] / max(len(angles) - 1, 1), angles, residual


def _unwrap(angles: Tensor) -> Tensor:
    """Angles (T, P) that start at 0, each less than half a turn from the one before."""
    steps = torch.diff(angles, dim=0, prepend=torch.zeros_like(angles[:1]))
    return (steps - 2 * torch.pi * (steps / (2 * torch.pi)).round()).cumsum(0)
