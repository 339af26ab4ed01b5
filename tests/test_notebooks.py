"""The structure of the stored notebooks. A rule is a function of a notebook and its path that returns its complaints."""

import ast
import base64
import builtins
import copy
import functools
import html
import inspect
import io
import json
import re
import statistics
from collections import Counter
from urllib.parse import unquote

import latex2mathml.converter
import nbformat
import pytest
from nbformat import v4
from PIL import Image
from tally import beyond, is_folded

from courseware import notebooks
from courseware.code import fingerprint, tree
from courseware.dependencies import _global_names, _parsed, defined, tags, used
from courseware.index import TAG as INDEX
from courseware.index import missing, stored, with_index
from courseware.notebooks import FOLDED, chapters
from courseware.solutions import HINTS, WORKED, source, with_solutions
from posenc.lesson.claims import bundle, make
from posenc.lesson.guesses import Guess, _Comparison

TAGS = {"exercise", "check", HINTS, WORKED, "parameters", "take-along", "laboratory", INDEX, "nbval-ignore-output"}

# Cells whose outputs nbval may not compare, since they print versions or measured times: chapter → how many.
NOT_COMPARED = {"07_what_it_costs": 2, "08_position_bugs": 1}  # in chapter 8, texts that models draw
STUB = 'raise NotImplementedError("your turn")'
SCREEN = 600  # pixels of a notebook that a screen of 1280 x 800 shows at once

# ------------------------------------------------------------------ helpers

read, tree, parsed = map(functools.cache, (notebooks.read, tree, _parsed))


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def prose(notebook):
    return "\n".join(texts(notebook))


def tagged(notebook, tag):
    return [cell for cell in notebook.cells if tag in tags(cell)]


def data(output, kind):
    return output.get("data", {}).get(kind, "")


def words(output):
    return output.get("text", "") + data(output, "text/plain")


def label(cell):
    return repr(cell.source.strip().split("\n")[0])


def nodes(cell, *kinds):
    return [node for node in ast.walk(tree(cell.source)) if isinstance(node, kinds)]


# -------------------------------------------------------------------- rules


def opening_cell(notebook, path):
    first = notebook.cells[0].source
    wanted = [f"# {path.name[:2]} · "]  # the number of the file
    wanted += [f"**{each}**" for each in ("You will be able to", "Needs", "Lesson", "Laboratory", "Runs")]
    complaints = [f"the opening cell lacks {each}" for each in wanted if each not in first]
    if not re.match(r"# .*\n+\*[^*\n]+\*\n", first):
        complaints.append("the opening cell has no subtitle in italics below its heading")
    return complaints


def in_bounds(notebook, path):
    """A lesson is no longer than what is read in an evening, and takes as long as its header says."""
    return beyond(notebook, path.name[:2])


def laboratory(notebook, path):
    """Behind the lesson sections that start folded. They need the lesson and no other section, the lesson needs none."""
    cells = [cell for cell in notebook.cells if not {HINTS, WORKED, INDEX} & {*tags(cell)}]  # those that are written
    ends = [number for number, cell in enumerate(cells) if "take-along" in tags(cell)]
    if len(ends) != 1:
        return []  # which closing_cell says
    lesson, behind = cells[: ends[0] + 1], cells[ends[0] + 1 :]
    if not behind or not behind[0].source.startswith("# Laboratory\n"):
        return ["below what to take along stands no cell '# Laboratory' with a sentence on what there is"]
    complaints, parts = [], [lesson]
    if "laboratory" not in tags(behind[0]) or behind[0].metadata.get(FOLDED):
        complaints.append("the cell '# Laboratory' is tagged laboratory, and it is not folded")
    for cell in behind[1:]:
        if cell.cell_type == "markdown" and re.match("##? ", cell.source):
            wanted = f"## Laboratory {chr(ord('A') + len(parts) - 1)} · "
            parts.append([])
            if not cell.source.startswith(wanted):
                complaints.append(f"{label(cell)} does not start with {wanted!r}")
            if not cell.metadata.get(FOLDED):
                complaints.append(f"{label(cell)} has no {FOLDED}: true in its metadata")
        if len(parts) == 1:
            return [*complaints, f"{label(cell)} stands above the first section of the laboratory"]
        parts[-1].append(cell)
    parts = [[cell for cell in part if cell.cell_type == "code"] for part in parts]
    gives = [given(part) for part in parts]
    for number, part in enumerate(parts):
        others = set().union(*gives[1:number]) | set().union(*gives[number + 1 :]) - gives[0]
        complaints += [
            f"{label(cell)} of the {'laboratory' if number else 'lesson'} needs {name} of a section of the laboratory"
            for cell in part
            for name in sorted({*_global_names(parsed(cell.source)[1])} & others - gives[number])
        ]
    return complaints


def given(cells):
    """The names that cells give a value; what changes inside does not count."""
    symbols = [symbol for cell in cells for symbol in parsed(cell.source)[1].get_symbols()]
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def closing_cell(notebook, path):
    """Five sentences to take along, and the way on."""
    closing = tagged(notebook, "take-along")
    if len(closing) != 1:
        return [f"{len(closing)} cells are tagged take-along, not one"]
    text, complaints = closing[0].source, []
    if not text.startswith("## What to take along\n"):
        complaints.append('the closing cell does not start with "## What to take along"')
    if (sentences := len(re.findall(r"^- ", text, re.MULTILINE))) != 5:
        complaints.append(f"{sentences} lines to take along, not five")
    everyone, here = chapters(folder=path.parent), chapters(folder=path.parent).index(path)
    neighbours = everyone[max(here - 1, 0) : here] + everyone[here + 1 : here + 2]
    return complaints + [
        f"no link to {neighbour.name}"
        for neighbour in neighbours
        if not re.search(rf"\]\({re.escape(neighbour.name)}[)#]", text)
    ]


def numbers_to_take_along(notebook, path):
    """A number in the closing cell stands in a stored claim of the chapter, though it may be rounded there."""
    claims = [one.claim for one in stored(notebook)]
    found = [number for cell in tagged(notebook, "take-along") for number in missing(cell.source, claims)]
    return [f"{number} stands in no claim of this chapter" for number in found]


def what_is_generated(notebook, path):
    made = with_index(with_solutions(copy.deepcopy(notebook)))
    same = notebooks.text(made) == notebooks.text(notebook)
    return [] if same else ["hints, solutions or the index of claims are others now: run  make notebooks"]


def sentences_of_claims(notebook, path):
    """Literals, each said once in the chapter; what a loop claims has a case. That they hold is seen when they run."""
    complaints, claimed = [], []
    for cell in (cell for cell in code(notebook) if "claim(" in cell.source):
        again = nodes(cell, ast.For, ast.While, ast.FunctionDef, ast.Lambda, ast.ListComp)
        again = {inner for outer in again for inner in ast.walk(outer)}
        for call in nodes(cell, ast.Call):
            if getattr(call.func, "id", "") != "claim":
                continue
            sentence = getattr(call.args[0], "value", None) if call.args else None
            if not isinstance(sentence, str):
                complaints.append(f"{label(cell)} claims a sentence that is no literal: {ast.unparse(call)}")
                continue
            claimed.append(sentence)
            if call in again and not any(keyword.arg == "case" for keyword in call.keywords):
                complaints.append(f"{sentence!r} is claimed in a loop or a function without case=")
    return complaints + [f"{sentence!r} is claimed twice" for sentence, count in Counter(claimed).items() if count > 1]


def no_test_in_the_lesson(notebook, path):
    """Artists are looked at in tests; a measurement is claimed, so that its number is seen."""
    complaints = [f"{label(cell)} has artists[" for cell in code(notebook) if "artists[" in cell.source]
    for cell in code(notebook):
        if {"exercise", "check"} & {*tags(cell)}:
            continue
        if re.search(r"\b(True|False)\b", "\n".join(map(words, cell.outputs))):
            complaints.append(f"{label(cell)} shows True or False: show what was measured")
        if "assert" in cell.source and nodes(cell, ast.Assert) and tagged(notebook, "parameters"):
            complaints.append(f"{label(cell)} asserts where the reader may change parameters: claim it")
    return complaints


def parameters(notebook, path):
    """A chapter that trains has one cell of parameters, at their defaults."""
    wanted = {"SEED": 0, "PACE": 1.0, "STEPS": 1.0}
    cells = tagged(notebook, "parameters")
    found = {node.targets[0].id: ast.literal_eval(node.value) for cell in cells for node in nodes(cell, ast.Assign)}
    if cells and (len(cells) > 1 or found != wanted):
        return [f"the cell of parameters sets {found}; it is one cell that sets {wanted}"]
    return []


def guesses(notebook, path):
    """Each question has a name of its own and is answered, further below than one screen, with reasons."""
    complaints, taken = [], []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or not re.search(r"\bpredict\(", cell.source):
            continue
        names = re.findall(r"^(\w+) = predict\(", cell.source, re.MULTILINE)
        if len(names) != 1:
            complaints.append(f"{label(cell)}: one question a cell, as a name = predict(…)")
            continue
        if names[0] in taken:
            complaints.append(f"{label(cell)}: a question above is {names[0]} too, and could not be run again")
        taken += names
        below = notebook.cells[number + 1 :]
        answers = [place for place, other in enumerate(below) if re.search(rf"\b{names[0]}\.compare\(", other.source)]
        if not answers:
            complaints.append(f"{label(cell)}: no cell below compares the answer")
            continue
        if (room := room_above(below[: answers[0] + 1])) < SCREEN:
            complaints.append(f"{label(cell)}: question and answer are {room} pixels apart; {SCREEN} at least")
        complaints += unexplained(cell, below[answers[0]])
    return complaints


def unexplained(question, answer):
    """The wrong options without a reason, as far as question and answer are stored."""
    asked = "".join(words(output) for output in question.outputs)
    shown = re.search(
        'data-since="(.*?)".*Measured: <strong>(.*?)</strong>',
        "".join(data(output, "text/html") for output in answer.outputs),
    )
    options = re.findall(r"^  [○☐] (.*)$", asked, re.MULTILINE) if shown else []
    comma = "; " if any("," in option for option in options) else ", "
    right = html.unescape(shown[2]).split(comma) if shown else []
    reasons = json.loads(html.unescape(shown[1])) if shown else {}
    wrong = [option for option in options if option.rstrip(".") not in right]
    return [f"{label(question)}: no reason why {option!r} is wrong" for option in wrong if option not in reasons]


def room_above(cells):
    """About how many pixels lie between a question and the answer to it, in the last of the cells below it."""
    *between, last = cells
    shown = ["Measured: " in words(output) for output in last.outputs]
    last = nbformat.from_dict(last | {"outputs": last.outputs[: (shown + [True]).index(True)]})
    return sum(map(height, [*between, last])) + 10 * len(between) + 30


def height(cell):
    if cell.cell_type == "markdown":
        shown = re.sub(r"<details>.*?</details>", "folded", cell.source, flags=re.DOTALL)
        return sum(14 + 21 * (1 + len(line) // 130) for line in shown.split("\n") if line.strip())
    total = 20 if is_folded(cell) else 20 + 16 * (cell.source.count("\n") + 1)
    for output in cell.outputs:
        if data(output, "image/png"):
            picture = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"])))
            width = output.metadata.get("image/png", {}).get("width", picture.width)
            controls = words(output).partition(" Controls: ")[2]
            total += round(picture.height * width / picture.width) + 32 * len(controls.split("; "))
        else:
            total += 18 if "<details>" in data(output, "text/html") else 18 * (words(output).count("\n") + 1)
    return total


def links_resolve(notebook, path):
    complaints = []
    links = r"\]\(([^)\s]+)[^)]*\)|<(?:img|a)[^>]*(?:src|href)=\"([^\"]+)\""
    without_code = "\n".join(re.sub(r"`[^`]*`", "", text) for text in texts(notebook))
    for target in map("".join, re.findall(links, without_code)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = unquote(target).partition("#")
        other = path.parent / file if file else path
        if not other.exists():
            complaints.append(f"{target}: there is no such file")
        elif anchor and other.suffix == ".ipynb":
            there = read(other) if file else notebook
            # as JupyterLab makes them: the words of a heading as shown, with hyphens between them
            titles = re.findall(r"^#+ (.*)$", prose(there), re.MULTILINE)
            anchors = {re.sub(r"[`*]", "", title.strip()).replace(" ", "-") for title in titles}
            if anchor not in anchors | {f"cell-id={cell.id}" for cell in there.cells}:
                complaints.append(f"{target}: there is no such heading or cell")
    return complaints


def names_in_formulas(notebook, path):
    """A name in a formula is explained: in a table of symbols, of this chapter or one before, or in the prose."""
    before = [text for other in chapters(folder=path.parent) if other.name < path.name for text in texts(read(other))]
    tables = [text for text in before if "| symbol |" in text]
    explained = re.sub(r"\$\$.*?\$\$", " ", "\n".join([*tables, prose(notebook)]), flags=re.DOTALL)
    formulas = re.findall(r"\$\$(.*?)\$\$", prose(notebook), re.DOTALL)
    found = re.findall("<mi>(.*?)</mi>", html.unescape("".join(map(latex2mathml.converter.convert, formulas))))
    return [
        f"{name} stands in a formula and is explained nowhere"
        for name in sorted({*found} - {"sin", "cos"})
        if not re.search(rf"(?<![^\W\d_]){name}(?![^\W\d_])", explained)
    ]


def cell_length(notebook, path):
    shown = [cell for cell in code(notebook) if not is_folded(cell)]
    lengths = [sum(map(bool, map(str.strip, cell.source.split("\n")))) for cell in shown]
    median = statistics.median(lengths)
    complaints = [
        f"{label(cell)} has {length} lines; 25 is the most" for cell, length in zip(shown, lengths) if length > 25
    ]
    return complaints + [f"the median cell has {median} lines; 8 is the most"] * (median > 8)


def one_cell_of_imports(notebook, path):
    """Stubs and solutions too use what that cell imported."""
    importing = [label(cell) for cell in code(notebook) if nodes(cell, ast.Import, ast.ImportFrom)]
    return [f"{cell} imports too" for cell in importing[1:]]


def known_tags(notebook, path):
    return [f"{label(cell)} has the tag {tag}" for cell in notebook.cells for tag in sorted({*tags(cell)} - TAGS)]


def few_cells_not_compared(notebook, path):
    """nbval knows tags and comments that exempt a cell; the comments are not used here."""
    complaints = [f"{label(cell)} has a comment for nbval" for cell in code(notebook) if "NBVAL_" in cell.source]
    found, allowed = len(tagged(notebook, "nbval-ignore-output")), NOT_COMPARED.get(path.stem, 0)
    if found != allowed:
        complaints.append(f"{found} cells are not compared; the list in this test allows {allowed}")
    return complaints


def no_magics(notebook, path):
    """None but %matplotlib inline, and nothing that reaches for pip or the network."""
    complaints = []
    network = r"\bpip\b|https?://|\b(urllib|requests|httpx|socket|subprocess)\b|torch\.hub|os\.system"
    for line in (line.strip() for cell in code(notebook) for line in cell.source.split("\n")):
        if line.startswith(("%", "!", "?")) and line != "%matplotlib inline":
            complaints.append(f"magic: {line}")
        if re.search(network, line):
            complaints.append(f"pip or network: {line}")
    return complaints


def exercises(notebook, path):
    """Two cells each, in order: the stub, and its check, after which the chapter goes on with what works. A heading
    with its difficulty and time, so that the table of contents lists it."""
    complaints = []
    cells = [cell for cell in notebook.cells if {"exercise", "check"} & {*tags(cell)}]
    roles = [{"exercise", "check"} & {*tags(cell)} for cell in cells]
    if roles != [{"exercise"}, {"check"}] * (len(roles) // 2):
        return [f"exercise and check do not follow each other: {', '.join(map(label, cells))}"]
    stubs, checks = cells[::2], cells[1::2]
    titles = re.findall(r"^### Exercise \d+\.\d+ · [A-Z][^·]+ · [●○]{5} · \d+ min$", prose(notebook), re.MULTILINE)
    if len(titles) != len(stubs):
        wanted = "### Exercise n.n · Title · ●●○○○ · n min"
        complaints.append(f"{len(titles)} headings '{wanted}' for {len(stubs)} exercises")
    names = [str(stub.metadata.get("ex", {}).get("id")) for stub in stubs]
    complaints += [f"two exercises are called {name}" for name in sorted({*names}) if names.count(name) > 1]
    for name, stub, check in zip(names, stubs, checks, strict=True):
        if not re.fullmatch(r"[a-z]\w*", name):
            complaints.append(f"{label(stub)} has no ex.id that is a name")
            continue
        points = stub.metadata.ex.get("points")
        if not isinstance(points, int) or points < 1:
            complaints.append(f"{name} has no points")
        functions = {node.name for node in tree(stub.source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        if name not in functions or stub.source.count(STUB) != 1:
            complaints.append(f"{name}: the stub is a function {name} with one {STUB}")
        if check.source != f'check("{name}", {name})\n{name} = use("{name}", {name})':
            complaints.append(f"{name}: the check cell is not a line of check() and a line of use()")
    return complaints


def worked_functions(notebook, path):
    """A worked solution has its stub's arguments, and uses what the notebook has above."""
    complaints, above = [], {*dir(builtins)}
    for cell in code(notebook):
        if "exercise" in tags(cell):
            name = cell.metadata.ex.id
            (function,), (stub,) = tree(source(notebook, name)).body, tree(cell.source).body
            if [one.arg for one in function.args.args] != [one.arg for one in stub.args.args]:
                complaints.append(f"{name}: the worked solution has other arguments than the stub")
            own = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            complaints += [
                f"{name}: the worked solution uses {other}, which does not stand above"
                for other in sorted(used(ast.unparse(function)) - own - above)
            ]
        above |= defined(cell.source)
    return complaints


def executed_in_order(notebook, path):
    counts = [cell.execution_count for cell in code(notebook)]
    return [] if counts == [*range(1, len(counts) + 1)] else [f"the cells were executed as {counts}"]


def pictures_have_words(notebook, path):
    drawn = [(cell, each) for cell in code(notebook) for each in cell.outputs if data(each, "image/png")]
    said = [(cell, words(each), each.metadata.get("image/png", {}).get("alt")) for cell, each in drawn]
    return [
        f"{label(cell)} draws without words: {text}" for cell, text, alt in said if "Figure: " not in text or not alt
    ]


def quiet_outputs(notebook, path):
    """No warning and no error."""
    loud = [
        (cell, output.get("ename", output.get("text")))
        for cell in code(notebook)
        for output in cell.outputs
        if output.output_type == "error" or output.get("name") == "stderr"
    ]
    return [f"{label(cell)} raised or warned: {text}" for cell, text in loud]


def nothing_of_this_machine(notebook, path):
    """No absolute path and no memory address, neither in a source nor in an output."""
    complaints = []
    for cell in notebook.cells:
        shown = [cell.source]
        for output in cell.get("outputs", ()):
            shown += [output.get("text", "")]
            shown += [str(value) for kind, value in output.get("data", {}).items() if kind != "image/png"]
        found = re.findall(r"0x[0-9a-fA-F]{6,}|(?<![\w.:/<)])/\w[\w.-]*/[\w.-]+|\b[A-Z]:\\\w+", "\n".join(shown))
        complaints += [f"{each} in {label(cell)} or what it shows" for each in found]
    return complaints


def normal_form(notebook, path):
    if notebooks.text(notebooks.normalise(notebook)) == path.read_text(encoding="utf-8"):
        return []
    return ["the file is not in normal form: run  make notebooks"]


def small_file(notebook, path):
    return [f"{path.stat().st_size // 1000} kB; 500 is too much"] * (path.stat().st_size >= 500_000)


RULES = [
    rule
    for rule in [*vars().values()]
    if inspect.isfunction(rule) and [*inspect.signature(rule).parameters] == ["notebook", "path"]
]


def complaints_of(rules, notebook, path):
    return "\n".join(f"{rule.__name__}: {complaint}" for rule in rules for complaint in rule(notebook, path))


# -------------------------------------------------------- the stored chapters


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_chapter_keeps_to_the_rules(path):
    assert complaints_of(RULES, read(path), path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_no_stored_chapter_is_stale(path):
    again = f"its code is not the one that its outputs were stored with: make notebooks CHAPTER={path.name[:2]}"
    assert read(path).metadata.posenc.code == fingerprint(read(path)), again


def test_chapters_are_numbered_from_01_and_none_is_missing():
    named = [re.sub(r"_[a-z0-9_]+\.ipynb$", "", path.name) for path in chapters()]
    assert named and named == [f"{number:02}" for number, _ in enumerate(named, 1)]


# --------------------------------------------- a violation of each, and its rule

OPENING = """# 02 · A chapter
*Order, and other words that people search for*

**You will be able to** test.
**Needs** [01](01_before.ipynb) · **Lesson** 6 min of reading, 3 of exercises · **Laboratory** 3 min more · **Runs** in 1 s
See [below](#A-closing-word)."""
CLOSING = """## What to take along
- One is 1. (section 3)
- Each is 1.00, in 2 of 2.
- Three.
- Four.
- Five.

[Before](01_before.ipynb) · [After](03_after.ipynb#A-heading)"""
CLAIMING = """claim("one is one", 1, below=2)
for name in "a":
    claim("each is", [1, 1], below=2, case=name)"""
IMPORTS = "%matplotlib inline\nimport math\nfrom posenc.chapters.permutation_invariance import exercises"
BELOW = "## A closing *word*\n### A `heading`\nSee [it](https://example.org/a/b) and `[this](no_link)`."
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC"
PRINTED = v4.new_output("stream", name="stdout", text="1/2, and/or/not, 0xff\n")


def cell(text, *outputs, **metadata):
    return v4.new_code_cell(text, outputs=list(outputs), metadata=metadata)


def exercise(number, name, arguments, points):
    """The three cells that `make notebooks` makes five of: a heading, the stub and its check."""
    return [
        v4.new_markdown_cell(f"### Exercise 2.{number} · Back · ●○○○○ · 1 min"),
        cell(f"def {name}({arguments}):\n    {STUB}", tags=["exercise"], ex={"id": name, "points": points}),
        cell(f'check("{name}", {name})\n{name} = use("{name}", {name})', PRINTED, tags=["check"]),
    ]


@functools.cache
def model():
    """The text of a chapter in which no rule finds anything.

    In it 2 is a figure, 3 claims, 4 to 7 are an exercise, 9 has the parameters, 10 asks and 12 answers, 21 is to be
    taken along, 22 opens the laboratory, 23 to 25 and 26 to 28 are its sections, and 29 to 32 the worked solutions.
    """
    alt = {"image/png": {"alt": "a dot", "width": 800}}
    picture = {"image/png": DOT, "text/plain": "Figure: a dot. Controls: x."}
    figure = v4.new_output("display_data", data=picture, metadata=alt)
    guess = Guess("Which?", ["a", "b"], several=False)
    claims, asked, answered = (
        v4.new_output("display_data", data=data)
        for data in (
            bundle([make("one is one", 1, below=2), make("each is", [1, 1], below=2, case="a")]),
            guess._repr_mimebundle_(),
            _Comparison(guess, ["a"], {"b": "so"})._repr_mimebundle_(),
        )
    )
    cells = [
        v4.new_markdown_cell(OPENING),
        cell(IMPORTS, jupyter={"source_hidden": True}),
        cell("show()", figure),
        cell(CLAIMING, PRINTED, claims),
        *exercise(1, "unpermute", "layer, x, p", 2),
        v4.new_markdown_cell(BELOW),
        cell("SEED = 0\nPACE = 1.0\nSTEPS = 1.0", tags=["parameters"]),
        cell('guess = predict("Which?", ["a", "b"])', asked),
        cell("show()", figure),
        cell('guess.compare("a")', answered),
        *exercise(2, "failing_twin", "tokens", 1),
        *exercise(3, "position_from_share", "share", 1),
        v4.new_markdown_cell(CLOSING, metadata={"tags": ["take-along"]}),
        v4.new_markdown_cell("# Laboratory\nMore, in any order.", metadata={"tags": ["laboratory"]}),
        v4.new_markdown_cell("## Laboratory A · Dots", metadata={FOLDED: True}),
        cell("dots = 3"),
        cell("show(dots)", figure),
        v4.new_markdown_cell("## Laboratory B · Others", metadata={FOLDED: True}),
        cell("others = 3"),
        cell("show(others)", figure),
    ]
    made = v4.new_notebook(cells=cells)
    for number, each in enumerate(code(made), start=1):
        each.execution_count = number
    return notebooks.text(with_index(notebooks.normalise(with_solutions(made))))


@pytest.fixture
def path(tmp_path):
    """Of the model, between two other chapters."""
    for name in ("01_before", "02_chapter", "03_after"):
        (tmp_path / f"{name}.ipynb").write_text(model(), encoding="utf-8")
    return tmp_path / "02_chapter.ipynb"


def test_the_model_chapter_passes(path):
    assert complaints_of(RULES, notebooks.read(path), path) == ""


def change(index, old, new):
    def plant(notebook):
        assert old in notebook.cells[index].source
        notebook.cells[index].source = notebook.cells[index].source.replace(old, new)

    return plant


def meta(index, **changes):
    return lambda notebook: notebook.cells[index].metadata.update(changes)


def without(index):
    return lambda notebook: notebook.cells.pop(index)


def shown(index, kind, value, place=0):
    """Another text in an output, or another entry of its data; None takes it away."""

    def plant(notebook):
        output = notebook.cells[index].outputs[place]
        output.update({kind: value}) if kind == "text" else output.data.update({kind: value})

    return plant


def twice(index):
    """A copy of a cell, as the fourth."""
    return lambda notebook: notebook.cells.insert(3, copy.deepcopy(notebook.cells[index]))


def output(**made):
    return lambda notebook: notebook.cells[2].outputs.append(v4.new_output(**made))


VIOLATIONS = [
    (opening_cell, change(0, "# 02 ·", "# 03 ·"), "lacks # 02 · "),
    (opening_cell, change(0, "**Laboratory**", "Laboratory"), "lacks **Laboratory**"),
    (opening_cell, change(0, "*Order, and", "Order, and"), "no subtitle in italics"),
    (in_bounds, change(0, "6 min of reading", "8 min of reading"), "reading: the header says 8 min, and 6 are"),
    (laboratory, without(22), "no cell '# Laboratory'"),
    (laboratory, meta(22, tags=[]), "is tagged laboratory"),
    (laboratory, meta(22, **{FOLDED: True}), "it is not folded"),
    (laboratory, change(26, "Laboratory B", "Laboratory C"), "does not start with '## Laboratory B · '"),
    (laboratory, meta(26, **{FOLDED: False}), f"has no {FOLDED}: true"),
    (laboratory, without(23), "stands above the first section"),
    (laboratory, change(28, "others", "dots"), "of the laboratory needs dots of a section"),
    (laboratory, change(3, "claim(", "lambda: dots\nclaim("), "of the lesson needs dots of a section"),
    (closing_cell, without(21), "0 cells are tagged"),
    (closing_cell, twice(21), "2 cells are tagged"),
    (closing_cell, change(21, "## What", "Well.\n## What"), "does not start"),
    (closing_cell, change(21, "- Five.", ""), "4 lines to take along"),
    (closing_cell, change(21, "(01_before.ipynb)", "(.)"), "no link to 01_before.ipynb"),
    (closing_cell, change(21, "(03_after.ipynb", "(3.ipynb"), "no link to 03_after.ipynb"),
    (numbers_to_take_along, change(21, "1.00", "1.01"), "1.01 stands in no claim"),
    (what_is_generated, without(-1), "make notebooks"),
    (what_is_generated, change(7, "Hint 1", "A hint"), "make notebooks"),
    (what_is_generated, change(30, "[p.argsort()]", "[p]"), "make notebooks"),
    (
        sentences_of_claims,
        change(3, '"one is one"', 'f"one is {1}"'),
        "is no literal: claim(f'one is {1}', 1, below=2)",
    ),
    (sentences_of_claims, change(3, '"each is"', '"one is one"'), "'one is one' is claimed twice"),
    (sentences_of_claims, change(3, ", case=name", ""), "'each is' is claimed in a loop or a function"),
    (no_test_in_the_lesson, change(2, "show()", "figure.artists['dot']"), "artists["),
    (no_test_in_the_lesson, shown(3, "text", "it moves: True\n"), "shows True or False"),
    (no_test_in_the_lesson, shown(2, "text/plain", "(False, 1)"), "shows True or False"),
    (no_test_in_the_lesson, change(2, "show()", "assert show()"), "asserts where the reader"),
    (parameters, change(9, "SEED = 0", "SEED = 1"), "the cell of parameters sets {'SEED': 1,"),
    (parameters, meta(2, tags=["parameters"]), "it is one cell"),
    (guesses, change(12, "guess.compare", "other.compare"), "no cell below compares"),
    (guesses, without(11), "pixels apart"),
    (guesses, change(10, "guess = predict", "predict"), "one question a cell"),
    (guesses, change(2, "show()", 'guess = predict("What?", ["a"])'), "a question above is guess too"),
    (guesses, shown(12, "text/html", '<p data-since="{}">Measured: <strong>a</strong>'), "no reason why 'b' is"),
    (links_resolve, change(7, "#cell-id=unpermute-worked", "#cell-id=worked"), "no such heading or cell"),
    (links_resolve, change(0, "01_before", "01_begin"), "01_begin.ipynb: there is no such file"),
    (links_resolve, change(0, "#A-closing", "#a-closing"), "no such heading"),
    (links_resolve, change(21, "#A-heading", "#Another"), "03_after.ipynb#Another: there is no such heading or cell"),
    (links_resolve, change(21, "[Before]", '<img src="a.png"> [Before]'), "a.png: there is no such file"),
    (names_in_formulas, change(8, "See", "$$\\phi_i$$ See"), "ϕ stands in a formula"),
    (cell_length, change(2, "show()", "\n\n".join(["show()"] * 26)), "has 26 lines"),
    (cell_length, lambda n: [each.update(source="pass\n" * 9) for each in code(n)], "median"),
    (one_cell_of_imports, change(5, "    raise", "    import math\n    raise"), "imports too"),
    (known_tags, meta(2, tags=["raises-exception"]), "raises-exception"),
    (few_cells_not_compared, meta(2, tags=["nbval-ignore-output"]), "allows 0"),
    (few_cells_not_compared, change(2, "show()", "# NBVAL_SKIP\nshow()"), "comment for nbval"),
    (no_magics, change(2, "show()", "%timeit show()"), "magic: %timeit"),
    (no_magics, change(2, "show()", "!ls"), "magic: !ls"),
    (no_magics, change(2, "show()", "get('https://example.org')"), "pip or network"),
    (exercises, without(5), "do not follow"),
    (exercises, without(6), "do not follow"),
    (exercises, change(4, " · ●○○○○", ""), "2 headings"),
    (exercises, meta(5, ex={"points": 2}), "no ex.id"),
    (exercises, meta(5, ex={"id": "unpermute", "points": 0}), "no points"),
    (exercises, change(5, "raise NotImplementedError", "raise ValueError"), "the stub is a function"),
    (exercises, change(5, "def unpermute", "def back"), "the stub is a function"),
    (exercises, change(6, 'check("unpermute"', 'check("back"'), "is not a line of check()"),
    (exercises, meta(14, ex={"id": "unpermute", "points": 1}), "two exercises are called unpermute"),
    (worked_functions, change(5, "(layer, x, p)", "(layer, p, x)"), "has other arguments than the stub"),
    (worked_functions, meta(5, ex={"id": "next_row", "points": 2}), "next_row: the worked solution uses torch"),
    (executed_in_order, lambda n: n.cells[2].update(execution_count=7), "executed as"),
    (pictures_have_words, shown(2, "text/plain", "<Figure size 640x480>"), "draws without words: <Figure size"),
    (pictures_have_words, lambda n: n.cells[2].outputs[0].update(metadata={}), "draws without words: Figure: a dot"),
    (quiet_outputs, output(output_type="stream", name="stderr", text="UserWarning: deprecated\n"), "UserWarning"),
    (quiet_outputs, output(output_type="error", ename="ValueError", evalue="", traceback=[]), "ValueError"),
    (nothing_of_this_machine, shown(2, "text/plain", "<f at 0x7f3a2b10>"), "0x7f3a2b10"),
    (nothing_of_this_machine, shown(3, "text", "saved to /home/me/x.png\n"), "/home/me"),
    (nothing_of_this_machine, change(0, "test.", r"test C:\Users."), r"C:\Users"),
    (normal_form, lambda n: n.metadata.language_info.update(version="3.11"), "make notebooks"),
    (normal_form, lambda n: n.cells[1].update(id=n.cells[2].id), "make notebooks"),
    (normal_form, shown(2, notebooks.WIDGET_VIEW, {"model_id": "1"}), "make notebooks"),
    (small_file, change(0, "test.", "test." * 100_000), "kB; 500 is too much"),
]


@pytest.mark.parametrize("rule, plant, complaint", VIOLATIONS)
def test_a_planted_violation_is_caught(rule, plant, complaint, path):
    notebook = notebooks.read(path)
    plant(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")  # nbformat would mend some of it
    assert complaint in complaints_of([rule], notebook, path)


def test_every_rule_has_a_violation():
    assert {rule for rule, _, _ in VIOLATIONS} == set(RULES)
