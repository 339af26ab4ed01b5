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
HIDDEN = torch.tensor([[1.0, -torch.inf], [2.0, 5.0]])


@pytest.mark.parametrize(
    "got, right, words",
    [
        (RIGHT.bfloat16() + 0.01, RIGHT, "right to a few digits, so don't round, and keep float64 on the way"),
        (-RIGHT, RIGHT, "every number has the other sign"),
        (RIGHT / 2, RIGHT, "every number is 0.5 times what it should be"),
        (-3 * RIGHT, RIGHT, "every number is -3 times what it should be"),
        (RIGHT + 1, RIGHT, "every number is 1 too large"),
        (RIGHT - 0.5, RIGHT, "every number is 0.5 too small"),
        (RIGHT.T, RIGHT, "at [0, 1] it is 2 and should be -3"),
        (0 * RIGHT, RIGHT, "every number is 0 times what it should be"),
        (HIDDEN + torch.tensor([1.0, 0.0]), HIDDEN, "at [0, 0] it is 2 and should be 1"),
        (3 * HIDDEN, HIDDEN, "every number is 3 times what it should be"),
        (HIDDEN.nan_to_num(neginf=0), HIDDEN, "at [0, 1] it is 0 and should be -inf"),
    ],
)
def test_how_a_tensor_differs_also_where_keys_are_hidden(got, right, words):
    assert difference(got, right) == words


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


def right_one(x):
    return x + x


def wrong_one(x):
    return x


@pytest.fixture
def worked(monkeypatch):
    """The chapter's module of worked functions, beside the exercises of this file."""
    module = types.ModuleType(find("double_it")._module_of_worked)
    module.double_it = types.FunctionType(right_one.__code__, {"__name__": module.__name__}, "double_it")
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


# Whether it is an assignment, whether it is graded, which worked functions there are, and what then stands for a right
# answer, a wrong one, one that is no function and one that is still open: itself unless it is said.
TAKEN = [
    (False, False, [], {}),
    (False, False, ["worked"], {wrong_one: "worked", None: "worked", stub: "worked"}),
    (False, True, ["worked", "beside"], {}),
    (True, False, [], {}),
    (True, False, ["worked"], {}),
    (True, False, ["worked", "beside"], {stub: "beside"}),
    (True, True, ["worked", "beside"], {}),
]


@pytest.mark.parametrize("handed_out, graded, there, taken", TAKEN)
def test_what_takes_the_place_of_an_answer(handed_out, graded, there, taken, request, monkeypatch, capsys):
    monkeypatch.setattr("posenc.lesson.exercises.STRICT", graded)
    made = {name: request.getfixturevalue(name) for name in there}
    for answer in (right_one, wrong_one, None, stub):
        got = use("double_it", answer, handed_out=handed_out)
        if answer not in taken and answer is stub:
            with pytest.raises(Unanswered, match="This cell needs double_it, which is still open") as raised:
                got(21)
            assert raised.value._render_traceback_() == [str(raised.value)]
        elif answer not in taken:
            assert got is answer
        else:
            assert got(21) == 42 and (got is made["worked"]) == (taken[answer] == "worked")
        assert capsys.readouterr().out == (
            "The chapter goes on with the worked double_it.\n" if answer in taken else ""
        )
    assert ("worked_solutions" in sys.modules) == ("beside" in taken.values())


def test_an_open_answer_stays_open_and_what_was_handed_out_earns_no_tick(beside, capsys):
    check("double_it", use("a_number", stub, handed_out=True))
    handed_out = use("double_it", stub, handed_out=True)
    check("double_it", handed_out)
    assert use("double_it", handed_out, handed_out=True) is handed_out
    goes_on = "The chapter goes on with the worked double_it."
    no_tick = "○ double_it: this is the worked solution; run your own cell first"
    assert capsys.readouterr().out.splitlines() == ["○ double_it: not attempted yet", goes_on, no_tick, goes_on]


@pytest.mark.parametrize("call", [lambda: check("nope", stub), lambda: use("nope", stub), lambda: find("nope")])
def test_an_unknown_name_lists_the_known_ones(call):
    with pytest.raises(KeyError, match="no exercise is called 'nope'; there are .*double_it"):
        call()


def test_two_exercises_cannot_share_a_name():
    with pytest.raises(ValueError, match="two exercises are called 'double_it'"):
        exercise()(find("double_it").checker)


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
