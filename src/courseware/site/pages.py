"""Make the course as static web pages in which the slider figures move: `python -m courseware.site.pages`.

A page shows what its notebook stores. The pictures of its slider figures are drawn here, by running the cells that
these figures need. Nothing on a page needs a kernel, a server or the network.
"""

import ast
import base64
import copy
import functools
import gzip
import io
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from html import escape, unescape
from multiprocessing import get_context
from pathlib import Path

import latex2mathml.converter
import numpy as np
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode, v4
from PIL import Image
from pygments.formatters import HtmlFormatter

from courseware.dependencies import needed_cells, tags
from courseware.notebooks import FOLDED, NOTEBOOKS, read
from courseware.site.frames import cut, frames, inked, packings
from courseware.solutions import WORKED
from courseware.solutions import solved as with_answers
from posenc.lesson.live import Live

ROOT = NOTEBOOKS.parent
PAGE = Path(__file__).parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARTICLE = (PAGE / "article.md").read_text(encoding="utf-8")  # the text of the first page, a line for each figure
LIMIT = 1_500_000  # bytes of a page, compressed
FIRST_LIMIT = 600_000  # of the first page, which people are sent
TEXT = 150_000  # of them that words, code and style may take
LINES = 12  # of code that a page shows without being asked
FIGURE = r"^\[figure\]\((\w+)\.ipynb#cell-id=([\w-]+)(?: \"(.*)\")?\)$"  # a line of the article

# What a sentence asks that only a notebook can do; a page leaves such sentences out.
ASKS = r"Run →|press Enter|[Ss]liders move in|\b[Rr]un (the (cell|check|chapter)|it again|them)|replace the `raise`"
SENTENCE = re.compile(
    r" *[^\s.!?*](?:[^.!?\n]|\n(?![\n#|*-])|[.!?](?!\*?\)?(?:[\s*]|$)))*[.!?](?:\*?\))?(?=[\s*]|$)",
    re.MULTILINE,
)
WIDE = '<div class="wide" tabindex="0" role="group" aria-label="What scrolls where it is wider than the page">'


class Renderer(IPythonRenderer):
    """Markdown as a page needs it: formulas as MathML, headings with the anchors of JupyterLab, links to pages."""

    def block_math(self, body: str) -> str:
        return f"{WIDE}{latex2mathml.converter.convert(body, display='block')}</div>"

    def inline_math(self, body: str) -> str:
        return latex2mathml.converter.convert(body)

    def block_html(self, html: str) -> str:
        # nbconvert's would close a <details> before its text
        return super().block_html(html) if "<img" in html else html

    def heading(self, text: str, level: int, **attrs: object) -> str:
        anchor = unescape(re.sub("<.*?>", "", text)).replace(" ", "-")
        return f'<h{level} id="{escape(anchor)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        to = page_of(url)
        return super().link(text, to, title) if to else text


def page_of(url: str) -> str:
    """Where a link of a notebook or of the README leads on the pages; empty where no repository is known that has it."""
    if page := re.fullmatch(r"(?:\.\./|notebooks/)*(?:README\.md|start\.ipynb|(\w+)\.ipynb)(#.*)?", url):
        return f"{page[1] or 'index'}.html{page[2] or ''}"
    file = not re.match("[a-z]+:|#", url)
    return repository() and f"{repository()}/blob/HEAD/{url.removeprefix('../')}" if file else url


@functools.cache
def repository() -> str:
    """The address of the course's repository on the web, as git tells it; empty where it tells none."""
    asked = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git
        return ""
    found = re.fullmatch(r"(?:https://(?:[^@/]*@)?|(?:ssh://)?git@)([\w.-]+)[:/](.+?)(?:\.git)?/?", told)
    return f"https://{found[1]}/{found[2]}" if found else ""


def markdown(source: str) -> str:
    """HTML of a cell's Markdown; the pictures that it names are in it."""
    source = SENTENCE.sub(lambda sentence: "" if re.search(ASKS, sentence[0]) else sentence[0], source)
    renderer = Renderer(escape=False, embed_images=True, path=str(ROOT))
    return MarkdownWithMath(renderer=renderer).render(source)


def figures(notebook: NotebookNode, numbers: Iterable[int]) -> Iterator[tuple[str, Live]]:
    """The figures that the cells with these numbers show, each behind the id of its cell, in the order of the chapter.

    The exercises are solved, and only the cells that the figures need are run, each once.
    """
    cells, space = with_answers(notebook).cells, {"__name__": "__main__"}
    for needed in sorted(needed_cells(cells, numbers)):
        name, code = cells[needed].id, ast.parse(cells[needed].source)
        last = ast.Expression(code.body.pop().value) if needed in numbers else None
        with redirect_stdout(io.StringIO()):
            exec(compile(code, f"cell {name}", "exec"), space)
            live = last and eval(compile(last, f"cell {name}", "eval"), space)
        if live:
            yield name, live


def drawn(notebook: NotebookNode, shown: dict[str, tuple[str, dict]]) -> tuple[dict[str, dict], dict[str, dict]]:
    """The frames of a chapter's figures that move; called in a process of its own.

    Args:
        notebook: the chapter.
        shown: of the article's figures, by their ids there, the chapter's cells and what `frames` is told of each.

    Returns:
        those of its page, all of them, by the ids of their cells; those of the article.
    """
    numbers = [number for number, cell in enumerate(notebook.cells) if moves(cell)]
    own, articles, smaller = {}, {}, {}
    for cell, live in figures(notebook, numbers):
        smaller[cell] = packings(live)
        own[cell] = next(smaller[cell])
        articles |= {name: frames(live, **told) for name, (of, told) in shown.items() if of == cell}

    def size(cell: str) -> float:
        """Bytes on a compressed page: base64 is compressed to what it stands for."""
        return (len(own[cell]["atlas"]) + len(own[cell]["places"])) * 3 / 4

    room = LIMIT - TEXT - sum(len(png) for png, _ in pictures(notebook.cells))
    while smaller and sum(map(size, own)) > room:
        cell = max(smaller, key=size)
        try:
            own[cell] = next(smaller[cell])
        except StopIteration:  # its sliders keep no fewer stops
            del smaller[cell]
    return own, articles


def moves(cell: NotebookNode) -> bool:
    """Whether what the cell shows last is a figure that has controls."""
    results = (output.data for output in cell.get("outputs", ()) if output.output_type == "execute_result")
    return any("image/png" in data and " Controls: " in data["text/plain"] for data in results)


def folded(cell: NotebookNode) -> bool:
    """Whether a page shows the cell's code only when asked: of a figure, of a prediction, of machinery, or long."""
    data = [output.get("data", {}) for output in cell.outputs]
    shows = any("image/png" in each or 'class="prediction"' in each.get("text/html", "") for each in data)
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
    return "exercise" not in tags(cell) and (shows or hidden or not cell.outputs or cell.source.count("\n") >= LINES)


def prepared(notebook: NotebookNode) -> NotebookNode:
    """A copy in which cells say where the page folds: the sections of the laboratory, and the worked solutions.

    The cell of such a heading has it as HTML in its metadata as `summary`, and the cell behind the section's last one
    `closes`; at the end of the page the last one has `ends`.
    """
    made = copy.deepcopy(notebook)
    level = 0  # of the heading of the section that is open
    for cell in made.cells:
        heading = re.match("(#+) .*", cell.source) if cell.cell_type == "markdown" else None
        if heading and len(heading[1]) <= level:
            cell.metadata.closes, level = True, 0
        worked = cell.source.startswith("## ") and WORKED in tags(cell)
        if heading and (cell.metadata.get(FOLDED) or worked):
            cell.metadata.summary, cell.source = markdown(heading[0]), cell.source[heading.end() :]
            level = len(heading[1])
    if level:
        made.cells[-1].metadata.ends = True
    return made


def page(notebook: NotebookNode, name: str, pages: dict[str, str], figures: dict[str, dict]) -> str:
    """The web page of a notebook.

    Args:
        notebook: with its stored outputs.
        name: of the page, without .html.
        pages: the titles of all pages, in order, by their names.
        figures: the frames of its figures that move, by the ids of their cells.
    """
    texts = "".join(markdown(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    exporter = HTMLExporter(
        template_file=str(PAGE / "page.html.j2"),
        filters={"markdown2html": markdown, "folded": folded, "cut_at": cut_at},
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    resources = {
        "name": name,
        "pages": pages,
        "figures": figures,
        "course": heading(README),
        "title": heading(notebook.cells[0].source),
        "description": description(notebook),
        "preview": next(pictures(notebook.cells), None),
        "repository": repository(),
        "sections": re.findall('<h2 id="(.*?)">(.*?)</h2>', texts),
        "style": style(),
        "script": (PAGE / "page.js").read_text(encoding="utf-8"),
    }
    html = exporter.from_notebook_node(prepared(notebook), resources)[0]
    html = re.sub("<th[^>]*></th>", "<td></td>", html)  # what is empty is no heading
    return re.sub("<table>.*?</table>", rf"{WIDE}\g<0></div>", html, flags=re.DOTALL)


def style() -> str:
    """The style sheet, with the colours of code on light and on dark paper."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("default", "github-dark"))
    dark = f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
    return "\n".join([light, dark, (PAGE / "page.css").read_text(encoding="utf-8")])


def heading(text: str) -> str:
    """The title that a text begins with."""
    return text.partition("\n")[0].removeprefix("# ")


def description(notebook: NotebookNode) -> str:
    """What a search shows below the title: a chapter's subtitle and what it teaches, else the first paragraph."""
    opening = notebook.cells[0].source
    found = re.search(r"^\*(.*)\*$(?s:.*)^\*\*(You will be able to)\*\* (.*)$", opening, re.MULTILINE)
    text = "{}. {} {}".format(*found.groups()) if found else (opening.split("\n\n") + [""])[1]
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)|[*`]", r"\1", text).split())


def pictures(cells: Iterable[NotebookNode]) -> Iterator[tuple[bytes, str]]:
    """The pictures that cells show, as PNG, and what each says in words."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                more = output.metadata.get("image/png", {})
                yield base64.b64decode(output.data["image/png"]), more.get("alt", "")


def cut_at(output: NotebookNode) -> int | None:
    """Where a narrow screen may cut the picture of an output in two."""
    picture = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))).convert("RGB")
    return cut(inked(np.asarray(picture)))


def first_page(chapters: dict[str, NotebookNode]) -> tuple[NotebookNode, dict[str, dict[str, tuple[str, dict]]]]:
    """The article with its figures from the chapters, by name, and below it the README.

    Last stands what the start page has and the README has not: what people search for, and where it is.

    Returns:
        the page, as a notebook; of each chapter, by their ids on the page, the cells whose figures it shows and what
        `frames` is told of each.
    """
    shown: dict[str, dict] = {name: {} for name in chapters}
    cells, end = [], 0
    for figure in re.finditer(FIGURE, ARTICLE, re.MULTILINE):
        chapter, name, told = figure.groups(default="")
        cells.append(v4.new_markdown_cell(ARTICLE[end : figure.start()]))
        end = figure.end()
        if chapter in chapters:
            (cell,) = (copy.deepcopy(cell) for cell in chapters[chapter].cells if cell.id == name)
            cell.id, cell.source = f"{chapter[:2]}-{name}", ""  # two chapters may give one name to two figures
            cell.metadata.beside = True  # its picture without scripts is a file of its own
            cells.append(cell)
            pairs = (pair.split("=") for pair in told.split())
            shown[chapter][cell.id] = name, {control: ast.literal_eval(value) for control, value in pairs}
    cells.append(v4.new_markdown_cell(ARTICLE[end:]))
    readme = re.sub(r"^!\[.*\]\(.*\)\n\n", "", README, flags=re.MULTILINE)  # the article's first figure
    start = chapters["start"].cells if "start" in chapters else []
    search = [copy.deepcopy(cell) for cell in start if cell.id == "search"]
    return v4.new_notebook(cells=[*cells, v4.new_markdown_cell(f"#{readme}"), *search]), shown


def write(to: Path, name: str, notebook: NotebookNode, pages: dict[str, str], figures: dict[str, dict]) -> bool:
    """Write a page and the pictures that it names into a folder, and print its size. Whether that is within limits."""
    text = page(notebook, name, pages, figures).encode()
    (to / f"{name}.html").write_bytes(text)
    beside = {cell.id: [cell] for cell in notebook.cells if cell.metadata.get("beside")}
    for file, cells in {name: notebook.cells, **beside}.items():
        for png, _ in itertools.islice(pictures(cells), 1):
            (to / f"{file}.png").write_bytes(png)
    compressed, limit = len(gzip.compress(text)), FIRST_LIMIT if name == "index" else LIMIT
    count = sum(len(figure["says"]) for figure in figures.values())
    sizes = f"{len(text) / 1e6:6.2f} MB, {compressed / 1e6:.2f} compressed"
    print(f"{name + '.html':32}{sizes} {count:6} pictures in {len(figures)} figures", flush=True)
    if compressed > limit:
        print(f"{name}.html: more than {limit / 1e6:g} MB. Let its figures declare fewer stops.", file=sys.stderr)
    return compressed <= limit


def main(folder: Path = NOTEBOOKS, to: Path = ROOT / "site") -> int:
    """Make a page of each notebook of the folder, and the first page of the article. Returns the exit status."""
    chapters = {path.stem: read(path) for path in sorted(folder.glob("*.ipynb"))}
    first, shown = first_page(chapters)
    chapters.pop("start", None)
    notebooks = {"index": first} | chapters
    pages = {name: heading(notebook.cells[0].source) for name, notebook in notebooks.items()}
    figures: dict[str, dict] = {name: {} for name in notebooks}
    to.mkdir(exist_ok=True)
    fit = True
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        moving = [name for name, chapter in chapters.items() if any(map(moves, chapter.cells))]
        found = {name: pool.submit(drawn, chapters[name], shown[name]) for name in moving}
        for name in [*chapters, "index"]:
            if name in found:
                figures[name], beside = found[name].result()
                figures["index"] |= beside
            fit &= write(to, name, notebooks[name], pages, figures[name])
    return 0 if fit else 1


if __name__ == "__main__":
    sys.exit(main())
