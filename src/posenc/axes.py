"""Rotary encoding for tokens that have several coordinates: patches of an image, or text with images in it.

Conventions: coordinates are integers, shape (…, axes), that may start anywhere and repeat. Those of a grid are
(row, column), rows counted downwards; those of M-RoPE are (time, row, column). Every function returns the angle of
each pair, (…, pairs), for `rotary.rotate`; a larger coordinate turns counter-clockwise, as a later position does.
With one axis all of them are the rotary encoding of `rotary.angles`.

    axial      each axis turns pairs of its own, all axes at the same speeds    vision towers
    mixed      a pair turns by a weighted sum of all coordinates                RoPE-Mixed
    sections   one list of speeds, dealt out to the axes                        M-RoPE, Qwen-VL
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from posenc.additive import frequencies, require_integers
from posenc.rotary import angles

_TEXT_AXES = 3  # time, row, column


def grid(rows: int, columns: int, *, start: tuple[int, int] = (0, 0)) -> Tensor:
    """The coordinates of a grid's patches, row by row.

    Args:
        rows, columns: its size.
        start: the coordinates of its first patch, the upper left one.

    Returns:
        (row, column) of every patch, integers, shape (rows·columns, 2).

    Raises:
        ValueError: there is no row or no column.
    """
    if rows < 1 or columns < 1:
        raise ValueError(f"a grid of {rows} × {columns} has no patches: pass at least one row and one column")
    first, second = start
    return torch.cartesian_prod(first + torch.arange(rows), second + torch.arange(columns))


def raster(coordinates: Tensor, width: int) -> Tensor:
    """The number of each patch when all are counted row by row: width·row + column.

    Args:
        coordinates: integers, shape (…, 2).
        width: patches in a row.

    Returns:
        integers, shape (…).

    Raises:
        TypeError: coordinates are not integers.
        ValueError: there are not two axes, width is not positive, or a column is outside 0 to width - 1.
    """
    require_integers(coordinates)
    _require_axes(coordinates, 2)
    row, column = coordinates.long().unbind(-1)
    if width < 1 or (column < 0).any() or (column >= width).any():
        raise ValueError(
            f"columns must lie between 0 and {width - 1} in rows of {width}: two patches would share a number"
        )
    return width * row + column


def axial(coordinates: Tensor, head_dim: int, *, base: float = 10_000.0) -> Tensor:
    """Angles in which each pair follows one coordinate: the first pairs the first, the last pairs the last.

    Every axis has head_dim / (2·axes) pairs, and they have the speeds of a head of head_dim / axes.

    Args:
        coordinates: integers, shape (…, axes).
        head_dim: size of one head, a multiple of twice the number of axes.
        base: the wavelengths of every axis run from 2π to 2π·base^((d-2)/d), where d = head_dim / axes.

    Returns:
        radians, float64, shape (…, head_dim / 2).

    Raises:
        TypeError: coordinates are not integers.
        ValueError: head_dim does not split into whole pairs for each axis, or base is not positive.

    Source: Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", where the axes take turns.
    """
    require_integers(coordinates)
    axes = _require_axes(coordinates)
    if head_dim % (2 * axes) or head_dim <= 0:
        raise ValueError(
            f"head_dim is {head_dim}, and {axes} axes need equally many pairs each: choose a multiple of {2 * axes}"
        )
    return angles(coordinates, head_dim // axes, base=base).flatten(-2)


def directed(directions: Tensor, speeds: Tensor) -> Tensor:
    """How fast each pair turns along the rows and the columns of a grid, for `mixed`.

    Args:
        directions: where a pair's angle grows fastest, radians, shape that broadcasts to (pairs,): 0 is down, along
            the first axis, and π/2 is to the right, along the second.
        speeds: radians a step in that direction, shape that broadcasts to (pairs,).

    Returns:
        radians a row and radians a column, shape (pairs, 2).
    """
    return torch.stack([speeds * directions.cos(), speeds * directions.sin()], dim=-1)


def mixed(coordinates: Tensor, steps: Tensor) -> Tensor:
    """Angles in which each pair follows a direction of its own: the sum of coordinate times step over the axes.

    Args:
        coordinates: integers, shape (…, axes).
        steps: radians a step of each coordinate, shape (pairs, axes); they may be learned.

    Returns:
        radians, float64, shape (…, pairs).

    Raises:
        TypeError: coordinates are not integers, or steps are not floating point.
        ValueError: steps is not (pairs, axes).

    Source: Heo et al. 2024, "Rotary Position Embedding for Vision Transformer".
    """
    require_integers(coordinates)
    axes = _require_axes(coordinates)
    if not steps.is_floating_point():
        raise TypeError(f"steps are {steps.dtype}: pass radians, floating point")
    if steps.dim() != 2 or steps.shape[1] != axes:
        raise ValueError(
            f"steps has shape {tuple(steps.shape)}, and the coordinates have {axes} axes: "
            f"pass one row a pair with {axes} numbers in it"
        )
    return coordinates.double() @ steps.double().to(coordinates.device).mT


def section_axes(sizes: Sequence[int], *, interleaved: bool = False) -> Tensor:
    """Which axis each pair follows in M-RoPE.

    In blocks, the first sizes[0] pairs follow axis 0, the next sizes[1] axis 1, and so on: axis 0 has the fastest
    pairs. Interleaved, the axes take turns, 0, 1, 2, 0, 1, 2, …, until axes 1 and later have all of theirs; the
    rest is axis 0's.

    Args:
        sizes: how many pairs each axis has.
        interleaved: the axes take turns.

    Returns:
        integers from 0 to axes - 1, shape (pairs,).

    Raises:
        ValueError: there are no sizes, one is negative, or, interleaved, an axis would run past the last pair.

    Source: Wang et al. 2024, "Qwen2-VL" (blocks); the order of Qwen3-VL in transformers (interleaved).
    """
    axes, pairs = len(sizes), sum(sizes)
    if not sizes or min(sizes) < 0:
        raise ValueError(f"sections {tuple(sizes)}: pass how many pairs each axis has, none of them negative")
    if not interleaved:
        return torch.arange(axes).repeat_interleave(torch.tensor(list(sizes)))
    order = torch.zeros(pairs, dtype=torch.long)
    for axis, size in enumerate(sizes[1:], start=1):
        places = axis + axes * torch.arange(size)
        if size and places[-1] >= pairs:
            raise ValueError(
                f"sections {tuple(sizes)}: {size} pairs of axis {axis}, one in {axes}, do not fit into {pairs} pairs; "
                "axis 0 needs about as many as the others, or take blocks"
            )
        order[places] = axis
    return order


def sections(
    coordinates: Tensor,
    head_dim: int,
    sizes: Sequence[int],
    *,
    interleaved: bool = False,
    base: float = 10_000.0,
) -> Tensor:
    """Angles of M-RoPE: pair i turns by coordinate × base^(-2i/d), and `section_axes` says which coordinate.

    Args:
        coordinates: integers, shape (…, axes); (time, row, column) in Qwen-VL.
        head_dim: size of one head, even.
        sizes: how many pairs each axis has; they add up to head_dim / 2.
        interleaved: the axes take turns instead of having a block each.
        base: the wavelengths run from 2π to 2π·base^((d-2)/d).

    Returns:
        radians, float64, shape (…, head_dim / 2). Where all coordinates of a token are equal, as in text, they are
        those of `rotary.angles`.

    Raises:
        TypeError: coordinates are not integers.
        ValueError: there is not one size an axis, they don't add up to head_dim / 2, or as in `section_axes` and
            `rotary.angles`.

    Source: as in `section_axes`.
    """
    require_integers(coordinates)
    axes = _require_axes(coordinates)
    if len(sizes) != axes:
        raise ValueError(f"{len(sizes)} sections for {axes} axes: pass how many pairs each axis has")
    if 2 * sum(sizes) != head_dim:
        raise ValueError(
            f"sections {tuple(sizes)} add up to {sum(sizes)} pairs, and a head of {head_dim} has {head_dim / 2:g}: "
            "every pair belongs to one axis"
        )
    chosen = section_axes(sizes, interleaved=interleaved).to(coordinates.device)
    return coordinates[..., chosen].double() * frequencies(head_dim, base=base).to(coordinates.device)


def text_and_images(*parts: int | tuple[int, int], start: int = 0) -> Tensor:
    """The coordinates that M-RoPE gives to text with images in it.

    A token of text has three equal coordinates, one more than the token before. An image's time stands still while
    its rows and columns count from there, and the text after it goes on at the largest coordinate so far + 1.

    Args:
        parts: for a text its number of tokens, for an image its (rows, columns), in the order of the sequence.
        start: the coordinate of the first token.

    Returns:
        (time, row, column) of every token, integers, shape (T, 3).

    Raises:
        ValueError: a text has a negative number of tokens, or an image no patches.

    Source: Wang et al. 2024, "Qwen2-VL".
    """
    coordinates = [torch.empty(0, _TEXT_AXES, dtype=torch.long)]
    for part in parts:
        if isinstance(part, int):
            if part < 0:
                raise ValueError(f"a text of {part} tokens: pass 0 or more, and (rows, columns) for an image")
            coordinates.append((start + torch.arange(part))[:, None].expand(-1, _TEXT_AXES))
            start += part
        else:
            rows, columns = part
            places = grid(rows, columns, start=(start, start))
            coordinates.append(torch.cat([torch.full((len(places), 1), start), places], dim=-1))
            start += max(rows, columns)
    return torch.cat(coordinates)


def decoding_delta(coordinates: Tensor) -> int:
    """What must be added to the number of tokens so far to get the coordinate of the next one: max + 1 - T.

    Args:
        coordinates: of all tokens so far, integers, shape (T, axes), T at least 1.

    Returns:
        0 for text that starts at 0, and less where an image has used fewer coordinates than it has patches.

    Raises:
        TypeError: coordinates are not integers.
        ValueError: there are no tokens.
    """
    require_integers(coordinates)
    _require_axes(coordinates)
    if not coordinates.numel():
        raise ValueError("there are no tokens: the first one has the coordinate that you choose")
    return int(coordinates.max()) + 1 - len(coordinates)


def _require_axes(coordinates: Tensor, expected: int | None = None) -> int:
    axes = coordinates.shape[-1] if coordinates.dim() else 0
    if not axes or expected not in (None, axes):
        wanted = "at least one" if expected is None else expected
        raise ValueError(
            f"coordinates have shape {tuple(coordinates.shape)}: the last axis must hold {wanted} coordinates a token"
        )
    return axes
