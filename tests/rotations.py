"""Rotations as people write them, right and wrong, each with what is to be read off it.

None of them is made with the course's own `rotate`, nor with a `Convention`.
"""

from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True)
class Setting:
    head_dim: int
    rotary_dim: int
    base: float = 10_000.0
    direction: int = 1
    scale: float = 1.0
    offset: int = 0
    length: float = 1.0


def _speeds(s, dtype=torch.float64):
    return 1.0 / s.base ** (torch.arange(0, s.rotary_dim, 2, dtype=dtype) / s.rotary_dim)


def _places(s, positions, dtype=torch.float64):
    return s.direction * s.scale * (positions.to(dtype) + s.offset)


# ---- ways to turn, given cos and sin of every pair, each (T, pairs)


def by_complex(x, cos, sin):
    z = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * torch.complex(cos.double(), sin.double())).flatten(-2).to(x.dtype)


def by_stack(x, cos, sin):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).reshape(x.shape).to(x.dtype)


def by_halves(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return (x * torch.cat((cos, cos), -1) + torch.cat((-b, a), -1) * torch.cat((sin, sin), -1)).to(x.dtype)


def by_chunks(x, cos, sin):
    a, b = x.split(x.shape[-1] // 2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def by_mixed_table(x, cos, sin):
    """Angles for neighbours, the turn of halves."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    return (x * cos + torch.cat((-b, a), -1) * sin).to(x.dtype)


def by_other_mixed_table(x, cos, sin):
    other = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return (x * torch.cat((cos, cos), -1) + other * torch.cat((sin, sin), -1)).to(x.dtype)


def by_mirror(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos + b * sin, b * cos + a * sin), -1).to(x.dtype)


# ---- ways to get the angles


def low(*stages, dtype=torch.bfloat16):
    """Rounded at these stages, the rest in float64."""

    def tables(s, positions):
        def cut(t, stage):
            return t.to(dtype).double() if stage in stages else t

        speeds = cut(_speeds(s), "speeds")
        at = cut((positions.double() + s.offset) * s.scale, "positions")
        theta = s.direction * cut(at[:, None] * speeds, "angles")
        return s.length * cut(theta.cos(), "tables").float(), s.length * cut(theta.sin(), "tables").float()

    return tables


def exact(s, positions):
    theta = _places(s, positions)[:, None] * _speeds(s)
    return s.length * theta.cos().float(), s.length * theta.sin().float()


def single(s, positions):
    """As transformers does it: speeds, angles and tables in float32."""
    theta = torch.outer(_places(s, positions, torch.float32), _speeds(s, torch.float32))
    return (s.length * theta.cos(), s.length * theta.sin())


def rounded_last(s, positions):
    """The factor on the length is in the table that is rounded."""
    theta = _places(s, positions)[:, None] * _speeds(s)
    return tuple((s.length * part).bfloat16().float() for part in (theta.cos(), theta.sin()))


# ---- whole rotations: name → (maker, layout, precision)

INTERLEAVED, HALVES = "interleaved", "half_split"
_TURNS = {INTERLEAVED: [by_complex, by_stack], HALVES: [by_halves, by_chunks]}
STAGES = [  # what is rounded
    *("tables", "speeds", "angles", "positions", "positions tables", "speeds tables", "positions speeds"),
    "positions speeds angles tables",
]


def _partial(turn, tables):
    def make(s):
        def rotate(x, positions):
            first, rest = x[..., : s.rotary_dim], x[..., s.rotary_dim :]
            return torch.cat((turn(first, *tables(s, positions)), rest), -1)

        return rotate

    return make


def rotations() -> dict[str, tuple]:
    """Those whose every field is to be read: name → (make(setting) → rotate, layout, precision)."""
    found = {}
    for layout, turns in _TURNS.items():
        for turn in turns:
            found[turn.__name__] = (_partial(turn, exact), layout, "float64 angles")
    found["single halves"] = (_partial(by_halves, single), HALVES, "float32 angles")
    found["single stack"] = (_partial(by_stack, single), INTERLEAVED, "float32 angles")
    found["rounded last"] = (_partial(by_stack, rounded_last), INTERLEAVED, "bfloat16 tables")
    for dtype in (torch.bfloat16, torch.float16):
        name = str(dtype)[6:]
        for stages in STAGES:
            if dtype == torch.float16 and "positions" in stages:
                continue  # holds every position that is probed
            turn, layout = (by_halves, HALVES) if len(found) % 2 else (by_stack, INTERLEAVED)
            text = " and ".join(f"{name} {stage}" for stage in stages.split())
            found[text] = (_partial(turn, low(*stages.split(), dtype=dtype)), layout, text)
    return found


def along_heads(s):
    """The axis is taken for (B, T, H, d)."""
    inner = _partial(by_halves, exact)(s)
    return lambda x, positions: inner(x.transpose(1, 2), torch.arange(x.shape[1])).transpose(1, 2)


def dynamic(s, switch=256):
    """The base grows with the longest position of the call."""

    def rotate(x, positions):
        longest = max(int(positions.max()) + 1, switch)
        base = s.base * (2 * longest / switch - 1) ** (s.rotary_dim / (s.rotary_dim - 2))
        return by_halves(x, *exact(replace(s, base=base), positions))

    return rotate
