"""Chapter 5's figures: what they draw is what the subject modules compute, and what configurations say."""

import math

import pytest
import torch

from posenc.chapters.longer_than_trained import figures
from posenc.chapters.longer_than_trained.judging import MEASURED, ROWS
from posenc.rotary import angles
from posenc.stretching import interpolated, llama3, ntk, yarn

ONE = torch.tensor(1)


@pytest.fixture(scope="module")
def stretching():
    return figures.stretching()


@pytest.fixture(scope="module")
def models():
    return figures.models()


@pytest.mark.parametrize("method, scale", list(zip(figures.METHODS, (3, 32, 8, 2, 16, 5, 1))))
def test_every_pair_ends_where_its_speed_takes_it(stretching, method, scale):
    live = stretching
    live.set(method=method, scale=scale)
    speeds = torch.as_tensor(live.artists["speed"].get_ydata())
    ends = {}
    for name in ("end", "new"):
        ends |= dict(zip(*(map(float, data) for data in live.artists[name].get_data())))
    turns = 4096 * angles(ONE, 128) / (2 * math.pi)
    assert sorted(ends) == list(range(64))
    for pair, end in ends.items():
        assert end == pytest.approx(turns[int(pair)].item() * speeds[int(pair)].item() * scale)
    new = {int(pair) for pair in live.artists["new"].get_xdata()}
    assert new == {i for i in range(64) if turns[i] < 1 and ends[i] > turns[i] * (1 + 1e-9)}
    assert f"{len(new)} pairs with new angles" in live.artists["left"].get_text()


def test_the_methods_are_those_of_the_subject_module():
    options = {"scale": 8.0, "trained_length": 4096}
    for name, expected in (
        ("as trained", angles(ONE, 128)),
        ("PI", interpolated(ONE, 128, scale=8.0)),
        ("NTK", ntk(ONE, 128, scale=8.0)),
        ("dynamic", ntk(ONE, 128, scale=8.0)),
        ("YaRN", yarn(ONE, 128, **options)),
        ("llama3", llama3(ONE, 128, **options)),
    ):
        assert torch.allclose(figures.METHODS[name](ONE, 128, **options), expected), name
    by_hand = figures.METHODS["LongRoPE"](ONE, 128, **options) / angles(ONE, 128)
    assert set(by_hand.tolist()) == {1.0, 1 / 8} and (by_hand == 1).sum() == 46


@pytest.mark.parametrize("model, power", list(zip(figures.MODELS, (9, 20, 17, 14, 16, 12))))
def test_every_pair_of_a_model_stands_in_its_class(models, model, power):
    live = models
    live.set(model=model, power=power)
    chosen, length = figures.MODELS[model], 2**power
    drawn = {name: list(map(float, live.artists[name].get_ydata())) for name in ("seen", "late", "never")}
    assert sum(map(len, drawn.values())) == chosen.head_dim // 2
    assert all(wavelength <= chosen.trained for wavelength in drawn["seen"])
    assert all(chosen.trained < wavelength <= length for wavelength in drawn["late"])
    assert all(wavelength > max(length, chosen.trained) for wavelength in drawn["never"])
    assert f"{len(drawn['seen'])} met all their angles" in live.artists["readout"].get_text()


@pytest.mark.slow
def test_gpt_neox_is_what_its_configuration_class_says():
    transformers = pytest.importorskip("transformers", reason="it comes with the extra `dev`")
    config = transformers.GPTNeoXConfig()
    model = figures.MODELS["GPT-NeoX 20B"]
    part = config.rope_parameters["partial_rotary_factor"]
    assert model.head_dim == config.hidden_size // config.num_attention_heads * part
    assert (model.base, model.trained) == (
        config.rope_parameters["rope_theta"],
        config.max_position_embeddings,
    )


@pytest.mark.parametrize(
    "power, length, longest",
    [(4.0, 12, "4,096 positions"), (1.0, 12, "any length"), (7.0, 5, "32 positions")],
)
def test_the_longest_text_without_a_new_angle(power, length, longest):
    live = figures.bases()
    live.set(power=power, length=length)
    text = live.artists["readout"].get_text()
    assert f"no new angle up to {longest};" in text
    wavelengths = 2 * math.pi / angles(ONE, 128, base=10**power)
    slow = int((wavelengths > 2**length).sum())
    assert len(live.artists["slow"].get_xdata()) == slow and (slow == 0) == (longest == "any length")


def test_with_the_base_that_the_figure_names_the_slowest_pair_just_comes_round():
    live = figures.bases()
    live.png()
    base = float(live.artists["readout"].get_text().rpartition(" ")[2].replace(",", ""))
    slowest = [2 * math.pi / angles(ONE, 128, base=base + more)[-1] for more in (-1, 1)]
    assert slowest[0] < 4096 < slowest[1]


def test_the_needle_figure_reads_the_measured_shares():
    found = {
        task: {"none": torch.rand(3, 4), "rotary": torch.rand(3, 4)} for task in ("recall", "the newest")
    }
    live = figures.needles(found, [4, 8, 16, 100])
    assert live.sweep() > 0
    for place in range(4):
        live.set(place=place)
        for task, curves in found.items():
            means = [share[:, place].mean().item() for share in curves.values()]
            assert live.artists[f"{task}, means"].get_ydata() == pytest.approx(means)
            text = live.artists[f"{task}, readout"].get_text()
            assert f"{(4, 8, 16, 100)[place]} back" in text and f"rotary {means[1]:.2f}" in text


def test_dots_and_shares_draw_what_they_are_given():
    values = {"a": [torch.tensor([0.1, 0.2]), torch.tensor([0.3, 0.4])], "b": [torch.ones(2), torch.zeros(2)]}
    live = figures.dots(values, series=["first", "second"])
    first, second = live.figure.axes[0].lines
    assert first.get_ydata() == pytest.approx([0.1, 0.2, 1, 1])
    assert second.get_ydata() == pytest.approx([0.3, 0.4, 0, 0])
    shares = torch.rand(3, 61)
    live = figures.shares_by_position({"rotary": shares})
    (panel,) = live.figure.axes
    assert len(panel.lines) == 3
    assert panel.lines[1].get_ydata()[0] == pytest.approx(shares[1, :8].mean().item(), rel=1e-5)


def test_the_card_shows_the_judged_rows_above_the_known_ones():
    row = {column: index / 10 for index, column in enumerate(ROWS)} | {"moved by 100": math.inf}
    live = figures.card({"mine": row})
    exact, shares = live.figure.axes[:2]
    assert [label.get_text() for label in exact.get_yticklabels()] == ["mine", *MEASURED]
    assert [text.get_text() for text in exact.texts[:2]] == ["0.00", "∞"]
    assert [text.get_text() for text in shares.texts[:6]] == [f"{index / 10:.2f}" for index in range(2, 8)]
    assert len(shares.texts) == 6 * (1 + len(MEASURED))
