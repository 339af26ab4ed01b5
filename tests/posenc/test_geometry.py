"""Subspaces: how many dimensions, how much of one lies in another, and at which angles."""

import math

import pytest
import torch

from posenc.geometry import content_and_position, principal_angles, random_span, share_within, span, spans_at


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def test_the_span_finds_the_directions_that_vary_and_their_mean_does_not_count():
    basis = random_span(5, 20, generator())
    vectors = normal(300, 5, seed=1) @ basis + 7 * normal(20, seed=2)
    found = span(vectors, share=1.0)
    assert found.shape == (5, 20)
    torch.testing.assert_close(found @ found.T, torch.eye(5, dtype=torch.float64))
    assert principal_angles(found, basis).max() < 1e-6


def test_as_few_directions_as_hold_the_share():
    spread = torch.tensor([3.0, 2.0, 1.0, 1.0, 1.0], dtype=torch.float64)  # variances 9, 4, 1, 1, 1 of 16
    vectors = torch.cat([spread.diag(), -spread.diag()])
    assert [len(span(vectors, share)) for share in (0.5, 9 / 16, 0.57, 13 / 16, 0.9, 1.0)] == [1, 1, 2, 2, 4, 5]
    assert span(vectors, 0.5).abs().tolist() == [[1, 0, 0, 0, 0]]
    assert span(vectors.float()).dtype == torch.float32


def test_the_share_within_is_1_inside_0_at_right_angles_and_r_over_d_at_random():
    one, other = random_span(6, 64, generator()).chunk(2)
    vectors = normal(200, 3) @ one + 3
    assert share_within(vectors, one) == pytest.approx(1)
    assert share_within(vectors, other) == pytest.approx(0, abs=1e-12)
    anything = normal(100, 40, seed=3)
    drawn = [share_within(anything, random_span(10, 40, generator(seed))).item() for seed in range(30)]
    assert sum(drawn) / 30 == pytest.approx(10 / 40, rel=0.03)


@pytest.mark.parametrize("angle", [0, 1e-6, 1, 30, 44.9, 45.1, 60, 89.999999, 90])
def test_subspaces_are_made_and_measured_at_an_angle(angle):
    one, other = spans_at(angle, 3, 16, generator())
    for basis in (one, other):
        torch.testing.assert_close(basis @ basis.T, torch.eye(3, dtype=torch.float64))
    # 1e-9 degrees: cosines alone would be 1e-6 off at both ends
    torch.testing.assert_close(
        principal_angles(one, other), torch.full((3,), float(angle), dtype=torch.float64), atol=1e-9, rtol=0
    )


def test_principal_angles_of_unequal_sizes_come_smallest_first_and_don_t_depend_on_the_order():
    e = torch.eye(5, dtype=torch.float64)
    tilted = math.cos(0.3) * e[0] + math.sin(0.3) * e[4]
    one, other = torch.stack([tilted, e[2]]), e[:2]
    expected = torch.tensor([math.degrees(0.3), 90], dtype=torch.float64)
    torch.testing.assert_close(principal_angles(one, other), expected)
    torch.testing.assert_close(principal_angles(e[:3], one), torch.tensor([0, math.degrees(0.3)]).double())
    torch.testing.assert_close(principal_angles(one, e[:3]), principal_angles(e[:3], one))


@pytest.mark.parametrize(
    "call, words",
    [
        *((lambda share=share: span(normal(5, 3), share), "above 0 and at most 1") for share in (0, -0.1, 1.01)),
        (lambda: span(torch.ones(7, 4) * 0.3), "don't vary"),
        *((lambda rank=rank: random_span(rank, 4, generator()), "1 to 4") for rank in (0, 5)),
    ],
)
def test_what_is_no_share_and_no_subspace_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_sum_is_split_into_what_token_and_place_add():
    kinds, length, width = 9, 6, 5
    tokens = torch.randint(kinds, (40, length), generator=generator())
    content, position = normal(kinds, width), normal(length, width, seed=1)
    contents, positions, rest = content_and_position(content[tokens] + position + 4, tokens)
    expected = content[tokens].flatten(0, 1)
    torch.testing.assert_close(contents, expected - expected.mean(0))
    torch.testing.assert_close(positions, position - position.mean(0))
    assert rest.abs().max() < 1e-9


def test_what_depends_on_both_is_the_rest_and_the_parts_sum_to_the_states():
    tokens = torch.randint(4, (500, 3), generator=generator())
    states = normal(4, 3, 6)[tokens, torch.arange(3)]  # a vector for each pair of token and place
    contents, positions, rest = content_and_position(states, tokens)
    whole = contents + positions.repeat(500, 1) + rest
    torch.testing.assert_close(whole, (states - states.mean((0, 1))).flatten(0, 1))
    assert rest.std() > 0.1
    for index in range(3):  # least squares: no place and no token is left in the rest
        assert rest.unflatten(0, (500, 3))[:, index].mean(0).abs().max() < 1e-9
    assert rest[tokens.flatten() == 2].mean(0).abs().max() < 1e-9
