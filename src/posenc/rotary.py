"""Rotary position encoding: a query and a key are turned by angles that grow with their positions.

Conventions: positive angles turn counter-clockwise, from the first dimension of a pair to its second.
Pair i turns by base^(-2i/d) radians a position. Positions are integers that may start anywhere and
repeat; they count from 0 in the chapters. A pair's two dimensions are

    interleaved   2i and 2i + 1      RoFormer, GPT-J, Llama's own code
    half-split    i and i + d/2      GPT-NeoX, Llama in transformers
"""

import torch
from torch import Tensor

from posenc.additive import frequencies, require_integers

LAYOUTS = ("interleaved", "half_split")
WIDE = (torch.float32, torch.float64)
CACHED = 2**18  # numbers; 1 MB of float32 stays in the cache of most processors


def angles(positions: Tensor, head_dim: int, *, base: float = 10_000.0) -> Tensor:
    """How far each pair is turned at each position.

    Args:
        positions: integers, shape (…).
        head_dim: d, the size of one head, or of the part of it that is turned; even.
        base: the wavelengths run from 2π to 2π·base^((d-2)/d) positions.

    Returns:
        radians, float64, shape (…, d / 2).

    Raises:
        TypeError: positions are not integers (bfloat16 cannot hold 257).
        ValueError: head_dim is odd or not positive, or base is not positive.

    Source: Su et al. 2021, "RoFormer", section 3.2.2.
    """
    require_integers(positions)
    return positions[..., None].double() * frequencies(head_dim, base=base).to(positions.device)


def rotate(x: Tensor, angles: Tensor, *, layout: str = "interleaved") -> Tensor:
    """Turn every pair of dimensions of every vector.

    The cosines and sines are made at each call; `rotate_by` takes ready ones.

    Args:
        x: queries or keys, shape (…, T, head_dim). It is not changed.
        angles: radians, float32 or float64, shape that broadcasts to (…, T, pairs). With fewer pairs
            than head_dim / 2, the dimensions from 2·pairs on stay as they are.
        layout: "interleaved" or "half_split".

    Returns:
        the shape and dtype of x. float16 and bfloat16 are computed in float32.

    Raises:
        TypeError: x is not floating point, or the angles are neither float32 nor float64.
        ValueError: the layout is unknown, there are more pairs than x has, or the angles' other
            axes do not fit those of x.

    Source: Su et al. 2021, "RoFormer", eq. 34.
    """
    if angles.dtype not in WIDE:
        raise TypeError(
            f"angles are {angles.dtype}: keep them in float32 or float64, since a position times "
            "a frequency needs more digits than half precision has"
        )
    return rotate_by(x, angles.cos(), angles.sin(), layout=layout)


def rotate_by(x: Tensor, cos: Tensor, sin: Tensor, *, layout: str = "interleaved") -> Tensor:
    """Turn every pair of dimensions of every vector, as `rotate` does, by cosines and sines that were made once.

    Where few vectors are turned, one token of a batch or a long text with few heads, making them costs more than
    the turning.

        >>> theta = angles(torch.arange(4096), 64)
        >>> cos, sin = theta.cos().float(), theta.sin().float()  # once, for all layers, texts and steps
        >>> query = torch.randn(1, 8, 1, 64)
        >>> rotate_by(query, cos[[7]], sin[[7]]).shape  # one more token of a text, at position 7
        torch.Size([1, 8, 1, 64])

    Args:
        x, layout: as for `rotate`.
        cos, sin: of the angles, float32 or float64, one shape that broadcasts to (…, T, pairs). Make them of float64
            angles and round once.

    Returns:
        the shape and dtype of x. On a CPU it goes a few tokens at a time where numbers are converted or the tables are
        large, so that these stay in the cache.

    Raises:
        TypeError: x is not floating point, or the tables are neither float32 nor float64.
        ValueError: the layout is unknown, there are more pairs than x has, or the tables' shapes differ or do not
            fit x.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}: choose one of {', '.join(map(repr, LAYOUTS))}")
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}: pass real floating-point queries or keys")
    if cos.dtype not in WIDE or sin.dtype != cos.dtype:
        raise TypeError(f"cos is {cos.dtype} and sin {sin.dtype}: keep both in float32 or in float64")
    pairs = cos.shape[-1]
    if 2 * pairs > x.shape[-1]:
        raise ValueError(
            f"{pairs} angles need {2 * pairs} dimensions, and x has {x.shape[-1]}: pass one angle for two dimensions"
        )
    if cos.shape != sin.shape:
        raise ValueError(f"cos has shape {tuple(cos.shape)} and sin {tuple(sin.shape)}: pass those of the same angles")
    if not _fits(cos.shape[:-1], x.shape[:-1]):
        raise ValueError(
            f"angles of shape {tuple(cos.shape)} do not fit x of shape {tuple(x.shape)}: "
            "all axes but the last must broadcast to those of x, the tokens just before the last"
        )
    dtype = torch.promote_types(x.dtype, torch.float32)
    turn = _formula if torch.compiler.is_compiling() else _eager
    turned = turn(x[..., : 2 * pairs], cos.to(dtype), sin.to(dtype), layout)
    return turned if 2 * pairs == x.shape[-1] else torch.cat([turned, x[..., 2 * pairs :]], dim=-1)


def _formula(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Real and without a loop: a compiler makes one kernel of it, for any T."""
    shape, axis = ((-1, 2), -1) if layout == "interleaved" else ((2, -1), -2)
    first, second = x.to(cos.dtype).unflatten(-1, shape).unbind(axis)
    turned = [first * cos - second * sin, second * cos + first * sin]
    return torch.stack(turned, dim=axis).flatten(-2).to(x.dtype)


def _eager(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """In as few operations as there are, each over numbers that the cache holds."""
    turn = _turn_neighbours if layout == "interleaved" else _turn_halves
    small = x.dtype == cos.dtype and cos.numel() <= CACHED
    if small or x.numel() <= CACHED or x.device.type != "cpu":
        return turn(x.to(cos.dtype), cos, sin).to(x.dtype)
    pieces = _pieces(x, cos, sin)
    return torch.cat([turn(piece.to(cos.dtype), *tables).to(x.dtype) for piece, *tables in pieces], dim=-2)


def _pieces(x: Tensor, cos: Tensor, sin: Tensor) -> list[tuple[Tensor, ...]]:
    """A few tokens of each at a time, so many that their numbers fit into CACHED."""
    tokens = x.shape[-2]
    cos, sin = (table.expand(*table.shape[:-2], tokens, table.shape[-1]) for table in (cos, sin))
    size = max(1, tokens * CACHED // x.numel())
    return list(zip(*(tensor.split(size, dim=-2) for tensor in (x, cos, sin)), strict=True))


def _turn_neighbours(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A pair of neighbours is a complex number, and turning it is one multiplication by e^iθ."""
    pairs = x.unflatten(-1, (-1, 2))
    if any(stride % 2 for stride in (*pairs.stride()[:-1], pairs.storage_offset())) or pairs.stride(-1) != 1:
        pairs = pairs.clone(memory_format=torch.contiguous_format)  # so they cannot be read as complex numbers
    return torch.view_as_real(torch.view_as_complex(pairs) * torch.complex(cos, sin)).flatten(-2)


def _turn_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(a, b) → (a cos θ - b sin θ, b cos θ + a sin θ), where a is the first half of x and b the second."""
    half = x.shape[-1] // 2
    turned = x * torch.cat([cos, cos], dim=-1)
    turned[..., :half].addcmul_(x[..., half:], sin, value=-1)  # makes no third tensor
    turned[..., half:].addcmul_(x[..., :half], sin)
    return turned


def to_half_split(x: Tensor, head_dim: int, *, dim: int = -1, rotary_dim: int | None = None) -> Tensor:
    """Reorder interleaved dimensions for code that turns halves.

    Scores survive when queries and keys are both reordered. For a checkpoint that means the rows
    of the query's and the key's projection, and their biases: to_half_split(weight, head_dim, dim=0).

    Args:
        x: vectors, or a projection's weight or bias; along `dim` stands one head, or several in a row.
        head_dim: size of one head.
        dim: the axis to reorder.
        rotary_dim: how many dimensions of each head are turned, the first ones; all unless given.

    Returns:
        the shape of x, a copy.

    Raises:
        ValueError: rotary_dim is odd or outside 0 to head_dim, or the axis does not hold whole heads.
    """
    order = _interleaved_to_half_split(head_dim, rotary_dim)
    return _reorder(x, order, dim)


def to_interleaved(x: Tensor, head_dim: int, *, dim: int = -1, rotary_dim: int | None = None) -> Tensor:
    """Undo `to_half_split`: reorder halves for code that turns neighbours.

    Args, Returns and Raises: as there.
    """
    order = _interleaved_to_half_split(head_dim, rotary_dim)
    return _reorder(x, order.argsort(), dim)


def _fits(shape: torch.Size, target: torch.Size) -> bool:
    """Whether shape broadcasts to target without making it larger."""
    tail = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(size in (1, wanted) for size, wanted in zip(shape, tail))


def _interleaved_to_half_split(head_dim: int, rotary_dim: int | None) -> Tensor:
    """Where each dimension of a half-split head stands in an interleaved one, shape (head_dim,)."""
    rotary_dim = head_dim if rotary_dim is None else rotary_dim
    if rotary_dim % 2 or not 0 <= rotary_dim <= head_dim:
        raise ValueError(
            f"rotary_dim is {rotary_dim} and head_dim {head_dim}: "
            "dimensions are turned in pairs, so choose an even number from 0 to head_dim"
        )
    order = torch.arange(head_dim)
    order[:rotary_dim] = order[:rotary_dim].view(-1, 2).T.flatten()
    return order


def _reorder(x: Tensor, order: Tensor, dim: int) -> Tensor:
    """The dimensions of every head along one axis of x, in another order."""
    if x.shape[dim] % len(order):
        raise ValueError(f"axis {dim} of x holds {x.shape[dim]} dimensions, not whole heads of {len(order)}")
    heads = torch.arange(x.shape[dim]).view(-1, len(order))
    return x.index_select(dim, heads[:, order].flatten().to(x.device))
