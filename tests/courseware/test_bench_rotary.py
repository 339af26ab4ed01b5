"""The rotation's bench measures in turns, names what is slow, and does without a compiler and without peers."""

import pytest
import torch

from courseware import bench_rotary as bench


def row(way, copies, *, clones=1.0, error=1e-7, dtype=torch.float32):
    return {"shape": (1, 2), "dtype": dtype, "way": way, "copies": copies, "clones": clones, "error": error}


def table(*, interleaved=1.2, half_split=4.0, clones=1.2, peer=9.0, llama=9.0, dtype=torch.float32):
    return [
        row("copy_", 1.0, dtype=dtype),
        row("rotate, interleaved", interleaved, clones=clones, dtype=dtype),
        row("rotate, half_split", half_split, dtype=dtype),
        row("compiled, half_split", 1.1, dtype=dtype),
        row("x-transformers, interleaved", peer, dtype=dtype),
        row(bench.LLAMA, llama, error=1e-3, dtype=dtype),
    ]


@pytest.mark.parametrize(
    "rows, complaints",
    [
        (table(), []),
        (table(clones=1.6), ["rotate, interleaved takes more than 1.5 clones"]),
        (table(clones=1.6, dtype=torch.bfloat16), []),
        (table(peer=3.9), ["x-transformers, interleaved is faster than rotate, half_split"]),
        (table(llama=3.9), ["Llama, half_split is faster than rotate, half_split"]),
        (table(llama=1.1, dtype=torch.bfloat16), []),  # it computes in bfloat16
        (
            table(peer=1.1, dtype=torch.bfloat16),
            ["faster than rotate, interleaved", "than rotate, half_split"],
        ),
    ],
)
def test_what_is_slow_is_named(rows, complaints):
    text, slow = bench.report(rows)
    assert len(slow) == len(complaints)
    assert all(expected in found for expected, found in zip(complaints, slow))
    assert all(row["way"] in text for row in rows)


def test_medians_are_taken_in_turns_by_the_clock():
    now, calls = [0.0], []

    def way(name, *costs):
        left = list(costs)

        def call():
            calls.append(name)
            now[0] += left.pop(0)

        return call

    spent = bench.medians({"a": way("a", 5, 1, 2), "b": way("b", 7, 7, 100)}, 3, clock=lambda: now[0])
    assert spent == {"a": 2, "b": 7}
    assert calls == ["a", "b"] * 3


def test_without_a_compiler_the_others_are_measured(capsys):
    def broken():
        raise RuntimeError("no C++ compiler\nmore")

    assert list(bench.working({"compiled, x": broken, "rotate, x": lambda: None})) == ["rotate, x"]
    assert "compiled, x is skipped" in (said := capsys.readouterr().out) and "no C++ compiler)" in said
    with pytest.raises(RuntimeError):
        bench.working({"rotate, x": broken})


def test_a_peer_that_is_missing_is_left_out(capsys, monkeypatch):
    def _missing(x):
        raise ImportError("No module named 'missing'")

    for peer in ("_compiled", "_llama", "_rotary_embedding_torch"):
        monkeypatch.setattr(bench, peer, lambda *_: {})
    monkeypatch.setattr(bench, "_x_transformers", _missing)
    found = bench.ways(torch.ones(1, 1, 2, 4))
    assert "x-transformers, interleaved" not in found and "rotate, half_split" in found
    assert "missing is left out: No module named 'missing'" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("dtype", bench.DTYPES)
def test_every_way_rotates(monkeypatch, dtype):
    monkeypatch.setattr(bench, "_compiled", lambda x, theta: {})
    rows = bench.measure((2, 3, 20, 8), dtype, rounds=1)
    assert {"copy_", "clone", *(f"rotate, {layout}" for layout in bench.LAYOUTS)} <= {
        row["way"] for row in rows
    }
    assert all(row["copies"] > 0 and row["clones"] > 0 for row in rows)
    # what a peer's float32 angles and bfloat16's rounding explain; the wrong layout is off by more than 1
    assert max(row["error"] for row in rows) < (1e-5 if dtype == torch.float32 else 5e-2)
