"""The order task: what its sentences hold, and that no order-blind model can do better than it should."""

import torch
from torch import nn

from posenc.models import Ensemble
from posenc.tasks import (
    CHARACTERS,
    NEUTRAL,
    ORDER_VOCABULARY,
    UNASKED,
    A,
    B,
    answer_loss,
    answer_share,
    at_offset,
    character_batch,
    character_loss,
    character_passages,
    character_text,
    order_accuracy,
    order_batch,
    order_loss,
    order_twins,
)


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


def spelled(characters):
    return "".join(CHARACTERS[index] for index in characters.tolist())


def test_the_text_is_english_about_python_and_its_last_tenth_is_held_out():
    train, held_out = character_text(), character_text(held_out=True)
    assert "statement" in spelled(train) and "statement" in spelled(held_out)
    assert abs(len(held_out) / (len(train) + len(held_out)) - 0.1) < 1e-4
    assert spelled(held_out[:200]) not in spelled(train)  # half of the topics repeat none of it
    assert train.min() >= 0 and train.max() < len(CHARACTERS)


def test_a_target_is_the_character_that_follows():
    inputs, targets = character_batch(torch.Generator().manual_seed(0), seeds=2, batch=3, length=50)
    assert inputs.shape == targets.shape == (2, 3, 50)
    assert torch.equal(inputs[..., 1:], targets[..., :-1])
    text = spelled(character_text())
    for row, target in zip(inputs.flatten(0, 1), targets.flatten(0, 1)):
        assert spelled(row) + spelled(target[-1:]) in text
    assert not torch.equal(inputs[0], inputs[1])  # each seed reads passages of its own


def test_longer_contexts_are_asked_for_the_same_targets():
    short, targets = character_passages(64, count=5)
    long, same_targets = character_passages(512, count=5)
    assert torch.equal(targets, same_targets) and torch.equal(long[:, -64:], short)
    assert torch.equal(short[:, 1:], targets[:, :-1])
    assert len(character_passages(1024)[0]) == 64  # the longest that is promised


def test_the_loss_of_a_model_that_knows_nothing_is_the_logarithm_of_the_alphabet():
    _, targets = character_batch(torch.Generator().manual_seed(0), seeds=2, batch=3)
    outputs = torch.zeros(2, 3, 64, len(CHARACTERS))
    assert torch.allclose(character_loss(outputs, targets), torch.tensor(len(CHARACTERS)).log().expand(2))
    outputs[1].scatter_(-1, targets[1, ..., None], 100.0)  # the second seed knows everything
    assert character_loss(outputs, targets)[1] < 1e-6 < character_loss(outputs, targets)[0]


def test_at_offset_names_the_patch_that_stands_there():
    places = torch.cartesian_prod(torch.arange(2), torch.arange(3)) + 5  # 0 1 2 / 3 4 5
    tokens = torch.arange(6).expand(2, 1, 6)
    for offset, expected in (
        ((-1, 1), [-100, -100, -100, 1, 2, -100]),  # no patch before the first of a row
        ((0, 0), [0, 1, 2, 3, 4, 5]),
        ((0, -2), [-100, -100, 0, -100, -100, 3]),
    ):
        assert at_offset(tokens, places, offset)[1, 0].tolist() == expected
    assert UNASKED == -100


def test_only_what_is_asked_counts():
    outputs = torch.log(torch.tensor([[[0.5, 0.5], [0.9, 0.1]], [[0.2, 0.8], [0.3, 0.7]]]))
    targets = torch.tensor([[0, UNASKED], [0, 1]])
    expected = -torch.log(torch.tensor([0.5, (0.2 * 0.7) ** 0.5]))
    torch.testing.assert_close(answer_loss(outputs, targets), expected)
    assert answer_share(outputs, targets).tolist() == [1, 0.5]
