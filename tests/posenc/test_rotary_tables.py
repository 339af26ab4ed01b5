"""The rotation by ready tables: the numbers of `rotate`, from any memory, under a compiler, and what it refuses."""

import doctest
from functools import partial

import pytest
import torch

from posenc import rotary, rotary_tables
from posenc.rotary import LAYOUTS, angles, rotate
from posenc.rotary_tables import rotate_by
from posenc.timing import count_bytes

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
both_layouts = pytest.mark.parametrize("layout", LAYOUTS)


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def tables(theta):
    return theta.cos().float(), theta.sin().float()


@both_layouts
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(9, 4), (4,), (1, 4), (2, 1, 9, 4), (9, 5), (9, 0)])
def test_the_numbers_are_those_of_rotate_of_half_precision_to_the_last_bit(layout, dtype, shape, monkeypatch):
    x, theta = draw(2, 3, 9, 10, dtype=dtype), draw(*shape, seed=1, dtype=torch.float64)
    for cached in (10**9, 100, 1):  # all at once, or so few tokens at a time
        for module in (rotary, rotary_tables):
            monkeypatch.setattr(module, "CACHED", cached)
        before, expected = x.clone(), rotate(x, theta, layout=layout)
        got = rotate_by(x, *tables(theta), layout=layout)
        assert got.dtype == dtype and torch.equal(x, before)
        # one product may be rounded with its sum or before, by how many stand in a row
        room = {torch.float64: 1e-6, torch.float32: 2e-6}.get(dtype, 0)
        torch.testing.assert_close(got, expected, rtol=0, atol=room)


@both_layouts
def test_a_step_takes_its_row_of_the_table(layout):
    x, theta = draw(2, 3, 12, 8, dtype=torch.bfloat16), angles(torch.arange(12), 8)
    cos, sin = tables(theta)
    whole = rotate_by(x, cos, sin, layout=layout)
    steps = [rotate_by(x[..., [p], :], cos[[p]], sin[[p]], layout=layout) for p in range(12)]
    assert torch.equal(torch.cat(steps, dim=-2), whole)


@both_layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_memory_may_start_anywhere_and_have_any_strides(layout, dtype):
    theta = angles(torch.arange(6), 8)
    flat, big = draw(6 * 8 + 1, dtype=dtype), draw(6, 20, dtype=dtype)
    views = [
        flat[1:].view(6, 8),
        flat[:-1].view(6, 8),
        big[:, 1:9],
        big[:, ::2][:, 1:9],
        draw(8, 6, dtype=dtype).T,
    ]
    for x in views:
        got = rotate_by(x, *tables(theta), layout=layout)
        torch.testing.assert_close(
            got, rotate(x.clone(memory_format=torch.contiguous_format), theta, layout=layout)
        )


@both_layouts
def test_one_token_of_a_batch_moves_the_bytes_of_its_vectors(layout):
    x, theta = draw(2, 4096, 64), angles(torch.arange(4096), 64)
    cos, sin = tables(theta)
    with_angles = count_bytes(partial(rotate, x, theta, layout=layout))
    by_tables = count_bytes(partial(rotate_by, x, cos, sin, layout=layout))
    assert with_angles.bytes - by_tables.bytes > 3 * theta.nbytes  # two tables in float64, written and read
    assert {"cos", "sin"} <= {name for name, *_ in with_angles.operations}


@both_layouts
def test_vectors_with_large_tables_are_turned_a_few_tokens_at_a_time(layout):
    x, theta = draw(2, 2**14, 64), angles(torch.arange(2**14), 64)  # twice CACHED in each table
    *steps, (last, *_) = count_bytes(partial(rotate_by, x, *tables(theta), layout=layout)).operations
    assert last == "cat" and all(read + written < x.nbytes for _, read, written in steps)


@both_layouts
def test_gradients_reach_vectors_and_tables(layout):
    x, theta = draw(4, 6, dtype=torch.float64).requires_grad_(), angles(torch.arange(4), 6)
    given = (x, theta.cos().requires_grad_(), theta.sin().requires_grad_())
    assert torch.autograd.gradcheck(partial(rotate_by, layout=layout), given)


class Turned(torch.nn.Module):
    def __init__(self, layout):
        super().__init__()
        self.turn = partial(rotate_by, layout=layout)

    def forward(self, x, cos, sin):
        return self.turn(x, cos, sin)


@both_layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.slow
def test_a_graph_is_whole_and_takes_any_number_of_tokens(layout, dtype):
    x, (cos, sin) = draw(2, 3, 32, 18, dtype=dtype), tables(angles(torch.arange(32), 16))
    expected = rotate_by(x, cos, sin, layout=layout)
    near = partial(torch.testing.assert_close, rtol=0, atol=2e-6 if dtype == torch.float32 else 4e-2)
    compiled = torch.compile(partial(rotate_by, layout=layout), fullgraph=True, backend="aot_eager")
    near(compiled(x, cos, sin), expected)
    tokens = torch.export.Dim("tokens", min=2)
    axes = ({2: tokens}, {0: tokens}, {0: tokens})
    exported = torch.export.export(Turned(layout), (x, cos, sin), dynamic_shapes=axes).module()
    near(exported(x[:, :, :20], cos[:20], sin[:20]), expected[:, :, :20])


def test_what_does_not_fit_is_refused():
    x, (cos, sin) = draw(3, 8), tables(angles(torch.arange(3), 8))
    for given in ((cos[:2], sin[:2]), (cos, sin[:, :3]), (cos.repeat(1, 2), sin.repeat(1, 2))):
        with pytest.raises(ValueError, match="do not fit x of shape .3, 8."):
            rotate_by(x, *given)
    with pytest.raises(TypeError, match="cos is torch.bfloat16 .*: keep both"):
        rotate_by(x, cos.bfloat16(), sin.bfloat16())
    with pytest.raises(TypeError, match="cos is torch.float32 and sin torch.float64"):
        rotate_by(x, cos, sin.double())
    with pytest.raises(TypeError, match="x is torch.int64"):
        rotate_by(x.long(), cos, sin)
    with pytest.raises(ValueError, match="layout is 'halves'"):
        rotate_by(x, cos, sin, layout="halves")


def test_the_example_of_the_help_is_true():
    found = doctest.testmod(rotary_tables)
    assert found.attempted > 0 and found.failed == 0
