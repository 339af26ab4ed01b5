"""What an encoding of positions should grant, and a table that holds some against that list."""

import html
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

PLACES, WIDTH, OFFSET = 1000, 32, 7  # what is measured: so many positions, so wide, and this far on
WISHES = ("unique", "bounded", "smooth", "one step", "offset readable", "not the same everywhere")


def granted(codes: Tensor) -> dict[str, tuple[bool, str]]:
    """Which wishes the codes of the positions 0, 1, 2, … grant, and by what number that is seen.

    Args:
        codes: one row a position, float64, shape (T, d).

    Returns:
        for each of WISHES whether it is granted, and the number in words: how many codes are different; their largest
        number; the longest step to the next position, as a share of the mean distance of two; the shortest and the
        longest step; what the best affine map misses of the codes 7 positions on, as a share of them; and how much of
        the codes is left when each row's mean is taken off, as a share.
    """
    different = len(codes.unique(dim=0))
    size, early = codes.abs().max().item(), codes[: len(codes) // 10].abs().max().item()
    steps = (codes[1:] - codes[:-1]).norm(dim=-1)
    shortest, longest = steps.min().item(), steps.max().item()
    usual = torch.pdist(codes).mean().item()
    missed = missed_by_a_map(codes, OFFSET)
    left = ((codes - codes.mean(dim=-1, keepdim=True)).norm() / codes.norm()).item()
    level = longest - shortest <= 1e-3 * longest
    found = [
        (different == len(codes), f"{different:,} of {len(codes):,}"),
        (size <= 1.5 * early, f"{size:,.0f}" if size > 100 else f"{size:.3g}"),
        (longest < usual, f"{longest / usual:.2g}"),
        (level, f"{longest:.2f}" if level else f"{shortest:.2f} to {longest:.2f}"),
        (missed < 1e-6, _percent(missed)),
        (left > 1e-6, _percent(left)),
    ]
    return dict(zip(WISHES, found))


def missed_by_a_map(codes: Tensor, offset: int) -> float:
    """What the best affine map misses of the codes `offset` positions on, as a share of them; codes: (T, d)."""
    before = torch.cat([codes[:-offset], torch.ones(len(codes) - offset, 1, dtype=codes.dtype)], dim=-1)
    after = codes[offset:]
    best = torch.linalg.lstsq(before, after, driver="gelsd").solution
    return ((before @ best - after).norm() / after.norm()).item()


def _percent(share: float) -> str:
    return "0%" if share < 1e-6 else f"{share:.0%}"


class WishList:
    """A table: a row an encoding, a column a wish, in each place ✓ or ✗ and the number.

    Args:
        encodings: by name; each takes positions, integers (T,), and a width, and gives (T, width).
    """

    def __init__(self, encodings: Mapping[str, Callable[[Tensor, int], Tensor]]) -> None:
        self.rows = {name: granted(encode(torch.arange(PLACES), WIDTH).double()) for name, encode in encodings.items()}

    def _table(self) -> list[list[str]]:
        rows = [
            [name, *(f"{'✓' if kept else '✗'} {number}" for kept, number in found.values())]
            for name, found in self.rows.items()
        ]
        return [["", *WISHES], *rows]

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        lines = ["".join(f'<th scope="col">{html.escape(word)}</th>' for word in head)]
        for name, *found in rows:
            # a shade behind what is not granted, so that it is found at a glance; the sign says it too
            marked = "".join(
                f'<td style="white-space:nowrap;background:{"#F3DED6" if word.startswith("✗") else "transparent"};'
                f'color:{"#000" if word.startswith("✗") else "inherit"}">{html.escape(word)}</td>'
                for word in found
            )
            lines.append(f'<th scope="row" style="text-align:left">{html.escape(name)}</th>{marked}')
        return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
