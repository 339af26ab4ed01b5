"""check and use: one clear line, whatever the answer is."""

import os
import subprocess
import sys
import types

import numpy as np
import pytest
import torch
from planted import unmet, verdict

from posenc.lesson import exercises
from posenc.lesson.exercises import Answer, Unanswered, Wrong, check, difference, exercise, find, shown, use, wrong


@pytest.fixture(autouse=True)
def an_exercise(monkeypatch):
    monkeypatch.setattr(exercises, "_exercises", dict(exercises._exercises))
    monkeypatch.setattr("posenc.lesson.exercises.STRICT", False)

    @exercise("think", "1 + 1", well_done="so it is.")
    def double_it(answer: Answer) -> None:
        x = torch.tensor([1.0, 2.0])
        if not torch.equal(answer.tensor(x, shape=(2,), dtype=torch.float32), 2 * x):
            wrong("not twice x")

    @exercise()
    def a_number(answer: Answer) -> None:
        if answer.number() != 0.5:
            wrong("not one half")


def raises(error):
    def answer(x=None):
        raise error

    return answer


stub = raises(NotImplementedError("your turn"))


LINES = {
    "✓ double_it: so it is.": [lambda x: 2 * x],
    "○ double_it: not attempted yet": [stub],
    "✗ double_it: not twice x": [lambda x: 3 * x],
    "✗ double_it: it returned None: end the function with return": [lambda x: None],
    "✗ double_it: it returned a NumPy array: stay in torch, or end with torch.from_numpy(…)": [lambda x: 2 * x.numpy()],
    "✗ double_it: it returned a list: return a torch tensor of shape (2,)": [lambda x: (2 * x).tolist()],
    "✗ double_it: it returned an int: return a torch tensor of shape (2,)": [lambda x: 2],
    "✗ double_it: the result has shape (1, 2), expected (2,) (called with x of shape (2,))": [lambda x: 2 * x[None]],
    "✗ double_it: the result is torch.float64, expected torch.float32: keep the dtype of the inputs": [
        lambda x: 2 * x.double()
    ],
    "✗ double_it: it returned a Parameter: return a plain tensor, for instance by .detach()": [torch.nn.Parameter],
    "✗ double_it: the result holds NaN: look for 0/0, inf - inf, 0·inf, the root of a negative number, "
    "or a row in which everything is -inf": [lambda x: x * torch.nan],
    "✗ double_it: it changed its input x in place: work on a copy and return a new value": [
        lambda x: x.mul_(2),
        lambda x: 2 * x.unsqueeze_(0)[0],
    ],
    "✗ double_it: it raised ValueError: no (called with x of shape (2,))": [raises(ValueError("no\nno"))],
    "✗ double_it: it raised SystemExit: no message (called with x of shape (2,))": [raises(SystemExit())],
    "✗ double_it: it raised NotImplementedError: no (called with x of shape (2,))": [raises(NotImplementedError("no"))],
    "✗ double_it: it takes (x, y) but is called with 1 arguments: keep the stub's first line": [lambda x, y: x],
    "✗ double_it: it takes () but is called with 1 arguments: keep the stub's first line": [lambda: None],
    "✗ double_it: pass the function itself, double_it, not a Tensor": [torch.zeros(2)],
    "✓ a_number": [lambda: 0.5, lambda: torch.tensor(0.5), lambda: np.float32(0.5), lambda: np.array([0.5])],
    "✗ a_number: not one half": [lambda: 1, lambda: np.int64(1)],
    "✗ a_number: it returned a bool: return one number": [lambda: True],
    "✗ a_number: it returned a str: return one number": [lambda: "0.5"],
    "✗ a_number: it returned a Tensor: return one number": [lambda: torch.zeros(2)],
    "✗ a_number: it returned a complex: return one number": [lambda: 0.5j],
    "✗ a_number: it returned nan: return a finite number": [lambda: float("nan")],
    "✗ a_number: it returned an integer that no float can hold: return a finite number": [lambda: 10**400],
}


@pytest.mark.parametrize("line", LINES)
def test_one_line_for(line, capsys):
    name = line.split()[1].removesuffix(":")
    for answer in LINES[line]:
        assert verdict(capsys, name, answer) == line


def test_every_general_message_is_met_above():
    assert unmet(exercises, [*LINES]) == []


def test_what_torch_has_not_implemented_is_attempted(capsys):
    line = verdict(capsys, "double_it", lambda x: x.long().softmax(-1))
    assert line.startswith("✗ double_it: it raised NotImplementedError: ") and "not implemented for 'Long'" in line
    with pytest.raises(exercises.NotAttempted):
        Answer(stub)(1)


def test_a_message_tells_what_the_function_was_called_with():
    def many(table, length, base, word, words, layer, share, long):
        raise ValueError("no")

    inputs = torch.ones(2, 3), 5, 0.5, "a", ["a"], many, torch.tensor(0.25), list(range(100))
    with pytest.raises(Wrong) as told:
        Answer(many)(*inputs)
    assert str(told.value) == (
        "it raised ValueError: no (called with table of shape (2, 3), length = 5, base = 0.5, word = 'a', "
        "words = ['a'], share = tensor(0.2500), long = a list)"
    )
    with pytest.raises(Wrong, match="it raised ValueError: no$"):
        Answer(raises(ValueError("no")))(print)


RIGHT = torch.tensor([[1.0, -3.0], [2.0, 5.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    "got, words",
    [
        (RIGHT.bfloat16() + 0.01, "right to a few digits, so don't round, and keep float64 on the way"),
        (-RIGHT, "every number has the other sign"),
        (RIGHT / 2, "every number is 0.5 times what it should be"),
        (-3 * RIGHT, "every number is -3 times what it should be"),
        (RIGHT + 1, "every number is 1 too large"),
        (RIGHT - 0.5, "every number is 0.5 too small"),
        (RIGHT.T, "at [0, 1] it is 2 and should be -3"),
        (0 * RIGHT, "every number is 0 times what it should be"),
    ],
)
def test_how_a_tensor_differs(got, words):
    assert difference(got, RIGHT) == words


def test_hidden_keys_do_not_disturb_the_difference():
    hidden = torch.tensor([[1.0, -torch.inf], [2.0, 5.0]])
    assert difference(hidden + torch.tensor([1.0, 0.0]), hidden) == "at [0, 0] it is 2 and should be 1"
    assert difference(3 * hidden, hidden) == "every number is 3 times what it should be"
    assert difference(hidden.nan_to_num(neginf=0), hidden) == "at [0, 1] it is 0 and should be -inf"


class Silent:
    __repr__ = raises(ValueError())


def test_a_value_is_shown_where_it_fits():
    values = {"'a'": "a", "[1]": [1], "a Tensor": torch.ones(2, 2), "a list": list(range(50)), "a Silent": Silent()}
    assert [*map(shown, values.values())] == [*values]


def test_the_learners_random_numbers_are_not_disturbed(capsys):
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    check("double_it", lambda x: 2 * x + 0 * torch.rand(2))
    assert torch.equal(torch.rand(2), expected)


@pytest.fixture
def grading(monkeypatch):
    monkeypatch.setattr("posenc.lesson.exercises.STRICT", True)


@pytest.mark.parametrize("answer", [stub, lambda x: x, None])
def test_strict_raises_for_all_but_right_answers(answer, grading):
    check("double_it", lambda x: 2 * x)
    with pytest.raises(AssertionError, match="double_it"):
        check("double_it", answer)


SOFTENED = """
import os
os.environ["POSENC_STRICT"] = "0"
from posenc.lesson.exercises import check, exercise, wrong
os.environ["POSENC_STRICT"] = "0"

@exercise("think")
def never(answer):
    wrong("as always")

check("never", print)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="only Linux tells how a process began")
@pytest.mark.slow
def test_a_cell_cannot_take_the_strictness_away():
    given = os.environ | {"POSENC_STRICT": "1"}
    done = subprocess.run([sys.executable, "-c", SOFTENED], env=given, capture_output=True, text=True, check=False)
    assert "AssertionError: never: as always" in done.stderr


def worked_double_it(x):
    return 2 * x


@pytest.fixture
def worked(monkeypatch):
    """The chapter's module of worked functions, beside the exercises of this file."""
    module = types.ModuleType(find("double_it")._module_of_worked)
    module.double_it = types.FunctionType(worked_double_it.__code__, {"__name__": module.__name__}, "double_it")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.double_it


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A worked function that a teacher has put beside the notebook."""
    (tmp_path / "worked_solutions.py").write_text("def double_it(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "worked_solutions", raising=False)
    yield tmp_path / "worked_solutions.py"
    sys.modules.pop("worked_solutions", None)


GOES_ON = "The chapter goes on with the worked double_it.\n"
NO_TICK = "○ double_it: this is the worked solution; run your own cell first\n"


def wrong_one(x):
    return x


def open_still(name="double_it", **options):
    """Whether the stub stays what it is: in one line, whoever calls it is told to answer it."""
    still = use(name, stub, **options)
    with pytest.raises(Unanswered, match=f"This cell needs {name}, which is still open") as raised:
        still(21)
    check(name, still)
    return raised.value._render_traceback_() == [str(raised.value)]


@pytest.mark.parametrize("handed_out", [False, True])
def test_use_keeps_what_passes_and_says_nothing(handed_out, worked, beside, capsys):
    def mine(x):
        return x + x

    assert use("double_it", mine, handed_out=handed_out) is mine
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("answer", [stub, wrong_one, None])
def test_the_chapter_goes_on_with_the_worked_function(answer, worked, capsys):
    assert use("double_it", answer) is worked
    assert capsys.readouterr().out == GOES_ON


@pytest.mark.parametrize("handed_out", [False, True])
def test_under_grading_no_worked_function_takes_the_answers_place(handed_out, worked, beside, grading, capsys):
    assert use("double_it", wrong_one, handed_out=handed_out) is wrong_one
    with pytest.raises(Unanswered, match="needs double_it, which is still open"):
        use("double_it", stub, handed_out=handed_out)(21)
    assert capsys.readouterr().out == "" and "worked_solutions" not in sys.modules
    with pytest.raises(AssertionError, match="this is the worked solution"):
        check("double_it", worked)


@pytest.mark.parametrize("call", [lambda: check("nope", stub), lambda: use("nope", stub), lambda: find("nope")])
def test_an_unknown_name_lists_the_known_ones(call):
    with pytest.raises(KeyError, match="no exercise is called 'nope'; there are .*double_it"):
        call()


def test_two_exercises_cannot_share_a_name():
    with pytest.raises(ValueError, match="two exercises are called 'double_it'"):
        exercise()(find("double_it").checker)


@pytest.mark.parametrize("handed_out", [False, True])
def test_without_a_worked_function_the_answer_stays(handed_out, capsys):
    assert use("double_it", wrong_one, handed_out=handed_out) is wrong_one
    assert open_still(handed_out=handed_out)
    assert capsys.readouterr().out == "○ double_it: not attempted yet\n"


def test_in_an_assignment_the_chapters_worked_function_takes_nobodys_place(worked):
    assert use("double_it", wrong_one, handed_out=True) is wrong_one
    assert open_still(handed_out=True)


def test_the_worked_function_that_was_handed_out_takes_the_place_of_an_open_answer_alone(beside, capsys):
    handed_out = use("double_it", stub, handed_out=True)
    assert handed_out(21) == 42
    check("double_it", handed_out)
    assert use("double_it", handed_out, handed_out=True) is handed_out
    assert capsys.readouterr().out == GOES_ON + NO_TICK + GOES_ON
    assert use("double_it", wrong_one, handed_out=True) is wrong_one
    assert open_still("a_number", handed_out=True)


def test_a_broken_module_is_not_taken_for_none(beside):
    beside.write_text("import no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        use("double_it", stub, handed_out=True)


def test_in_a_notebook_the_verdict_has_a_colour_and_its_sign_stays(monkeypatch, capsys):
    monkeypatch.setattr(exercises, "get_ipython", lambda: object())
    for answer, line in (
        (lambda x: 2 * x, "✓ \x1b[32mdouble_it: so it is.\x1b[0m\n"),
        (lambda x: 3 * x, "✗ \x1b[31mdouble_it: not twice x\x1b[0m\n"),
        (stub, "○ double_it: not attempted yet\n"),
    ):
        exercises.check("double_it", answer)
        assert capsys.readouterr().out == line
