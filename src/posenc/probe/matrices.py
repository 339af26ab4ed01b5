"""A rotation, asked: its matrices R(p), and what else its result depends on."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc.probe.precision import LOW

Rotate = Callable[[Tensor, Tensor], Tensor]


class Asked:
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
