"""Hints below each check, worked solutions at the end, answers in the stubs: from the chapter's own modules."""

import copy
import inspect
from functools import partial

import nbformat
import pytest
from nbformat import v4

from courseware import notebooks
from courseware.dependencies import tags
from courseware.index import TAG as INDEX
from courseware.solutions import solved, source, with_solutions
from posenc.chapters.permutation_invariance import worked
from posenc.lesson.exercises import find

IMPORTS = "from posenc.chapters.permutation_invariance import exercises, figures"


def asked(name, title):
    stub = v4.new_code_cell(f'def {name}():\n    raise NotImplementedError("your turn")')
    stub.metadata = nbformat.from_dict({"tags": ["exercise"], "ex": {"id": name, "points": 1}})
    check = v4.new_code_cell(f'check("{name}", {name})\n{name} = use("{name}", {name})', metadata={"tags": ["check"]})
    return [v4.new_markdown_cell(f"### Exercise {title} · ●●○○○ · 5 min\nWhy."), stub, check]


def chapter():
    cells = [*asked("unpermute", "1.1 · Bring it back"), *asked("next_row", "1.2 · `One` row")]
    return v4.new_notebook(cells=[v4.new_code_cell(IMPORTS), *cells])


def text(notebook):
    return {cell.id: cell.source for cell in notebook.cells}


def test_a_check_has_its_hints_below_and_the_link_to_its_solution():
    made = with_solutions(chapter())
    kinds = [(cell.metadata.get("tags") or [cell.cell_type])[0] for cell in made.cells]
    one = ["markdown", "exercise", "check", "hints"]
    assert kinds == ["code", *one, *one, "worked", "worked", "worked"]
    hints = text(made)["unpermute-hints"]
    assert hints.count("<details>") == hints.count("</details>") == len(find("unpermute").hints) == 3
    assert hints.startswith(f"<details>\n<summary>Hint 1</summary>\n\n{find('unpermute').hints[0]}\n\n</details>")
    assert "3-cycle it is not:\n\n```pycon\n>>> p = torch.tensor([1, 2, 0])\n>>> p[p]\ntensor" in hints
    assert hints.endswith("</details>\n\n[Worked solution](#cell-id=unpermute-worked)")


def test_each_solution_is_folded_and_leads_back():
    made = with_solutions(chapter())
    first, one, other = made.cells[-3:]
    assert first.source == "## Worked solutions"
    assert one.id == "unpermute-worked" and other.source.startswith("### Solution 1.2 · `One` row\n")
    assert one.source == (
        "### Solution 1.1 · Bring it back\n\n<details>\n<summary>Show</summary>\n\n```python\n"
        f"{inspect.getsource(worked.unpermute)}```\n\n</details>\n\n[Back to the exercise](#cell-id={made.cells[3].id})"
    )


def test_made_again_they_are_the_same_and_what_was_changed_by_hand_is_gone():
    made = with_solutions(chapter())
    again = copy.deepcopy(made)
    again.cells[4].source = "A hint of mine."
    assert with_solutions(again) == made
    assert len({cell.id for cell in made.cells}) == len(made.cells)


def test_the_index_of_claims_stays_the_last_cell():
    notebook = chapter()
    notebook.cells.append(v4.new_markdown_cell("index", metadata={"tags": [INDEX]}))
    assert [cell.source[:5] for cell in with_solutions(notebook).cells[-2:]] == ["### S", "index"]


def test_a_chapter_without_exercises_has_neither():
    notebook = v4.new_notebook(cells=[v4.new_code_cell("1"), v4.new_markdown_cell("a")])
    assert with_solutions(copy.deepcopy(notebook)) == notebook


def test_an_exercise_that_nobody_registered_or_solved_is_named_before_anything_runs(monkeypatch, tmp_path, capsys):
    for name, said in {"nobody": "no exercise is called 'nobody'", "unpermute": "unpermute has no worked sol"}.items():
        made = v4.new_notebook(cells=[v4.new_code_cell(IMPORTS), *asked(name, "1.1 · None")])
        monkeypatch.delattr(worked, "unpermute", raising=False)
        for ask in (with_solutions, partial(source, name=name)):
            with pytest.raises(KeyError, match=said):
                ask(made)
        (tmp_path / "01_a.ipynb").write_text(notebooks.text(made))
        assert notebooks.main([], tmp_path) == 1 and f"01_a: {said}" in capsys.readouterr().err


def test_solved_puts_the_worked_function_into_its_stub():
    original = chapter()
    before = copy.deepcopy(original)
    made = solved(original)
    assert original == before
    assert made.cells[2].source == source(original, "unpermute") == inspect.getsource(worked.unpermute).rstrip()
    assert [a for a, b in zip(made.cells, before.cells) if a == b] == [
        cell for cell in before.cells if "exercise" not in tags(cell)
    ]
