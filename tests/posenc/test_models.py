"""The small transformer, its three places for positions, and the ensemble of seeds."""

import pytest
import torch
from torch import nn

from posenc.additive import Learned, sinusoidal
from posenc.models import Ensemble, Transformer, train
from posenc.rotary import rotate

TOKENS = torch.tensor([[3, 1, 4, 1, 5, 2]])


def model(**options) -> Transformer:
    torch.manual_seed(0)
    return Transformer(8, 3, width=16, **options).double()


def add_sinusoid(x, positions):
    return x + sinusoidal(positions, x.shape[-1], dtype=x.dtype)


@pytest.mark.parametrize("layers", [1, 3])
def test_without_positions_outputs_move_with_their_tokens(layers):
    p = torch.tensor([1, 2, 0, 5, 3, 4])
    net = model(layers=layers)
    torch.testing.assert_close(net(TOKENS[:, p]), net(TOKENS)[:, p], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"encode": add_sinusoid},
        {"rotate": lambda x, positions: x * (1 + positions[:, None])},
        {"bias": lambda m, n: (m[:, None] - n).double().expand(2, -1, -1)},
    ],
    ids=["encode", "rotate", "bias"],
)
def test_each_place_for_positions_breaks_the_symmetry(options):
    p = torch.tensor([1, 2, 0, 5, 3, 4])
    net = model(**options)
    assert (net(TOKENS[:, p]) - net(TOKENS)[:, p]).abs().max() > 1e-3
    moved = net(TOKENS[:, p], positions=p)  # the tokens take their positions along
    torch.testing.assert_close(moved, net(TOKENS)[:, p], rtol=0, atol=1e-12)


def test_a_causal_model_does_not_see_later_tokens():
    net, changed = model(causal=True, layers=2), TOKENS.clone()
    changed[0, 4] = 7
    assert torch.equal(net(TOKENS)[:, :4], net(changed)[:, :4])
    assert (net(TOKENS)[:, 4:] - net(changed)[:, 4:]).abs().amin(dim=(0, 2)).min() > 1e-6


def test_causal_mask_and_bias_add_up():
    bias = torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(1)).double()
    net, plain = model(causal=True, bias=lambda m, n: bias), model(causal=True)
    assert torch.equal(net(TOKENS)[:, 0], plain(TOKENS)[:, 0])  # row 0 sees one key, whatever its bias
    assert (net(TOKENS)[:, 1:] - plain(TOKENS)[:, 1:]).abs().max() > 1e-3


def test_an_ensemble_computes_what_its_models_compute_alone():
    def build():
        return Transformer(8, 3, width=16, layers=2, causal=True, encode=add_sinusoid)

    tokens = torch.randint(8, (3, 5, 6), generator=torch.Generator().manual_seed(0))
    drawn = torch.get_rng_state()
    together = Ensemble(build, seeds=[7, 8, 9])(tokens)
    assert torch.equal(torch.get_rng_state(), drawn)  # the global generator is left alone
    for index, seed in enumerate([7, 8, 9]):
        torch.manual_seed(seed)
        torch.testing.assert_close(together[index], build()(tokens[index]), rtol=0, atol=1e-5)


def mean_square(outputs, _):
    return outputs.square().mean(dim=(1, 2, 3))


def test_encodings_may_be_modules_that_learn():
    class AddLearned(nn.Module):
        def __init__(self):
            super().__init__()
            self.positions = Learned(6, 16)

        def forward(self, x, positions):
            return x + self.positions(positions)

    ensemble = Ensemble(lambda: Transformer(8, 1, width=16, encode=AddLearned()), seeds=range(2))
    tokens = torch.randint(8, (2, 4, 7), generator=torch.Generator().manual_seed(0))
    before = ensemble.parameters["encode.positions.table"].clone()
    assert before.shape == (2, 6, 16)
    train(ensemble, lambda step: (tokens[..., :6], None), mean_square, steps=2)
    assert not torch.equal(ensemble.parameters["encode.positions.table"], before)
    with pytest.raises(ValueError, match="position 6 is not in the table"):
        ensemble(tokens)


def sums(seeds, generator):
    """Inputs and the sums of their numbers: a task that one linear layer can learn."""
    inputs = torch.randn(seeds, 16, 4, generator=generator)
    return inputs, inputs.sum(-1, keepdim=True)


def squared_error(outputs, targets):
    return (outputs - targets).square().mean(dim=(1, 2))


def fit(seeds, steps=60, data_for=None, **options):
    ensemble = Ensemble(lambda: nn.Linear(4, 1), seeds=seeds)
    generator = torch.Generator().manual_seed(0)
    batches = [sums(data_for or len(seeds), generator) for _ in range(steps)]
    batches = [(x[: len(seeds)], y[: len(seeds)]) for x, y in batches]
    train(ensemble, lambda step: batches[step], squared_error, steps=steps, learning_rate=0.1, **options)
    return ensemble


def test_training_lowers_the_loss_of_every_seed():
    batch = sums(3, torch.Generator().manual_seed(1))
    untrained = Ensemble(lambda: nn.Linear(4, 1), seeds=range(3))
    assert (squared_error(untrained(batch[0]), batch[1]) > 0.5).all()
    assert (squared_error(fit(range(3))(batch[0]), batch[1]) < 0.05).all()


def test_a_seed_learns_the_same_beside_others_as_alone():
    together, alone = fit(range(3)), fit(range(1), data_for=3)
    torch.testing.assert_close(together.parameters["weight"][0], alone.parameters["weight"][0], rtol=0, atol=1e-5)


def test_reports_come_before_the_first_step_at_every_interval_and_at_the_end():
    reported = []
    fit(range(1), steps=60, every=25, report=reported.append)
    assert reported == [0, 25, 50, 60]


def test_several_inputs_are_a_tuple():
    """A rotation by angles that come with the tokens: other angles change what is learned."""
    tokens, turned = torch.randint(8, (2, 4, 6)), torch.rand(2, 6, 4)
    learned = []
    for angles in (0 * turned, turned):
        ensemble = Ensemble(lambda: Transformer(8, 1, width=16, rotate=rotate), seeds=range(2))
        train(ensemble, lambda step, inputs=(tokens, angles): (inputs, None), mean_square, steps=2)
        learned.append(ensemble.parameters["head.weight"].detach())
    assert (learned[0] - learned[1]).abs().max() > 1e-4


def test_double_is_a_frozen_copy():
    ensemble = fit(range(2), steps=1)
    exact = ensemble.double()
    assert exact.parameters["weight"].dtype == torch.float64 and not exact.parameters["weight"].requires_grad
    inputs = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(exact(inputs.double()).float(), ensemble(inputs), rtol=0, atol=1e-5)
    assert ensemble.parameters["weight"].dtype == torch.float32
