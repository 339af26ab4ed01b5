"""Angles for texts longer than those that a model was trained on: the published methods, one function each.

Each takes integer positions and the size of a head, as `posenc.rotary.angles` does, and returns that function's
angles at other speeds. What they share:

    scale            how many times longer the text may be
    trained_length   how many positions training has shown
    length           how many positions the text at hand has

Two methods also lengthen the vectors: multiply every query and key, after `posenc.rotary.rotate`, by the number
that `yarn_factor` or `longrope_factor` gives. A score then grows by its square.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from posenc.rotary import angles


def interpolated(positions: Tensor, head_dim: int, *, scale: float, base: float = 10_000.0) -> Tensor:
    """Position interpolation (PI, `linear`): all angles divided by scale, so that scale·T positions fit where T did.

    Args:
        positions, head_dim, base: as in `posenc.rotary.angles`.
        scale: how many times longer the text may be.

    Returns:
        radians, float64, shape (…, head_dim / 2).

    Raises:
        TypeError, ValueError: as in `posenc.rotary.angles`; ValueError too where scale is not positive.

    Source: Chen et al. 2023, "Extending Context Window of Large Language Models via Positional Interpolation".
    """
    _require_positive(scale=scale)
    return angles(positions, head_dim, base=base) / scale


def ntk(positions: Tensor, head_dim: int, *, scale: float, base: float = 10_000.0) -> Tensor:
    """NTK-aware: a larger base, with which the fastest pair keeps its speed and the slowest is slowed by scale.

    Args:
        positions, base: as in `posenc.rotary.angles`.
        head_dim: as there, and at least 4: a single pair is both fastest and slowest.
        scale: how many times longer the text may be.

    Returns:
        radians, float64, shape (…, head_dim / 2).

    Raises:
        TypeError, ValueError: as in `posenc.rotary.angles`; ValueError too where scale is not positive or
            head_dim is 2.

    Source: the "NTK-aware" scaling that bloc97 published in 2023; Peng et al. 2023, "YaRN", section 3.1.
    """
    _require_positive(scale=scale)
    if head_dim == 2:
        raise ValueError("head_dim is 2: one pair is both the fastest and the slowest, so choose at least 4")
    exponent = head_dim / (head_dim - 2) if head_dim > 2 else 1  # any other size is refused below
    return angles(positions, head_dim, base=base * scale**exponent)


def dynamic_ntk(
    positions: Tensor,
    head_dim: int,
    *,
    scale: float,
    trained_length: int,
    length: int,
    base: float = 10_000.0,
) -> Tensor:
    """Dynamic NTK: the base grows with the text. Up to trained_length nothing changes.

    A text of L times trained_length gets the angles of `ntk` with scale·L - (scale - 1). All keys must get the
    angles of the length that they are read at: keys that were turned and stored at a shorter one don't fit.

    Args:
        positions, head_dim, base: as in `ntk`.
        scale: how fast the base grows; 1 makes the slowest pair of any longer text end where trained_length did.
        trained_length: how many positions training has shown.
        length: how many positions the text has.

    Returns:
        radians, float64, shape (…, head_dim / 2).

    Raises:
        TypeError, ValueError: as in `ntk`; ValueError too where scale is below 1 or a length is not positive.

    Source: the `dynamic` scaling that emozilla published in 2023; Peng et al. 2023, "YaRN", section 3.3, has the idea.
    """
    _require_positive(trained_length=trained_length, length=length)
    if not scale >= 1:
        raise ValueError(f"scale is {scale}: the base is to grow with the text, so choose at least 1")
    grown = scale * max(length, trained_length) / trained_length - (scale - 1)
    return ntk(positions, head_dim, scale=grown, base=base)


def yarn(
    positions: Tensor,
    head_dim: int,
    *,
    scale: float,
    trained_length: int,
    fast: float = 32.0,
    slow: float = 1.0,
    truncate: bool = True,
    base: float = 10_000.0,
) -> Tensor:
    """By parts, as in YaRN: fast pairs stay, slow ones are interpolated, a ramp lies between.

    A pair is fast if it turns more than `fast` times within trained_length, slow if fewer than `slow` times. The
    ramp is straight in the number of the pair. YaRN multiplies the vectors by `yarn_factor` too.

    Args:
        positions, head_dim, base: as in `posenc.rotary.angles`; base is above 1.
        scale: how many times longer the text may be.
        trained_length: how many positions training has shown.
        fast, slow: turns within trained_length, fast above slow.
        truncate: whether the ramp starts and ends at whole numbers of pairs, rounded outwards.

    Returns:
        radians, float64, shape (…, head_dim / 2).

    Raises:
        TypeError, ValueError: as in `posenc.rotary.angles`; ValueError too where scale, trained_length or slow is
            not positive, fast is not above slow, or base is not above 1.

    Source: Peng et al. 2023, "YaRN", section 3.2, and the code that its authors published.
    """
    _require_positive(scale=scale, trained_length=trained_length, slow=slow)
    if not fast > slow:
        raise ValueError(f"fast is {fast} and slow {slow}: a fast pair turns more often, so choose fast above slow")
    if not base > 1:
        raise ValueError(f"base is {base}: pairs slow down with a base above 1 only")
    trained = angles(positions, head_dim, base=base)

    def pair_that_turns(times: float) -> float:
        return head_dim * math.log(trained_length / (times * 2 * math.pi)) / (2 * math.log(base))

    start, end = pair_that_turns(fast), pair_that_turns(slow)
    if truncate:
        start, end = math.floor(start), math.ceil(end)
    start, end = max(start, 0), min(end, head_dim - 1)
    pair = torch.arange(head_dim // 2, dtype=torch.float64, device=positions.device)
    squeezed = ((pair - start) / (end - start or 0.001)).clamp(0, 1)  # 0 for fast pairs, 1 for slow ones
    return trained * (1 - squeezed) + trained / scale * squeezed


def yarn_factor(scale: float, *, strength: float = 1.0) -> float:
    """How much longer YaRN makes every query and key: 0.1 · strength · ln(scale) + 1, and 1 for a scale up to 1.

    Args:
        scale: how many times longer the text may be.
        strength: 1 in the paper; `mscale` in configurations that set it.

    Raises:
        ValueError: scale is not positive.

    Source: Peng et al. 2023, "YaRN", section 3.4.
    """
    _require_positive(scale=scale)
    return 0.1 * strength * math.log(scale) + 1 if scale > 1 else 1.0


def llama3(
    positions: Tensor,
    head_dim: int,
    *,
    scale: float,
    trained_length: int,
    slow: float = 1.0,
    fast: float = 4.0,
    base: float = 10_000.0,
) -> Tensor:
    """By parts, as in Llama 3.1: like `yarn`, but the ramp is straight in the turns, and nothing is lengthened.

    Args:
        positions, head_dim, base: as in `posenc.rotary.angles`.
        scale: how many times longer the text may be.
        trained_length: how many positions training has shown.
        slow, fast: turns within trained_length; `low_freq_factor` and `high_freq_factor` in configurations.

    Returns:
        radians, float64, shape (…, head_dim / 2).

    Raises:
        TypeError, ValueError: as in `posenc.rotary.angles`; ValueError too where scale, trained_length or slow is
            not positive, or fast is not above slow.

    Source: the code that Meta published with Llama 3.1 in 2024.
    """
    _require_positive(scale=scale, trained_length=trained_length, slow=slow)
    if not fast > slow:
        raise ValueError(f"fast is {fast} and slow {slow}: a fast pair turns more often, so choose fast above slow")
    trained = angles(positions, head_dim, base=base)
    turns = trained_length * angles(torch.tensor(1, device=positions.device), head_dim, base=base) / (2 * math.pi)
    kept = ((turns - slow) / (fast - slow)).clamp(0, 1)  # 1 for fast pairs, 0 for slow ones
    return trained * kept + trained / scale * (1 - kept)


def longrope(
    positions: Tensor,
    head_dim: int,
    *,
    short: Sequence[float],
    long: Sequence[float],
    trained_length: int,
    length: int,
    base: float = 10_000.0,
) -> Tensor:
    """LongRoPE: every pair is slowed by a number of its own, from one of two tables that a search has found.

    All positions of a text are turned by one table: a text that grows past trained_length changes the angles of
    its keys, as with `dynamic_ntk`. The vectors are multiplied by `longrope_factor` too.

    Args:
        positions, head_dim, base: as in `posenc.rotary.angles`.
        short: what each pair's speed is divided by in a text of up to trained_length, head_dim / 2 numbers.
        long: the same for a longer text.
        trained_length: how many positions training has shown.
        length: how many positions the text has.

    Returns:
        radians, float64, shape (…, head_dim / 2).

    Raises:
        TypeError, ValueError: as in `posenc.rotary.angles`; ValueError too where a table has not head_dim / 2 numbers
            or one that is not positive, or a length is not positive.

    Source: Ding et al. 2024, "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens".
    """
    _require_positive(trained_length=trained_length, length=length)
    trained = angles(positions, head_dim, base=base)
    for name, table in (("short", short), ("long", long)):
        if len(table) != head_dim // 2 or not all(number > 0 for number in table):
            raise ValueError(
                f"{name} has {len(table)} numbers, the smallest {min(table, default=0)}: pass {head_dim // 2}, "
                "one for each pair, all positive"
            )
    table = long if length > trained_length else short
    return trained / torch.tensor(table, dtype=torch.float64, device=positions.device)


def longrope_factor(scale: float, *, trained_length: int) -> float:
    """How much longer LongRoPE makes every query and key: √(1 + ln(scale) / ln(trained_length)), and 1 up to scale 1.

    Args:
        scale: how many times longer the text may be.
        trained_length: how many positions training has shown, above 1.

    Raises:
        ValueError: scale is not positive, or trained_length is not above 1.

    Source: Ding et al. 2024, "LongRoPE", and the code that its authors published.
    """
    _require_positive(scale=scale)
    if not trained_length > 1:
        raise ValueError(f"trained_length is {trained_length}: the factor divides by its logarithm, so pass 2 or more")
    return math.sqrt(1 + math.log(scale) / math.log(trained_length)) if scale > 1 else 1.0


def p_rope(positions: Tensor, head_dim: int, *, share: float, base: float = 10_000.0) -> Tensor:
    """p-RoPE: the slowest pairs don't turn at all. It is chosen before training, and not afterwards.

    Args:
        positions, head_dim, base: as in `posenc.rotary.angles`.
        share: which part of the pairs turns, the fastest ones, rounded down; 0 to 1.

    Returns:
        radians, float64, shape (…, head_dim / 2); 0 for the pairs that stand still.

    Raises:
        TypeError, ValueError: as in `posenc.rotary.angles`; ValueError too where share is not from 0 to 1.

    Source: Barbero et al. 2024, "Round and Round We Go! What makes Rotary Positional Encodings useful?", section 6.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}: pass the part of the pairs that turns, from 0 to 1")
    turned = angles(positions, head_dim, base=base)
    return turned * (torch.arange(head_dim // 2, device=positions.device) < int(share * head_dim // 2))


def _require_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name} is {number}: pass a positive number")
