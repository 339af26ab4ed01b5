"""Execute the notebooks and store them in one normal form.

    python -m courseware.notebooks          every chapter, and the start page
    python -m courseware.notebooks 01 03    these

The normal form holds nothing that differs between two runs, and a stored output is replaced only if it says something
else or its code changed. So git shows no change but such. FRESH=1 replaces all, measured times among them. A notebook
that does not run to its end, or that hides an error, is left as it was.
"""

import base64
import copy
import io
import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from queue import Empty

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from PIL import Image

from courseware.code import fingerprint
from courseware.index import with_index
from courseware.keep import keep
from courseware.solutions import with_solutions

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FOLDED = "jp-MarkdownHeadingCollapsed"  # how JupyterLab stores that the section of a heading is folded
CELL_SECONDS = 1200  # that a cell may take: a last stop, ten times what the longest needs
STEADY = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1", "COLUMNS": "100", "TZ": "UTC"}

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SCRUBBED = {
    r"at 0x[0-9a-fA-F]+": "at an address",
    r"\S*ipykernel_\d+/\d+\.py": "a cell",
    r"\S+/site-packages/": "site-packages/",
}
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class BuildError(Exception):
    """Why a notebook was not built, in one line; traceback holds the kernel's, if there is one."""

    def __init__(self, message: str, traceback: str = ""):
        super().__init__(message)
        self.traceback = traceback


def chapters(numbers: Iterable[str] = (), folder: Path = NOTEBOOKS) -> list[Path]:
    """The chapters with these numbers, "01", or all: the files of their notebooks, in order."""
    found = sorted(folder.glob("[0-9]*.ipynb"))
    return [path for path in found if path.name.startswith(tuple(numbers))] if numbers else found


# ---------------------------------------------------------------- execute


def execute(notebook: NotebookNode, *, folder: Path, cell_seconds: float | None = None) -> NotebookNode:
    """Run all cells in a fresh kernel, under STEADY.

    Args:
        notebook: stays as it is.
        folder: the kernel's working directory.
        cell_seconds: that a cell may take, CELL_SECONDS unless given.

    Returns:
        a copy with the outputs of this run.

    Raises:
        BuildError: a cell raised or took too long, the kernel is missing or died, or an error was raised where
            no cell fails: in a widget's callback, inside an Output widget, in the background.
    """
    fresh = copy.deepcopy(notebook)
    client = NotebookClient(
        fresh,
        timeout=cell_seconds or CELL_SECONDS,
        kernel_name=notebook.metadata.get("kernelspec", {}).get("name", "python3"),
        record_timing=False,
        shutdown_kernel="immediate",
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        with client.setup_kernel(env=os.environ | STEADY, stderr=subprocess.DEVNULL):
            hidden = _collect_errors(client)
            for index, cell in enumerate(fresh.cells):
                where = _name(fresh, index)
                client.execute_cell(cell, index)
                _raise_first(hidden, where)
            with suppress(Empty):  # what the kernel still has to say
                while True:
                    run_sync(client.kc.get_iopub_msg)(timeout=0.5)
            _raise_first(hidden, "after the last cell")
    except CellExecutionError as error:
        raise BuildError(f"{where}: {error.ename}: {error.evalue}", error.traceback) from None
    except CellTimeoutError:
        raise BuildError(f"{where}: ran longer than {client.timeout:g} s") from None
    except DeadKernelError:
        raise BuildError(f"{where}: the kernel died, perhaps for want of memory") from None
    except NoSuchKernel as error:
        raise BuildError(f"there is no kernel {error.name!r} here; the course uses python3") from None
    except RuntimeError as error:
        raise BuildError(f"the kernel does not start: {error}") from None
    return fresh


def _name(notebook: NotebookNode, index: int) -> str:
    """What a reader calls the cell: its number in brackets and its first line."""
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: index + 1])
    return f"cell [{number}] {notebook.cells[index].source.strip().splitlines()[0]!r}"


def _collect_errors(client: NotebookClient) -> list[dict]:
    """A list that fills with every error the kernel reports from now on.

    nbclient looks only at messages of the cell that runs, and an error that a callback or an Output widget shows
    is to it an output like others. So listen where the messages arrive.
    """
    errors = []
    channel = client.kc.iopub_channel
    receive = channel.get_msg

    async def listen(*args, **kwargs):
        message = await receive(*args, **kwargs)
        if message["msg_type"] == "error":
            errors.append(message["content"])
        return message

    channel.get_msg = listen
    return errors


def _raise_first(hidden: list[dict], where: str) -> None:
    for error in hidden:
        known = "an error that no cell shows, raised in a callback, an Output widget or the background"
        raise BuildError(f"{where}: {known}: {error['ename']}: {error['evalue']}", "\n".join(error["traceback"]))


# -------------------------------------------------------------- normalise


def normalise(notebook: NotebookNode) -> NotebookNode:
    """The notebook in normal form, as a copy. What is in normal form stays as it is, byte for byte."""
    cells = copy.deepcopy(notebook.cells)
    ids: set[str] = set()
    for cell in cells:
        cell.source = cell.source.rstrip()
        cell.metadata = _cell_metadata(cell.metadata)
        if not cell.get("id") or cell.id in ids:
            cell.id = uuid.uuid4().hex[:8]
        ids.add(cell.id)
        if cell.cell_type == "code":
            cell.outputs = _outputs(cell)
    own = {key: value for key, value in notebook.metadata.items() if key == "posenc"}
    return nbformat.v4.new_notebook(cells=cells, metadata=copy.deepcopy(METADATA) | own, nbformat_minor=5)


def _cell_metadata(metadata: NotebookNode) -> NotebookNode:
    """What the course uses: tags, exercises, and cells and sections that start folded."""
    kept = {key: metadata[key] for key in ("tags", "ex", FOLDED) if metadata.get(key)}
    if metadata.get("jupyter", {}).get("source_hidden"):
        kept["jupyter"] = {"source_hidden": True}
    return nbformat.from_dict(kept)


def _outputs(cell: NotebookNode) -> list[NotebookNode]:
    kept: list[NotebookNode] = []
    for output in cell.outputs:
        if output.output_type == "stream":
            output.text = _scrub(output.text)
            if kept and kept[-1].get("name") == output.name:
                kept[-1].text += output.text
                continue
        elif "data" in output:
            output.data.pop(WIDGET_VIEW, None)
            if not output.data:
                continue
            for kind, value in output.data.items():
                if kind == "image/png":
                    output.data[kind] = _picture(value)
                elif isinstance(value, str):
                    output.data[kind] = _scrub(value)
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
        kept.append(output)
    return kept


def _scrub(text: str) -> str:
    for pattern, replacement in SCRUBBED.items():
        text = re.sub(pattern, replacement, text)
    return text


def _picture(encoded: str) -> str:
    """The PNG with a palette where that is smaller, without text chunks."""
    image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    if image.mode == "P" and set(image.info) <= {"transparency"}:
        return encoded  # another version of a compression library would write other bytes
    return base64.b64encode(min(png(image), png(with_palette(image)), key=len)).decode()


def with_palette(image: Image.Image) -> Image.Image:
    """Colours carry meaning here, so the quantiser is the one that moves none of them far.

    On a figure with two colour maps and nine lines this one moves no channel by more than 21 of 255 and leaves a
    quarter of the bytes. Median cut to 64 colours, 15 % smaller, turned blue cells green.
    """
    if image.mode == "P" or image.convert("RGBA").getextrema()[3][0] < 255:
        return image
    return image.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1)


def png(image: Image.Image) -> bytes:
    """A picture as it is stored: as small as PNG makes it, and nothing beside it."""
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


# ------------------------------------------------------------------ build


def read(path: Path) -> NotebookNode:
    """A stored notebook.

    Raises:
        BuildError: it is not a valid notebook of nbformat 4.
    """
    try:
        stored = path.read_text(encoding="utf-8")
        content = json.loads(stored)
        nbformat.validate(content if isinstance(content, dict) else {}, version=4)
    except (ValueError, nbformat.ValidationError) as error:
        reason = str(error).strip().splitlines()[0]
        raise BuildError(f"is not a notebook that can be read: {reason}") from None
    return nbformat.v4.reads(stored)


def text(notebook: NotebookNode) -> str:
    """What a file of this notebook holds."""
    return nbformat.writes(notebook) + "\n"


def write(path: Path, content: str) -> None:
    """Write a whole file, or leave the old one as it was."""
    beside = path.with_suffix(".new")
    beside.write_text(content, encoding="utf-8")
    os.replace(beside, path)


def build(path: Path) -> None:
    """Execute one notebook and store it in normal form, or leave it as it was.

    Its hints, its worked solutions and the index of its claims are written anew. What is stored stays where it says
    the same and the code is the same, unless FRESH=1 is in the environment.
    """
    old = read(path)
    try:
        whole = with_solutions(normalise(old))
    except KeyError as error:
        raise BuildError(error.args[0]) from None
    new = normalise(execute(whole, folder=path.parent))
    new.metadata["posenc"] = {"code": fingerprint(new)}
    if new.metadata.posenc == old.metadata.get("posenc") and os.environ.get("FRESH") != "1":
        new = keep(normalise(old), new)
    if (stored := text(with_index(new))) != path.read_text(encoding="utf-8"):
        write(path, stored)


def main(names: list[str], folder: Path = NOTEBOOKS) -> int:
    """Build the notebooks whose names begin so, or all chapters and the start page. Returns the exit status."""
    paths = [*chapters(folder=folder), *folder.glob("start.ipynb")]
    if unknown := [name for name in names if not any(path.name.startswith(name) for path in paths)]:
        there = ", ".join(path.stem for path in paths)
        print(f"No such chapter: {' '.join(unknown)}. There are: {there}.", file=sys.stderr)
        return 1
    failed = 0
    for path in paths:
        if path.name.startswith(tuple(names or [""])):
            print(f"{path.stem:32}", end="", flush=True)
            start = time.monotonic()
            try:
                build(path)
                print(f"{len(read(path).cells):4} cells {time.monotonic() - start:6.1f} s")
            except BuildError as error:
                print("failed", flush=True)
                print(error.traceback, f"{path.stem}: {error}", sep="\n", file=sys.stderr)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
