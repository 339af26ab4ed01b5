"""Replication: claims run again with other seeds, counted, kept, and named by the code that they come from."""

import csv
import multiprocessing

import pytest
from nbformat import v4

from courseware import notebooks, replicate
from courseware.code import code_of

PARAMETERS = "SEED = 0  # the set\nPACE = 1.0\nSTEPS = 1.0"
CLAIMS = """from posenc.lesson.claims import claim

claim("it holds in every set", 0.25 + SEED / 100, below=1)
for name in ("one", "two"):
    claim("it holds in half of the sets", SEED % 2 + PACE - 1, below=0.5, case=name)"""


def chapter(claims=CLAIMS, before=""):
    cells = [
        v4.new_markdown_cell("## 1 A claim", id="title"),
        v4.new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}),
        v4.new_code_cell(before, id="before"),
        v4.new_code_cell(claims, id="claims"),
    ]
    return v4.new_notebook(cells=cells, metadata=notebooks.METADATA)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    notebooks.write(tmp_path / "01_a.ipynb", notebooks.text(chapter()))
    monkeypatch.setattr(replicate, "DONE", tmp_path / "done")
    return tmp_path


def run(folder, *more):
    return replicate.main(["01", "--folder", str(folder), "--table", str(folder / "table.csv"), *more])


@pytest.mark.slow
def test_a_claim_that_holds_in_half_of_the_sets_is_reported_and_a_run_that_fails_leaves_the_others(folder, capsys):
    """Dask tells its workers' C library to give back memory at once, which makes a training twice as slow."""
    kept = "import os\nassert 'MALLOC_TRIM_THRESHOLD_' not in os.environ"
    broken = chapter(CLAIMS + "\nassert SEED != 3", before=kept)
    notebooks.write(folder / "01_a.ipynb", notebooks.text(broken))
    assert run(folder, "--sets", "3") == 1
    said = capsys.readouterr().out
    assert "of 3, " in said and "set 3 failed" in said and "01_a, set 2 done" in said
    assert "01/claims/1 two: held in 1 of 2 sets, 0 to 1, < 0.5" in said and "01/claims/0" not in said
    with (folder / "table.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [(row["key"], row["sets"], row["held"]) for row in table] == [
        ("01/claims/0", "2", "2"),
        ("01/claims/1 one", "2", "1"),
        ("01/claims/1 two", "2", "1"),
    ]
    assert (table[0]["smallest"], table[0]["largest"], table[0]["bound"]) == ("0.26", "0.27", "< 1")
    assert len(list((folder / "done").iterdir())) == 2
    assert not multiprocessing.active_children(), "the workers stay"

    assert run(folder, "--sets", "2") == 0, "what is done is not run again"
    assert " of 2, " not in capsys.readouterr().out.split(":")[0]


def test_another_pace_has_rows_of_its_own(folder, monkeypatch):
    asked = []

    def now(tasks, pace, steps):
        for file, (_, _, number) in tasks.items():
            asked.append((number, pace, steps))
            file.parent.mkdir(exist_ok=True)
            file.write_text('[{"key": "claims/0", "held": true, "values": [0.5, 0.25], "bound": "< 1"}]')
        return 0

    monkeypatch.setattr(replicate, "_run_all", now)
    for more in ([], [], ["--pace", "3", "--first", "5"]):
        assert run(folder, "--sets", "1", *more) == 0
    assert asked == [(1, 1.0, 1.0), (5, 3.0, 1.0)]
    table = replicate.read_table(folder / "table.csv")
    assert [(row.pace, row.steps, row.smallest) for row in table] == [("1", "1", "0.25"), ("3", "1", "0.25")]
    gone = replicate.Row("01/gone/0", "3", "1", 4, 4, "0.5", "0.6", "< 1", "abc")
    other = replicate.Row("02/there/0", "3", "1", 4, 4, "0.5", "0.6", "< 1", "abc")
    replicate.write_table([*table, gone, other], folder / "table.csv")
    assert run(folder, "--sets", "1", "--steps", "4") == 0 and len(asked) == 3
    table = replicate.read_table(folder / "table.csv")
    assert gone not in table and other in table and len(table) == 4, "a gone cell takes its rows along"


def test_each_row_of_the_table_is_of_a_claim_that_stands():
    table = replicate.read_table()
    claims = {(row.key, row.bound) for row in table if (row.pace, row.steps) == ("1", "1")}
    assert [row for row in table if (row.key, row.bound) not in claims] == []


def test_a_run_is_of_the_set_the_pace_and_the_steps_asked_for(monkeypatch):
    ran = []
    monkeypatch.setattr(notebooks, "execute", lambda notebook, **_: ran.append(notebook) or notebook)
    monkeypatch.setenv("POSENC_REPLICATE", "1")
    stored = chapter()
    assert replicate.run(notebooks.text(stored), ".", 3, 0.5, 4.0) == []
    assert ran[0].cells[1].source == "SEED = 3  # the set\nPACE = 0.5\nSTEPS = 4.0"
    assert replicate.with_parameters(stored, SEED=3) != stored and stored.cells[1].source == PARAMETERS


@pytest.mark.parametrize("cells, name", [([], "SEED"), (chapter().cells, "SPEED")])
def test_a_chapter_without_the_parameter_is_refused(cells, name):
    with pytest.raises(ValueError, match="parameters"):
        replicate.with_parameters(v4.new_notebook(cells=cells), **{name: 1})


STARTS = CLAIMS.replace("0.25", "start")


@pytest.mark.parametrize(
    ("claims", "before", "same"),
    [
        (CLAIMS.replace("it holds in every set", "it always holds"), "", True),
        (CLAIMS + "  # a comment", "unused = 1", True),
        (CLAIMS + '\nguess.compare("a", since={"b": "so"})', 'guess = predict("Which?", ["a", "b"])', True),
        (CLAIMS.replace("0.25", "0.35"), "", False),
        (CLAIMS.replace("below=0.5", "below=0.6"), "", False),
        ("\n".join(["x = 1", CLAIMS]), "", False),
    ],
)
def test_a_row_is_old_when_its_code_changed_and_not_when_its_words_did(claims, before, same):
    assert (code_of(chapter(claims, before)) == code_of(chapter())) == same
    assert code_of(chapter(STARTS, "start = 1")) != code_of(chapter(STARTS, "start = 2")), "of a needed cell"


def test_an_address_in_the_environment_is_used(monkeypatch):
    import distributed

    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:1")
    monkeypatch.setattr(distributed, "Client", lambda address: address)
    assert replicate.cluster() == "tcp://127.0.0.1:1"
