"""The order task: what its sentences hold, and that no order-blind model can do better than it should."""

import torch
from torch import nn

from posenc.models import Ensemble
from posenc.tasks import NEUTRAL, ORDER_VOCABULARY, A, B, order_accuracy, order_batch, order_loss, order_twins


def test_every_sentence_holds_one_a_and_one_b_and_the_label_says_which_is_first():
    tokens, a_first = order_batch(torch.Generator().manual_seed(0), seeds=3, batch=200)
    assert tokens.shape == (3, 200, 10) and a_first.shape == (3, 200)
    assert ((tokens == A).sum(-1) == 1).all() and ((tokens == B).sum(-1) == 1).all()
    assert (((tokens == A).int().argmax(-1) < (tokens == B).int().argmax(-1)) == a_first.bool()).all()
    assert (tokens[..., -1] == NEUTRAL).all() and (tokens[..., :-1] != NEUTRAL).all()
    assert 0.4 < a_first.mean() < 0.6  # 600 coins: five deviations are .10


def test_with_an_open_end_a_or_b_stands_last_in_a_fifth():
    tokens, _ = order_batch(torch.Generator().manual_seed(0), seeds=1, batch=4000, neutral_end=False)
    assert abs((tokens[..., -1] <= B).double().mean() - 0.2) < 0.03  # five deviations
    a_first, _ = order_twins(neutral_end=False)
    assert (a_first[:, -1] <= B).double().mean() == 0.2


def test_twins_differ_in_nothing_but_the_places_of_a_and_b():
    for neutral_end in (True, False):
        one, two = order_twins(neutral_end=neutral_end, repeats=2)
        assert torch.equal(one.sort().values, two.sort().values)
        assert ((one != two).sum(-1) == 2).all()
        assert ((one == A).int().argmax(-1) < (one == B).int().argmax(-1)).all()
        assert torch.equal(torch.where(one == A, B, torch.where(one == B, A, one)), two)


class Reader(nn.Module):
    """A model by hand: `rule` maps tokens (B, T) to an answer (B,)."""

    def __init__(self, rule):
        super().__init__()
        self.rule, self.scale = rule, nn.Parameter(torch.ones(1))

    def forward(self, tokens):
        return (self.scale * self.rule(tokens))[:, None, None]


def accuracy(rule, **options):
    return order_accuracy(Ensemble(lambda: Reader(rule), seeds=range(2)), **options).tolist()


def places(tokens):
    return torch.arange(tokens.shape[-1])


def test_accuracy_of_models_that_know_that_guess_and_that_err():
    def a_place(tokens):
        return ((tokens == A).to(torch.float64) * places(tokens)).sum(-1)

    def b_place(tokens):
        return ((tokens == B).to(torch.float64) * places(tokens)).sum(-1)

    assert accuracy(lambda tokens: b_place(tokens) - a_place(tokens)) == [1, 1]
    assert accuracy(lambda tokens: a_place(tokens) - b_place(tokens)) == [0, 0]
    assert accuracy(lambda tokens: tokens.sum(-1) - 40.0) == [0.5, 0.5]
    counts = accuracy(lambda tokens: (tokens[:, -1] == B) * 2.0 - 1, neutral_end=False)
    assert counts == [0.6, 0.6]  # right when b is last, wrong when nothing is, right when a is


def test_the_loss_reads_the_last_token_and_falls_when_the_answer_is_right():
    outputs = torch.zeros(2, 3, 4, 1)
    outputs[..., -1, 0] = 5.0
    right, wrong = order_loss(outputs, torch.ones(2, 3)), order_loss(outputs, torch.zeros(2, 3))
    assert right.shape == (2,) and (right < 0.01).all() and (wrong > 4.9).all()


def test_the_vocabulary_covers_all_tokens():
    tokens, _ = order_batch(torch.Generator().manual_seed(0), seeds=1, batch=500)
    assert tokens.unique().tolist() == list(range(ORDER_VOCABULARY))
