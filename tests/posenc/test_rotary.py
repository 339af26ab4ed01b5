"""The rotary encoding: a rotation, relative, exact at any position, in both layouts, and inputs it refuses."""

import doctest
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import grad, vmap

from posenc import rotary
from posenc.rotary import angles, rotate, rotate_by, to_half_split, to_interleaved
from posenc.timing import count_bytes, peak_memory

LAYOUTS = list(rotary.LAYOUTS)
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
# Rounding of the result's numbers, which are smaller than 8: half a unit in the last place, and some for the
# arithmetic before it. float32 angles at position 131,071 are off by 2.7e-3, bfloat16 positions by a whole turn.
ROUNDING = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 4e-3, torch.bfloat16: 4e-2}

few = settings(max_examples=25)
positions_of_any_size = st.integers(-(2**31), 2**31)


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def by_complex_numbers(x, theta, layout="interleaved"):
    """Independent of the module: float64, one number at a time where it matters."""
    pairs = theta.shape[-1]
    head, rest = x[..., : 2 * pairs].double(), x[..., 2 * pairs :].double()
    first, second = (head[..., 0::2], head[..., 1::2]) if layout == "interleaved" else head.tensor_split(2, dim=-1)
    turned = (first + 1j * second) * torch.exp(1j * theta)
    parts = [turned.real, turned.imag]
    whole = torch.stack(parts, -1).flatten(-2) if layout == "interleaved" else torch.cat(parts, -1)
    return torch.cat([whole, rest.expand(*whole.shape[:-1], rest.shape[-1])], dim=-1)


# --- angles ----------------------------------------------------------------------------------


def test_angles_equal_the_formula_number_by_number():
    theta = angles(torch.tensor([0, 1, -7, 131_071]), 6, base=100.0)
    assert theta.dtype == torch.float64 and theta.shape == (4, 3)
    for row, position in enumerate((0, 1, -7, 131_071)):
        for i in range(3):
            assert theta[row, i].item() == pytest.approx(position / 100 ** (2 * i / 6), rel=1e-15)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_positions_of_any_integer_dtype_and_shape(dtype):
    positions = torch.tensor([[3, 3], [0, 100]], dtype=dtype)
    theta = angles(positions, 8)
    assert theta.shape == (2, 2, 4)
    assert torch.equal(theta, angles(positions.long(), 8))
    assert angles(positions[:0], 8).shape == (0, 2, 4) and angles(torch.tensor(5), 8).shape == (4,)


# --- rotate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@few
@given(
    shape=st.lists(st.integers(0, 3), max_size=2),
    tokens=st.integers(0, 5),
    pairs=st.integers(1, 9),
    rest=st.integers(0, 5),
    start=positions_of_any_size,
    dtype=st.sampled_from(DTYPES),
    narrow=st.booleans(),
)
def test_equals_complex_multiplication(layout, shape, tokens, pairs, rest, start, dtype, narrow):
    """Any leading axes, also empty ones; any position; odd sizes with dimensions that are left alone."""
    x = draw(*shape, tokens, 2 * pairs + rest, dtype=dtype)
    theta = angles(start + torch.arange(tokens), 2 * pairs)
    if narrow:
        theta = theta.float()
    got = rotate(x, theta, layout=layout)
    assert got.dtype == dtype and got.shape == x.shape
    expected = by_complex_numbers(x, theta.double(), layout)
    rounding = max(ROUNDING[dtype], 1e-6 if narrow else 0)  # float32 angles have float32 cosines
    torch.testing.assert_close(got.double(), expected, rtol=0, atol=rounding)
    assert torch.equal(got[..., 2 * pairs :], x[..., 2 * pairs :])


@pytest.mark.parametrize("layout", LAYOUTS)
@few
@given(m=positions_of_any_size, n=positions_of_any_size, shift=st.integers(-(10**6), 10**6))
def test_scores_depend_on_the_offset_only(layout, m, n, shift):
    turn = partial(rotate, layout=layout)
    q, k = draw(2, 16)
    near, far = (
        turn(q, angles(torch.tensor(m + s), 16)) @ turn(k, angles(torch.tensor(n + s), 16)) for s in (0, shift)
    )
    # a float64 angle near 2^31 is known to 2^-22 = 2.4e-7
    assert abs(near - far) < 1e-5
    assert abs(near - q @ turn(k, angles(torch.tensor(n - m), 16))) < 1e-5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_position_0_is_the_identity(layout, dtype):
    x = draw(2, 3, 10, dtype=dtype)
    assert torch.equal(rotate(x, angles(torch.zeros(3, dtype=torch.long), 10), layout=layout), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    """Computed in the dtype itself, products and sums would each be rounded: more than once half a unit."""
    x, theta = draw(400, 64, dtype=dtype), angles(torch.arange(400), 64)
    for layout in LAYOUTS:
        exact = by_complex_numbers(x, theta, layout)
        unit = torch.finfo(dtype).eps * 2.0 ** exact.abs().clamp(min=1e-3).log2().floor()
        got = rotate(x, theta, layout=layout).double()
        assert ((got - exact).abs() / unit).max() < 0.51


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(7, 4), (4,), (1, 4), (2, 1, 7, 4), (2, 1, 1, 4)])
def test_half_precision_a_few_tokens_at_a_time_gives_the_same_numbers(layout, shape, monkeypatch):
    x = draw(2, 3, 7, 10, dtype=torch.bfloat16).requires_grad_()
    theta = draw(*shape, seed=1)
    results = []
    for cached in (10**9, 100, 1):  # all at once, in pieces of two tokens with a rest of one, one by one
        monkeypatch.setattr(rotary, "CACHED", cached)
        result = rotate(x, theta, layout=layout)
        results.append((result, *torch.autograd.grad(result.float().square().sum(), x)))
    assert all(torch.equal(*pair) for other in results[1:] for pair in zip(results[0], other, strict=True))


def test_half_precision_makes_no_whole_tensor_of_float32():
    x, theta = draw(32, 4096, 64, dtype=torch.bfloat16), angles(torch.arange(4096), 64)
    for layout in LAYOUTS:  # the pieces and the result, with the tables 2.1; converted as a whole 4.1
        assert peak_memory(partial(rotate, x, theta, layout=layout)) < 2.5 * x.nbytes


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_of_any_strides_give_the_same_and_no_input_changes(layout):
    big = draw(4, 6, 3, 20, dtype=torch.float32)
    theta = angles(torch.arange(6), 8)
    array = draw(6, 8, dtype=torch.float32).numpy()
    array.setflags(write=False)
    views = {
        "heads and tokens exchanged": big[..., :8].transpose(1, 2),
        "every second dimension": big.transpose(1, 2)[..., ::2][..., :8],
        "an odd offset": big.transpose(1, 2)[..., 1:9],
        "the memory's second number": draw(6 * 8 + 1, dtype=torch.float32)[1:].view(6, 8),
        "odd strides": draw(6 * 9, dtype=torch.float32).as_strided((6, 8), (9, 1)),
        "columns": draw(8, 6, dtype=torch.float32).T,
        "one vector for all": draw(1, 8, dtype=torch.float32).expand(6, 8),
        "read-only memory": torch.from_numpy(array),
    }
    for name, x in views.items():
        plain = rotate(x.clone(memory_format=torch.contiguous_format), theta, layout=layout)
        for turns in (theta, theta.T.contiguous().T):
            before, turns_before = x.clone(), turns.clone()
            # vectorised or not, a product and a sum may be rounded once or twice
            assert (rotate(x, turns, layout=layout) - plain).abs().max() < 1e-6, name
            assert torch.equal(x, before) and torch.equal(turns, turns_before)


def test_the_result_shares_no_memory_with_the_input():
    """Also where nothing is turned."""
    calls = [partial(to_half_split, head_dim=8), partial(to_interleaved, head_dim=8)]
    for layout in LAYOUTS:
        calls += [partial(rotate, angles=torch.zeros(3, n).double(), layout=layout) for n in (0, 2, 4)]
    for call in calls:
        x = draw(3, 8)
        before = x.clone()
        call(x).add_(1)
        assert torch.equal(x, before)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_is_that_of_finite_differences(layout):
    x, theta = draw(4, 6).requires_grad_(), angles(torch.arange(4), 6)
    assert torch.autograd.gradcheck(partial(rotate, layout=layout), (x, theta.requires_grad_()))


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap runs addcmul_ one example at a time
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_text_may_have_its_positions_and_vmap_inputs_positions_and_gradients(layout, dtype):
    x, positions = draw(3, 2, 4, 6, dtype=dtype), torch.arange(12).view(3, 4)

    def turned(x, positions):
        return rotate(x, angles(positions, 6), layout=layout)

    expected = torch.stack([turned(*both) for both in zip(x, positions)])
    torch.testing.assert_close(turned(x, positions[:, None]), expected)  # as with left padding
    assert torch.equal(vmap(turned)(x, positions), expected)
    assert torch.equal(vmap(turned, (0, None))(x, positions[0])[1], turned(x[1], positions[0]))
    assert torch.equal(vmap(turned, (None, 0))(x[0], positions)[2], turned(x[0], positions[2]))

    def loss(x):
        return (turned(x, positions[0]) ** 3).sum()

    torch.testing.assert_close(vmap(grad(loss))(x), torch.stack([grad(loss)(one) for one in x]))


def test_on_another_device():
    x = torch.empty(2, 5, 8, device="meta")
    for layout in LAYOUTS:
        turned = rotate(x, angles(torch.arange(5, device="meta"), 8), layout=layout)
        assert turned.device.type == "meta" and turned.shape == x.shape


# --- ready cosines and sines, and compilers --------------------------------------------------


def tables(theta):
    return theta.cos().float(), theta.sin().float()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_token_of_a_batch_takes_its_row_and_moves_the_bytes_of_its_vectors(layout):
    x, theta = draw(2, 4096, 64, dtype=torch.float32), angles(torch.arange(4096), 64)
    cos, sin = tables(theta)
    assert torch.equal(rotate_by(x[:, [7]], cos[[7]], sin[[7]], layout=layout), rotate(x, theta, layout=layout)[:, [7]])
    with_angles = count_bytes(partial(rotate, x, theta, layout=layout))
    by_tables = count_bytes(partial(rotate_by, x, cos, sin, layout=layout))
    assert with_angles.bytes - by_tables.bytes > 3 * theta.nbytes  # two tables in float64, written and read
    assert {"cos", "sin"} <= {name for name, *_ in with_angles.operations}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors_with_large_tables_are_turned_a_few_tokens_at_a_time(layout):
    x, theta = draw(2, 2**14, 64, dtype=torch.float32), angles(torch.arange(2**14), 64)  # twice CACHED in each table
    *steps, (last, *_) = count_bytes(partial(rotate_by, x, *tables(theta), layout=layout)).operations
    assert last == "cat" and all(read + written < x.nbytes for _, read, written in steps)


class Turned(torch.nn.Module):
    def __init__(self, layout):
        super().__init__()
        self.forward = partial(rotate, layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.slow
def test_a_graph_is_whole_and_takes_any_number_of_tokens(layout, dtype):
    x, theta = draw(2, 3, 32, 18, dtype=dtype), angles(torch.arange(32), 16)
    expected = rotate(x, theta, layout=layout)
    near = partial(torch.testing.assert_close, rtol=0, atol=ROUNDING[dtype])
    compiled = torch.compile(partial(rotate, layout=layout), fullgraph=True, backend="aot_eager")
    near(compiled(x, theta), expected)
    tokens = torch.export.Dim("tokens", min=2)
    exported = torch.export.export(Turned(layout), (x, theta), dynamic_shapes=({2: tokens}, {0: tokens})).module()
    near(exported(x[:, :, :20], theta[:20]), expected[:, :, :20])


def test_the_example_of_the_help_is_true():
    found = doctest.testmod(rotary)
    assert found.attempted > 0 and found.failed == 0


# --- layouts ---------------------------------------------------------------------------------


@few
@given(heads=st.integers(1, 3), pairs=st.integers(1, 6), rest=st.integers(0, 5), dim=st.sampled_from([0, 1, -1, -2]))
def test_layouts_convert_there_and_back(heads, pairs, rest, dim):
    head_dim, rotary_dim = 2 * pairs + rest, 2 * pairs
    shape = [3, 3]
    shape[dim] = heads * head_dim
    x = draw(*shape)
    there = to_half_split(x, head_dim, dim=dim, rotary_dim=rotary_dim)
    assert torch.equal(to_interleaved(there, head_dim, dim=dim, rotary_dim=rotary_dim), x)
    for head in range(heads):
        one, other = (t.movedim(dim, -1)[..., head * head_dim : (head + 1) * head_dim] for t in (x, there))
        assert torch.equal(other[..., :pairs], one[..., 0:rotary_dim:2])
        assert torch.equal(other[..., pairs:rotary_dim], one[..., 1:rotary_dim:2])
        assert torch.equal(other[..., rotary_dim:], one[..., rotary_dim:])


def test_a_checkpoint_moves_between_conventions_with_its_biases():
    heads, head_dim, tokens, theta = 3, 8, draw(6, 10), angles(torch.arange(6), 8)
    weights, biases = draw(2, heads * head_dim, 10, seed=1), draw(2, heads * head_dim, seed=2)

    def scores(weights, biases, layout):
        q, k = (
            rotate((tokens @ w.T + b).unflatten(-1, (heads, -1)).transpose(0, 1), theta, layout=layout)
            for w, b in zip(weights, biases)
        )
        return q @ k.mT

    moved = [to_half_split(t, head_dim, dim=1) for t in (weights, biases)]
    expected = scores(weights, biases, "interleaved")
    torch.testing.assert_close(scores(*moved, "half_split"), expected)
    assert (scores(moved[0], biases, "half_split") - expected).abs().max() > 0.1  # the biases forgotten


# --- what is refused -------------------------------------------------------------------------

THETA, X = angles(torch.arange(5), 8), draw(5, 8)
COS, SIN = tables(THETA)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: angles(torch.arange(3.0), 4), TypeError, "positions are torch.float32: pass integers"),
        (lambda: angles(torch.arange(3), 7), ValueError, "7 dimensions: .*positive even"),
        (lambda: rotate(X, THETA, layout="halves"), ValueError, "'halves': choose one of 'interleaved', 'half_split'"),
        (lambda: rotate(X.long(), THETA), TypeError, "x is torch.int64: pass real floating-point"),
        (lambda: rotate(X, THETA.half()), TypeError, "angles are torch.float16: keep them in float32 or float64"),
        (lambda: rotate(X[:, :7], THETA), ValueError, "4 angles need 8 dimensions, and x has 7: pass one angle for"),
        (lambda: rotate(X[:4], THETA), ValueError, "all axes but the last must broadcast .* the tokens just before"),
        (lambda: rotate(X[:1], THETA), ValueError, "must broadcast"),
        (lambda: rotate(X[0], THETA), ValueError, "must broadcast"),
        (lambda: rotate(draw(5, 2, 8), THETA), ValueError, "must broadcast"),  # its head's number would turn it
        *((lambda r=r: to_half_split(X, 8, rotary_dim=r), ValueError, f"is {r} and head_dim 8") for r in (-2, 3, 10)),
        (lambda: to_interleaved(X, 8, rotary_dim=3), ValueError, "rotary_dim is 3 .* even number from 0"),
        (lambda: to_half_split(draw(3, 12), 8), ValueError, "axis -1 of x holds 12 dimensions, not whole heads of 8"),
        (lambda: to_interleaved(draw(3, 14), 7), ValueError, "rotary_dim is 7"),
        (lambda: rotate_by(X, COS, SIN[:, :3]), ValueError, "cos has shape .5, 4. and sin .5, 3.: pass those of the"),
        (lambda: rotate_by(X, COS.bfloat16(), SIN.bfloat16()), TypeError, "cos is torch.bfloat16 .*: keep both"),
        (lambda: rotate_by(X, COS, SIN.double()), TypeError, "cos is torch.float32 and sin torch.float64"),
    ],
)
def test_what_cannot_be_meant_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
