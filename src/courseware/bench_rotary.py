"""What it costs to rotate a tensor on the CPU: `python -m courseware.bench_rotary`.

All ways are measured in one process and in turns, on one thread, in CPU time. Their medians are given as multiples
of two floors that move the same bytes: `copy_` into a tensor that is there, and `clone`, which has to allocate. The
gap between the floors is what fresh pages cost; every way that returns a new tensor pays it.

Each way keeps what it keeps between layers: the course its angles, the compiled one and Llama their cosines and sines,
rotary-embedding-torch and x-transformers their angles. The error is the largest one against float64. A way that computes bfloat16 in bfloat16
is listed with its error, and not compared. Peers that are not installed are left out with a message.
"""

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from posenc.rotary import LAYOUTS, _turn_halves, angles, rotate

SHAPES = [(1, 32, 4096, 128), (8, 8, 1024, 64), (1, 8, 32768, 64)]
DTYPES = [torch.float32, torch.bfloat16]
ROUNDS = 7
LIMIT = 1.5  # times clone: of the interleaved layout in float32
LLAMA = "transformers Llama, half_split"
IN_BFLOAT16 = {LLAMA}  # computes bfloat16 in bfloat16

Way = Callable[[], Tensor]


def ways(x: Tensor) -> dict[str, Way]:
    """Every way to rotate x (batch, heads, T, d), by name; the course's start with "rotate"."""
    theta = angles(torch.arange(x.shape[-2]), x.shape[-1])
    found = {f"rotate, {layout}": partial(rotate, x, theta, layout=layout) for layout in LAYOUTS}
    found |= _compiled(x, theta)
    for peer in (_llama, _rotary_embedding_torch, _x_transformers):
        try:
            found |= peer(x)
        except ImportError as error:
            print(f"{peer.__name__.strip('_')} is left out: {error}")
    return found


def _compiled(x: Tensor, theta: Tensor) -> dict[str, Way]:
    """Real numbers and ready tables: complex ones are not compiled, and cosines would be made anew for every head."""

    def halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return _turn_halves(x.float(), cos, sin).to(x.dtype)

    torch.compiler.reset()  # what was compiled for another shape
    return {
        "compiled, half_split": partial(torch.compile(halves), x, theta.cos().float(), theta.sin().float())
    }


def _llama(x: Tensor) -> dict[str, Way]:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(
        head_dim=x.shape[-1], rope_parameters={"rope_type": "default", "rope_theta": 10_000.0}
    )
    cos, sin = LlamaRotaryEmbedding(config)(x, torch.arange(x.shape[-2])[None])
    no_heads = x[:, :0]  # it always turns queries and keys
    return {LLAMA: lambda: apply_rotary_pos_emb(x, no_heads, cos, sin)[0]}


def _rotary_embedding_torch(x: Tensor) -> dict[str, Way]:
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    kept = RotaryEmbedding(x.shape[-1])(
        torch.arange(x.shape[-2])
    )  # integers: from x's dtype it would go wrong
    return {"rotary-embedding-torch, interleaved": lambda: apply_rotary_emb(kept, x)}


def _x_transformers(x: Tensor) -> dict[str, Way]:
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    kept, _ = RotaryEmbedding(x.shape[-1]).forward_from_seq_len(x.shape[-2])
    return {"x-transformers, interleaved": lambda: apply_rotary_pos_emb(x, kept)}


def largest_error(x: Tensor, turned: Tensor, layout: str) -> float:
    """Against float64, in the first head of the first batch row."""
    exact = rotate(x[0, 0].double(), angles(torch.arange(x.shape[-2]), x.shape[-1]), layout=layout)
    return (turned[0, 0].double() - exact).abs().max().item()


def working(candidates: dict[str, Way]) -> dict[str, Way]:
    """Those that run; a compiled one needs a compiler."""
    found = {}
    for name, way in candidates.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                way()
            found[name] = way
        except Exception as error:
            if not name.startswith("compiled"):
                raise
            first = (str(error).splitlines() or ["no message"])[0]
            print(
                f"{name} is skipped: there is no compiler that works here ({type(error).__name__}: {first})"
            )
    return found


def medians(
    candidates: dict[str, Way], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Median time of each, measured in turns."""
    times = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, way in candidates.items():
            start = clock()
            way()
            times[name].append(clock() - start)
    return {name: statistics.median(spent) for name, spent in times.items()}


def measure(shape: tuple[int, ...], dtype: torch.dtype, rounds: int = ROUNDS) -> list[dict]:
    """One row for every way: its time as a multiple of both floors, and its error."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    out = torch.empty_like(x)
    candidates = working(ways(x))
    errors = {
        name: largest_error(x, way(), next(layout for layout in LAYOUTS if name.endswith(layout)))
        for name, way in candidates.items()
    }
    floors = {"copy_": lambda: out.copy_(x), "clone": x.clone}
    spent = medians(floors | candidates, rounds)
    return [
        {
            "shape": shape,
            "dtype": dtype,
            "way": name,
            "copies": spent[name] / spent["copy_"],
            "clones": spent[name] / spent["clone"],
            "error": errors.get(name, 0.0),
        }
        for name in spent
    ]


def report(rows: list[dict]) -> tuple[str, list[str]]:
    """A table of the rows, and what is slower than it may be."""
    lines, slow = [], []
    for key in dict.fromkeys((row["shape"], row["dtype"]) for row in rows):
        group = {row["way"]: row for row in rows if (row["shape"], row["dtype"]) == key}
        name = f"{key[0]}, {str(key[1]).removeprefix('torch.')}"
        lines.append(f"{name:44}  × copy_  × clone  largest error")
        lines += [
            f"  {way:42} {row['copies']:8.1f} {row['clones']:8.2f}  {row['error']:.0e}"
            for way, row in group.items()
        ]
        ours = {layout: group[f"rotate, {layout}"] for layout in LAYOUTS}
        if key[1] == torch.float32 and ours["interleaved"]["clones"] > LIMIT:
            slow.append(f"{name}: rotate, interleaved takes more than {LIMIT} clones")
        for layout, own in ours.items():
            for way, row in group.items():
                peer = not way.startswith(("rotate,", "compiled", "copy_", "clone"))
                coarser = key[1] == torch.bfloat16 and way in IN_BFLOAT16
                if peer and not coarser and row["copies"] < own["copies"]:
                    slow.append(f"{name}: {way} is faster than rotate, {layout}")
    return "\n".join(lines), slow


def main() -> list[str]:
    """Print the table; what is too slow."""
    torch.set_num_threads(1)
    rows = [row for shape in SHAPES for dtype in DTYPES for row in measure(shape, dtype)]
    table, slow = report(rows)
    print(table)
    return slow


if __name__ == "__main__":
    sys.exit("\n".join(main()) or 0)
