"""The web pages: what they are made of, and in a browser without network what they show when a control moves."""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import FLAGS, chromium
from nbformat import v4
from pictures import example, pixels
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from thorough import ALL, thorough

from courseware import index, notebooks
from courseware.dependencies import needed_cells
from courseware.keep import differ
from courseware.notebooks import FOLDED
from courseware.site import frames, pages
from posenc.lesson.controls import choice, slider, text
from posenc.lesson.guesses import RUN, Guess, _Comparison
from posenc.lesson.live import Live, canvas

WHOLE = ("index", "claims", "01")  # pages that are tried without ALL=1
MADE = ("start", "claims", "01", "04")  # notebooks that are made pages of without ALL=1; 04's figures stand still
PAGES = ["index.html", *(f"{path.stem}.html" for path in sorted(notebooks.NOTEBOOKS.glob("[!s]*.ipynb")))]

# Drawn anew, a figure that needs a cell with one of these shows another picture than the notebook.
MEASURED = r"\btrain\(|\bSTEPS\b|\bmeasure\("


def in_browser(test):
    """These measure no times, so other tests may run beside them."""
    missing = pytest.mark.skipif(not chromium(), reason="no Chromium is installed: apt-get install chromium")
    return pytest.mark.slow(missing(test))


REPOSITORY = pages.repository


@pytest.fixture(autouse=True)
def unknown(monkeypatch):
    """These tests are the same in a clone, which knows where it came from."""
    monkeypatch.setattr(pages, "repository", lambda: "")


def a_notebook(*cells):
    return v4.new_notebook(cells=[v4.new_markdown_cell("# A title\n\n## First\n\n## Second"), *cells])


def a_page(*cells, name="a", **more):
    return pages.page(a_notebook(*cells), name, **{"pages": {}, "figures": {}} | more)


def picture_cell(live, source="live", **more):
    data, metadata = live._repr_mimebundle_()
    data = {kind: data[kind] for kind in ("image/png", "text/plain")}
    outputs = [v4.new_output("execute_result", data=data, metadata=metadata)]
    return v4.new_code_cell(source, outputs=outputs, **more)


def drawing_cell():
    return picture_cell(example(), "from pictures import example\nexample()", id="one")


def figure_page(live, *cells, states=100, **more):
    return a_page(picture_cell(live, id="abc"), *cells, figures={"abc": frames.frames(live, states)}, **more)


def two_panels(**controls):
    """Two panels beside each other, a line in each; that of the left one follows x, if there is such a control."""
    figure = canvas(8, 3)
    left, right = figure.subplots(1, 2)
    (line,) = left.plot([0, 1], [0, 1])
    right.plot([0, 1], [1, 0])
    return Live(
        figure, lambda x=1: line.set_ydata([x / 4, 1]), moving={"line": line}, controls=controls, alt="Two lines."
    )


FOLDS = [
    v4.new_markdown_cell("# Laboratory\n\nIn any order."),
    v4.new_markdown_cell("## Laboratory A · *Dots*\n\nMore.", metadata={FOLDED: True}),
    v4.new_markdown_cell("### Exercise 1.1", id="asked"),
    v4.new_markdown_cell("## Laboratory B · Lines", metadata={FOLDED: True}),
    v4.new_code_cell("1", id="lines"),
    v4.new_markdown_cell("## Worked solutions", metadata={"tags": ["worked"]}),
    v4.new_markdown_cell("### Solution 1.1", metadata={"tags": ["worked"]}),
]

# ------------------------------------------------------------------- pages


LINKS = {
    "02_additive_encodings.ipynb": "02_additive_encodings.html",
    "notebooks/02_additive_encodings.ipynb#cell-id=1a2b": "02_additive_encodings.html#cell-id=1a2b",
    "../README.md": "index.html",
    "../README.md#Start": "index.html#Start",
    "start.ipynb": "index.html",
    "#1-Count": "#1-Count",
    "https://example.org/a.ipynb": "https://example.org/a.ipynb",
    "../TEACHING.md": "",
}


def test_markdown_needs_no_script_and_links_lead_to_pages():
    assert {url: pages.page_of(url) for url in LINKS} == LINKS
    html = pages.markdown("# 1 Sines & *more*\n\nFor $a^2$ see [there](x.ipynb), [it](a.md).\n\n$$\\omega_i$$")
    assert '<h1 id="1-Sines-&amp;-more">1 Sines &amp; <em>more</em></h1>' in html
    assert re.findall("<a .*?>", html) == ['<a href="x.html">']
    assert html.count("<math") == 2 and "$" not in html and "<msup>" in html
    assert 'src="data:image/png;base64,' in pages.markdown("![A picture.](README.png)")


def test_tables_scroll_and_an_empty_corner_of_one_is_no_heading():
    table = v4.new_markdown_cell("| | query |\n|---|---|\n| dog | 1 |")
    data = {"text/html": '<table><tr><th scope="col"></th><th>key</th></tr></table><table class="a"></table>'}
    html = a_page(table, v4.new_code_cell("t", outputs=[v4.new_output("display_data", data=data)]))
    assert html.count(f"{pages.WIDE}<table>") == 2 and '</table></div><table class="a">' in html
    assert re.findall("<th[ >].*?</th>", html) == ["<th>query</th>", "<th>key</th>"]


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("Type 0.5 words, and press Enter. Look at x.y.", "Look at x.y."),
        ("*Move it. Run the cell for yours.* Or run far.", "<em>Move it.</em> Or run far."),
        ("Choose *Run → Run All* and wait. So.", "So."),
        ("(Or type a word, and press Enter. To read it, *Run → Run All*.) So (*it is*).", "So (<em>it is</em>)."),
        ("One.\nRun them, and\nwait. So.", "One.\n So."),
        ("One.\n\nSliders move in [JupyterLab](../README.md).", "One."),
    ],
)
def test_a_page_asks_for_nothing_that_it_cannot_do(source, left):
    assert pages.markdown(source).split() == f"<p>{left}</p>".split()


def test_a_figure_is_made_by_the_cells_that_it_needs_each_run_once():
    shown = "Live(canvas(), print, moving={}, controls={}, alt=' '.join(failing_twin([*runs, 'a', 'b'])))"
    checks = 'check("failing_twin", failing_twin)\nfailing_twin = use("failing_twin", failing_twin)'
    exercise = {"tags": ["exercise"], "ex": {"id": "failing_twin"}}
    cells = [
        v4.new_code_cell("from posenc.chapters.permutation_invariance import exercises"),
        v4.new_code_cell("from posenc.lesson.live import Live, canvas\nruns = []"),
        v4.new_code_cell("raise ValueError('not needed')"),
        v4.new_code_cell("runs.append('c')"),
        v4.new_code_cell("def failing_twin(tokens):\n    raise NotImplementedError", metadata=exercise),
        v4.new_code_cell(checks, metadata={"tags": ["check"]}),
        v4.new_code_cell(shown, id="one"),
        v4.new_code_cell(f"again = {shown}\nagain", id="two"),
    ]
    made = pages.figures(v4.new_notebook(cells=cells), [6, 7])
    assert [(cell, live.alt) for cell, live in made] == [("one", "a c b"), ("two", "a c b")]


def test_code_is_folded_where_it_is_long_or_machinery_or_makes_a_figure():
    def cell(source, *, tags=(), output=True, **metadata):
        outputs = [v4.new_output("stream", text="a")] * output
        return v4.new_code_cell(source, outputs=outputs, metadata={"tags": list(tags), **metadata})

    stub = cell("def a():\n    raise NotImplementedError", tags=["exercise"], output=False)
    moving, quiet = picture_cell(example()), picture_cell(two_panels())
    asked, answered = guess_cells("Which?", ["a", "b"], "a", since={})
    machinery = [cell("a = 1", output=False), cell("a", jupyter={"source_hidden": True}), cell("a = 1\n" * 20)]
    assert all(map(pages.folded, [*machinery, moving, quiet, asked]))
    assert not any(map(pages.folded, [cell("a = 1\na"), stub, answered]))
    assert pages.moves(moving)
    assert not any(map(pages.moves, [quiet, stub, v4.new_markdown_cell("dots")]))
    html = a_page(picture_cell(example(), id="abc"), cell("1 < 2"))
    assert re.search('<details class="code">.*?live.*?</details>', html, re.DOTALL)
    assert html.count('<details class="code">') == 1


@pytest.mark.parametrize("more", [[], [v4.new_markdown_cell("## All claims")]])
def test_a_page_has_sections_and_folds_the_laboratory_and_the_solutions(more):
    solution = v4.new_markdown_cell("<details>\n<summary>Show</summary>\n\n```python\nturn\n```\n\n</details>")
    html = a_page(solution, v4.new_code_cell("2 < 3", id="def"), *FOLDS, *more)
    assert html.startswith("<!DOCTYPE html>") and f"<title>A title – {pages.heading(pages.README)}</title>" in html
    sections = re.findall('<li><a href="#(.*?)">', html)
    assert sections[:3] == ["First", "Second", "Laboratory-A-·-Dots"] and "Laboratory-B-·-Lines" in sections
    (shown,) = re.findall("<details>\\s*<summary>Show</summary>(.*?)</details>", html, re.DOTALL)
    assert "turn" in shown and "<pre>" in shown and "cell-id" not in shown
    found = re.findall('<details class="section">(.*?)</details>', html, re.DOTALL)
    a, b, solutions = (re.sub(r"<[^>]*>|\s+", " ", part).split() for part in found)
    assert a == "Laboratory A · Dots More. Exercise 1.1".split()
    assert b[:4] == "Laboratory B · Lines".split() and b[-1] == "1"
    assert solutions == "Worked solutions Solution 1.1".split()
    assert html.count("<details") == html.count("</details>")
    assert re.search('<summary>\\s*<h2 id="Laboratory-A-·-Dots">', found[0])


def test_the_first_page_is_the_article_with_figures_of_the_chapters(monkeypatch):
    article = '# RoPE\n\nDrag.\n\n[figure](04_b.ipynb#cell-id=two "n=4 lock=True")\n\nSo.'
    monkeypatch.setattr(pages, "ARTICLE", article)
    table = v4.new_markdown_cell("## What you search for", id="search")
    chapters = {"03_a": a_notebook(), "04_b": a_notebook(picture_cell(example(), id="two")), "start": a_notebook(table)}
    first, shown = pages.first_page(chapters)
    assert shown == {"03_a": {}, "04_b": {"04-two": ("two", {"n": 4, "lock": True})}, "start": {}}
    before, figure, after, readme, search = first.cells
    assert (before.source.strip(), after.source.strip()) == ("# RoPE\n\nDrag.", "So.")
    assert figure.id == "04-two" and not figure.source and pages.moves(figure)
    assert readme.source.startswith("## ") and "make lab" in readme.source and "![" not in readme.source
    assert search == table
    assert "Code</summary>" not in a_page(before, figure)


def test_the_article_shows_what_chapters_have_and_says_what_they_measured():
    chapters = {path.stem: notebooks.read(path) for path in notebooks.chapters()}
    figures = [cell for cell in pages.first_page(chapters)[0].cells if cell.metadata.get("beside")]
    assert len(figures) == 8 and all(map(pages.moves, figures))
    claims = [stored.claim for chapter in chapters.values() for stored in index.stored(chapter)]
    text = re.sub(pages.FIGURE, "", pages.ARTICLE, flags=re.MULTILINE)
    assert index.missing(text, claims) == []
    assert index.missing("It moves by 123.456.", claims) == ["123.456"]


def test_a_page_says_where_its_notebook_is_and_what_it_is_about(monkeypatch):
    opening = "# 4 · It\n*Words, searched*\n\nA scene.\n\n**You will be able to** turn [it](a.ipynb) *well*."
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(opening), picture_cell(example())])
    at_home, elsewhere = "https://github.com/Who/course", "https://example.org/course"
    linked, meta = {}, {}
    for address in (at_home, elsewhere, ""):
        monkeypatch.setattr(pages, "repository", lambda: address)
        html = pages.page(notebook, "04_b", {}, {})
        linked[address] = re.findall('<a href="(http.*?)">(.*?)</a>', html)
        meta[address] = {
            name: words for words, name in re.findall('<meta content="(.*?)" (?:name|property)="(.*?)"/>', html)
        }
    file = "notebooks/04_b.ipynb"
    assert linked[elsewhere] == [
        (f"{elsewhere}/blob/HEAD/{file}", "Source"),
        (f"{elsewhere}/raw/HEAD/{file}", "Download"),
    ]
    binder = f"https://mybinder.org/v2/gh/Who/course/HEAD?urlpath=lab/tree/{file}"
    assert linked[at_home][2:] == [(binder, "Run on Binder")] and linked[""] == []
    said = meta[at_home]
    assert said["description"] == "Words, searched. You will be able to turn it well."
    assert said["og:title"] == "4 · It" and said["og:site_name"] == pages.heading(pages.README)
    assert said["og:image"] == "https://who.github.io/course/04_b.png" and said["og:image:alt"]
    assert meta[""]["og:image"] == meta[elsewhere]["og:image"] == "04_b.png"
    assert pages.description(v4.new_notebook(cells=[v4.new_markdown_cell("# It\n\nA `scene`.")])) == "A scene."

    monkeypatch.setattr(pages, "repository", lambda: at_home)
    assert f'<a href="{at_home}">The repository of the course</a>' in pages.page(notebook, "index", {}, {})
    assert f'<a href="{at_home}/blob/HEAD/TEACHING.md">' in pages.markdown("[it](TEACHING.md)")


def test_git_tells_where_the_repository_is(monkeypatch):
    for told, expected in {
        "https://a:b@github.com/Who/course.git": "https://github.com/Who/course",
        "git@git.example.org:who/course.git": "https://git.example.org/who/course",
        "ssh://git@example.org/who/course": "https://example.org/who/course",
        "/srv/course.git": "",
        "": "",
    }.items():
        monkeypatch.setattr(pages.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=f"{told}\n"))
        assert REPOSITORY.__wrapped__() == expected


def test_a_page_leads_on_and_back_and_a_text_box_stays_in_the_notebook():
    titles = dict(zip("abc", "ABC"))
    leads = [re.findall('href="(.).html" rel="(.*?)"', a_page(name=name, pages=titles)) for name in titles]
    assert leads == [[("b", "next")], [("a", "prev"), ("c", "next")], [("b", "prev")]]
    html = figure_page(example(words=text("your words")))
    assert "The notebook also has a line to type in: your words." in html
    inputs = re.findall('<input id="abc-(\\w+)".*? type="(\\w+)"', html)
    assert inputs == [("x", "range"), ("y", "range"), ("hold", "checkbox")]


def test_each_notebook_becomes_a_page_and_one_over_the_limit_fails(tmp_path, monkeypatch, capsys):
    """Chapters may give one name to two cells, which have nothing to do with each other."""
    monkeypatch.setattr(pages, "ProcessPoolExecutor", lambda *_: ThreadPoolExecutor(1))
    monkeypatch.setattr(frames, "STATES", 24)
    monkeypatch.setattr(pages, "FIRST_LIMIT", 1000)
    table = v4.new_markdown_cell("## What you search for\n[it](01_a.ipynb)", id="search")
    for name, cell in {"start": table, "01_a": drawing_cell(), "02_b": v4.new_code_cell("1", id="one")}.items():
        (tmp_path / f"{name}.ipynb").write_text(notebooks.text(a_notebook(cell)))
    assert pages.main(tmp_path, tmp_path / "site") == 1
    made = ["01_a.html", "01_a.png", "02_b.html", "index.html"]
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == made
    first = (tmp_path / "site" / "index.html").read_text()
    places = [*map(first.rindex, ["Three paths", "What you search for", 'href="01_a.html"'])]
    assert places == sorted(places), "the start page's table is on the first page"
    sizes = r"^(\w+).html +0\.0\d MB, 0\.0\d compressed +(\d+) pictures in (\d)"
    printed, large = capsys.readouterr()
    found = re.findall(sizes, printed, re.MULTILINE)
    assert found == [("01_a", "24", "1"), ("02_b", "0", "0"), ("index", "0", "0")]
    assert large.startswith("index.html: more than 0.001 MB")
    monkeypatch.setattr(pages, "FIRST_LIMIT", 10**6)
    monkeypatch.setattr(pages, "LIMIT", 1000)
    assert pages.main(tmp_path, tmp_path / "site") == 1
    assert re.findall("^(.*).html: more", capsys.readouterr().err, re.MULTILINE) == ["01_a", "02_b"]


@pytest.mark.slow
def test_where_a_page_has_no_room_its_largest_figure_keeps_fewer_stops(monkeypatch):
    notebook = a_notebook(drawing_cell())
    monkeypatch.setattr(frames, "STATES", 100)
    whole, article = pages.drawn(notebook, {"1": ("one", {"hold": False, "x": [0, 5]}), "2": ("two", {})})
    (shown,) = article.values()
    assert len(shown["says"]) == 2 * len(shown["controls"][1]["stops"])
    monkeypatch.setattr(pages, "LIMIT", pages.TEXT)
    fewer, _ = pages.drawn(notebook, {})
    assert len(fewer["one"]["says"]) < len(whole["one"]["says"]) / 2


# ----------------------------------------------------------- in the browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        no_sandbox = ["--no-sandbox"] * (os.geteuid() == 0)
        yield playwright.chromium.launch(executable_path=chromium(), args=FLAGS + no_sandbox)


@pytest.fixture
def opened(browser, tmp_path) -> Iterator[Callable[..., Page]]:
    """Opens a page, given its HTML, without network."""
    with ExitStack() as stack:

        def open_it(html: str, **more: object) -> Page:
            (tmp_path / "a.html").write_text(html)
            page = stack.enter_context(browser.new_context(offline=True, **more)).new_page()
            page.goto((tmp_path / "a.html").as_uri())
            return page

        yield open_it


def started(page: Page) -> Page:
    """The page once its figures can be moved."""
    page.wait_for_function("!document.querySelector('.live canvas[hidden]')")
    return page


def seen(figure: Locator) -> bytes:
    """The picture on the canvas, as PNG."""
    url = figure.locator("canvas").first.evaluate("canvas => canvas.toDataURL()")
    return base64.b64decode(url.partition(",")[2])


def stands(figure: Locator) -> list[int]:
    """The stop of each control."""
    boxes = figure.locator(".control")
    return boxes.evaluate_all("boxes => boxes.map(box => chosen([...box.querySelectorAll('input')]))")


def said(figure: Locator) -> str:
    """What a figure says to those who cannot see it."""
    return figure.locator(".says[role=status]").text_content()


def guess_cells(question, options, *measured, several=False, since):
    """The cell of a prediction and the cell of its answer, as they are stored."""
    guess = Guess(question, options, several)
    for thing in (guess, _Comparison(guess, measured, since)):
        data = thing._repr_mimebundle_()
        del data[notebooks.WIDGET_VIEW]
        yield v4.new_code_cell("…", outputs=[v4.new_output("display_data", data=data)])


@in_browser
def test_a_prediction_is_answered_on_the_page(opened):
    one = guess_cells("Which is it?", ["a < b", "no"], "no", since={"a < b": "b is 1 & a is 2"})
    options = ["all.", "x, y", "z"]
    more = guess_cells("Which stay?", options, "x, y", "z", several=True, since={"all.": "not x"})
    page = opened(a_page(*one, *more))
    first, second = page.locator(".comparison").all()

    def lines(answer):
        return answer.inner_text().split("\n")

    assert lines(first) == ["Which is it?", "Measured: no."]
    assert lines(second) == ["Which stay?", "Measured: x, y; z."]
    assert RUN not in page.inner_text("main")

    page.get_by_role("button", name="○ a < b").press("Enter")
    assert lines(first)[1:] == ["You said: a < b. Measured: no.", "a < b: b is 1 & a is 2"]
    page.get_by_role("button", name="○ no").click()
    assert page.get_by_role("button", name="○ a < b", pressed=False).is_visible()
    assert page.get_by_role("button", name="● no", pressed=True).is_visible()
    assert lines(first)[1:] == ["You said: no. Measured: no."]
    page.get_by_role("button", name="● no").click()
    assert lines(first)[1:] == ["Measured: no."]

    page.get_by_role("button", name="☐ all.").click()
    page.get_by_role("button", name="☐ z").click()
    assert lines(second)[1:] == ["You said: all; z. Measured: x, y; z.", "all.: not x"]
    assert Axe().run(page).response["violations"] == []


@in_browser
def test_a_link_into_a_folded_section_unfolds_it(opened):
    link = v4.new_markdown_cell("[there](#cell-id=asked), [lines](#Laboratory-B-·-Lines)")
    page = opened(a_page(link, *FOLDS))
    states = "[...document.querySelectorAll('.section')].map(section => section.open)"
    assert page.evaluate(states) == [False, False, False]
    page.get_by_role("link", name="there").click()
    page.get_by_text("Exercise 1.1").wait_for(state="visible")
    assert page.evaluate(states) == [True, False, False]
    page.locator(".section summary").first.click()
    page.get_by_role("link", name="there").click()  # the address is the same
    page.get_by_text("Exercise 1.1").wait_for(state="visible")
    page.goto(page.url.replace("asked", "lines"))
    page.reload()
    assert page.evaluate(states) == [False, True, False]


@in_browser
def test_on_a_phone_the_heading_and_whole_pictures_are_in_view(opened):
    live = two_panels(x=slider("x", 0, 4, value=1))
    html = figure_page(live, picture_cell(two_panels()), pages={"a": "A title"})
    page = opened(html, viewport={"width": 390, "height": 844})
    page.locator(".narrow").nth(1).wait_for()
    assert page.locator("h1").bounding_box()["y"] < 120
    assert not page.locator("header li").first.is_visible()
    figure, pictures = page.locator(".live"), page.get_by_role("img").all()
    assert len(pictures) == 2, "each once"
    for picture in pictures:
        box, width = picture.bounding_box(), picture.evaluate("canvas => canvas.width")
        assert 0 <= box["x"] and box["x"] + box["width"] <= 390
        assert width < 0.6 * live.figure.canvas.get_width_height()[0], "its right half is below the left"
    figure.evaluate("figure => figure.scrollIntoView()")
    handle = figure.get_by_role("slider")
    box, picture = handle.bounding_box(), pictures[0].bounding_box()
    assert box["y"] > picture["y"] + picture["height"] and box["height"] >= 44
    drawn = "document.querySelector('.narrow').toDataURL()"
    before = page.evaluate(drawn)
    handle.press("End")
    assert page.evaluate(drawn) != before
    page.set_viewport_size({"width": 1000, "height": 800})
    assert not page.locator(".narrow").first.is_visible() and figure.locator("canvas").first.is_visible()


@in_browser
def test_a_lock_holds_on_the_page_too_and_the_address_says_where_a_figure_stands(opened):
    page = started(opened(figure_page(example(held=True, mode=choice("mode", ["one", "two"])), states=400)))
    figure = page.locator(".live")
    x, y = figure.get_by_role("slider").all()
    for control, key, expected in [
        (x, "End", [7, 9, 1, 0]),
        (y, "Home", [0, 2, 1, 0]),
        (figure.get_by_role("checkbox"), "Space", [0, 2, 0, 0]),
        (x, "End", [9, 2, 0, 0]),
        (figure.get_by_role("radio").last, "Space", [9, 2, 0, 1]),
    ]:
        control.press(key)
        assert stands(figure) == expected
    assert said(figure) == "at 9, 2"
    address = page.url
    assert address.endswith("#cell-id=abc&x=9&y=2&hold=off&mode=two")
    for url, expected in {address: [9, 2, 0, 1], address.replace("x=9", "x=nowhere"): [0, 2, 0, 1]}.items():
        page.goto("about:blank")
        page.goto(url)
        assert stands(started(page).locator(".live")) == expected


@in_browser
def test_the_section_in_view_is_named_and_solutions_are_not_printed(opened):
    page = opened(a_page(v4.new_markdown_cell("## Far *down*\n\n" + "So.\n\n" * 99), *FOLDS))
    menu = page.locator(".sections summary")
    assert menu.inner_text() == "Sections"
    menu.click()
    page.get_by_role("link", name="Far down").click()
    page.wait_for_function("document.querySelector('.sections summary').textContent === 'Far down'")
    assert not page.get_by_role("link", name="Far down").is_visible(), "a menu closes behind who has chosen"
    assert page.locator("header [aria-current=true]").text_content() == "Far down"
    page.evaluate("for (const section of document.querySelectorAll('.section')) section.open = true")
    assert page.get_by_text("Solution 1.1").is_visible()
    page.emulate_media(media="print")
    assert not page.get_by_text("Solution 1.1").is_visible() and not page.locator("header").is_visible()


@in_browser
def test_without_scripts_the_stored_picture_stands(opened):
    figure = opened(figure_page(example()), java_script_enabled=False).locator(".live")
    assert figure.locator("img").is_visible() and figure.locator("img").get_attribute("alt")
    assert not figure.locator("canvas").is_visible() and not figure.locator(".controls").is_visible()
    assert figure.locator("noscript p").is_visible()


# ------------------------------------------------- the course in the browser


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with notebooks and their site; what a figure needs is trained for a step or two."""
    folder = tmp_path_factory.mktemp("notebooks")
    for path in notebooks.NOTEBOOKS.glob("*.ipynb"):
        source = path.read_text().replace("STEPS = 1.0", "STEPS = 0.004")
        drawn = source if ALL or path.name.startswith(WHOLE) else source.replace(" Controls: ", " It moves: ")
        if ALL or path.name.startswith(MADE):
            (folder / path.name).write_text(drawn)
    assert pages.main(folder, folder / "site") == 0
    return folder


TRIED = [pytest.param(name, marks=() if name.startswith(WHOLE) else thorough) for name in PAGES]


@pytest.fixture(scope="module", params=TRIED)
def page(built, browser, request) -> Iterator[Page]:
    """A page of the course, opened without network."""
    page = browser.new_page(offline=True)
    page.asked, page.said = [], []  # the addresses that it asked for, and what it said on the console
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.goto((built / "site" / request.param).as_uri())
    started(page).evaluate("for (const section of document.querySelectorAll('.section')) section.open = true")
    yield page
    page.close()


def move(control: Locator) -> None:
    """Give it another value with the keyboard: a slider goes on by a stop or, from the last, back to the first."""
    handle = control.locator("input:checked, input:not([type=radio])").first
    handle.focus()
    if control.locator("output").count():
        at_end = handle.evaluate("input => input.value === input.max")
        handle.press("Home" if at_end else "ArrowRight")
    else:
        handle.press("ArrowDown" if control.locator("legend").count() else "Space")
    assert control.evaluate("box => box.contains(document.activeElement)")


@in_browser
def test_a_page_needs_nothing_but_itself(page):
    assert [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.said == []
    assert not re.search(pages.ASKS, page.inner_text("main"))


@in_browser
@pytest.mark.parametrize("width", [360, 800, 1920])
def test_a_page_fits_its_window(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    beyond = "e => e.getBoundingClientRect().right > innerWidth && e.checkVisibility() && !e.closest('.picture, .wide')"
    wide = page.evaluate(f"[...document.body.querySelectorAll('*')].filter({beyond}).map(e => e.outerHTML)")
    assert [element[:100] for element in wide] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.evaluate(  # every token of a class has the same colours, so five of each are enough, of thousands
        """const count = {};
        for (const span of document.querySelectorAll('.highlight span[class]'))
            if ((count[span.className] = (count[span.className] ?? 0) + 1) > 5) span.replaceWith(span.textContent);
        """
    )
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found] == []


@in_browser
def test_figures_start_as_stored_and_move_as_drawn(page, built):
    path = built / f"{Path(page.url).stem}.ipynb"
    notebook = notebooks.read(path) if path.exists() else v4.new_notebook()
    plain = {}  # by their numbers, the figures on the page that measure nothing
    for number, cell in enumerate(notebook.cells):
        figure = page.locator(f'[id="cell-id={cell.id}"] .live')
        if not figure.count():
            continue
        needed = needed_cells(notebook.cells, [number])
        if not re.search(MEASURED, "\n".join(notebook.cells[n].source for n in needed)):
            plain[number] = figure
        stored, alt = next(pages.pictures([cell]))
        assert number not in plain or not differ(pixels(seen(figure)), pixels(stored)), cell.id
        assert figure.get_by_role("img").get_attribute("aria-label") == alt
        for control in figure.locator(".control").all():
            what = f"{cell.id}, {control.inner_text()}"
            before, at = seen(figure), stands(figure)
            for _ in range(4):  # one stop may leave the picture as it is
                move(control)
                if seen(figure) != before:
                    break
            else:
                pytest.fail(f"{what}: the picture stayed")
            assert stands(figure) != at, what
            assert said(figure), f"{what}: says nothing"
    for figure, (cell, live) in zip(plain.values(), pages.figures(notebook, plain)):
        data = json.loads(figure.locator("script").text_content())
        counts = [len(control["stops"]) for control in data["controls"]]
        stops = next(found for found in frames.stops(live, frames.STATES) if [*map(len, found.values())] == counts)
        live.set(**{name: stops[name][stop] for name, stop in zip(stops, stands(figure))})
        assert not differ(pixels(seen(figure)), pixels(live.png())), cell
        assert frames.says(live) in said(figure)


@in_browser
def test_no_link_is_dead(built):
    made = {path.name: path.read_text() for path in (built / "site").glob("*.html")}
    ids = {name: re.findall(r"""\bid=(?:"(.*?)"|'(.*?)')""", html) for name, html in made.items()}
    ids = {name: [unescape(double or single) for double, single in found] for name, found in ids.items()}
    assert not ALL or sorted(made) == sorted(PAGES)
    links = 0
    for name, html in made.items():
        assert len(ids[name]) == len(set(ids[name]))
        for link in re.findall('href="(.*?)"', html):
            to, _, anchor = unquote(unescape(link)).partition("#")
            if not to.startswith(("http", "data:")):
                links += 1
                assert (to or name) in PAGES, f"{name}: {link}"
                assert not anchor or anchor in ids.get(to or name, [anchor]), f"{name}: {link}"
    assert links > 100
