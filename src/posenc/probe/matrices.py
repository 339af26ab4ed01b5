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
        self.order = ""  # in which rows, heads or tokens come out, in words, where it is not their own

    def __call__(self, x: Tensor, positions: Sequence[int] | Tensor) -> Tensor:
        x = x.to(self.dtype).to(self.device)
        given = x.clone()
        got = self.rotate(given, torch.as_tensor(positions, device=self.device))
        if not isinstance(got, Tensor) or got.shape != x.shape:
            what = f"shape {tuple(got.shape)}" if isinstance(got, Tensor) else f"a {type(got).__name__}"
            raise ValueError(f"rotate gave {what} for x of shape {tuple(x.shape)}: wrap it so that both are the same")
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
        """R(p), shape (P, head_dim, head_dim), asked so that what comes out in another order doesn't matter."""
        units = torch.eye(self.head_dim)[:, None, None]
        if "rows" in self.order:
            units = units.transpose(0, 1).expand(1, -1, len(positions), -1)
            return self(units, positions)[0].permute(1, 2, 0)
        if "tokens" in self.order:
            return torch.stack([self(units, [p])[:, 0, 0].T for p in positions.tolist()])
        return self(units.expand(-1, 1, len(positions), -1), positions)[:, 0].permute(1, 2, 0)

    def ends_at(self) -> int | None:
        """The first position that raises an IndexError, where the last one does."""
        x = torch.ones(1, 1, 1, self.head_dim)
        inside, outside = -1, self.longest - 1
        try:
            self(x, [outside])
            return None
        except IndexError as error:
            raised = error
        while outside - inside > 1:
            middle = (inside + outside) // 2
            try:
                self(x, [middle])
                inside = middle
            except IndexError:
                outside = middle
        if outside < 64:
            raise raised
        return outside

    def turns(self, pairs: list[tuple[int, int]], order: Sequence[int] | None) -> Tensor:
        """What each pair is turned by at every position, complex, shape (longest, pairs).

        `order`: where each dimension of the result comes from, where not from its own place.
        """
        x = 1 - 2 * (torch.arange(self.head_dim) % 3 == 1).float()
        if "tokens" in self.order:
            got = torch.stack([self(x.expand(1, 1, 1, -1), [p])[0, 0, 0] for p in range(self.longest)])
        else:
            got = self(x.expand(1, 1, self.longest, -1), torch.arange(self.longest))[0, 0]
        if order is not None:
            got = got[:, torch.tensor(order).argsort()]
        a, b = torch.tensor(pairs).T
        return torch.complex(got[:, a], got[:, b]) / torch.complex(x[a], x[b]).to(torch.complex128)

    def exchanged(self) -> str:
        """What stands elsewhere than it was given, or is turned otherwise there; "" for nothing."""
        generator = torch.Generator().manual_seed(1)
        for positions in ([7, 3, 57, 20], [11]):
            x = torch.randn(2, 3, len(positions), self.head_dim, generator=generator)
            together = self(x, positions)
            alone = torch.stack(
                [
                    torch.stack(
                        [
                            torch.cat(
                                [self(x[b, h, t].expand(1, 1, 1, -1), [p])[0, 0] for t, p in enumerate(positions)]
                            )
                            for h in range(3)
                        ]
                    )
                    for b in range(2)
                ]
            )
            if len(positions) > 1:
                digits = (name for name, low in LOW.items() if torch.equal(together, together.to(low).double()))
                self.results = next(digits, None)
            size = alone.norm(dim=-1).max()
            if not size.isfinite():
                return ""

            def near(y: Tensor, z: Tensor) -> bool:
                return bool((y - z).abs().max() < 0.02 * size)

            if near(together, alone):
                continue
            where = "where T is 1 " if len(positions) == 1 else ""
            for axis, name in enumerate(("the rows of its batch", "its heads", "its tokens")):
                count = alone.shape[axis]
                order = [
                    [j for j in range(count) if near(together.select(axis, i), alone.select(axis, j))]
                    for i in range(count)
                ]
                if all(len(places) == 1 for places in order):
                    return f"{where}{name} come out in another order"
            off = ((together - alone).abs().amax(-1) > 0.02 * size).nonzero()
            for axis, name in enumerate(("the row of the batch", "the head", "the place in the sequence")):
                if len(off[:, axis].unique()) == 1:
                    return f"{where}it depends on {name}" if where else name
        return ""

    def dependence(self) -> list[str]:
        """What the result depends on besides the vector and its position."""
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
            return []

        def differ(a: Tensor, b: Tensor) -> bool:
            return bool((a - b).abs().max() > 0.01 * size)

        if not differ(once, again) and differ(again, longer):
            return ["the calls before, of the same length"]
        self.order = self.exchanged()
        if "order" in self.order:
            return []
        if differ(first, first[:1]):
            found.append("the row of the batch")
        if differ(first[:, :1], first):
            found.append("the head")
        lone = first[:1, :1]
        moved = at([61, 3, 57, 3, 7])
        if differ(lone[..., 1, :], lone[..., 3, :]) or differ(lone[..., 0, :], moved[..., 4, :]):
            blind = not differ(lone, at([17, 23, 7, 13, 2]))
            found.append("the place in the sequence" + (" and not on the positions given" if blind else ""))
        middle = self.longest // 4 + 1
        many = [middle, 3, *range(64), far]  # more than a block of a kernel
        company = at(many)
        if (
            self.order
            and "where T" not in self.order
            and not any(self.order.startswith(reason.partition(" and")[0]) for reason in found)
        ):
            found.append(self.order)
        if found[-1:] and found[-1].startswith("the place"):
            return found
        if any(differ(at([many[place]]), company[..., [place], :]) for place in (0, 1, -1)):
            found.append("the other positions of the call")
        if differ(at([7, 3, 57, 3, 61], rows=2, heads=3), first):
            found.append("the calls before")
        if differ(at(many, x=2 * v + w), 2 * company + at(many, x=w)) and "the calls before" not in found:
            found.append("the content of x: it is not linear")
        return found

    def notes(self) -> list[str]:
        """What else is odd."""
        notes = ["changes its input in place"] if self.in_place else []
        if self.other_dtype is not None:
            notes.append(f"gives {str(self.other_dtype)[6:]} for {str(self.dtype)[6:]}")
        return notes
