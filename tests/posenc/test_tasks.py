"""The tasks: what their texts hold, and that no order-blind model can do better than it should."""

import pytest
import torch
from torch import nn

from posenc.models import Ensemble
from posenc.tasks import (
    ASK,
    CHARACTERS,
    FACT_VALUES,
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
    fact_batch,
    fact_model,
    fact_token,
    needle_accuracy,
    needles,
    order_accuracy,
    order_batch,
    order_loss,
    order_twins,
)


def place(token, tokens):
    return (tokens == token).int().argmax(-1)


@pytest.mark.parametrize("neutral_end", [True, False])
def test_every_sentence_holds_one_a_and_one_b_and_the_label_says_which_is_first(neutral_end):
    draw = torch.Generator().manual_seed(0)
    tokens, a_first = order_batch(draw, seeds=3, batch=1500, neutral_end=neutral_end)
    assert tokens.shape == (3, 1500, 10) and a_first.shape == (3, 1500)
    assert ((tokens == A).sum(-1) == 1).all() and ((tokens == B).sum(-1) == 1).all()
    assert ((place(A, tokens) < place(B, tokens)) == a_first.bool()).all()
    assert 0.46 < a_first.mean() < 0.54  # 4500 coins: five deviations
    assert tokens.unique().tolist() == list(range(ORDER_VOCABULARY - (not neutral_end)))
    assert ((tokens == NEUTRAL).sum((0, 1)) == torch.tensor([0] * 9 + [4500 * neutral_end])).all()
    last = (tokens[..., -1] <= B).double().mean()
    assert abs(last - (0 if neutral_end else 0.2)) < 0.03  # five deviations


def test_twins_differ_in_nothing_but_the_places_of_a_and_b():
    for neutral_end in (True, False):
        one, two = order_twins(neutral_end=neutral_end, repeats=2)
        assert torch.equal(one.sort().values, two.sort().values)
        assert ((one != two).sum(-1) == 2).all()
        assert (place(A, one) < place(B, one)).all()
        assert torch.equal(torch.where(one == A, B, torch.where(one == B, A, one)), two)
    assert (one[:, -1] <= B).double().mean() == 0.2  # every pair of places equally often


class Reader(nn.Module):
    """A model by hand: `rule` maps tokens (B, T) to an answer (B,)."""

    def __init__(self, rule):
        super().__init__()
        self.rule, self.scale, self.seen = rule, nn.Parameter(torch.ones(1)), set()

    def forward(self, tokens):
        self.seen.add((self.scale.dtype, torch.is_grad_enabled()))
        return (self.scale * self.rule(tokens))[:, None, None]


@pytest.mark.parametrize(
    "rule, neutral_end, share",
    [
        (lambda tokens: place(B, tokens) - place(A, tokens), True, 1),
        (lambda tokens: place(A, tokens) - place(B, tokens), True, 0),
        (lambda tokens: tokens.sum(-1) - 40.0, True, 0.5),
        # right when b is last, wrong when nothing is, right when a is
        (lambda tokens: (tokens[:, -1] == B) * 2.0 - 1, False, 0.6),
    ],
)
def test_accuracy_of_models_that_know_that_guess_and_that_err(rule, neutral_end, share):
    readers = []
    ensemble = Ensemble(lambda: readers.append(Reader(rule)) or readers[-1], seeds=range(2))
    assert order_accuracy(ensemble, neutral_end=neutral_end).tolist() == [share, share]
    assert readers[0].seen == {(torch.float64, False)}  # computed in float64 and without gradients


def test_the_loss_reads_the_last_token_and_falls_when_the_answer_is_right():
    outputs = torch.zeros(2, 3, 4, 1)
    outputs[..., -1, 0] = 5.0
    right, wrong = order_loss(outputs, torch.ones(2, 3)), order_loss(outputs, torch.zeros(2, 3))
    assert right.shape == (2,) and (right < 0.01).all() and (wrong > 4.9).all()


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


# --- facts -----------------------------------------------------------------------------------


def told_before(keys, values, place):
    """The values that were told of the key at a place, oldest first."""
    return [v for k, v in zip(keys[:place], values[:place]) if k == keys[place] and v != ASK]


@pytest.mark.parametrize("newest", [False, True])
def test_a_question_is_answered_by_the_newest_fact_before_it(newest):
    tokens, answers = fact_batch(torch.Generator().manual_seed(0), seeds=2, newest=newest, batch=20)
    assert tokens.shape == answers.shape == (2, 20, 32)
    changed = 0
    for text, answer in zip(tokens.flatten(0, 1), answers.flatten(0, 1)):
        keys, values = (text // (FACT_VALUES + 1)).tolist(), (text % (FACT_VALUES + 1)).tolist()
        for place in range(32):
            told = told_before(keys, values, place)
            assert answer[place] == (told[-1] if values[place] == ASK and told else UNASKED)
            changed += len({*told}) > 1
    assert (changed > 100) == newest  # in "recall" a key has one value throughout
    assert 0.4 < (tokens % (FACT_VALUES + 1) == ASK).double().mean() < 0.6


@pytest.mark.parametrize("newest", [False, True])
def test_a_needle_stands_where_it_should_and_nowhere_else(newest):
    distances = [8, 24, 48, 240]
    tokens, values = needles(torch.Generator().manual_seed(0), distances, seeds=2, newest=newest)
    assert tokens.shape == (2, 8, 256) and values.shape == (2, 8, 4)
    for text, right in zip(tokens.flatten(0, 1), values.flatten(0, 1)):
        facts = [divmod(token, FACT_VALUES + 1) for token in text.tolist()]
        for question, distance in enumerate(distances):
            place = 252 + question
            key, asked = facts[place]
            assert asked == ASK
            told = [(p, value) for p, (other, value) in enumerate(facts) if other == key and p != place]
            assert told[-1] == (place - distance, right[question])
            assert len(told) == 1 + newest
            if newest:
                assert 4 <= told[1][0] - told[0][0] <= 12 and told[0][1] not in (ASK, right[question])


def test_needles_that_meet_are_refused():
    generator = torch.Generator().manual_seed(0)
    for distances, length in (([8, 9], 256), ([250], 64), ([1, 2], 64)):
        with pytest.raises(ValueError, match="meet"):
            needles(generator, distances, seeds=1, newest=False, length=length)
    with pytest.raises(ValueError, match="meet"):
        needles(generator, [8, 16], seeds=1, newest=True)
    with pytest.raises(ValueError):
        needle_accuracy(Knows(), generator, [100], newest=False, length=80)
    for distances in ([], range(20, 180, 10)):
        with pytest.raises(ValueError, match="questions: ask 1 to 15"):
            needles(generator, distances, seeds=1, newest=False)


class Knows:
    """Answers like one who has read everything, or only the last `window` tokens."""

    def __init__(self, window=10**9, oldest=False):
        self.seeds, self.window, self.oldest = [0, 1], window, oldest

    def __call__(self, tokens):
        outputs = torch.zeros(*tokens.shape, FACT_VALUES)
        for index in torch.cartesian_prod(*(torch.arange(size) for size in tokens.shape)).tolist():
            text = tokens[index[0], index[1]]
            keys, values = (text // (FACT_VALUES + 1)).tolist(), (text % (FACT_VALUES + 1)).tolist()
            start = max(0, index[2] - self.window)
            told = told_before(keys[start:], values[start:], index[2] - start)
            if told:
                outputs[(*index, told[0 if self.oldest else -1])] = 1
        return outputs


def test_accuracy_is_the_share_of_right_answers_at_each_distance():
    def measure(reader, newest):
        return needle_accuracy(
            reader, torch.Generator().manual_seed(0), [8, 9, 30, 48], texts=8, newest=newest, length=80
        )

    assert measure(Knows(), True).tolist() == measure(Knows(), False).tolist() == [[1] * 4] * 2
    assert measure(Knows(oldest=True), True).max() == 0
    near = measure(Knows(window=20), False)
    assert near[:, :2].min() == 1 and near[:, 2:].max() < 0.5


def test_a_model_of_facts_reads_a_key_and_a_value_as_two_vectors():
    model = fact_model(width=8)
    tokens = fact_token(torch.tensor([[3, 3, 5]]), torch.tensor([[2, ASK, 2]]))
    x = model.embedding(tokens)[0]
    assert model(tokens).shape == (1, 3, FACT_VALUES)
    assert torch.allclose(x[0] - x[1], model.embedding.value.weight[2] - model.embedding.value.weight[ASK])
    assert torch.allclose(x[0] - x[2], model.embedding.key.weight[3] - model.embedding.key.weight[5])
