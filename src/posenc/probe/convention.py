"""The convention of a rotation: what it is, how it is said, and how it is read off from the outside.

A rotation is a function of vectors and positions. Fed with the unit vectors it hands out the columns of its matrix
R(p), and what can be known of it stands there: which dimensions make a pair, how fast each pair turns and which way
round, what position 0 does, the factor on the length, and where digits were lost.

Conventions: pair i turns by direction · scale · (p + offset) · base^(-2i / rotary_dim) radians at position p,
counter-clockwise from its first dimension to its second. In "interleaved" a pair is (2i, 2i + 1), in "half_split"
(i, i + rotary_dim / 2).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from posenc.probe.departing import departing, departure
from posenc.probe.matrices import Asked, Rotate
from posenc.probe.precision import recipe
from posenc.probe.reading import nothing_read, read_matrices
from posenc.probe.speeds import SCALES, spoken_number

_LOSES_PLACES = re.compile(r"float16 (positions|angles)")
_BLIND = ("the row of", "the head", "the content of x", "the place")


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
        mistaken_for: name → the speeds that a configuration names for other lengths, which `differs` looks for.
        order: where each dimension of the result comes from, for a rotation that puts them in another order; () for
            their own. Where queries and keys both are, no score changes, so `differs` does not look at it.
        depends_on: what else the result depends on, besides the vector and its position.
        besides: what it does besides, in words: which heads it exchanges, or what it does from some position on. The
            other fields hold without it.
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
    mistaken_for: Mapping[str, Tensor] = field(default_factory=dict, compare=False)
    order: tuple[int, ...] = ()
    depends_on: tuple[str, ...] = ()
    besides: str = ""
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
        missing = [name for name in ("rotary_dim", "start", "offset", "length") if getattr(self, name) is None]
        if self.layout not in ("interleaved", "half_split") and self.rotary_dim != 2:
            missing.append("layout")
        if missing or self.depends_on:
            raise ValueError(f"this convention cannot be applied: unclear are {', '.join(missing) or 'its positions'}")
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
            ValueError: the model_type or the scaling is not known, a number is missing, it has no such layer, or layers
                differ and none was named.
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
            where = "first" if self.start == 0 else "last" if self.start == self.head_dim - self.rotary_dim else None
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
            named = [name for name, value in SCALES.items() if abs(self.scale / value - 1) < 1e-6]
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
        if self.besides:
            yield self.besides
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
        longest: positions 0 to longest - 1 are tried. What happens beyond is not seen: choose more to
            meet a switch. Of a table that is shorter only its rows are.
        dtype: of the vectors.
        device: where they are.

    Returns:
        the convention, with None for what cannot be told and the reason in `unknown`. Its repr is a sentence.

    Raises:
        ValueError: the result has another shape, or longest or head_dim is too small. What rotate raises is raised, but for
            an IndexError from position 64 on.
    """
    if head_dim < 2 or longest < 64:
        raise ValueError(f"head_dim is {head_dim} and longest {longest}: at least 2 and 64 are needed to see a turn")
    probe = Asked(rotate, head_dim, longest, dtype, device)
    with torch.no_grad():
        end = probe.ends_at()
        probe.longest = longest = end or longest
        found: dict = {"head_dim": head_dim, "probed_to": longest - 1}
        unknown: dict[str, str] = {}
        depends = probe.dependence()
        besides = [f"it raises an IndexError from position {end:,} on"] if end else []
        besides += [probe.order] if "order" in probe.order or "where T" in probe.order else []
        found |= {"depends_on": tuple(depends), "unknown": unknown}
        if any(reason.startswith(_BLIND) for reason in depends):
            return Convention(
                **nothing_read(found, unknown, "it depends on more than the position"),
                notes=tuple(probe.notes()),
            )
        positions = probe.positions()
        matrices = probe.matrices(positions)  # (P, head_dim out, head_dim in)
        if not matrices.isfinite().all():
            return Convention(**nothing_read(found, unknown, "some results are not finite"), notes=tuple(probe.notes()))
        read = read_matrices(matrices, positions, head_dim, frozen=not depends)
        named = read.get("precision")
        # then whatever departs can be seen; float32 angles far away are off by as much
        evenly = named and not _LOSES_PLACES.search(named) and longest <= 2**17
        if read.get("length") and read.get("pairs") and not depends and (evenly or not named and read["base"] is None):
            turns = probe.turns(read["pairs"], read.get("order"))
            departs = departure(turns)
            if departs and departs >= 64 and not named:
                near = positions < departs
                read = read_matrices(matrices[near], positions[near], head_dim)
                if lost := _lost_everywhere(read, matrices, positions):
                    read["precision"], departs = lost, None
            if departs:
                besides.append(departing(turns, departs))
                if departs < 64 and read["base"] is None:  # then what was measured is no speed
                    read["unknown"] |= dict.fromkeys(("base", "scale", "offset"), "its turns do not grow evenly")
    found["besides"] = "; ".join(besides)
    read.pop("pairs", None)
    read["notes"] = tuple(probe.notes()) + tuple(read.get("notes", ()))
    if probe.results and read.get("precision"):
        read["precision"] = read["precision"].replace(f"{probe.results} tables", f"{probe.results} results")
    unknown.update(read.pop("unknown", {}))
    return Convention(**(found | read))


def _lost_everywhere(read: dict, matrices: Tensor, positions: Tensor) -> str | None:
    """What loses the digits of all positions, where the near ones have told how they turn; None if nothing does."""
    if read["base"] is None or "order" in read or 2 * len(read["pairs"]) != read["rotary_dim"]:
        return None
    a, b = torch.tensor(read["pairs"]).T
    z = torch.complex(matrices[:, a, a], matrices[:, b, a])
    how = recipe(z, positions, read["speeds"], read["offset"] or 0, read["scale"])
    return how[0] if how else None
