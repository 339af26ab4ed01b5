"""Assignments: the students' notebook is the chapter without its solutions, and nothing else."""

import ast
import copy
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from nbformat import v4
from thorough import ALL, thorough

from classroom import grade, release
from classroom.release import ClassroomError, teachers_source
from courseware import notebooks
from courseware.index import anchor
from courseware.notebooks import FOLDED
from courseware.solutions import with_solutions

ROOT = Path(__file__).resolve().parents[2]
WORKED = ROOT / "src/posenc/chapters/permutation_invariance/worked.py"
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
chapters = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
MADE = [CHAPTERS[0], *(pytest.param(path, marks=thorough) for path in CHAPTERS[1:])]  # by nbgrader itself


def tags(cell):
    return cell.metadata.get("tags", ())


def exercises(notebook):
    return [cell.metadata.ex.id for cell in notebook.cells if "exercise" in tags(cell)]


# ------------------------------------------------------------------ source


@chapters
def test_the_teachers_source_holds_solutions_and_points_and_leaves_the_chapter_as_it_is(path):
    chapter, tests = notebooks.read(path), release.hidden_tests(path)
    before = copy.deepcopy(chapter)
    source = teachers_source(chapter, tests)
    assert chapter == before
    nbformat.validate(source)
    roles = {cell.metadata.nbgrader.grade_id: cell for cell in source.cells if "nbgrader" in cell.metadata}
    parts = {name: [f"part_of_{name}"] * (f"part_of_{name}" in tests) for name in exercises(chapter)}
    assert list(roles) == [id for name in parts for id in (name, f"check_{name}", *parts[name])]
    for stub in (cell for cell in chapter.cells if "exercise" in tags(cell)):
        name = stub.metadata.ex.id
        graded = [roles[f"check_{name}"], *(roles[part] for part in parts[name])]
        assert sum(each.metadata.nbgrader.points for each in graded) == stub.metadata.ex.points
        assert release.STUB not in roles[name].source and "### BEGIN SOLUTION" in roles[name].source
        ast.parse(roles[name].source), ast.parse(roles[f"check_{name}"].source)
    assert not [cell for cell in source.cells if "worked" in tags(cell)]
    assert "orked solution" not in "".join(cell.source for cell in source.cells if "hints" in tags(cell))
    folded = [sum(FOLDED in cell.metadata for cell in notebook.cells) for notebook in (chapter, source)]
    assert folded[0] and not folded[1], "nobody looks for an exercise in a folded section"


def test_a_part_has_a_cell_and_a_point_of_its_own():
    tests = {"part_of_unpermute": 'def part_of_unpermute(answer):\n    """It is called."""\n    answer()'} | TEST
    _, _, check, part, _ = teachers_source(one_exercise(), tests).cells
    assert (check.metadata.nbgrader.points, part.metadata.nbgrader.points) == (2, 1)
    assert part.source.startswith("# one of the 3 points is for a part: It is called.\n### BEGIN HIDDEN TESTS\n")
    assert part.source.endswith("\n\n\ntest_part_of_unpermute(unpermute)\n### END HIDDEN TESTS")


def one_exercise():
    stub, ask = f"def unpermute(layer, x, p):\n    {release.STUB}", 'unpermute = use("unpermute", unpermute)'
    cells = [
        v4.new_code_cell("from posenc.chapters.permutation_invariance import exercises"),
        v4.new_code_cell(stub, metadata={"tags": ["exercise"], "ex": {"id": "unpermute", "points": 3}}),
        v4.new_code_cell(f'check("unpermute", unpermute)\n{ask}', metadata={"tags": ["check"]}),
    ]
    return with_solutions(nbformat.from_dict(v4.new_notebook(cells=cells)))


TEST = {"unpermute": "def unpermute(answer):\n    assert answer"}


def test_source_of_a_small_exercise():
    _, stub, check, hints = teachers_source(one_exercise(), TEST).cells
    assert stub.source == (
        "def unpermute(layer, x, p):\n    ### BEGIN SOLUTION\n    return layer(x[p])[p.argsort()]\n    ### END SOLUTION"
    )
    assert check.source == (
        'check("unpermute", unpermute)  # grading adds hidden tests, so ✓ is not yet the points\n'
        "### BEGIN HIDDEN TESTS\nfrom builtins import *\n\n\n"
        "def test_unpermute(answer):\n    assert answer\n\n\ntest_unpermute(unpermute)\n### END HIDDEN TESTS\n"
        'unpermute = use("unpermute", unpermute, handed_out=True)'
    )
    assert hints.source.endswith("</details>") and hints.source.count("<details>") == 3
    plain = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    assert stub.metadata.nbgrader == plain | {"grade_id": "unpermute", "solution": True}
    graded = {"grade_id": "check_unpermute", "grade": True, "locked": True, "points": 3}
    assert check.metadata.nbgrader == plain | graded


@pytest.mark.parametrize(("most", "left"), [(0, []), (1, [1]), (2, [1, 2]), (9, [1, 2, 3])])
def test_hints_can_be_limited(most, left):
    source = teachers_source(one_exercise(), TEST)
    release.limit_hints(source, most)
    texts = [cell.source for cell in source.cells if "hints" in tags(cell)]
    assert len(texts) == (most > 0)
    assert re.findall(r"<summary>Hint (\d)</summary>", "".join(texts)) == [*map(str, left)]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("[On to 5](05_x.ipynb), [all](../README.md)", "On to 5, all"),
        ("see [a *b*](claims.ipynb#cell-id=a)", "see a *b*"),
        ("[paper](https://arxiv.org/abs/1.2) [below](#3-x)", "[paper](https://arxiv.org/abs/1.2) [below](#3-x)"),
        ("`times[0](kernel)` and $f[i](x)$", "`times[0](kernel)` and $f[i](x)$"),
    ],
)
def test_links_to_what_is_not_handed_out_are_plain_text(text, plain):
    chapter = one_exercise()
    chapter.cells.insert(0, v4.new_markdown_cell(text))
    assert teachers_source(chapter, TEST).cells[0].source == plain


def leading_nowhere(notebook):
    """The links, in text and in outputs, that are neither to the web nor to a heading or cell of the notebook itself."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    headings = [heading for text in texts for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    known = {f"#{unquote(anchor(heading))}" for heading in headings}
    known |= {f"#cell-id={cell.id}" for cell in notebook.cells}
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    texts += [output.data[kind] for output in outputs for kind in output.get("data", ()) if kind.startswith("text/")]
    written = re.compile(r"\]\(([^)\s]+)\)|<[^>]+(?:src|href)=[\"']([^\"']+)")
    links = ["".join(link) for text in texts for link in written.findall(re.sub(r"`[^`\n]*`|\$[^$]*\$", "", text))]
    return [link for link in links if not re.match(r"(https?|data):", link) and unquote(link) not in known]


@chapters
def test_no_link_of_a_handed_out_chapter_leads_nowhere(path):
    chapter = notebooks.read(path)
    assert leading_nowhere(chapter), "the chapter itself leads to its neighbours"
    assert leading_nowhere(teachers_source(chapter, release.hidden_tests(path))) == []


def test_a_link_that_leads_nowhere_is_seen():
    text = "# One, *two*\n[a](#One,-two) [b](#Three) [c](02_x.ipynb#a) `[d](e)` <img src='f.png'> [h](#One%2C-two)"
    text += " [g](https://arxiv.org) [i](LICENSE) [j](#cell-id=here) [k](#cell-id=there)"
    output = v4.new_output("display_data", {"text/html": '<a href="claims.ipynb">claims</a>'})
    cells = [v4.new_markdown_cell(text, id="here"), v4.new_code_cell("1", outputs=[output])]
    lost = ["#Three", "02_x.ipynb#a", "f.png", "LICENSE", "#cell-id=there", "claims.ipynb"]
    assert leading_nowhere(v4.new_notebook(cells=cells)) == lost


def test_a_chapter_without_hidden_tests():
    with pytest.raises(ClassroomError, match="none.py is missing"):
        release.hidden_tests(Path("09_none.ipynb"))


def test_chapters_are_found_by_number():
    assert release.chapter("1") == release.chapter("01") == CHAPTERS[0]
    for wrong in ("", "99", "no"):
        with pytest.raises(ClassroomError, match="CHAPTER is the number of a chapter.*01_permutation"):
            release.chapter(wrong)


# ----------------------------------------------------------------- release


@pytest.fixture(scope="module")
def released(classroom_python, tmp_path_factory):
    """The course folder with the first chapter released; with ALL=1 every chapter."""
    folder = tmp_path_factory.mktemp("class")
    script = "import sys; from pathlib import Path; from classroom.release import assignment\n"
    script += "for path in sys.argv[2:]: assignment(Path(path), Path(sys.argv[1]))"
    subprocess.run([classroom_python, "-c", script, folder, *(CHAPTERS if ALL else CHAPTERS[:1])], check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("path", MADE, ids=lambda path: path.stem)
def test_the_students_notebook_is_the_chapter_without_solutions(released, path):
    chapter = notebooks.read(path)
    folder = released / "release" / path.stem
    students = notebooks.read(folder / path.name)
    assert [p.name for p in folder.iterdir()] == [path.name]
    with zipfile.ZipFile(f"{folder}.zip") as archive:
        assert archive.read(path.name) == (folder / path.name).read_bytes()
    assert students.metadata == chapter.metadata
    handed_out = [cell for cell in chapter.cells if "worked" not in tags(cell)]
    parts = [cell for cell in students.cells if cell.id.startswith(release.PART)]
    assert all(re.fullmatch(r"# one of the \d points is for a part: .+", part.source) for part in parts)
    for cell, given in zip(handed_out, (cell for cell in students.cells if cell not in parts), strict=True):
        wanted = copy.deepcopy(cell)
        if "check" in tags(cell):
            wanted.source = re.sub(r"(use\(.*)\)$", r"\1, handed_out=True)", wanted.source)
            wanted.source = wanted.source.replace("\n", f"{release.MORE}\n", 1)
        if "hints" in tags(cell):
            wanted.source = wanted.source.rpartition("\n\n[Worked solution]")[0]
        elif cell.cell_type == "markdown":
            wanted.source = release.LINK.sub(r"\1", wanted.source)
        wanted.metadata.pop(FOLDED, None)  # nobody looks for an exercise in a folded section
        given.metadata.pop("nbgrader", None)
        assert given == wanted


@pytest.mark.slow
def test_what_is_handed_out_is_decided_anew_and_what_a_teacher_changed_stays(released, classroom_python):
    path = CHAPTERS[0]
    folder, source = released / "release" / path.stem, released / "source" / path.stem / path.name
    mark = '"### BEGIN HIDDEN TESTS\\n"'
    mine = source.read_text(encoding="utf-8").replace(mark, f'{mark}, "# of my own\\n"')
    source.write_text(mine, encoding="utf-8")
    command = [classroom_python, "-m", "classroom.release", "1", "--classroom", str(released)]
    before = notebooks.read(folder / path.name)
    wanted = copy.deepcopy(before)
    release.limit_hints(wanted, 1)
    done = subprocess.run([*command, "--worked", "--hints", "1"], capture_output=True, text=True, check=True)
    assert f"{folder}, and {path.stem}.zip beside it, with the worked functions in worked_solutions.py\n" in done.stdout
    assert "kept as it was" in done.stdout and source.read_text(encoding="utf-8") == mine and "# of my own" in mine
    assert notebooks.read(folder / path.name) == wanted
    assert (folder / "worked_solutions.py").read_text() == WORKED.read_text()
    with zipfile.ZipFile(f"{folder}.zip") as archive:
        assert sorted(archive.namelist()) == [path.name, "worked_solutions.py"]
    subprocess.run(command, capture_output=True, check=True)
    assert [file.name for file in folder.iterdir()] == [path.name]
    assert notebooks.read(folder / path.name) == before
    with zipfile.ZipFile(f"{folder}.zip") as archive:
        assert archive.namelist() == [path.name]


@pytest.mark.slow
def test_in_a_kernel_the_notebook_finds_the_worked_functions_beside_it(tmp_path):
    shutil.copy(WORKED, tmp_path / "worked_solutions.py")
    cells = [
        "import torch\nfrom posenc.chapters.permutation_invariance import exercises\nfrom posenc.lesson.exercises import use",
        f"def unpermute(layer, x, p):\n    {release.STUB}\n",
        'unpermute = use("unpermute", unpermute, handed_out=True)',
        "unpermute(lambda rows: 2 * rows, torch.arange(3), torch.tensor([1, 2, 0])).tolist()",
    ]
    made = notebooks.execute(v4.new_notebook(cells=[*map(v4.new_code_cell, cells)]), folder=tmp_path)
    assert made.cells[2].outputs[0].text == "The chapter goes on with the worked unpermute.\n"
    assert made.cells[3].outputs[0].data["text/plain"] == "[0, 2, 4]"


WRONG = [
    (release, ["77"], "CHAPTER is the number of a chapter"),
    (grade, ["77", "."], "CHAPTER is the number of a chapter"),
    (grade, ["1", "none"], "FROM is the folder of the submissions"),
    (grade, ["1", "."], ". holds no submission"),
]


@pytest.mark.parametrize(("module", "arguments", "words"), WRONG)
def test_what_is_wrong_with_a_command_is_told_in_one_line(tmp_path, monkeypatch, module, arguments, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as told:
        module.main([*arguments, "--classroom", "class"])
    assert str(told.value).startswith(words)
