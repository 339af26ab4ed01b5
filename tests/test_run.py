"""The three parts of `make test` all run, and are counted together."""

import pytest
import run

PASSES, FAILS = "def test_one(): pass\n", "def test_two(): assert 0\n"
SKIPS = "import pytest\n@pytest.mark.skip\ndef test_three(): pass\n"
BREAKS = "import pytest\n@pytest.fixture\ndef broken(): 1 / 0\ndef test_four(broken): pass\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "status", "last"),
    [
        ([PASSES, PASSES + SKIPS], 0, "2 passed, 0 failed, 1 skipped"),
        ([PASSES + FAILS, BREAKS, "1 / 0", "import os; os._exit(0)", "", PASSES], 1, "2 passed, 5 failed"),
    ],
    ids=["all pass", "a test, a fixture and a file fail, a run ends without a word, another has no test"],
)
def test_every_part_runs_and_the_last_line_counts_them_together(tmp_path, capfd, files, status, last):
    for number, source in enumerate(files):
        (tmp_path / f"test_{number}.py").write_text(source)
    parts = {f"part {number}": [f"test_{number}.py"] for number in range(len(files))}
    assert run.main(parts, tmp_path) == status
    assert capfd.readouterr().out.splitlines()[-1] == last
