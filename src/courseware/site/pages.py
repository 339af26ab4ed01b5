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
from courseware.site.frames import STATES, cut, frames, inked
from courseware.solutions import WORKED
from courseware.solutions import solved as with_answers
from posenc.lesson.live import Live

ROOT = NOTEBOOKS.parent
PAGE = Path(__file__).parent
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
        if not re.match(r"[a-z]+:|#|\w+\.html(#|$)", to):  # a file of the repository
            to = repository() and f"{repository()}/blob/HEAD/{to.removeprefix('../')}"
        return super().link(text, to, title) if to else text


@functools.cache
def repository() -> str:
    """The address of the course's repository on the web, as GitHub's runners or git tell it; empty where none does."""
    if "GITHUB_REPOSITORY" in os.environ:
        return f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    asked = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git
        return ""
    found = re.fullmatch(r"(?:https://(?:[^@/]*@)?|(?:ssh://)?git@)([\w.-]+)[:/](.+?)(?:\.git)?/?", told)
    return f"https://{found[1]}/{found[2]}" if found else ""


def links(name: str) -> list[tuple[str, str]]:
    """Where the notebook of a page can be had, and tried: texts and addresses, none where no repository is known."""
    if not repository():
        return []
    if name == "index.html":
        return [("The repository of the course", repository())]
    file = f"notebooks/{Path(name).stem}.ipynb"
    found = [("Source", f"{repository()}/blob/HEAD/{file}"), ("Download", f"{repository()}/raw/HEAD/{file}")]
    if github := re.fullmatch(r"https://github\.com/(.*)", repository()):
        found.append(("Run on Binder", f"https://mybinder.org/v2/gh/{github[1]}/HEAD?urlpath=lab/tree/{file}"))
    return found


def published() -> str:
    """The address at which GitHub publishes the pages, with a slash at its end; empty where that is not known."""
    github = re.fullmatch(r"https://github\.com/(.*)/(.*)", repository())
    return f"https://{github[1].lower()}.github.io/{github[2]}/" if github else ""


def page_of(url: str) -> str:
    """Where a link of a notebook or of the README leads on the pages."""
    url = re.sub(r"^(?:(?:\.\./)?README\.md|(?:notebooks/)?start\.ipynb)(?=#|$)", "index.html", url)
    return re.sub(r"^(?:\.\./)?(?:notebooks/)?(\w+)\.ipynb(?=#|$)", r"\1.html", url)


def markdown(source: str) -> str:
    """HTML of a cell's Markdown; the pictures that it names are in it."""
    source = SENTENCE.sub(lambda sentence: "" if re.search(ASKS, sentence[0]) else sentence[0], source)
    renderer = Renderer(escape=False, embed_images=True, path=str(ROOT))
    return MarkdownWithMath(renderer=renderer).render(source)


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


def drawn(notebook: NotebookNode, shown: dict[str, dict]) -> tuple[dict[str, dict], dict[str, dict]]:
    """The frames of a chapter's figures that move, by the ids of their cells; called in a process of its own.

    Returns:
        those of its page, all of them, and those of the article, which are in `shown` with what `frames` is told.
    """
    numbers = [number for number, cell in enumerate(notebook.cells) if moves(cell)]
    lives, own, articles = {}, {}, {}
    for number, live in zip(numbers, figures(notebook, numbers)):
        cell = notebook.cells[number].id
        lives[cell], own[cell] = live, frames(live)
        if cell in shown:
            articles[cell] = frames(live, **shown[cell])
    room = LIMIT - TEXT - sum(len(png) for png, _ in pictures(notebook.cells))
    halved = dict.fromkeys(own, 0)  # how often the most positions of a figure were halved
    while halved and sum(map(size, own.values())) > room:
        cell = max(halved, key=lambda cell: size(own[cell]))
        halved[cell] += 1
        try:
            own[cell] = frames(lives[cell], STATES >> halved[cell])
        except ValueError:  # its sliders keep no fewer stops
            del halved[cell]
    return own, articles


def size(figure: dict) -> float:
    """Bytes that the frames of a figure take on a compressed page: base64 is compressed to what it stands for."""
    return (len(figure["atlas"]) + len(figure["places"])) * 3 / 4


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


def page(notebook: NotebookNode, **resources: object) -> str:
    """The web page of a notebook.

    Args:
        notebook: with its stored outputs.
        resources: what the template names beside it: name, title, pages, figures.
    """
    names = [each["name"] for each in resources["pages"]]
    here = names.index(resources["name"]) if resources["name"] in names else None
    picture = next(pictures(notebook.cells), None)
    texts = "".join(markdown(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    exporter = HTMLExporter(template_file=str(PAGE / "page.html.j2"))
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    for name, change in {"markdown2html": markdown, "folded": folded, "cut_at": cut_at}.items():
        exporter.register_filter(name, change)
    resources |= {
        "course": course(),
        "description": description(notebook),
        "preview": picture and f"{published()}{Path(resources['name']).stem}.png",
        "preview_alt": picture and picture[1],
        "links": links(resources["name"]),
        "before": resources["pages"][here - 1] if here else None,
        "after": resources["pages"][here + 1] if here is not None and here + 1 < len(names) else None,
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


def title(notebook: NotebookNode) -> str:
    """The first heading."""
    return re.search("^# (.*)$", "\n".join(cell.source for cell in notebook.cells), re.MULTILINE)[1]


def course() -> str:
    """What the course is called: the heading of its README."""
    return (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def description(notebook: NotebookNode) -> str:
    """What a search shows below the title: a chapter's subtitle and what it teaches, else the first paragraph."""
    _, *paragraphs = notebook.cells[0].source.split("\n\n")
    subtitle = re.search(r"^\*(.*)\*$", notebook.cells[0].source, re.MULTILINE)
    able = re.search(r"^\*\*(You will be able to)\*\* (.*)$", notebook.cells[0].source, re.MULTILINE)
    text = f"{subtitle[1]}. {able[1]} {able[2]}" if subtitle and able else (paragraphs or [""])[0]
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


def article() -> str:
    """The text of the first page, with a line for each figure."""
    return (PAGE / "article.md").read_text(encoding="utf-8")


def shown() -> dict[str, dict[str, dict]]:
    """The figures of the article: by chapter and cell, what `frames` is told of each."""
    found: dict[str, dict[str, dict]] = {}
    for chapter, cell, told in re.findall(FIGURE, article(), re.MULTILINE):
        pairs = (pair.split("=") for pair in told.split())
        found.setdefault(chapter, {})[cell] = {name: ast.literal_eval(value) for name, value in pairs}
    return found


def here_called(chapter: str, cell: str) -> str:
    """The id of a chapter's cell in the article: two chapters may give one name to two figures."""
    return f"{chapter[:2]}-{cell}"


def first_page(chapters: dict[str, NotebookNode], start: Iterable[NotebookNode] = ()) -> NotebookNode:
    """The article with its figures from the chapters, by name, and below it the README.

    Last stands what the start page has and the README has not: what people search for, and where it is.
    """
    text, cells, end = article(), [], 0
    for figure in re.finditer(FIGURE, text, re.MULTILINE):
        cells.append(v4.new_markdown_cell(text[end : figure.start()]))
        end = figure.end()
        if figure[1] in chapters:
            (cell,) = (copy.deepcopy(cell) for cell in chapters[figure[1]].cells if cell.id == figure[2])
            cell.id, cell.source = here_called(figure[1], cell.id), ""
            cell.metadata.beside = True  # its picture without scripts is a file of its own
            cells.append(cell)
    cells.append(v4.new_markdown_cell(text[end:]))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"^!\[.*\]\(.*\)\n\n", "", readme, flags=re.MULTILINE)  # the article's first figure
    search = [copy.deepcopy(cell) for notebook in start for cell in notebook.cells if cell.id == "search"]
    return v4.new_notebook(cells=[*cells, v4.new_markdown_cell(f"#{readme}"), *search])


def main(folder: Path = NOTEBOOKS, to: Path = ROOT / "site") -> int:
    """Make a page of each notebook of the folder, and the first page of the article. Returns the exit status."""
    chapters = {path.stem: read(path) for path in sorted(folder.glob("*.ipynb"))}
    start = [chapters.pop("start")] if "start" in chapters else []
    notebooks = {"index": first_page(chapters, start)} | chapters
    pages = [{"name": f"{stem}.html", "title": title(notebook)} for stem, notebook in notebooks.items()]
    to.mkdir(exist_ok=True)
    figures: dict[str, dict] = {stem: {} for stem in notebooks}
    wanted, large = shown(), []
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        moving = [stem for stem, chapter in chapters.items() if any(map(moves, chapter.cells))]
        found = pool.map(drawn, map(chapters.get, moving), [wanted.get(stem, {}) for stem in moving])
        for here in [*pages[1:], pages[0]]:
            stem = Path(here["name"]).stem
            notebook = notebooks[stem]
            if stem in moving:
                figures[stem], articles = next(found)
                figures["index"] |= {here_called(stem, cell): made for cell, made in articles.items()}
            text = page(notebook, **here, pages=pages, figures=figures[stem]).encode()
            (to / here["name"]).write_bytes(text)
            beside = [(cell.id, cell) for cell in notebook.cells if cell.metadata.get("beside")]
            for name, *cells in [(stem, *notebook.cells), *beside]:
                for png, _ in itertools.islice(pictures(cells), 1):
                    (to / f"{name}.png").write_bytes(png)
            compressed = len(gzip.compress(text))
            count = sum(len(figure["says"]) for figure in figures[stem].values())
            sizes = f"{len(text) / 1e6:6.2f} MB, {compressed / 1e6:.2f} compressed"
            print(f"{here['name']:32}{sizes} {count:6} pictures in {len(figures[stem])} figures", flush=True)
            large += [here["name"]] * (compressed > (FIRST_LIMIT if stem == "index" else LIMIT))
    if large:
        limits = f"{FIRST_LIMIT / 1e6:g} MB of the first page or {LIMIT / 1e6:g} of another, compressed"
        print(f"More than {limits}: {', '.join(large)}. Let its figures declare fewer stops.", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
