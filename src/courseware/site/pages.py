"""Make the course as static web pages in which the slider figures move: `python -m courseware.site.pages`.

A page shows what its notebook stores. The pictures of its slider figures are drawn here, by running the cells that
these figures need. Nothing on a page needs a kernel, a server or the network.
"""

import ast
import copy
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
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

from courseware import index
from courseware.dependencies import needed_cells
from courseware.notebooks import NOTEBOOKS, read
from courseware.site.frames import frames
from courseware.solutions import WORKED
from courseware.solutions import solved as with_answers
from courseware.tally import FOLDED
from posenc.lesson.live import Live

ROOT = NOTEBOOKS.parent
PAGE = Path(__file__).parent
LIMIT = 3_000_000  # bytes of a page
LINES = 12  # of code that a page shows without being asked
FIRST = "two_positions()"  # makes the figure that stands where the README has a picture


# What a sentence asks that only a notebook can do; a page leaves such sentences out.
ASKS = r"Run →|press Enter|\b[Rr]un (the (cell|check|chapter)|it again|them)|replace the `raise`"
SENTENCE = re.compile(
    r" *[^\s.!?*](?:[^.!?\n]|\n(?![\n#|*-])|[.!?](?!\*?\)?(?:[\s*]|$)))*[.!?](?:\*?\))?(?=[\s*]|$)",
    re.MULTILINE,
)


WIDE = (
    '<div class="wide" tabindex="0" role="group" aria-label="What scrolls where it is wider than the page">'
)


class Renderer(IPythonRenderer):
    """Markdown as a page needs it: formulas as MathML, headings with the anchors of JupyterLab, links to pages."""

    def block_math(self, body: str) -> str:
        return f"{WIDE}{latex2mathml.converter.convert(body, display='block')}</div>"

    def inline_math(self, body: str) -> str:
        return latex2mathml.converter.convert(body)

    def block_html(self, html: str) -> str:
        return (
            super().block_html(html) if "<img" in html else html
        )  # it would close a <details> before its text

    def heading(self, text: str, level: int, **attrs: object) -> str:
        anchor = unescape(re.sub("<.*?>", "", text)).replace(" ", "-")
        return f'<h{level} id="{escape(anchor)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        to = page_of(url)
        is_there = re.match(r"[a-z]+:|#|\w+\.html(#|$)", to)  # not so a file of the repository
        return super().link(text, to, title) if is_there else text


def page_of(url: str) -> str:
    """Where a link of a notebook or of the README leads on the pages."""
    url = re.sub(r"^(?:(?:\.\./)?README\.md|(?:notebooks/)?start\.ipynb)(?=#|$)", "index.html", url)
    return re.sub(r"^(?:\.\./)?(?:notebooks/)?(\w+)\.ipynb(?=#|$)", r"\1.html", url)


def markdown(source: str) -> str:
    """HTML of a cell's Markdown; the pictures that it names are in it."""
    source = SENTENCE.sub(lambda sentence: "" if re.search(ASKS, sentence[0]) else sentence[0], source)
    renderer = Renderer(escape=False, embed_images=True, path=str(ROOT))
    html = MarkdownWithMath(renderer=renderer).render(source)
    html = html.replace("<th></th>", "<td></td>")  # what is empty is no heading
    return html.replace("<table>", f"{WIDE}<table>").replace("</table>", "</table></div>")


def figures(notebook: NotebookNode, numbers: Iterable[int]) -> Iterator[Live]:
    """The figures that the cells with these numbers show, in the order of the chapter.

    The exercises are solved, and only the cells that the figures need are run, each once.
    """
    solved = with_answers(notebook)
    space = {"__name__": "__main__"}
    for needed in sorted(needed_cells(solved.cells, numbers)):
        cell = solved.cells[needed]
        name = f"cell {cell.id}"
        *body, last = ast.parse(cell.source).body
        shown = needed in numbers
        with redirect_stdout(io.StringIO()):
            exec(compile(ast.Module(body if shown else [*body, last], []), name, "exec"), space)
            live = eval(compile(ast.Expression(last.value), name, "eval"), space) if shown else None
        if live:
            yield live


def drawn(notebook: NotebookNode) -> dict[str, dict]:
    """The frames of every figure of a chapter that moves, by the id of its cell; called in a process of its own."""
    numbers = [number for number, cell in enumerate(notebook.cells) if moves(cell)]
    return {
        notebook.cells[number].id: frames(live) for number, live in zip(numbers, figures(notebook, numbers))
    }


def moves(cell: NotebookNode) -> bool:
    """Whether what the cell shows last is a figure that has controls."""
    texts = [
        output.data["text/plain"]
        for output in cell.get("outputs", ())
        if output.output_type == "execute_result" and "image/png" in output.data
    ]
    return any(" Controls: " in text for text in texts)


def folded(cell: NotebookNode) -> bool:
    """Whether a page shows the cell's code only when it is asked for: of a figure, of machinery, or long."""
    shows = any("image/png" in output.get("data", {}) for output in cell.outputs)
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
    exercise = "exercise" in cell.metadata.get("tags", ())
    return not exercise and (shows or hidden or not cell.outputs or cell.source.count("\n") >= LINES)


def with_claims(html: str, claims: Iterable[index.Stored]) -> str:
    """The page with what was measured in a section beside its heading, for those who ask."""
    found: dict[str, list[str]] = {}
    for stored in claims:
        line = f"✓ {index.words(stored.claim)}" if stored.claim.held else f"✗ {index.words(stored.claim)}"
        link = f'<li><a href="#{escape("cell-id=" + stored.cell)}">{escape(line)}</a></li>'
        found.setdefault(re.search('id="(.*?)"', markdown(f"## {stored.heading}"))[1], []).append(link)
    for anchor, lines in found.items():
        count = f"{len(lines)} claims measured" if len(lines) > 1 else "1 claim measured"
        box = f'<details class="claims"><summary>{count}</summary><ul>{"".join(lines)}</ul></details>'
        quoted = f""""{re.escape(anchor)}"|'{re.escape(unescape(anchor))}'"""  # as its own quotes make it
        html = re.sub(
            rf"(<h(\d) id=(?:{quoted})>.*?</h\2>(?:\s*</summary>)?)", lambda m: m[1] + box, html, count=1
        )  # noqa: B023
    return html


def with_folds(notebook: NotebookNode) -> NotebookNode:
    """A copy in which the cells say where the page folds a section: those of the laboratory, and the worked solutions.

    The cell of its heading has the heading as HTML in its metadata as `summary`, and the cell behind its last one
    `closes`; where that is the end of the page, the last one has `ends`.
    """
    made = copy.deepcopy(notebook)
    level = 0  # of the heading of the section that is open
    for cell in made.cells:
        heading = re.match("(#+) .*", cell.source) if cell.cell_type == "markdown" else None
        if heading and len(heading[1]) <= level:
            cell.metadata.closes, level = True, 0
        worked = cell.source.startswith("## ") and WORKED in cell.metadata.get("tags", ())
        if heading and (cell.metadata.get(FOLDED) or worked):
            cell.metadata.summary, cell.source = markdown(heading[0]), cell.source[heading.end() :]
            level = len(heading[1])
    if level:
        made.cells[-1].metadata.ends = True
    return made


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
    exporter.register_filter("folded", folded)
    resources |= {
        "sections": re.findall('<h2 id="(.*?)">(.*?)</h2>', texts),
        "style": style(),
        "script": (PAGE / "page.js").read_text(encoding="utf-8"),
    }
    return with_claims(
        exporter.from_notebook_node(with_folds(notebook), resources)[0], index.stored(notebook)
    )


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


def first_page(chapters: Iterable[NotebookNode], start: Iterable[NotebookNode] = ()) -> NotebookNode:
    """The README; in the place of its picture the cell of a chapter that shows the figure FIRST, if one does.

    Below it stands what the start page has and the README has not: what people search for, and where it is.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    cells = (cell for chapter in chapters for cell in chapter.cells if FIRST in cell.source and moves(cell))
    shown = [copy.deepcopy(cell) for cell in cells][:1]
    parts = re.split(r"^!\[.*\]\(.*\)$", text, maxsplit=1, flags=re.MULTILINE) if shown else [text]
    before, *after = map(v4.new_markdown_cell, parts)
    search = [copy.deepcopy(cell) for notebook in start for cell in notebook.cells if cell.id == "search"]
    return v4.new_notebook(cells=[before, *shown, *after, *search])


def main(folder: Path = NOTEBOOKS, to: Path = ROOT / "site") -> int:
    """Make a page of each notebook of the folder, and the first page of the README. Returns the exit status."""
    chapters = {f"{path.stem}.html": read(path) for path in sorted(folder.glob("*.ipynb"))}
    start = [chapters.pop("start.html")] if "start.html" in chapters else []
    notebooks = {"index.html": first_page(chapters.values(), start)} | chapters
    pages = [{"name": name, "title": title(notebook)} for name, notebook in notebooks.items()]
    to.mkdir(exist_ok=True)
    figures: dict[str, dict] = {name: {} for name in notebooks}
    large = []
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        found = {
            name: pool.submit(drawn, chapter)
            for name, chapter in chapters.items()
            if any(map(moves, chapter.cells))
        }
        for here in [*pages[1:], pages[0]]:
            name, notebook = here["name"], notebooks[here["name"]]
            if name in found:
                figures[name] = found[name].result()
            first = [cell.id for cell in notebook.cells if FIRST in cell.source and moves(cell)]
            figures["index.html"] |= {cell: figures[name][cell] for cell in first}
            text = page(notebook, **here, pages=pages, figures=figures[name]).encode()
            (to / name).write_bytes(text)
            pictures = sum(len(figure["says"]) for figure in figures[name].values())
            print(f"{name:32}{len(text) / 1e6:6.2f} MB {pictures:6} pictures in {len(figures[name])} figures")
            large += [name] * (len(text) > LIMIT)
    if large:
        print(
            f"More than {LIMIT / 1e6:g} MB: {', '.join(large)}. Lower STATES in courseware.site.frames.",
            file=sys.stderr,
        )
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
