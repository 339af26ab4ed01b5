"""Read a rotary encoding from the outside, as matrices, and name its convention.

A rotation is a function of vectors and positions. Fed with the unit vectors it hands out the columns of its matrix
R(p), and what can be known of it stands there: which dimensions make a pair, how fast each pair turns and which way
round, what position 0 does, the factor on the length, and where digits were lost.

Conventions: pair i turns by direction · scale · (p + offset) · base^(-2i / rotary_dim) radians at position p,
counter-clockwise from its first dimension to its second. In "interleaved" a pair is (2i, 2i + 1), in "half_split"
(i, i + rotary_dim / 2).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

Rotate = Callable[[Tensor, Tensor], Tensor]

LOW = {"bfloat16": torch.bfloat16, "float16": torch.float16}
_EXACT = ("float64", "float64 angles", "float32 angles", "float32 or better")
STAGES = ("positions", "speeds", "angles", "tables")
_NAMED = {"π/180 (degrees)": math.pi / 180, "2π": 2 * math.pi, "π": math.pi}
_NOISE = 1e-6  # of an entry of R(p) that was computed in float32


@dataclass(frozen=True, repr=False)
class Convention:
    """What a rotation does, or is meant to do. What cannot be told is None, and `unknown` says why.

    Args:
        head_dim: size of one head.
        layout: "interleaved" or "half_split"; or what is mixed up, in words.
        rotary_dim: how many dimensions are turned; all unless given.
        start: the first of them.
        base: pair i turns at scale · base^(-2i / rotary_dim) radians a position.
        direction: +1 counter-clockwise, -1 clockwise.
        scale: factor on all positions.
        offset: added to all positions.
        length: factor on the norm of what is turned.
        precision: where digits are lost, "float32 angles" or "bfloat16 positions" for example.
        scaling: what slows only some of the pairs, in words; "" for nothing.
        speeds: radians a position of each pair, signed, float64, shape (pairs,).
        order: where each dimension of the result comes from, for a rotation that puts them in another order; () for
            their own. Where queries and keys both are, no score changes, so `differs` does not look at it.
        depends_on: what else the result depends on, besides the vector and its position.
        notes: what else was seen.
        unknown: field → why it cannot be told.
        probed_to: the largest position that was tried.
    """

    head_dim: int
    layout: str | None = "half_split"
    rotary_dim: int | None = -1
    start: int | None = 0
    base: float | None = 10_000.0
    direction: int | None = 1
    scale: float | None = 1.0
    offset: float | None = 0
    length: float | None = 1.0
    precision: str | None = "float64 angles"
    scaling: str | None = ""
    speeds: Tensor | None = field(default=None, compare=False)
    order: tuple[int, ...] = ()
    depends_on: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    probed_to: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.rotary_dim == -1:
            object.__setattr__(self, "rotary_dim", self.head_dim)

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turn x, shape (…, T, head_dim), by integer positions, shape (T,) or one that broadcasts to (…, T).

        Angles are float64, whatever `precision` says.

        Raises:
            ValueError: the convention is not known well enough to be applied.
        """
        missing = [
            name for name in ("rotary_dim", "start", "offset", "length") if getattr(self, name) is None
        ]
        if self.layout not in ("interleaved", "half_split") and self.rotary_dim != 2:
            missing.append("layout")
        if missing or self.depends_on:
            raise ValueError(
                f"this convention cannot be applied: unclear are {', '.join(missing) or 'its positions'}"
            )
        speeds = self.speeds
        if speeds is None:
            pair = torch.arange(self.rotary_dim // 2, dtype=torch.float64, device=x.device)
            speeds = self.direction * self.scale * self.base ** (-2 * pair / self.rotary_dim)
        theta = (positions.double() + self.offset)[..., None] * speeds.to(x.device)
        dtype = torch.promote_types(x.dtype, torch.float32)
        cos, sin = (self.length * part.to(dtype) for part in (theta.cos(), theta.sin()))
        part = x[..., self.start : self.start + self.rotary_dim].to(dtype)
        shape, axis = ((-1, 2), -1) if self.layout == "interleaved" else ((2, -1), -2)
        first, second = part.unflatten(-1, shape).unbind(axis)
        turned = torch.stack([first * cos - second * sin, second * cos + first * sin], dim=axis).flatten(-2)
        before, after = x[..., : self.start], x[..., self.start + self.rotary_dim :]
        turned = torch.cat([before, turned.to(x.dtype), after], dim=-1)
        return turned[..., list(self.order)] if self.order else turned

    @classmethod
    def from_config(cls, config: Any, *, layer: int | None = None, longest: int = 1024) -> "Convention":
        """What a configuration of transformers asks for, of one head's part that is turned.

            >>> config = {"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32, "rope_theta": 500000.0}
            >>> found = convention(Convention(64, base=10_000.0).rotate, 64)
            >>> found.differs(Convention.from_config(config))
            'base 10,000, expected 500,000'

        In a test of your own: `assert not convention(f, 64).differs(Convention.from_config(model.config))`.

        Args:
            config: the configuration, or the contents of its config.json.
            layer: which layer, where layers differ.
            longest: the length of the text, as in `convention`: dynamic and LongRoPE scaling depend on it.

        Raises:
            ValueError: the model_type or the scaling is not known, a number is missing, or layers differ and none
                was named.
        """
        from posenc.probe.expected import from_config

        return from_config(config, layer=layer, longest=longest)

    def differs(self, expected: "Convention") -> str:
        """What was read and is not as expected, in words; empty if all is.

        Speeds count, and not what they are called; `precision`, notes and how far it was probed do not.
        """
        from posenc.probe.expected import differs

        return differs(self, expected)

    def __repr__(self) -> str:
        return ", ".join(self._words()) + "".join(f"; {line}" for line in self._lines())

    def _words(self) -> Iterator[str]:
        """The sentence."""
        if self.rotary_dim == 0:
            yield "turns nothing"
            return
        if self.rotary_dim is None:
            yield "not readable as a rotation"
            return
        yield {"half_split": "half-split", None: "layout unknown"}.get(self.layout, self.layout)
        if self.rotary_dim == self.head_dim:
            yield f"all {self.head_dim} dimensions"
        else:
            where = (
                "first"
                if self.start == 0
                else "last"
                if self.start == self.head_dim - self.rotary_dim
                else None
            )
            which = f"the {where} {self.rotary_dim}" if where else f"{self.rotary_dim} from {self.start} on"
            yield f"{which} of {self.head_dim} dimensions"
        if self.base is None and self.direction is None and self.length is None:
            yield "no rotation"
            return
        yield "base unknown" if self.base is None else f"base {spoken_number(self.base)}"
        if self.scaling:
            yield self.scaling
        yield {1: "counter-clockwise", -1: "clockwise", None: "direction unknown"}[self.direction]
        if self.scale is None:
            yield "scale unknown"
        elif self.scale != 1:
            inverse = 1 / self.scale
            whole = self.scale < 1 and abs(inverse - round(inverse, 3)) < 1e-9 * inverse
            named = [name for name, value in _NAMED.items() if abs(self.scale / value - 1) < 1e-6]
            factor = named[0] if named else spoken_number(self.scale)
            yield f"positions ÷ {spoken_number(round(inverse, 3))}" if whole else f"positions × {factor}"
        if self.offset is None:
            yield "offset unknown"
        elif self.offset:
            yield f"offset {'+' if self.offset > 0 else '−'}{spoken_number(abs(self.offset))}"
        if self.length is None:
            yield "length unknown"
        elif self.length != 1:
            yield f"length × {spoken_number(self.length)}"
        yield self.precision or "precision unknown"

    def _lines(self) -> Iterator[str]:
        """What stands behind the sentence."""
        if self.depends_on:
            yield "depends on " + ", ".join(self.depends_on)
        yield from self.notes
        for reason in dict.fromkeys(self.unknown.values()):
            names = [name for name, other in self.unknown.items() if other == reason]
            what = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
            yield reason if self.rotary_dim in (0, None) else f"{what}: cannot tell, {reason}"
        if self.probed_to is not None:
            yield f"probed up to position {self.probed_to:,}"


def convention(
    rotate: Rotate,
    head_dim: int,
    *,
    longest: int = 1024,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Convention:
    """Name the convention of a rotation from what it does to the unit vectors.

        >>> from posenc.rotary import angles, rotate
        >>> convention(lambda x, positions: rotate(x, angles(positions, 64)), 64)
        interleaved, all 64 dimensions, base 10,000, counter-clockwise, float64 angles; probed up to position 1,023

    Args:
        rotate: (x, positions) → x turned, with x of shape (B, H, T, head_dim) and integer positions (T,), which
            may start anywhere, repeat and come in any order. Wrap what takes other shapes:
            `lambda x, positions: apply_rotary(x, cos[positions], sin[positions])`.
        head_dim: size of one head.
        longest: positions 0 to longest - 1 are tried. What happens beyond is not seen: choose more to meet a
            switch, less for a short table.
        dtype: of the vectors.
        device: where they are.

    Returns:
        the convention, with None for what cannot be told and the reason in `unknown`. Its repr is a sentence.

    Raises:
        ValueError: the result has another shape, or longest or head_dim is too small. What rotate raises is raised.
    """
    if head_dim < 2 or longest < 64:
        raise ValueError(
            f"head_dim is {head_dim} and longest {longest}: at least 2 and 64 are needed to see a turn"
        )
    probe = _Probe(rotate, head_dim, longest, dtype, device)
    with torch.no_grad():
        found: dict = {"head_dim": head_dim, "probed_to": longest - 1}
        unknown: dict[str, str] = {}
        depends, notes = probe.dependence()
        found |= {"depends_on": tuple(depends), "unknown": unknown}
        blind = {"the row of the batch", "the head", "the content of x: it is not linear"} & set(depends)
        if blind or any(reason.startswith("the place") for reason in depends):
            return _nothing(found, unknown, "it depends on more than the position", notes)
        positions = probe.positions()
        matrices = probe.matrices(positions)  # (P, head_dim out, head_dim in)
    if not matrices.isfinite().all():
        return _nothing(found, unknown, "some results are not finite", notes)
    read = read_matrices(matrices, positions, head_dim, frozen=not depends)
    read["notes"] = tuple(notes) + tuple(read.get("notes", ()))
    if probe.results and read.get("precision"):
        read["precision"] = read["precision"].replace(f"{probe.results} tables", f"{probe.results} results")
    unknown.update(read.pop("unknown", {}))
    return Convention(**(found | read))


class _Probe:
    """A rotation, asked."""

    def __init__(self, rotate: Rotate, head_dim: int, longest: int, dtype: torch.dtype, device):
        self.rotate, self.head_dim, self.longest = rotate, head_dim, longest
        self.dtype, self.device = dtype, device
        self.in_place = self.other_dtype = self.results = None

    def __call__(self, x: Tensor, positions: Sequence[int] | Tensor) -> Tensor:
        x = x.to(self.dtype).to(self.device)
        given = x.clone()
        got = self.rotate(given, torch.as_tensor(positions, device=self.device))
        if not isinstance(got, Tensor) or got.shape != x.shape:
            what = f"shape {tuple(got.shape)}" if isinstance(got, Tensor) else f"a {type(got).__name__}"
            raise ValueError(
                f"rotate gave {what} for x of shape {tuple(x.shape)}: wrap it so that both are the same"
            )
        if not torch.equal(given, x):
            self.in_place = True
        if got.dtype != x.dtype:
            self.other_dtype = got.dtype
        return got.double().cpu()

    def positions(self) -> Tensor:
        """Dense at the start, then powers of two, and others between them: those keep all their digits for longer."""
        powers = [2**k for k in range(20) if 2**k < self.longest]
        steps = torch.linspace(41, self.longest - 1, 40).long().tolist()
        near = [p + d for p in powers for d in (-1, 1, 3) if p > 64 and p + d < self.longest]
        return torch.tensor(sorted({*range(40), *powers, *steps, *near, self.longest - 1}))

    def matrices(self, positions: Tensor) -> Tensor:
        units = torch.eye(self.head_dim)[:, None, None].expand(-1, 1, len(positions), -1)
        return self(units, positions)[:, 0].permute(1, 2, 0)

    def dependence(self) -> tuple[list[str], list[str]]:
        """What the result depends on besides the vector and its position, and what else is odd."""
        generator = torch.Generator().manual_seed(0)
        v, w = torch.randn(2, self.head_dim, generator=generator)
        far = self.longest - 1

        def at(positions, x=v, rows=1, heads=1):
            return self(x.expand(rows, heads, len(positions), -1), positions)

        found = []
        places = [5, 31, 9, 40, 11, 60]
        shifted = [p + 2 for p in places]
        once, again, longer = at(places), at(shifted), at([*shifted, 20, 33])[..., :6, :]
        first = at([7, 3, 57, 3, 61], rows=2, heads=3)
        size = first[0, 0].norm(dim=-1).max()
        if not size.isfinite():
            return [], []

        def differ(a: Tensor, b: Tensor) -> bool:
            return bool((a - b).abs().max() > 0.01 * size)

        if not differ(once, again) and differ(again, longer):
            return ["the calls before, of the same length"], []
        if differ(first, first[:1]):
            found.append("the row of the batch")
        if differ(first[:, :1], first):
            found.append("the head")
        lone = first[:1, :1]
        if differ(lone[..., 1, :], lone[..., 3, :]):
            blind = not differ(lone, at([17, 23, 7, 13, 2]))
            found.append("the place in the sequence" + (" and not on the positions given" if blind else ""))
        middle = self.longest // 4 + 1
        company = at([middle, 3, far])
        if found[-1:] and found[-1].startswith("the place"):
            return found, []
        if differ(at([middle]), company[..., :1, :]) or differ(at([3]), company[..., 1:2, :]):
            found.append("the other positions of the call")
        if differ(at([7, 3, 57, 3, 61], rows=2, heads=3), first):
            found.append("the calls before")
        mixed = at([middle, 3, far], x=2 * v + w)
        if differ(mixed, 2 * company + at([middle, 3, far], x=w)) and "the calls before" not in found:
            found.append("the content of x: it is not linear")
        notes = []
        self.results = next(
            (n for n, low in LOW.items() if torch.equal(company, company.to(low).double())), None
        )
        if self.in_place:
            notes.append("changes its input in place")
        if self.other_dtype is not None:
            notes.append(f"gives {str(self.other_dtype)[6:]} for {str(self.dtype)[6:]}")
        return found, notes


def read_matrices(matrices: Tensor, positions: Tensor, head_dim: int, *, frozen: bool = True) -> dict:
    """Name what a sequence of matrices does.

    Args:
        matrices: R(p), shape (P, head_dim, head_dim), float64, for column vectors.
        positions: P integers, ascending; 0, 1 and the powers of two up to the largest are among them.
        frozen: whether R depends on p alone; otherwise speeds are not named.

    Returns:
        fields of a Convention.
    """
    unknown: dict[str, str] = {}
    found: dict = {"unknown": unknown}
    order = matrices[0].argmax(dim=1)
    if order.tolist() != sorted(order.tolist()) and torch.equal(
        matrices[0], torch.eye(head_dim).double()[order]
    ):
        found |= {"order": tuple(order.tolist()), "notes": ("it puts the dimensions in another order",)}
        matrices = matrices[0].mT @ matrices
    away = (matrices - torch.eye(head_dim, dtype=matrices.dtype)).abs().amax(dim=0)  # (out, in)
    dims = (away.amax(dim=1) > _NOISE).nonzero().flatten().tolist()
    if not dims:
        return found | {"rotary_dim": 0, "speeds": torch.zeros(0)} | _without(unknown, "nothing is turned")
    crossed = away.clone().fill_diagonal_(0)
    partner = crossed.argmax(dim=1).tolist()
    alone = [j for j in dims if crossed[j].max() <= _NOISE]
    second = crossed.topk(min(2, head_dim - 1), dim=1).values
    if head_dim > 2 and second[dims, 1].max() > _NOISE:
        return _nothing_read(
            found, unknown, "it mixes more than two dimensions, so it is no rotation of pairs"
        )
    if alone and len(alone) == len(dims):
        return _nothing_read(found, unknown, "no dimension meets another one")
    if alone or any(partner[partner[j]] != j for j in dims):
        return _nothing_read(found, unknown, "its dimensions do not go in pairs")

    pairs = sorted({(min(j, partner[j]), max(j, partner[j])) for j in dims})
    a, b = torch.tensor(pairs).T
    z_a = torch.complex(matrices[:, a, a], -matrices[:, a, b])  # what the first dimension's row turns by
    z_b = torch.complex(matrices[:, b, b], matrices[:, b, a])
    found |= _layout(pairs, head_dim, unknown)
    if (z_a - z_b).abs().max() > 0.02 * z_a.abs().max():
        return found | _no_rotation(found, pairs, z_a, z_b, positions, unknown)
    z = (z_a + z_b) / 2  # (P, pairs)
    found |= _lengths(z, unknown)
    if found["length"] is None:
        z = z / z.abs().clamp(min=1e-30)
    found |= _speeds(z, positions, found, unknown, frozen)
    return found


def _layout(pairs: list[tuple[int, int]], head_dim: int, unknown: dict[str, str]) -> dict:
    """Which dimensions are turned, and which make a pair."""
    dims = sorted(j for pair in pairs for j in pair)
    size, start = len(dims), dims[0]
    found: dict = {"rotary_dim": size, "start": start, "layout": None}
    if dims == list(range(start, start + size)):
        if size == 2:
            unknown["layout"] = "with one pair the layouts are the same"
        elif pairs == [(start + 2 * i, start + 2 * i + 1) for i in range(size // 2)]:
            found["layout"] = "interleaved"
        elif pairs == [(start + i, start + i + size // 2) for i in range(size // 2)]:
            found["layout"] = "half_split"
    elif pairs == [(i, i + head_dim // 2) for i in range(size // 2)]:
        found |= {"layout": "half_split", "rotary_dim": head_dim}
        found["notes"] = (f"of its {head_dim // 2} pairs, those from {size // 2} on stand still",)
    if found["layout"] is None and "layout" not in unknown:
        shown = ", ".join(map(str, pairs[:3]))
        unknown["layout"] = f"its pairs are {shown}{', …' if len(pairs) > 3 else ''}"
    return found


def _no_rotation(
    found: dict, pairs: list, z_a: Tensor, z_b: Tensor, positions: Tensor, unknown: dict
) -> dict:
    """The two rows of a pair turn by different angles."""
    if (z_a - z_b.conj()).abs().max() < 0.02 * z_a.abs().max():
        reason = "both sines have the same sign, so it is no rotation and lengths change"
        return {"layout": f"{_spoken(found['layout'])} pairs"} | _without(unknown, reason)
    rows = torch.cat([_velocity(z / z.abs().clamp(min=1e-30), positions)[0].abs() for z in (z_a, z_b)])
    dims = torch.tensor([pair[0] for pair in pairs] + [pair[1] for pair in pairs])
    rows = rows[dims.argsort()]  # the speed of every turned dimension

    def same(x: Tensor, y: Tensor) -> bool:
        return bool(((x - y).abs() <= 0.01 * y.abs()).all())

    half = len(rows) // 2
    tables = []
    if same(rows[0::2], rows[1::2]):
        tables.append("interleaved")
    if same(rows[:half], rows[half:]):
        tables.append("half-split")
    reason = "the two dimensions of a pair turn by different angles, so it is no rotation"
    layout = found["layout"]
    if len(tables) == 1 and layout is not None:
        found["layout"] = f"{_spoken(layout)} turn with an {tables[0]} table".replace("an half", "a half")
    return {"layout": found["layout"]} | _without(unknown, reason)


def _lengths(z: Tensor, unknown: dict[str, str]) -> dict:
    """The factor on the norm, if there is one."""
    sizes = z.abs()
    middle = sizes.median().item()
    if (sizes - middle).abs().max() < 0.01 * middle:
        return {"length": 1.0 if abs(middle - 1) < 2e-6 else middle}
    over_positions = (sizes.amax(0) - sizes.amin(0)).max()
    low, high = sizes.min().item(), sizes.max().item()
    what = "the position" if over_positions > 0.01 * middle else "the pair"
    unknown["length"] = f"it depends on {what}: {low:.3g} to {high:.3g}"
    return {"length": None}


def _velocity(u: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Radians a position of every pair, and up to which position they were followed.

    From one power of two to the next the angle is known well enough to count the full turns.
    """
    place = {p: index for index, p in enumerate(positions.tolist())}
    still = u[place[0]].conj()
    speed = (u[place[1]] * still).angle()
    reach = torch.ones_like(speed)
    going = torch.ones_like(speed, dtype=torch.bool)
    step = 2
    while step in place:
        expected = speed * step
        surplus = (u[place[step]] * still * torch.polar(torch.ones_like(expected), -expected)).angle()
        going &= surplus.abs() < 0.3
        speed = torch.where(going, (expected + surplus) / step, speed)
        reach = torch.where(going, torch.full_like(reach, step), reach)
        step *= 2
    places = positions[:, None].double()
    rest = (u * still * torch.polar(torch.ones_like(u.real), -places * speed)).angle()
    near = places <= reach
    steady = ((rest.abs() < 0.05) | ~near).all(dim=0)  # otherwise digits are lost between the powers of two
    better = (places * rest * near).sum(dim=0) / (places**2 * near).sum(dim=0)
    return speed + better * steady, reach


def _speeds(z: Tensor, positions: Tensor, found: dict, unknown: dict[str, str], frozen: bool) -> dict:
    """Base, direction, scale, offset and precision."""
    u = z / z.abs()
    speed, reach = _velocity(u, positions)
    result: dict = {"speeds": speed, "base": None, "scale": None, "offset": None, "precision": None}
    slow = speed[len(speed) // 2 :]
    signs = slow.sign().unique()
    result["direction"] = int(signs.item()) if len(signs) == 1 and signs.item() else None
    if result["direction"] is None:
        unknown["direction"] = "some pairs turn one way round and some the other"
    if not frozen or found["length"] is None or result["direction"] is None:
        reason = "R depends on more than the position" if not frozen else "this is no plain rotation"
        for name in ("base", "scale", "offset", "precision"):
            unknown[name] = reason
        return result

    rotary_dim = found["rotary_dim"]
    exponents = 2 * torch.arange(len(speed), dtype=torch.float64) / rotary_dim
    shapes = _shapes(speed, reach, exponents)
    best: tuple | None = None
    offset = _offset(u[0], speed, positions)
    offsets = [] if offset is None else list(dict.fromkeys([float(round(offset)), offset]))
    for shape in shapes if offsets else ():
        for series, base, scale, remarks in _series(shape, speed, exponents, result["direction"]):
            for candidate in offsets:
                recipe = _recipe(z, positions, series, candidate, scale)
                if recipe is not None and shape["kind"] != "one" and series is speed:
                    recipe = _rounded_speeds(speed, shape, recipe)
                if recipe is not None:
                    best = (shape, series, base, scale, candidate, remarks, recipe)
                    break
            if best:
                break
        if best:
            break
    if best is None:
        return result | _unexplained(z, speed, shapes, positions, unknown)

    shape, series, base, scale, offset, remarks, (precision, length, rivals) = best
    if base is not None and base < 1:
        remarks += ("its pairs get faster, not slower",)
    if base == 1:
        remarks += ("all its pairs turn at one speed",)
    result |= {"base": base, "scale": scale, "offset": int(offset) if offset == round(offset) else offset}
    result |= {"precision": precision, "speeds": series, "scaling": shape.get("scaling", "")}
    if abs(length - 1) < 2e-6 or abs(length - 1) < 3e-3 and precision not in _EXACT:
        length = 1.0
    result["length"] = length
    if precision is None:
        unknown["precision"] = f"these give the same up to here: {', or '.join(rivals)}"
    if base is None:
        unknown["base"] = shape["why"]
    result["notes"] = tuple(found.get("notes", ())) + tuple(shape.get("notes", ())) + remarks
    return result


def _shapes(speed: Tensor, reach: Tensor, exponents: Tensor) -> list[dict]:
    """How the speeds might be made: powers of one base, or those with the slow ones slowed more."""
    size, pairs = speed.abs(), len(speed)
    if pairs == 1:
        return [{"kind": "one", "why": "there is one pair, and its speed does not depend on the base"}]
    if (size <= 0).any():
        return []
    logs = size.log()
    weight = (size * reach).clamp(max=1.0) ** 2
    shapes = []
    for first in range(max(1, pairs - 2)):  # a first pair may turn by more than half a turn a position
        scale, base, off = _line(exponents[first:], logs[first:], weight[first:])
        if off < 8e-3:
            whole = scale - exponents * base  # logs of the series
            turned = torch.polar(torch.ones(first, dtype=torch.float64), (size - whole.exp())[:first])
            back = torch.polar(torch.ones(first, dtype=torch.float64), (-size - whole.exp())[:first])
            if first and min((turned - 1).abs().max(), (back - 1).abs().max()) > 0.05:
                break
            if first and whole[:first].min().exp() < 2.5:
                break
            shapes.append({"kind": "powers", "base": math.exp(base), "scale": math.exp(scale), "off": off})
            break
        if first == 0 and logs[0].exp() < 2.0:
            break  # nothing can be wrapped
    shapes += _ramps(size, exponents, logs, weight)
    return shapes


def _line(x: Tensor, y: Tensor, weight: Tensor) -> tuple[float, float, float]:
    """Weighted fit of y = a - b·x: a, b, and the largest miss, in units that let badly known points miss more."""
    total = weight.sum()
    mx, my = (weight * x).sum() / total, (weight * y).sum() / total
    spread = (weight * (x - mx) ** 2).sum()
    slope = -((weight * (x - mx) * (y - my)).sum() / spread).item() if spread > 0 else 0.0
    start = (my + slope * mx).item()
    off = ((y - start + slope * x).abs() * weight.sqrt()).max().item()
    return start, slope, off


def _ramps(size: Tensor, exponents: Tensor, logs: Tensor, weight: Tensor) -> list[dict]:
    """The fast pairs untouched, the slow ones divided, a ramp between: llama3 and YaRN."""
    pairs = len(size)
    for tolerance in (3e-6, 8e-3):
        for untouched in range(pairs - 2, 2, -1):
            scale, base, off = _line(exponents[:untouched], logs[:untouched], weight[:untouched])
            if off < tolerance:
                break
        else:
            continue
        if base <= 0:
            return []
        ratio = (logs - (scale - exponents * base)).exp()
        last = ratio[-1].item()
        divided = 0
        while (
            divided < pairs and abs(ratio[pairs - 1 - divided].item() / last - 1) < max(tolerance, 1e-4) * 2
        ):
            divided += 1
        middle = ratio[untouched : pairs - divided]
        falling = bool((middle.diff() < 1e-3).all()) and bool(
            ((middle < 1.001) & (middle > 0.999 * last)).all()
        )
        if divided < 2 or last > 0.98 or not falling:
            continue
        kept = (middle - last) / (1 - last)
        where = torch.arange(untouched, pairs - divided, dtype=torch.float64)
        speeds = (scale - exponents * base).exp()[untouched : pairs - divided]
        kinds = []
        if len(middle) >= 3:
            limit = 2e-4 if tolerance < 1e-4 else 1e-2
            kinds = [
                name
                for name, by in (("llama3", speeds), ("YaRN", where))
                if _line(by, kept, torch.ones_like(kept))[2] < limit
            ]
        kind = kinds[0] if len(kinds) == 1 else ""
        factor = _rounded(1 / last, 2e-3 if tolerance > 1e-4 else 1e-5)
        named = f"{kind} scaling" if kind else "scaling of unknown kind"
        return [
            {
                "kind": "ramp",
                "base": math.exp(base),
                "scale": math.exp(scale),
                "off": tolerance,
                "scaling": f"{named}, pairs from {pairs - divided} on divided by {spoken_number(factor)}",
                "notes": () if kind else ("its ramp is too short to tell llama3 from YaRN",),
            }
        ]
    return []


def _series(shape: dict, speed: Tensor, exponents: Tensor, direction: int) -> Iterator[tuple]:
    """Speeds to try, the roundest numbers first: (speeds, base, scale, notes)."""
    if shape["kind"] == "one":
        for scale in [*_round_numbers(speed.abs().item(), 1e-2), speed.abs().item()]:
            yield direction * torch.full_like(speed, scale), None, scale, ()
        return
    if shape["kind"] == "ramp":
        near = 1e-2 if shape["off"] > 1e-4 else 1e-4
        yield speed, _rounded(shape["base"], near), _rounded(shape["scale"], near), ()
        return
    base, scale, pairs = shape["base"], shape["scale"], len(speed)
    scales = [*_round_numbers(scale, 2.5e-2), *_NAMED.values()]
    scales = [number for number in scales if abs(number / scale - 1) < 2.5e-2]
    bases = [(number, ()) for number in _round_numbers(base, 5e-2, inverses=False)]
    for number in _round_numbers(base ** ((pairs - 1) / pairs), 1e-4, inverses=False)[:1]:
        note = f"this is base {spoken_number(number)} with the exponent i/(pairs − 1), so that the last pair reaches it"
        bases.append((number ** (pairs / (pairs - 1)), (note,)))
    bases.append((base, ()))
    for number in scales:
        for root, notes in bases:
            yield direction * number * root**-exponents, root, number, notes
    yield direction * scale * base**-exponents, base, scale, ()
    if shape["off"] > 1e-5:
        note = "its base is known to three digits only"
        yield speed, float(f"{base:.3g}"), _rounded(scale, 1e-2), (note,)


def _rounded_speeds(speed: Tensor, shape: dict, recipe: tuple) -> tuple | None:
    """What speeds that were measured, not made from a base, say about their digits."""
    precision, length, rivals = recipe
    for name, low in LOW.items():
        if (speed.to(low).double() / speed - 1).abs().max() < 2e-6:
            rest = "" if precision in _EXACT else f" and {precision}"
            return f"{name} speeds{rest}", length, rivals
    return recipe if shape["kind"] == "ramp" else None


def _round_numbers(value: float, near: float, *, inverses: bool = True) -> list[float]:
    """Round numbers, and inverses of round numbers, within a relative distance, the roundest first."""
    found = []
    for digits in range(1, 5):
        numbers = [float(f"{value:.{digits - 1}e}")]
        if inverses:
            numbers.append(1 / float(f"{1 / value:.{digits - 1}e}"))
        found += [n for n in numbers if abs(n / value - 1) <= near and n not in found]
    return found


def _rounded(value: float, near: float) -> float:
    """The roundest number within a relative distance, or the value itself."""
    return next(iter(_round_numbers(value, near)), value)


def _offset(start: Tensor, speed: Tensor, positions: Tensor) -> float | None:
    """The position that position 0 is turned as: from the slowest pair, then ever finer."""
    angle = start.angle()
    if angle.abs().max() < 1e-5:
        return 0.0

    def fits(offset: Tensor) -> Tensor:
        theta = offset[..., None] * speed
        miss = (start * torch.polar(torch.ones_like(theta), -theta)).angle().abs()
        return (miss - 0.05 - theta.abs() / 256).amax(dim=-1)

    offset = 0.0
    for pair in reversed(range(len(speed))):
        rest = (angle[pair] - speed[pair] * offset).item()
        offset += math.remainder(rest, 2 * math.pi) / speed[pair].item()
    if fits(torch.tensor(offset).double()) < 0:
        return offset
    # a slow pair knows its angle badly in half precision: look for the whole number that fits all pairs
    whole = torch.arange(-int(positions[-1]), int(positions[-1]) + 1, dtype=torch.float64)
    miss = fits(whole)
    return whole[miss.argmin()].item() if miss.min() < 0 else None


def _recipe(
    z: Tensor, positions: Tensor, series: Tensor, offset: float, scale: float | None
) -> tuple[str | None, float, list[str]] | None:
    """Where digits are lost: of all ways to lose them, the ones that give exactly these numbers.

    Returns:
        the precision, the factor on the length, and what cannot be told apart; None if nothing explains them.
    """
    places = positions.double() + offset
    theta = places[:, None] * series
    exact = torch.polar(torch.ones_like(theta), theta)
    near = theta.abs() <= max(16.0, 1.5 * theta.abs().min().item())  # a large offset leaves nothing small
    length = _factor(torch.where(near, z, 0), torch.where(near, exact, 0))
    miss = (z / length - exact).abs()
    if (miss <= 2 * _NOISE + 5e-7 * theta.abs()).all():
        if abs(length - 1) < 1e-12 and miss.max() < 1e-11:
            return "float64", length, []
        if theta.abs().max() < 40:
            return "float32 or better", length, []
        # a slow drift is a base that is known to a few digits only
        return ("float64 angles" if miss.max() < 4e-7 else "float32 angles"), length, []

    if miss[near].max() > 0.16:
        return None  # no loss of digits is as large as that

    explained: list[str] = []
    factor = length
    for count in range(1, len(STAGES) + 1):
        for name, low in LOW.items():
            for stages in combinations(STAGES, count):
                size = _reproduced(z, places, series, scale, low, stages)
                if size is not None:
                    explained.append(" and ".join(f"{name} {stage}" for stage in stages))
                    factor = size
        if explained:
            break
    if not explained:
        return None
    return (explained[0] if len(explained) == 1 else None), factor, explained


def _factor(z: Tensor, model: Tensor) -> float:
    return ((z * model.conj()).real.sum() / (model.abs() ** 2).sum()).item()


def _reproduced(
    z: Tensor, places: Tensor, series: Tensor, scale: float | None, low: torch.dtype, stages: Sequence[str]
) -> float | None:
    """The factor on the length if these stages in low precision give z, else None."""

    def cut(x: Tensor, stage: str) -> Tensor:
        return x.to(low).double() if stage in stages else x

    if "positions" in stages and torch.equal(cut(places, "positions"), places) and scale in (None, 1.0):
        return None  # this loses nothing, so it explains nothing
    scale = scale or 1.0
    orders = [(1.0, series)]  # the scale may be part of the speeds or of the positions
    if scale != 1:
        orders += [(scale, series / scale)]
    for factor, speeds in orders:
        at = cut(places * factor, "positions")
        ways = [at, cut(places, "positions") * factor] if factor != 1 and "positions" in stages else [at]
        for at in ways:
            theta = cut(at[:, None].float().double() * cut(speeds, "speeds"), "angles")
            turn = torch.polar(torch.ones_like(theta), theta)
            plain = torch.complex(cut(turn.real, "tables"), cut(turn.imag, "tables"))
            for size in dict.fromkeys([1.0, _factor(z, plain)]):
                tables = [size * plain]
                if "tables" in stages and size != 1:
                    size = _before_rounding(z, turn, low)
                    tables.append(
                        torch.complex(cut(size * turn.real, "tables"), cut(size * turn.imag, "tables"))
                    )
                for model in tables:
                    miss = (z - model).abs()
                    close = miss <= 3 * _NOISE + 5e-7 * theta.abs()
                    # rounding the other way is spread over all pairs: a wrong pair is more than that
                    spread = close.double().mean(dim=0).min() > 0.85
                    if spread and close.double().mean() > 0.985 and miss.max() < 0.2:
                        return size
    return None


def _before_rounding(z: Tensor, turn: Tensor, low: torch.dtype) -> float:
    """The factor with which the turn's entries round to those of z: every entry leaves it a little room."""
    got, exact = (torch.cat([x.real.flatten(), x.imag.flatten()]) for x in (z, turn))
    large = exact.abs() > 0.05
    got, exact = got[large].abs(), exact[large].abs()
    room = got.log2().floor().exp2() * torch.finfo(low).eps / 2
    ends = torch.stack([(got - room) / exact, (got + room) / exact]).sort(dim=1).values
    few = len(got) // 200  # may be rounded the other way by an angle's last digit
    return ((ends[0, -1 - few] + ends[1, few]) / 2).item()


def _unexplained(z: Tensor, speed: Tensor, shapes: list, positions: Tensor, unknown: dict[str, str]) -> dict:
    """No set of round numbers gives these turns: say what is known all the same."""
    u = z / z.abs()
    if not shapes:
        reason = "its speeds are not the powers of one base, nor those with their slow end divided"
        unknown |= {"base": reason, "scale": reason}
    else:
        unknown |= dict.fromkeys(("base", "scale"), "no base and scale give these turns at all positions")
    result: dict = {}
    turned = torch.polar(torch.ones(len(positions), len(speed)).double(), positions[:, None] * speed)
    parts = torch.view_as_real(z)
    rounded = any(torch.equal(parts, parts.to(low).double()) for low in LOW.values())
    steady = (u - u[0] * turned).abs().max() < (0.02 if rounded else 1e-3)
    if steady and (u[0] - 1).abs().max() < 1e-5:
        result["offset"] = 0
    else:
        unknown["offset"] = (
            "position 0 is turned" if steady else "the turns do not grow evenly with the position"
        )
    unknown["precision"] = "it takes the speeds to tell"
    return result


def _without(unknown: dict[str, str], reason: str) -> dict:
    names = ("base", "direction", "scale", "offset", "length", "precision")
    for name in names:
        unknown[name] = reason
    return dict.fromkeys(names)


def _nothing_read(found: dict, unknown: dict[str, str], reason: str) -> dict:
    unknown |= dict.fromkeys(("layout", "rotary_dim"), reason)
    return found | {"layout": None, "rotary_dim": None, "start": None} | _without(unknown, reason)


def _nothing(found: dict, unknown: dict[str, str], reason: str, notes: list[str]) -> Convention:
    return Convention(**(_nothing_read(found, unknown, reason) | {"notes": tuple(notes)}))


def _spoken(layout: str | None) -> str:
    return {"half_split": "half-split", None: "unknown"}.get(layout, layout)


def spoken_number(value: float) -> str:
    """10,000 or 0.25 or 1.2079."""
    if abs(value - round(value)) < 1e-9 * max(1.0, abs(value)) and abs(value) < 1e15:
        return f"{round(value):,}"
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
