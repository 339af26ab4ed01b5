"""Every figure of every chapter: its controls move it, and it leaves the learner's random numbers alone."""

import pytest
import torch

from courseware.bench import figure_functions

FIGURES = figure_functions()


@pytest.mark.parametrize("name", FIGURES)
def test_every_control_moves_something_and_comes_back(name):
    live = FIGURES[name]()
    assert live.sweep() >= len(live.controls.keys() - {"sentence"})


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_leaves_the_learners_random_numbers_alone(name):
    torch.manual_seed(1234)  # no figure's own
    before = torch.get_rng_state()
    assert FIGURES[name]().png()
    assert torch.equal(torch.get_rng_state(), before)
