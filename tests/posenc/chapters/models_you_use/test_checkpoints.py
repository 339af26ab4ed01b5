"""Models of transformers: small ones of many classes asked and read, stored ones loaded. No network is touched."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch

from posenc.chapters.models_you_use.checkpoints import (
    CLASSES,
    INSTALL,
    Missing,
    gpt2_terms,
    load,
    next_log_probabilities,
    require_transformers,
    small,
    without_scores,
)
from posenc.chapters.models_you_use.split import products, two_accounts
from posenc.probe import orthogonal_texts, questions, rotation, scores, some_tokens

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[4]
PLACES = ("GPT-2", "OPT", "BERT")
TURNED = ("Llama", "Qwen2", "GPT-NeoX", "GPT-J", "Falcon", "RoFormer", "Gemma 3", "Qwen2-VL")
TURNED += ("Gemma 4", "SmolLM3", "gpt-oss", "DeepSeek V3")
BIASED = ("BLOOM", "MPT", "T5")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def refuse(*_):
        raise OSError("there is no network")

    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)


@pytest.fixture
def without_transformers(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("transformers.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)


@pytest.mark.parametrize("ask", [require_transformers, lambda: small("GPT-2"), lambda: load("./any")])
def test_without_transformers_one_line_says_how_to_get_it(without_transformers, ask):
    with pytest.raises(Missing) as missing:
        ask()
    (line,) = missing.value._render_traceback_()
    assert INSTALL in line and "\n" not in line
    project = (ROOT / "pyproject.toml").read_text()
    for extra in INSTALL.split("[")[1].split("]")[0].split(","):
        assert f"\n{extra} = [\n" in project


SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
sys.modules["transformers"] = None  # as if it were not there
done = InteractiveShell.instance().run_cell(sys.stdin.read())
print("ended" if done.error_in_exec else "went on")
"""


def test_without_transformers_the_first_cell_says_so_in_one_line_and_run_all_ends_there():
    cells = nbformat.read(ROOT / "notebooks" / "09_models_you_use.ipynb", as_version=4).cells
    first = next(cell.source for cell in cells if cell.cell_type == "code")
    done = subprocess.run([sys.executable, "-c", SHELL], input=first, capture_output=True, text=True, check=True)
    said, end = done.stdout.strip().splitlines()
    assert INSTALL in said and end == "ended"
    assert "Traceback" not in done.stdout + done.stderr


def test_what_cannot_be_loaded_is_said_in_one_line(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # else it tries again for 20 s
    file, empty, broken = (tmp_path / name for name in ("file", "empty", "broken"))
    file.write_text("weights")
    empty.mkdir(), broken.mkdir()
    (broken / "config.json").write_text("{}")
    for path, error, message in (
        (tmp_path / "none", FileNotFoundError, "there is no folder .*save_pretrained"),
        ("./none", FileNotFoundError, "there is no folder ./none"),
        (file, ValueError, "is a file: pass the folder"),
        (empty, ValueError, "has no config.json"),
        (broken, ValueError, "cannot be read: "),
        ("nobody/nothing", OSError, "'nobody/nothing' is no folder here, and the hub did not give"),
    ):
        with pytest.raises(error, match=message):
            load(path)


@pytest.mark.parametrize(
    "ask, error, message",
    [
        (lambda: small("GPT-5"), ValueError, "no small 'GPT-5'; there are: GPT-2"),
        (lambda: small("T5", predicts=True), ValueError, "predicts the next character"),
        (lambda: small("Qwen2-VL", predicts=True), ValueError, "predicts the next character"),
        (lambda: gpt2_terms(small("Llama"), torch.arange(5)), TypeError, "LlamaModel is no GPT-2"),
        (lambda: without_scores(small("BLOOM")), TypeError, "BloomModel has no queries where GPT-2, OPT or Llama have"),
    ],
)
def test_an_unknown_class_is_refused(ask, error, message):
    pytest.importorskip("transformers")
    with pytest.raises(error, match=message):
        ask()


def test_a_small_model_is_that_of_its_seed_and_leaves_the_random_numbers_alone():
    pytest.importorskip("transformers")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (small("GPT-2", seed=seed).wte.weight for seed in (1, 1, 2))
    assert first.equal(again) and not first.equal(other)
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("name", CLASSES)
def test_each_class_asks_what_it_is_known_to_ask(name):
    model = small(name)
    found = questions(model)
    mixed = found.content_position + found.position_content
    if name in PLACES:
        assert not found.relative and found.drift > 0.6
        assert 0.25 < mixed < 0.55 and 0.2 < found.position_position < 0.4 and found.together < 0.02
    elif name in TURNED:
        assert found.relative and found.drift < 1e-12
        assert 0.07 < found.together < 0.3 and mixed < 0.15
    elif name == "Qwen3-Next":  # the layers below its softmax have read the text from left to right
        assert not found.relative and 0.005 < found.drift < 0.2 and 0.05 < found.together < 0.3
    elif name in BIASED:
        assert found.relative and found.drift < 1e-12
        assert max(found.together, mixed) < 1e-9
    else:
        assert found.relative and mixed > 0.4 and found.together < 1e-9
        assert found.position_position < 0.15  # of the mean content, which asks for distances too
    assert found.others == 0 and sum(found.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize("name", CLASSES)
def test_each_rotation_is_read_and_nothing_else_is_taken_for_one(name):
    unread = {("gpt-oss", 1), ("Qwen3-Next", 0)}  # sinks, and recurrences below
    for layer in (0,) if name == "Qwen3-Next" else (0, 1):
        found = rotation(small(name), layer=layer)
        assert found.found == (name not in PLACES and (name, layer) not in unread)
        if name in TURNED and found.found:
            bases = {"Qwen2-VL": 1e6, "SmolLM3": 2e6, "gpt-oss": None}  # YaRN's speeds have no base
            base = bases.get(name, 1e4)
            assert found.base == (base and pytest.approx(base, rel=2e-3))
            neighbours = name in ("GPT-J", "RoFormer")
            assert found.layout == ("interleaved" if neighbours else "half_split")
            assert found.rotary_dim == {"GPT-NeoX": 4, "GPT-J": 8, "DeepSeek V3": 8}.get(name, 16)
            assert found.residual < 1e-6
        elif found.found:
            assert found.layout == "none"


def test_layers_that_turn_a_part_or_nothing_are_read():
    found = rotation(small("Gemma 4"), layer=5)
    assert found.pairs.tolist() == [[0, 8], [1, 9]] and found.base == pytest.approx(1e6, rel=2e-3)
    assert [round(rotation(small("Gemma 3"), layer=layer).base, -4) for layer in (4, 5)] == [1e4, 1e6]
    assert rotation(small("SmolLM3"), layer=3).layout == "none"
    model = small("Qwen3-Next")
    model.layers = model.layers[3:]  # the layer with a softmax, without the recurrences below it
    found = rotation(model)
    assert found.pairs.tolist() == [[0, 2], [1, 3]] and questions(model).drift < 1e-12


@pytest.mark.parametrize("name", ["GPT-2", "BERT", "Llama", "T5", "Gemma 3"])
def test_every_way_to_compute_attention_shows_the_same_scores(name):
    model, tokens = small(name), torch.randint(1, 90, (3, 9))
    eager = scores(model, tokens, layer=1)
    model.set_attn_implementation("sdpa")
    for cast, tolerance in ((model.float, 1e-5), (model.double, 1e-4), (model.bfloat16, 0.5)):
        assert (scores(cast(), tokens, layer=1) - eager).nan_to_num().abs().max() < tolerance


def test_a_batch_is_read_as_its_rows_are_and_padding_is_hidden():
    model, tokens = small("GPT-2"), torch.randint(1, 90, (4, 7))
    rows = torch.stack([scores(model, row, layer=1) for row in tokens])
    torch.testing.assert_close(scores(model, tokens, layer=1), rows, rtol=1e-4, atol=1e-6)
    mask = torch.ones(4, 7, dtype=torch.long)
    mask[:, :3] = 0
    seen = scores(model, tokens, layer=1, attention_mask=mask)
    assert seen[:, :, 3:, :3].isinf().all() and seen[:, :, 6, 3:].isfinite().all()


def test_classes_that_this_was_not_made_on():
    import transformers

    tokens = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
    wide = tokens | {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    absolute = [
        transformers.GPTBigCodeConfig(n_embd=48, n_layer=2, n_head=4, **tokens),  # one key for all heads
        transformers.XGLMConfig(d_model=48, num_layers=2, attention_heads=4, ffn_dim=64, **tokens),
        transformers.BartConfig(d_model=48, encoder_layers=2, encoder_attention_heads=4, **tokens),
        transformers.RobertaConfig(**wide),
    ]
    sink = {"num_key_value_heads": 2, "head_dim": 12, "num_local_experts": 2, "num_experts_per_tok": 1}
    turning = [
        transformers.GptOssConfig(**wide, **sink),  # its softmax has a column more
        transformers.Gemma2Config(**wide, num_key_value_heads=2, head_dim=12),  # its scores pass a tanh
        transformers.Olmo2Config(**wide),
        transformers.EsmConfig(**wide, position_embedding_type="rotary"),
    ]
    for config in absolute + turning:
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(config).eval()  # with the attention that it would choose itself
        found = questions(model)
        assert found.relative == (config in turning), config.model_type
        assert rotation(model).found == (config in turning)
        assert scores(model, torch.arange(3, 9), layer=1).shape == (4, 6, 6)


def test_models_without_attention_or_tokens_are_refused():
    import transformers

    mamba = transformers.MambaModel(transformers.MambaConfig(hidden_size=32, num_hidden_layers=1, vocab_size=64))
    with pytest.raises(ValueError, match="MambaModel has no attention, so there are no scores and nothing is turned"):
        questions(mamba)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    sight = transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=32))
    with pytest.raises(TypeError, match="ViTModel reads pixel_values, no tokens"):
        scores(sight, torch.arange(5))


def test_attention_is_seen_by_the_class_of_a_layer_too():
    """RecurrentGemma calls its attention `temporal_block`."""
    import transformers

    sizes = {"hidden_size": 32, "lru_width": 32, "intermediate_size": 64, "num_hidden_layers": 3, "vocab_size": 64}
    config = transformers.RecurrentGemmaConfig(**sizes, num_attention_heads=2, head_dim=16)
    assert scores(transformers.RecurrentGemmaModel(config), torch.arange(9)).shape == (2, 9, 9)


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "T5"])
def test_a_saved_model_comes_back_from_its_folder(name, tmp_path):
    model = small(name, predicts=name != "T5")
    model.save_pretrained(tmp_path)
    back = load(tmp_path)
    assert back.training is False
    assert questions(back).shares == pytest.approx(questions(model).shares, abs=1e-6)
    (tmp_path / "model.safetensors").write_bytes(b"none")
    with pytest.raises(ValueError, match="cannot be read: "):
        load(str(tmp_path))


def as_trained(less):
    """A small GPT-2 with weights that are 0 or 1 until a training moves them."""
    model, generator = small("GPT-2", predicts=True), torch.Generator().manual_seed(1)
    for name, weight in model.named_parameters():
        if "ln_1" in name or "bias" in name:
            weight.data.add_(torch.randn(weight.shape, generator=generator) / less)
    return model


def test_the_four_terms_of_gpt_2_are_its_scores():
    torch.manual_seed(0)
    model, tokens = as_trained(2), torch.randint(1, 90, (3, 9))
    seen = scores(model, tokens)
    visible = seen.isfinite()
    assert (sum(gpt2_terms(model, tokens)) - seen)[visible].abs().max() < 1e-5 < 0.1 < seen[visible].std()
    assert gpt2_terms(model.transformer, tokens).content_position.equal(gpt2_terms(model, tokens)[1])


def test_six_products_are_gpt_2s_scores_and_six_shares_agree():
    model = as_trained(20)
    tokens = some_tokens(model, 7)
    seen = scores(model, tokens[orthogonal_texts(7)])[:, :, 3:, :3]
    summed = sum(products(model, tokens).values())[:, :, 3:, :3].double()
    # no softmax sees a row's own number
    both = [each - each.mean(-1, keepdim=True) for each in (seen, summed)]
    assert (both[0] - both[1]).abs().max() < 1e-5 < 1e-2 < both[0].std()
    whole, apart = two_accounts(model, tokens)
    for account in (whole, apart):
        assert sum(account["split"]) == pytest.approx(1)
    asked = questions(model, tokens=tokens)
    assert whole["table"] == pytest.approx([asked.shares[name] for name in list(asked.shares)[:4]], abs=1e-6)
    assert apart["table"][4:] == pytest.approx([asked.any_token, asked.any_place], abs=1e-6)
    assert max(abs(one - other) for one, other in zip(apart["split"], apart["table"])) < 0.05


@pytest.mark.parametrize("name", ["GPT-2", "OPT", "Llama"])
def test_without_scores_each_visible_key_gets_the_same_weight(name):
    model, tokens = small(name, predicts=True), torch.randint(1, 90, (7,))
    before = next_log_probabilities(model, tokens[None])
    silent = without_scores(model)
    for layer in (0, 1):
        seen = scores(silent, tokens, layer=layer)
        assert (seen.isinf() | (seen == 0)).all() and seen[:, -1].isfinite().all()
    assert next_log_probabilities(model, tokens[None]).equal(before)  # a copy was changed
    assert not next_log_probabilities(silent, tokens[None]).allclose(before)
