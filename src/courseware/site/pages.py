"""Make the course as static web pages in which the slider figures move: `python -m courseware.site.pages`.

A page shows what its notebook stores. The pictures of its slider figures are drawn here, by running the cells that
these figures need. Nothing on a page needs a kernel, a server or the network.
"""

import ast
import io
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from html import escape, unescape
from multiprocessing import get_context
from pathlib import Path

import latex2mathml.converter
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode, v4
from pygments.formatters import HtmlFormatter

from courseware.notebooks import NOTEBOOKS, read, solve
from courseware.site.frames import frames
from courseware.dependencies import needed_cells
from posenc.live import Live

ROOT = NOTEBOOKS.parent
PAGE = Path(__file__).parent
LIMIT = 3_000_000  # bytes of a page


class Renderer(IPythonRenderer):
    """Markdown as a page needs it: formulas as MathML, headings with the anchors of JupyterLab, links to pages."""

    def block_math(self, body: str) -> str:
        return latex2mathml.converter.convert(body, display="block")

    def inline_math(self, body: str) -> str:
        return latex2mathml.converter.convert(body)

    def heading(self, text: str, level: int, **attrs: object) -> str:
        anchor = unescape(re.sub("<.*?>", "", text)).replace(" ", "-")
        return f'<h{level} id="{escape(anchor)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, page_of(url), title)


def page_of(url: str) -> str:
    """Where a link of a notebook or of the README leads on the pages."""
    url = re.sub(r"^(?:\.\./)?README\.md(?=#|$)", "index.html", url)
    return re.sub(r"^(?:\.\./)?(?:notebooks/)?(\w+)\.ipynb(?=#|$)", r"\1.html", url)


def markdown(source: str) -> str:
    """HTML of a cell's Markdown; the pictures that it names are in it."""
    renderer = Renderer(escape=False, embed_images=True, path=str(ROOT))
    return MarkdownWithMath(renderer=renderer).render(source)


def figure(notebook: NotebookNode, number: int) -> Live:
    """The figure that the cell with this number shows.

    The exercises are solved, and only the cells that the figure needs are run.
    """
    solved = solve(notebook)
    space = {"__name__": "__main__"}
    for needed in sorted(needed_cells(solved.cells, [number])):
        cell = solved.cells[needed]
        with redirect_stdout(io.StringIO()):
            exec(compile(cell.source, f"cell {cell.id}", "exec"), space)
    return space[solved.cells[number].source.splitlines()[-1]]


def drawn(notebook: NotebookNode, number: int) -> dict:
    """The frames of that figure; called in a process of its own."""
    return frames(figure(notebook, number), asked(notebook, number))


def asked(notebook: NotebookNode, number: int) -> dict[str, set]:
    """The numbers that the next cell of code gives to this figure's controls, as they are or by a loop over them."""
    name = notebook.cells[number].source.splitlines()[-1]
    below = (cell.source for cell in notebook.cells[number + 1 :] if cell.cell_type == "code")
    nodes = list(ast.walk(ast.parse(next(below, ""))))
    loops = {ast.unparse(node.target): node.iter for node in nodes if isinstance(node, ast.For)}
    found: dict[str, set] = {}
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.set":
            for control in node.keywords:
                values = loops.get(ast.unparse(control.value), control.value)
                for value in getattr(values, "elts", [values]):
                    if re.fullmatch(r"-?[\d.]+", text := ast.unparse(value)):
                        found.setdefault(control.arg, set()).add(float(text))
    return found


def moves(cell: NotebookNode) -> bool:
    """Whether the cell ends in the name of a figure that has controls."""
    texts = [output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", ())]
    return any(" Controls: " in text for text in texts) and cell.source.splitlines()[-1].isidentifier()


def page(notebook: NotebookNode, **resources: object) -> str:
    """The web page of a notebook.

    Args:
        notebook: with its stored outputs.
        resources: what the template names beside it: name, title, pages, figures.
    """
    texts = "".join(markdown(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    exporter = HTMLExporter(template_file=str(PAGE / "page.html.j2"))
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    exporter.register_filter("markdown2html", markdown)
    resources |= {
        "sections": re.findall('<h2 id="(.*?)">(.*?)</h2>', texts),
        "style": style(),
        "script": (PAGE / "page.js").read_text(encoding="utf-8"),
    }
    return exporter.from_notebook_node(notebook, resources)[0]


def style() -> str:
    """The style sheet, with the colours of code on light and on dark paper."""
    light, dark = (
        HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("default", "github-dark")
    )
    dark = f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
    return "\n".join([light, dark, (PAGE / "page.css").read_text(encoding="utf-8")])


def title(notebook: NotebookNode) -> str:
    """The first heading."""
    return re.search("^# (.*)$", "\n".join(cell.source for cell in notebook.cells), re.MULTILINE)[1]


def main(folder: Path = NOTEBOOKS, to: Path = ROOT / "site") -> int:
    """Make a page of each notebook of the folder, and the first page of the README. Returns the exit status."""
    readme = v4.new_notebook(cells=[v4.new_markdown_cell((ROOT / "README.md").read_text(encoding="utf-8"))])
    notebooks = {"index.html": readme}
    notebooks |= {f"{path.stem}.html": read(path) for path in sorted(folder.glob("*.ipynb"))}
    pages = [{"name": name, "title": title(notebook)} for name, notebook in notebooks.items()]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        found = {
            name: {
                cell.id: pool.submit(drawn, notebook, n)
                for n, cell in enumerate(notebook.cells)
                if moves(cell)
            }
            for name, notebook in notebooks.items()
        }
        to.mkdir(exist_ok=True)
        large = []
        for here in pages:
            figures = {cell: future.result() for cell, future in found[here["name"]].items()}
            text = page(notebooks[here["name"]], **here, pages=pages, figures=figures).encode()
            (to / here["name"]).write_bytes(text)
            pictures = sum(len(figure["says"]) for figure in figures.values())
            print(
                f"{here['name']:32}{len(text) / 1e6:6.2f} MB {pictures:6} pictures in {len(figures)} figures"
            )
            large += [here["name"]] * (len(text) > LIMIT)
    if large:
        print(
            f"More than {LIMIT / 1e6:g} MB: {', '.join(large)}. Lower STATES in courseware.site.frames.",
            file=sys.stderr,
        )
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
