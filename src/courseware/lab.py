"""Open JupyterLab on the reader's own copy of the course; `make lab` ends here.

    python -m courseware.lab [PORT]

The copy is `my/`, beside `notebooks/`, and git ignores it. So no answer changes what git keeps, and a newer course
overwrites no answer.
"""

import hashlib
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from jupyterlab.labapp import LabApp
from jupyterlab_server.workspaces_handler import WorkspacesManager

from posenc.lesson import progress

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = Path(__file__).with_name("jupyter")  # of JupyterLab's settings, below the reader's own: no news
WORKSPACES = ".jupyterlab"
COPIED = ".copied.json"  # the digest of each notebook when it was copied
UNFOLD = f"--LabApp.extra_labextensions_path={DEFAULTS / 'labextensions'}"  # links into folded sections
CONNECTION = "--ServerApp.kernel_websocket_connection_class=posenc.lesson.connection.Connection"

# What JupyterLab shows at the first start: the table of contents beside the page. Later it shows what the reader left.
LAYOUT = {
    "left": {
        "collapsed": False,
        "visible": True,
        "current": "@jupyterlab/toc:plugin",
        "widgets": "filebrowser running-sessions @jupyterlab/toc:plugin extensionmanager.main-view".split(),
    },
    "relativeSizes": [0.2, 0.8, 0],
}


def renew(course: Path, own: Path) -> list[str]:
    """Copy the course's notebooks into the reader's folder. What the reader has changed stays as it is.

    Returns:
        A line for each that stays and has become another in the course: the new one is laid beside it.
    """
    own.mkdir(exist_ok=True)
    copied, lines = {}, []
    with suppress(OSError, ValueError, TypeError):
        copied = dict(json.loads((own / COPIED).read_text(encoding="utf-8")))
    for path in sorted(course.glob("*.ipynb")):
        new, here, before = digest(path), digest(own / path.name), copied.get(path.name)
        if here in ("", before):
            if here != new:
                _copy(path, own / path.name)
        elif new not in (here, before):
            beside = own / f"{path.stem}.new.ipynb"
            while beside.exists():  # the reader may have written there, too
                beside = beside.with_suffix(".new.ipynb")
            _copy(path, beside)
            lines.append(
                f"{own.name}/{path.name} holds what you wrote, so it stays. "
                f"The course has a newer one: {own.name}/{beside.name} lies beside it."
            )
        copied[path.name] = new
    (own / COPIED).write_text(json.dumps(copied), encoding="utf-8")
    return lines


def digest(path: Path) -> str:
    """Of what the cells of a notebook say, which running them does not change. Empty where there is no notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        said = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except FileNotFoundError:
        return ""
    except (ValueError, KeyError, TypeError):
        return "broken"
    said = [each for each in said if each[1].strip()]  # JupyterLab adds an empty cell at the end
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _copy(path: Path, to: Path) -> None:
    """A whole file or none."""
    new = to.with_suffix(".part")
    shutil.copyfile(path, new)
    os.replace(new, to)


def welcome(own: Path) -> Path:
    """Bring the start page, the list of what is done and JupyterLab's layout into a reader's folder; the page."""
    if not (own / progress.FILE).exists():
        (own / progress.FILE).write_text("{}", encoding="utf-8")
    start = own / "start.ipynb"
    with suppress(ValueError, KeyError, TypeError):  # the reader has broken it
        notebook = json.loads(start.read_text(encoding="utf-8"))
        for output in (output for cell in notebook["cells"] for output in cell.get("outputs", ())):
            if "text/markdown" in output.get("data", ()):
                output["data"]["text/markdown"] = progress.overview(own)
        start.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if not (own / WORKSPACES).exists():
        layout = {"data": {"layout-restorer:data": LAYOUT}, "metadata": {"id": "default"}}
        WorkspacesManager(str(own / WORKSPACES)).save("default", json.dumps(layout))
    return start


def main(port: list[str], root: Path = ROOT) -> None:
    """Open JupyterLab until it is stopped: its token is on, only this machine sees it, its layout stays in the copy.

    On the port that is given, or the next free one of its own choice.
    """
    own = root / "my"
    for line in renew(root / "notebooks", own):
        print(line, flush=True)
    found = os.environ.get("JUPYTER_CONFIG_PATH")
    os.environ["JUPYTER_CONFIG_PATH"] = f"{DEFAULTS}{os.pathsep}{found}" if found else str(DEFAULTS)
    options = ["--allow-root", "--ip=127.0.0.1", f"--ServerApp.root_dir={root}", CONNECTION, UNFOLD]
    options.append(f"--LabApp.workspaces_dir={own / WORKSPACES}")
    options.append(f"--LabApp.default_url=/lab/tree/{welcome(own).relative_to(root).as_posix()}")
    for number in port:
        options += [f"--port={number}", "--ServerApp.port_retries=0"]
    LabApp.launch_instance(options)


if __name__ == "__main__":
    main(sys.argv[1:])
