"""Hidden tests: every right answer passes, every mistake that a check names fails, and no answer stands in them."""

import ast
import collections
import math
import re
from pathlib import Path

import planted as mistakes
import pytest
import torch

from classroom import release
from courseware import notebooks
from courseware.solutions import solved

pytestmark = pytest.mark.slow

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CHAPTERS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
chapters = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def hidden(path, name):
    """The hidden test of an exercise as a function, made as in the grader: from its source alone."""
    known = {}
    exec(release.hidden_tests(path)[name], known)
    return known[name]


def passes(path, name, answer):
    try:
        hidden(path, name)(answer)
    except Exception:  # noqa: BLE001  any error takes the points
        return False
    return True


def solutions(path):
    """The worked function of each exercise, by name, and its source."""
    names, sources = {"__name__": "notebook"}, {}
    for cell in solved(notebooks.read(path)).cells:
        if "ex" in cell.metadata:
            sources[cell.metadata.ex.id] = cell.source
        if "ex" in cell.metadata or cell.cell_type == "code" and re.match(r"(import|from) ", cell.source):
            exec(cell.source, names)
    return {name: names[name] for name in sources}, sources


def planted(path):
    """The right and the wrong answers that the tests of the chapter's checks know."""
    module = mistakes.planted(path.stem.partition("_")[2])
    return module.RIGHT, module.PLANTED


@chapters
def test_every_exercise_has_one(path):
    asked = [cell.metadata.ex.id for cell in notebooks.read(path).cells if "ex" in cell.metadata]
    assert sorted(name for name in release.hidden_tests(path) if not name.startswith(release.PART)) == sorted(asked)


@chapters
def test_right_answers_pass_and_draw_nothing_at_random(path):
    parts = release.hidden_tests(path).keys()
    right = [*solutions(path)[0].items(), *((name, answer) for name, answer, *_ in planted(path)[0])]
    for name, answer in right:
        for test in {name, f"{release.PART}{name}"} & parts:
            before = torch.get_rng_state()
            hidden(path, test)(answer)
            assert torch.equal(torch.get_rng_state(), before), test


@chapters
def test_every_mistake_that_a_check_names_fails(path):
    assert [(name, words) for name, answer, words in planted(path)[1] if passes(path, name, answer)] == []


# The mistakes that leave a part right, which gives its one point by itself: part → words of the check.
LEFT_RIGHT = {
    "04": {"rotary": ("is wrong: i/d", "4i/d", "i/(d/2 - 1)", "at the speed of pair 0", "the base is not used")},
    "05": {
        "reach": ("return math.inf",),
        "read_config": ("before stretching", "how long a text", "counts from T₀", "that is T₀", "7 positions"),
    },
    "08": {"repaired": ("biases stand where they stood", "query.bias is not")},
}


@chapters
def test_a_part_gives_its_point_where_it_is_right_and_nowhere_else(path):
    wanted, tests = LEFT_RIGHT.get(path.name[:2], {}), release.hidden_tests(path)
    assert {f"{release.PART}{name}" for name in wanted} == {name for name in tests if name.startswith(release.PART)}
    for name, answer, words in planted(path)[1]:
        if name in wanted:
            right = any(each in words for each in wanted[name])
            assert passes(path, f"{release.PART}{name}", answer) == right, (name, words)


def one_minus_near(weights, trained):
    places = torch.arange(len(weights))
    return 1 - (weights * (places[:, None] - places < trained)).sum(dim=-1)


def state_dict_repaired(state, heads):
    return collections.OrderedDict(solutions(release.chapter("08"))[0]["repaired"](state, heads))


def rest_of_the_norm(x, e, weight, eps):
    whole = torch.nn.functional.layer_norm(x + e, x.shape[-1:], weight, eps=eps)
    deviation = ((x + e).var(-1, correction=0, keepdim=True) + eps).sqrt()
    first = weight * (x - x.mean(-1, keepdim=True)) / deviation
    return torch.stack([first, whole - first])


# Right answers in another style, which round otherwise or return what torch itself returns.
OTHERWISE = [
    ("05", "unseen_weight", one_minus_near),
    ("08", "repaired", state_dict_repaired),
    ("09", "norm_parts", rest_of_the_norm),
]


@pytest.mark.parametrize(("chapter", "name", "answer"), OTHERWISE)
def test_right_answers_in_another_style_pass(chapter, name, answer):
    hidden(release.chapter(chapter), name)(answer)


def few_calls(before, timed):
    """A benchmark that warms up and takes the mean of so few calls that one interruption decides."""

    def answer(kernel, stream):
        for _ in range(before):
            kernel()
        pairs = []
        for _ in range(timed):
            stream.flush()
            start = stream.record()
            kernel()
            pairs.append((start, stream.record()))
        stream.synchronize()
        return sum(start.elapsed_time(end) for start, end in pairs) / timed / 1000

    return answer


def twelve_at_most(back, d):
    return mistakes.planted("rotary_encoding").right_look_back(min(back, 12), d)


def first_open_pair(speeds, trained_speeds, trained):
    seen = trained_speeds * (trained - 1)
    still = seen < 2 * math.pi
    return (seen / speeds)[still][0].item() if still.any() else math.inf


def open_by_the_new_speeds(speeds, trained_speeds, trained):
    still = speeds * (trained - 1) < 2 * math.pi
    return (trained_speeds * (trained - 1) / speeds)[still].min().item() if still.any() else math.inf


# Answers that a check takes for right, or that a hidden test once did, and what the hidden tests say of them.
SEEN_THROUGH = [
    *(("07", "time_kernel", few_calls(before, 1), r"that is interrupted in call") for before in (3, 4, 5, 10, 50)),
    *(("07", "time_kernel", few_calls(4, timed), r"that is interrupted in call [4-7] ") for timed in (2, 3)),
    ("05", "reach", first_open_pair, "an angle is new before distance 45"),
    ("05", "reach", open_by_the_new_speeds, "no angle is new beyond distance 16"),
    ("04", "look_back", twelve_at_most, r"13 back, d = 64, among 14 tokens: the weight there is only 0\.00"),
]


@pytest.mark.parametrize(("chapter", "name", "answer", "words"), SEEN_THROUGH)
def test_what_a_check_overlooks_is_seen_and_told(chapter, name, answer, words):
    with pytest.raises(AssertionError, match=words):
        hidden(release.chapter(chapter), name)(answer)


@chapters
def test_every_assertion_says_what_was_tried(path):
    """In words of its own each, with the numbers of the case in it where there are several."""
    for source in release.hidden_tests(path).values():
        asserted = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
        assert asserted and all(node.msg for node in asserted)
        assert not any(isinstance(node.msg, ast.Constant) and len(node.msg.value) < 30 for node in asserted)


class Yes:
    """Agrees with everything."""

    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return Yes()

    def __call__(self, *inputs, **options):
        return Yes()

    def __bool__(self):
        return True


class Tame(torch.Tensor):
    """A tensor that every function of torch finds right."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        return True


@pytest.mark.parametrize("garbage", [None, Yes(), True, torch.nan, torch.ones(3).as_subclass(Tame), "0.6"])
@chapters
def test_garbage_fails(path, garbage):
    assert not [name for name in release.hidden_tests(path) if passes(path, name, lambda *inputs: garbage)]


def statements(source):
    """The statements and returned expressions of a source, as Python writes them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Return) and node.value or isinstance(node, ast.Assign | ast.AugAssign):
            yield ast.unparse(node.value)


@chapters
def test_no_hidden_test_holds_a_line_of_the_solution(path):
    for name, source in solutions(path)[1].items():
        told = set(statements(release.hidden_tests(path)[name]))
        body = [line for line in statements(source) if len(line) > 15]
        assert not told & set(body), name
