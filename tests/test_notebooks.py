"""The structure of the stored notebooks. Each rule is a function that returns its complaints."""

import ast
import base64
import builtins
import copy
import functools
import html
import io
import json
import re
import statistics
from pathlib import Path
from urllib.parse import unquote

import latex2mathml.converter
import nbformat
import pytest
from nbformat import v4
from PIL import Image
from tally import beyond

from courseware import dependencies, notebooks
from courseware.code import fingerprint
from courseware.dependencies import defined, used
from courseware.index import TAG as INDEX
from courseware.index import missing, stored, with_index
from courseware.notebooks import FOLDED
from courseware.solutions import HINTS, WORKED, source, with_solutions
from posenc.lesson.claims import bundle, make
from posenc.lesson.guesses import Guess, _Comparison

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
TAGS = {"exercise", "check", "hints", "worked", "parameters", "take-along", "laboratory", "claims-index"}
TAGS |= {"nbval-ignore-output"}

# Cells whose outputs nbval may not compare, since they print versions or measured times: chapter → how many.
NOT_COMPARED = {"07_what_it_costs": 2, "08_position_bugs": 1}  # in chapter 8, texts that models draw

# ------------------------------------------------------------------ helpers


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def markdown(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def tags(cell):
    return cell.metadata.get("tags", [])


def outputs(notebook):
    return [output for cell in code(notebook) for output in cell.outputs]


def data(output, kind):
    return output.get("data", {}).get(kind, "")


def tree(cell):
    """The cell's syntax tree, without magics."""
    return ast.parse(re.sub(r"^\s*[%!].*$", "", cell.source, flags=re.MULTILINE))


def count(cell, *kinds):
    return sum(isinstance(node, kinds) for node in ast.walk(tree(cell)))


def label(cell):
    return repr(cell.source.strip().split("\n")[0])


def calls(cell, function):
    """The calls of a function of this name, in their order, each with whether it stands in a loop or a function."""
    found = []

    def visit(node, again):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            found.append((node, again))
        again = again or isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.Lambda | ast.ListComp)
        for inner in ast.iter_child_nodes(node):
            visit(inner, again)

    visit(tree(cell), False)
    return found


def lesson(notebook):
    """The code cells that are no part of an exercise."""
    return [cell for cell in code(notebook) if not {"exercise", "check"} & {*tags(cell)}]


def written(notebook):
    """The cells that are not made by `make notebooks`."""
    return [cell for cell in notebook.cells if not {HINTS, WORKED, INDEX} & {*tags(cell)}]


def tagged(notebook, tag):
    return [cell for cell in notebook.cells if tag in tags(cell)]


def headings(notebook):
    """The anchors that JupyterLab makes: the words of a heading as shown, with hyphens between them."""
    source = "\n".join(cell.source for cell in markdown(notebook))
    return {
        re.sub(r"[`*]", "", title.strip()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", source, re.MULTILINE)
    }


def links(notebook):
    """The targets of links and images, code left out."""
    source = "\n".join(re.sub(r"`[^`]*`", "", cell.source) for cell in markdown(notebook))
    return re.findall(r"\]\(([^)\s]+)[^)]*\)|<(?:img|a)[^>]*(?:src|href)=\"([^\"]+)\"", source)


# -------------------------------------------------------------------- rules


def opening_cell(notebook, path):
    first = notebook.cells[0].source
    wanted = {f"# {path.name[:2]} · ": "a heading with the number of the file"}
    times = ("Lesson", "Laboratory", "Runs")
    wanted |= {f"**{words}**": f"**{words}**" for words in ("You will be able to", "Needs", *times)}
    complaints = [f"the opening cell lacks {what}" for text, what in wanted.items() if text not in first]
    if not re.match(r"# .*\n+\*[^*\n]+\*\n", first):
        complaints.append("the opening cell has no subtitle in italics below its heading")
    return complaints


def in_bounds(notebook, path):
    """A lesson is no longer than what is read in an evening, and takes as long as its header says."""
    return beyond(notebook, path.name[:2])


def laboratory(notebook, path):
    """Behind the lesson sections that start folded. They need the lesson and no other section, the lesson needs none."""
    cells = written(notebook)
    ends = [number for number, cell in enumerate(cells) if "take-along" in tags(cell)]
    if len(ends) != 1:
        return []  # which closing_cell says
    first, complaints = ends[0] + 1, []
    if first == len(cells) or not cells[first].source.startswith("# Laboratory\n"):
        return ["below what to take along stands no cell '# Laboratory' with a sentence on what there is"]
    if "laboratory" not in tags(cells[first]) or cells[first].metadata.get(FOLDED):
        complaints.append("the cell '# Laboratory' is tagged laboratory, and it is not folded")
    sections: list[list[int]] = []  # the numbers of their cells
    for number in range(first + 1, len(cells)):
        if cells[number].cell_type == "markdown" and re.match("##? ", cells[number].source):
            sections.append([])
            wanted = f"## Laboratory {chr(ord('A') + len(sections) - 1)} · "
            if not cells[number].source.startswith(wanted):
                complaints.append(f"{label(cells[number])} does not start with {wanted!r}")
            if not cells[number].metadata.get(FOLDED):
                complaints.append(f"{label(cells[number])} has no {FOLDED}: true in its metadata")
        if not sections:
            return [*complaints, f"{label(cells[number])} stands above the first section of the laboratory"]
        sections[-1].append(number)
    parts = [[cells[number] for number in part] for part in (range(first), *sections)]
    parts = [[cell for cell in part if cell.cell_type == "code"] for part in parts]
    given = [given_and_taken(part)[0] for part in parts]
    for number, part in enumerate(parts):
        others = set().union(*given[1:number]) | set().union(*given[number + 1 :]) - given[0]
        others -= given[number]
        for cell in part:
            where = f"{label(cell)} of the {'laboratory' if number else 'lesson'}"
            names = sorted(given_and_taken([cell])[1] & others)
            complaints += [f"{where} needs {name} of a section of the laboratory" for name in names]
    return complaints


def given_and_taken(cells):
    """The names that cells give a value, and those that they or their functions read. What changes inside counts for neither."""
    given, taken = set(), set()
    for cell in cells:
        _, table = dependencies._parsed(cell.source)
        given |= {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
        taken |= {*dependencies._global_names(table)}
    return given, taken


def closing_cell(notebook, path):
    """Five sentences to take along, and the way on."""
    closing = tagged(notebook, "take-along")
    if len(closing) != 1:
        return [f"{len(closing)} cells are tagged take-along, not one"]
    source, complaints = closing[0].source, []
    if not source.startswith("## What to take along\n"):
        complaints.append('the closing cell does not start with "## What to take along"')
    sentences = len(re.findall(r"^- ", source, re.MULTILINE))
    if sentences != 5:
        complaints.append(f"{sentences} lines to take along, not five")
    return complaints + way_on(source, path)


def way_on(source, path):
    chapters = sorted(path.parent.glob("[0-9]*.ipynb"))
    here = chapters.index(path)
    return [
        f"no link to {neighbour.name}"
        for neighbour in chapters[max(here - 1, 0) : here] + chapters[here + 1 : here + 2]
        if not re.search(rf"\]\({re.escape(neighbour.name)}[)#]", source)
    ]


def numbers_to_take_along(notebook, path):
    """A number in the closing cell stands in a stored claim of the chapter, though it may be rounded there."""
    claims = [one.claim for one in stored(notebook)]
    return [
        f"{number} stands in no claim of this chapter"
        for cell in tagged(notebook, "take-along")
        for number in missing(cell.source, claims)
    ]


def index_of_claims(notebook, path):
    if notebooks.text(with_index(copy.deepcopy(notebook))) == notebooks.text(notebook):
        return []
    return ["the index is not that of the claims: run  make notebooks"]


def hints_and_solutions(notebook, path):
    if notebooks.text(with_solutions(copy.deepcopy(notebook))) == notebooks.text(notebook):
        return []
    return ["hints and solutions are not those of the chapter's modules: run  make notebooks"]


def sentences_of_claims(notebook, path):
    """Literals, each said once in the chapter; what a loop claims has a case. The question of a guess is a literal."""
    complaints, said = [], []
    for cell in code(notebook):
        for call, again in calls(cell, "claim"):
            sentence = call.args[0] if call.args else None
            if not isinstance(getattr(sentence, "value", None), str):
                complaints.append(f"{label(cell)} claims a sentence that is no literal: {ast.unparse(call)}")
                continue
            said.append(sentence.value)
            if again and not any(keyword.arg == "case" for keyword in call.keywords):
                complaints.append(f"{sentence.value!r} is claimed in a loop or a function without case=")
    complaints += [f"{sentence!r} is claimed twice" for sentence in sorted({*said}) if said.count(sentence) > 1]
    shown = {one.claim.sentence for one in stored(notebook)}
    complaints += [f"{sentence!r} is claimed, and no output shows it" for sentence in said if sentence not in shown]
    return complaints + [f"an output shows {sentence!r}, and no cell claims it" for sentence in shown.difference(said)]


def claims_hold(notebook, path):
    return [f"stored as not holding: {one.claim}" for one in stored(notebook) if not one.claim.held]


def no_test_in_the_lesson(notebook, path):
    """Sliders are swept and artists looked at in tests; a measurement is claimed, so that its number is seen."""
    complaints = []
    for cell in code(notebook):
        for scaffold in re.findall(r"\.sweep\(|\bartists\[", cell.source):
            complaints.append(f"{label(cell)} has {scaffold}")
    for cell in lesson(notebook):
        shown = [output.get("text", "") + data(output, "text/plain") for output in cell.outputs]
        if re.search(r"\b(True|False)\b", "\n".join(shown)):
            complaints.append(f"{label(cell)} shows True or False: show what was measured")
        if count(cell, ast.Assert) and tagged(notebook, "parameters"):
            complaints.append(f"{label(cell)} asserts where the reader may change parameters: claim it")
    return complaints


def parameters(notebook, path):
    """A chapter that trains has one cell of parameters, at their defaults."""
    wanted = {"SEED": 0, "PACE": 1.0, "STEPS": 1.0}
    cells = tagged(notebook, "parameters")
    set_there = {
        node.targets[0].id: ast.literal_eval(node.value)
        for cell in cells
        for node in tree(cell).body
        if isinstance(node, ast.Assign)
    }
    if cells and (len(cells) > 1 or set_there != wanted):
        return [f"the cell of parameters sets {set_there}; it is one cell that sets {wanted}"]
    return []


def guesses(notebook, path):
    """Each question has a name of its own and is answered, further below than one screen."""
    complaints, taken = [], set()
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or not calls(cell, "predict"):
            continue
        names = re.findall(r"^(\w+) = predict\(", cell.source, re.MULTILINE)
        if len(names) != 1:
            complaints.append(f"{label(cell)}: one question a cell, as a name = predict(…)")
            continue
        if names[0] in taken:
            complaints.append(f"{label(cell)}: a question above is {names[0]} too, and could not be run again")
        taken.add(names[0])
        answers = [
            below
            for below, other in enumerate(notebook.cells)
            if below > number and re.search(rf"\b{names[0]}\.compare\(", other.get("source", ""))
        ]
        if not answers:
            complaints.append(f"{label(cell)}: no cell below compares the answer")
        elif (between := room_between(notebook.cells[number : answers[0] + 1])) < SCREEN:
            complaints.append(f"{label(cell)}: question and answer are {between} pixels apart; {SCREEN} at least")
        if answers:
            complaints += unexplained(cell, notebook.cells[answers[0]])
    return complaints


def unexplained(question, answer):
    """Each wrong option has a reason, as far as question and answer are stored."""
    asked, said = (
        [data(output, kind) for output in cell.outputs if words in data(output, "text/plain")]
        for cell, kind, words in ((question, "text/plain", "?"), (answer, "text/html", "Measured: "))
    )
    if not asked or not said:
        return []
    options = re.findall(r"^  [○☐] (.*)$", asked[0], re.MULTILINE)
    since = json.loads(html.unescape(re.search('data-since="(.*?)"', said[0])[1]))
    comma = "; " if any("," in option for option in options) else ", "
    right = html.unescape(re.search("Measured: <strong>(.*?)</strong>", said[0])[1]).split(comma)
    wrong = [option for option in options if option.rstrip(".") not in right]
    return [f"{label(question)}: no reason why {option!r} is wrong" for option in wrong if option not in since]


SCREEN = 600  # pixels of a notebook that a screen of 1280 x 800 shows at once


def room_between(cells):
    """About how many pixels lie between the end of the first cell's question and the last cell's answer."""
    heights = [height(cell) for cell in cells[1:-1]]
    last = cells[-1]
    shown = ["Measured: " in data(output, "text/plain") for output in last.outputs]
    above = last.outputs[: shown.index(True)] if True in shown else last.outputs
    padding = 10 * len(cells) + 30  # of the cells, and the question that stands above its answer again
    return sum(heights) + padding + 16 * (last.source.count("\n") + 1) + sum(map(height_of_output, above))


def height(cell):
    if cell.cell_type == "markdown":
        shown = re.sub(r"<details>.*?</details>", "folded", cell.source, flags=re.DOTALL)
        return sum(14 + 21 * (1 + len(line) // 130) for line in shown.split("\n") if line.strip())
    folded = cell.metadata.get("jupyter", {}).get("source_hidden")
    source = 20 if folded else 20 + 16 * (cell.source.count("\n") + 1)
    return source + sum(map(height_of_output, cell.outputs))


def height_of_output(output):
    if data(output, "image/png"):
        picture = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"])))
        width = output.metadata.get("image/png", {}).get("width", picture.width)
        controls = data(output, "text/plain").partition(" Controls: ")[2]
        return round(picture.height * width / picture.width) + 32 * len(controls.split("; "))
    folded = "<details>" in data(output, "text/html")
    return 18 if folded else 18 * ((output.get("text", "") + data(output, "text/plain")).count("\n") + 1)


def links_resolve(notebook, path):
    complaints = []
    for target in filter(None, (first or second for first, second in links(notebook))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = unquote(target).partition("#")
        other = path.parent / file if file else path
        if not other.exists():
            complaints.append(f"{target}: there is no such file")
        elif anchor and other.suffix == ".ipynb":
            there = nbformat.read(other, as_version=4) if file else notebook
            if anchor not in headings(there) | {f"cell-id={cell.id}" for cell in there.cells}:
                complaints.append(f"{target}: there is no such heading or cell")
    return complaints


def names_in_formulas(notebook, path):
    """A name in a formula is explained: in a table of symbols, of this chapter or one before, or in the prose."""
    source = "\n".join(cell.source for cell in markdown(notebook))
    before = [one for one in sorted(path.parent.glob("[0-9]*.ipynb")) if one.name < path.name]
    tables = [cell.source for one in before for cell in markdown(read(one)) if "| symbol |" in cell.source]
    explained = re.sub(r"\$\$.*?\$\$", " ", "\n".join([*tables, source]), flags=re.DOTALL)
    formulas = re.findall(r"\$\$(.*?)\$\$", source, re.DOTALL)
    found = re.findall("<mi>(.*?)</mi>", html.unescape("".join(map(latex2mathml.converter.convert, formulas))))
    return [
        f"{name} stands in a formula and is explained nowhere"
        for name in sorted({*found} - {"sin", "cos"})
        if not re.search(rf"(?<![^\W\d_]){name}(?![^\W\d_])", explained)
    ]


def cell_length(notebook, path):
    shown = [cell for cell in code(notebook) if not cell.metadata.get("jupyter", {}).get("source_hidden")]
    lengths = [sum(map(bool, map(str.strip, cell.source.split("\n")))) for cell in shown]
    complaints = [
        f"{label(cell)} has {length} lines; 25 is the most" for cell, length in zip(shown, lengths) if length > 25
    ]
    if lengths and statistics.median(lengths) > 8:
        complaints.append(f"the median cell has {statistics.median(lengths)} lines; 8 is the most")
    return complaints


def one_cell_of_imports(notebook, path):
    """Stubs and solutions too use what that cell imported."""
    importing = [label(cell) for cell in code(notebook) if count(cell, ast.Import, ast.ImportFrom)]
    return [f"{cell} imports too" for cell in importing[1:]]


def unique_ids(notebook, path):
    ids = [cell.get("id") for cell in notebook.cells]
    return [f"the id {id} stands on several cells" for id in sorted({*map(str, ids)}) if ids.count(id) != 1]


def known_tags(notebook, path):
    return [f"{label(cell)} has the tag {tag}" for cell in notebook.cells for tag in tags(cell) if tag not in TAGS]


def few_cells_not_compared(notebook, path):
    """nbval knows tags and comments that exempt a cell; the comments are not used here."""
    complaints = [f"{label(cell)} has a comment for nbval" for cell in code(notebook) if "NBVAL_" in cell.source]
    found, allowed = (
        sum("nbval-ignore-output" in tags(cell) for cell in code(notebook)),
        NOT_COMPARED.get(path.stem, 0),
    )
    if found != allowed:
        complaints.append(f"{found} cells are not compared; the list in this test allows {allowed}")
    return complaints


def no_magics(notebook, path):
    """None but %matplotlib inline, and nothing that reaches for pip or the network."""
    complaints = []
    for cell in code(notebook):
        for line in map(str.strip, cell.source.split("\n")):
            if line.startswith(("%", "!", "?")) and line != "%matplotlib inline":
                complaints.append(f"magic: {line}")
            if re.search(
                r"\bpip\b|https?://|\b(urllib|requests|httpx|socket|subprocess)\b|torch\.hub|os\.system", line
            ):
                complaints.append(f"pip or network: {line}")
    return complaints


def exercises(notebook, path):
    """Two cells each, in order: the stub, and its check, after which the chapter goes on with what works."""
    complaints = []
    cells = [cell for cell in notebook.cells if {"exercise", "check"} & {*tags(cell)}]
    roles = [next(iter({"exercise", "check"} & {*tags(cell)})) for cell in cells]
    if roles != ["exercise", "check"] * (len(roles) // 2):
        return [f"exercise and check do not follow each other: {', '.join(roles)}"]
    names = [stub.metadata.get("ex", {}).get("id") for stub in cells[::2]]
    complaints += [f"two exercises are called {name}" for name in sorted({*map(str, names)}) if names.count(name) > 1]
    for name, stub, check in zip(names, cells[::2], cells[1::2]):
        if not re.fullmatch(r"[a-z]\w*", str(name)):
            complaints.append(f"{label(stub)} has no ex.id that is a name")
            continue
        points = stub.metadata.ex.get("points")
        if not isinstance(points, int) or points < 1:
            complaints.append(f"{name} has no points")
        if not defines(stub, name) or stub.source.count('raise NotImplementedError("your turn")') != 1:
            complaints.append(f'{name}: the stub is a function {name} with one raise NotImplementedError("your turn")')
        if check.source != f'check("{name}", {name})\n{name} = use("{name}", {name})':
            complaints.append(f"{name}: the check cell is not a line of check() and a line of use()")
    return complaints


def worked_functions(notebook, path):
    """A worked solution has its stub's arguments, and uses what the notebook has above."""
    complaints, above = [], {*dir(builtins)}
    for cell in code(notebook):
        if "exercise" in tags(cell):
            name = cell.metadata.ex.id
            (function,), (stub,) = ast.parse(source(notebook, name)).body, tree(cell).body
            if [one.arg for one in function.args.args] != [one.arg for one in stub.args.args]:
                complaints.append(f"{name}: the worked solution has other arguments than the stub")
            own = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            complaints += [
                f"{name}: the worked solution uses {other}, which does not stand above"
                for other in sorted(used(ast.unparse(function)) - own - above)
            ]
        above |= defined(cell.source)
    return complaints


def exercises_in_the_contents(notebook, path):
    """Each exercise has a heading with its difficulty and time, so that the table of contents lists it."""
    source = "\n".join(cell.source for cell in markdown(notebook))
    titles = re.findall(r"^### Exercise \d+\.\d+ · [A-Z][^·]+ · [●○]{5} · \d+ min$", source, re.MULTILINE)
    asked = len(tagged(notebook, "exercise"))
    return (
        []
        if len(titles) == asked
        else [f"{len(titles)} headings '### Exercise n.n · Title · ●●○○○ · n min' for {asked} exercises"]
    )


def defines(cell, name):
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name for node in tree(cell).body)


def executed_in_order(notebook, path):
    counts = [cell.execution_count for cell in code(notebook)]
    return [] if counts == [*range(1, len(counts) + 1)] else [f"the cells were executed as {counts}"]


def pictures_have_words(notebook, path):
    complaints = []
    for output in outputs(notebook):
        if data(output, "image/png"):
            words = data(output, "text/plain")
            if not words:
                complaints.append("a picture has no words beside it")
            if words.startswith("Figure:") and not output.metadata.get("image/png", {}).get("alt"):
                complaints.append(f"no alt in the metadata of: {words}")
    return complaints


def quiet_outputs(notebook, path):
    """No warning, no error, no view of a widget that a reader without its kernel cannot see."""
    complaints = ["metadata.widgets"] if "widgets" in notebook.metadata else []
    for cell in code(notebook):
        for output in cell.outputs:
            if output.output_type == "error":
                complaints.append(f"{label(cell)} raised {output.ename}")
            if output.get("name") == "stderr":
                complaints.append(f"{label(cell)} wrote to stderr: {output.text.strip()}")
            if data(output, notebooks.WIDGET_VIEW):
                complaints.append(f"{label(cell)} stores the view of a widget")
    return complaints


def nothing_of_this_machine(notebook, path):
    """No absolute path and no memory address, neither in a source nor in an output."""
    words = [(f"the source of {label(cell)}", cell.source) for cell in notebook.cells]
    for cell in code(notebook):
        for output in cell.outputs:
            shown = [output.get("text", "")] + [v for k, v in output.get("data", {}).items() if k != "image/png"]
            words.append((f"the output of {label(cell)}", "\n".join(map(str, shown))))
    complaints = []
    for where, text in words:
        for found in re.findall(r"0x[0-9a-fA-F]{6,}|(?<![\w.:/<)])/\w[\w.-]*/[\w.-]+|\b[A-Z]:\\\w+", text):
            complaints.append(f"{found} in {where}")
    return complaints


def normal_form(notebook, path):
    if notebooks.text(notebooks.normalise(notebook)) == path.read_text(encoding="utf-8"):
        return []
    return ["the file is not in normal form: run  make notebooks"]


def small_file(notebook, path):
    stored = path.read_bytes()
    complaints = [] if stored.endswith(b"\n") else ["the file does not end with a newline"]
    return complaints + ([] if len(stored) < 500_000 else [f"{len(stored) // 1000} kB; 500 is too much"])


def numbered(folder):
    """Of the folder, not of a notebook: the chapters count from 01, none missing."""
    names = sorted(path.name for path in folder.glob("[0-9]*.ipynb"))
    numbers = range(1, len(names) + 1)
    return [
        f"{name} should be a chapter {number:02}_name.ipynb"
        for number, name in zip(numbers, names)
        if not re.fullmatch(rf"{number:02}_[a-z0-9_]+\.ipynb", name)
    ]


RULES = [
    opening_cell,
    in_bounds,
    laboratory,
    closing_cell,
    numbers_to_take_along,
    index_of_claims,
    hints_and_solutions,
    sentences_of_claims,
    claims_hold,
    no_test_in_the_lesson,
    parameters,
    guesses,
    exercises_in_the_contents,
    links_resolve,
    names_in_formulas,
    cell_length,
    one_cell_of_imports,
    unique_ids,
    known_tags,
    few_cells_not_compared,
    no_magics,
    exercises,
    worked_functions,
    executed_in_order,
    pictures_have_words,
    quiet_outputs,
    nothing_of_this_machine,
    normal_form,
    small_file,
]

# -------------------------------------------------------- the stored chapters


@functools.cache
def read(path):
    return notebooks.read(path)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_chapter(path, rule):
    complaints = rule(read(path), path)
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_no_stored_chapter_is_stale(path):
    notebook = notebooks.read(path)
    again = f"its code is not the one that its outputs were stored with: make notebooks CHAPTER={path.name[:2]}"
    assert notebook.metadata.posenc.code == fingerprint(notebook), again


def test_chapters_are_numbered():
    assert not numbered(NOTEBOOKS)
    assert list(NOTEBOOKS.glob("01_*.ipynb"))


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

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC"


def cell(source, *outputs, **metadata):
    made = v4.new_code_cell(source, outputs=list(outputs))
    made.metadata = nbformat.from_dict(metadata)
    return made


def exercise(number, name, arguments, points, printed):
    """The three cells that `make notebooks` makes five of: a heading, the stub and its check."""
    stub = f'def {name}({arguments}):\n    raise NotImplementedError("your turn")'
    return [
        v4.new_markdown_cell(f"### Exercise 2.{number} · Back · ●○○○○ · 1 min"),
        cell(stub, tags=["exercise"], ex={"id": name, "points": points}),
        cell(f'check("{name}", {name})\n{name} = use("{name}", {name})', printed, tags=["check"]),
    ]


@functools.cache
def model():
    """The text of a chapter in which no rule finds anything.

    In it 2 is a figure, 3 claims, 4 to 7 are an exercise, 9 has the parameters, 10 asks and 12 answers, 21 is to be
    taken along, 22 opens the laboratory, 23 to 25 and 26 to 28 are its sections, and 29 to 32 the worked solutions.
    """
    printed = v4.new_output("stream", name="stdout", text="1/2, and/or/not, 0xff\n")
    picture = {"image/png": DOT, "text/plain": "Figure: a dot. Controls: x."}
    alt = {"image/png": {"alt": "a dot", "width": 800}}
    figure = v4.new_output("display_data", data=picture, metadata=alt)
    claims = [make("one is one", 1, below=2), make("each is", [1, 1], below=2, case="a")]
    guess = Guess("Which?", ["a", "b"], several=False)
    asked, answered = (
        v4.new_output("display_data", data={kind: data[kind] for kind in ("text/html", "text/plain")})
        for data in (each._repr_mimebundle_() for each in (guess, _Comparison(guess, ["a"], {"b": "so"})))
    )
    below = "## A closing *word*\n### A `heading`\nSee [it](https://example.org/a/b) and `[this](no_link)`."
    folded = {FOLDED: True}
    imports = "%matplotlib inline\nimport math\nfrom posenc.chapters.permutation_invariance import exercises"
    cells = [
        v4.new_markdown_cell(OPENING),
        cell(imports, jupyter={"source_hidden": True}),
        cell("show()", figure),
        cell(CLAIMING, printed, v4.new_output("display_data", data=bundle(claims))),
        *exercise(1, "unpermute", "layer, x, p", 2, printed),
        v4.new_markdown_cell(below),
        cell("SEED = 0\nPACE = 1.0\nSTEPS = 1.0", tags=["parameters"]),
        cell('guess = predict("Which?", ["a", "b"])', asked),
        cell("show()", figure),
        cell('guess.compare("a")', answered),
        *exercise(2, "failing_twin", "tokens", 1, printed),
        *exercise(3, "position_from_share", "share", 1, printed),
        v4.new_markdown_cell(CLOSING, metadata={"tags": ["take-along"]}),
        v4.new_markdown_cell("# Laboratory\nMore, in any order.", metadata={"tags": ["laboratory"]}),
        v4.new_markdown_cell("## Laboratory A · Dots", metadata=folded),
        cell("dots = 3"),
        cell("show(dots)", figure),
        v4.new_markdown_cell("## Laboratory B · Others", metadata=folded),
        cell("others = 3"),
        cell("show(others)", figure),
    ]
    made = v4.new_notebook(cells=cells)
    for number, each in enumerate(code(made), start=1):
        each.execution_count = number
    return notebooks.text(with_index(notebooks.normalise(with_solutions(made))))


def folder_of(folder):
    """The folder with the model between two others; the path of the model."""
    for name in ("01_before", "02_chapter", "03_after"):
        (folder / f"{name}.ipynb").write_text(model(), encoding="utf-8")
    return folder / "02_chapter.ipynb"


@pytest.fixture
def chapters(tmp_path):
    return folder_of(tmp_path).parent


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_model_chapter_passes(rule, tmp_path):
    path = folder_of(tmp_path)
    assert not rule(notebooks.read(path), path)


def sources(index, old, new):
    def plant(notebook):
        assert old in notebook.cells[index].source
        notebook.cells[index].source = notebook.cells[index].source.replace(old, new)

    return plant


def metadata(index, **changes):
    return lambda notebook: notebook.cells[index].metadata.update(nbformat.from_dict(changes))


def shown(index, kind, value, place=0):
    """Change what an output holds; None takes it away."""

    def plant(notebook):
        output = notebook.cells[index].outputs[place]
        (output.data.update({kind: value}) if value else output.data.pop(kind)) if "data" in output else None
        if kind == "text":
            output.text = value

    return plant


def added(made):
    return lambda notebook: notebook.cells.insert(3, made)


def appended(index, output):
    return lambda notebook: notebook.cells[index].outputs.append(output)


def many_long_cells(notebook):
    for made in code(notebook):
        made.source += "\npass" * 9


def without(index):
    return lambda notebook: notebook.cells.pop(index)


def put(path, *keys_and_value):
    """Set a value deep inside the notebook."""

    def plant(notebook):
        *keys, last, value = keys_and_value
        inner = functools.reduce(lambda node, key: node[key], keys, notebook[path])
        inner[last] = value

    return plant


def folded(index):
    return metadata(index, **{FOLDED: True})


def unfolded(index):
    return lambda notebook: notebook.cells[index].metadata.pop(FOLDED)


def moved(index, to):
    return lambda notebook: notebook.cells.insert(to, notebook.cells.pop(index))


STDERR = v4.new_output("stream", name="stderr", text="UserWarning: deprecated\n")
ERROR = v4.new_output("error", ename="ValueError", evalue="", traceback=[])

VIOLATIONS = [
    (opening_cell, sources(0, "# 02 ·", "# 03 ·"), "number of the file"),
    (opening_cell, sources(0, "**You will be able to**", "You will"), "You will be able to"),
    (opening_cell, sources(0, "**Needs**", "Needs"), "Needs"),
    (opening_cell, sources(0, "**Runs**", "Runs"), "Runs"),
    (closing_cell, without(21), "0 cells are tagged"),
    (closing_cell, metadata(21, tags=[]), "0 cells are tagged"),
    (
        closing_cell,
        added(v4.new_markdown_cell("- One.", metadata={"tags": ["take-along"]})),
        "2 cells are tagged",
    ),
    (closing_cell, sources(21, "## What", "Well.\n## What"), "does not start"),
    (closing_cell, sources(21, "- Five.", ""), "4 lines to take along"),
    (closing_cell, sources(21, "(01_before.ipynb)", "(.)"), "no link to 01_before.ipynb"),
    (closing_cell, sources(21, "(03_after.ipynb", "(3.ipynb"), "no link to 03_after.ipynb"),
    (numbers_to_take_along, sources(21, "1.00", "1.01"), "1.01 stands in no claim"),
    (numbers_to_take_along, sources(21, "Three.", "Three of .37 are 3."), ".37 stands in no claim"),
    (index_of_claims, without(-1), "make notebooks"),
    (index_of_claims, sources(-1, "one is one", "one is 1"), "make notebooks"),
    (hints_and_solutions, sources(7, "Hint 1", "A hint"), "make notebooks"),
    (hints_and_solutions, sources(30, "[p.argsort()]", "[p]"), "make notebooks"),
    (hints_and_solutions, without(7), "make notebooks"),
    (links_resolve, sources(7, "#cell-id=unpermute-worked", "#cell-id=worked"), "no such heading or cell"),
    (hints_and_solutions, without(29), "make notebooks"),
    (hints_and_solutions, sources(4, "Back", "And back"), "make notebooks"),
    (sentences_of_claims, sources(3, '"one is one"', "words"), "is no literal: claim(words, 1, below=2)"),
    (sentences_of_claims, sources(3, '"one is one"', 'f"one is {1}"'), "is no literal"),
    (sentences_of_claims, sources(3, '"each is"', '"one is one"'), "'one is one' is claimed twice"),
    (sentences_of_claims, sources(3, ", case=name", ""), "'each is' is claimed in a loop or a function"),
    (sentences_of_claims, sources(3, '"one is one"', '"one is 1"'), "'one is 1' is claimed, and no output"),
    (sentences_of_claims, sources(3, '"one is one"', '"one is 1"'), "shows 'one is one', and no cell"),
    (claims_hold, shown(3, "text/plain", str(make("one is one", 3, below=2)), 1), "✗ one is one"),
    (no_test_in_the_lesson, sources(2, "show()", "figure.sweep()"), ".sweep("),
    (no_test_in_the_lesson, sources(2, "show()", "figure.artists['dot']"), "artists["),
    (no_test_in_the_lesson, shown(3, "text", "it moves: True\n"), "shows True or False"),
    (no_test_in_the_lesson, shown(2, "text/plain", "(False, 1)"), "shows True or False"),
    (no_test_in_the_lesson, sources(2, "show()", "assert show()"), "asserts where the reader"),
    (parameters, sources(9, "SEED = 0", "SEED = 1"), "the cell of parameters sets {'SEED': 1,"),
    (parameters, sources(9, "PACE = 1.0", ""), "the cell of parameters sets"),
    (parameters, metadata(2, tags=["parameters"]), "it is one cell"),
    (guesses, sources(12, "guess.compare", "other.compare"), "no cell below compares"),
    (guesses, without(11), "pixels apart"),
    (guesses, sources(10, "guess = predict", "predict"), "one question a cell"),
    (guesses, sources(2, "show()", 'guess = predict("What?", ["a"])'), "a question above is guess too"),
    (exercises_in_the_contents, sources(4, "### Exercise", "### An exercise"), "2 headings"),
    (exercises_in_the_contents, sources(4, " · ●○○○○", ""), "2 headings"),
    (links_resolve, sources(0, "01_before", "01_begin"), "01_begin.ipynb: there is no such file"),
    (links_resolve, sources(0, "#A-closing", "#a-closing"), "no such heading"),
    (
        links_resolve,
        sources(21, "#A-heading", "#Another"),
        "03_after.ipynb#Another: there is no such heading or cell",
    ),
    (
        links_resolve,
        sources(21, "[Before]", "![Before](before.png) [Before]"),
        "before.png: there is no such file",
    ),
    (links_resolve, sources(21, "[Before]", '<img src="a.png"> [Before]'), "a.png: there is no such file"),
    (names_in_formulas, sources(8, "See", "$$\\phi_i$$ See"), "i stands in a formula"),
    (names_in_formulas, sources(8, "See", "$$\\phi_i$$ See"), "ϕ stands in a formula"),
    (cell_length, sources(2, "show()", "\n\n".join(["show()"] * 26)), "has 26 lines"),
    (cell_length, many_long_cells, "median"),
    (one_cell_of_imports, sources(2, "show()", "from math import pi"), "imports too"),
    (one_cell_of_imports, sources(5, "    raise", "    import math\n    raise"), "imports too"),
    (unique_ids, lambda notebook: notebook.cells[1].update(id=notebook.cells[2].id), "several cells"),
    (known_tags, metadata(2, tags=["raises-exception"]), "raises-exception"),
    (known_tags, metadata(0, tags=["hide-input"]), "hide-input"),
    (few_cells_not_compared, metadata(2, tags=["nbval-ignore-output"]), "allows 0"),
    (few_cells_not_compared, sources(2, "show()", "# NBVAL_SKIP\nshow()"), "comment for nbval"),
    (no_magics, sources(2, "show()", "%timeit show()"), "magic: %timeit"),
    (no_magics, sources(2, "show()", "!ls"), "magic: !ls"),
    (no_magics, sources(2, "show()", "%pip install torch"), "pip or network"),
    (no_magics, sources(2, "show()", "get('https://example.org')"), "pip or network"),
    (no_magics, sources(1, "import math", "import requests"), "pip or network"),
    (exercises, without(5), "do not follow"),
    (exercises, without(6), "do not follow"),
    (exercises, metadata(5, ex={"points": 2}), "no ex.id"),
    (exercises, metadata(5, ex={"id": "unpermute"}), "no points"),
    (exercises, metadata(5, ex={"id": "unpermute", "points": 0}), "no points"),
    (exercises, sources(5, "raise NotImplementedError", "raise ValueError"), "the stub is a function"),
    (exercises, sources(5, "def unpermute", "def back"), "the stub is a function"),
    (exercises, sources(6, 'check("unpermute"', 'check("back"'), "is not a line of check()"),
    (exercises, sources(6, "check(", "# check("), "is not a line of check()"),
    (exercises, sources(6, 'use("unpermute"', 'use("back"'), "is not a line of check()"),
    (exercises, lambda notebook: notebook.cells.extend(copy.deepcopy(notebook.cells[5:7])), "two exercises"),
    (worked_functions, sources(5, "(layer, x, p)", "(layer, p, x)"), "has other arguments than the stub"),
    (
        worked_functions,
        metadata(5, ex={"id": "next_row", "points": 2}),
        "next_row: the worked solution uses torch",
    ),
    (executed_in_order, put("cells", 2, "execution_count", None), "executed as"),
    (executed_in_order, put("cells", 2, "execution_count", 7), "executed as"),
    (pictures_have_words, shown(2, "text/plain", None), "no words"),
    (pictures_have_words, put("cells", 2, "outputs", 0, "metadata", {}), "no alt"),
    (quiet_outputs, put("metadata", "widgets", {}), "metadata.widgets"),
    (quiet_outputs, appended(2, STDERR), "stderr: UserWarning"),
    (quiet_outputs, appended(2, ERROR), "ValueError"),
    (quiet_outputs, shown(2, notebooks.WIDGET_VIEW, {"model_id": "1"}), "view of a widget"),
    (nothing_of_this_machine, shown(2, "text/plain", "<f at 0x7f3a2b10>"), "0x7f3a2b10"),
    (nothing_of_this_machine, shown(3, "text", "saved to /home/me/x.png\n"), "/home/me"),
    (nothing_of_this_machine, sources(2, "show()", "show('/tmp/a.png')"), "/tmp/a.png"),
    (nothing_of_this_machine, sources(0, "test.", r"test C:\Users."), r"C:\Users"),
    (normal_form, put("metadata", "language_info", "version", "3.11"), "make notebooks"),
    (normal_form, put("cells", 2, "metadata", "scrolled", True), "make notebooks"),
    (small_file, sources(0, "test.", "test." * 100_000), "kB; 500 is too much"),
    (opening_cell, sources(0, "**Laboratory**", "Laboratory"), "lacks **Laboratory**"),
    (opening_cell, sources(0, "*Order, and", "Order, and"), "no subtitle in italics"),
    (
        in_bounds,
        sources(0, "6 min of reading", "8 min of reading"),
        "reading: the header says 8 min, and 6 are",
    ),
    (in_bounds, sources(0, "test.", "test. " * 9000), "minutes of reading; at most 40"),
    (laboratory, without(22), "no cell '# Laboratory'"),
    (laboratory, metadata(22, tags=[]), "is tagged laboratory"),
    (laboratory, folded(22), "it is not folded"),
    (laboratory, sources(26, "Laboratory B", "Laboratory C"), "does not start with '## Laboratory B · '"),
    (laboratory, unfolded(26), f"has no {FOLDED}: true"),
    (laboratory, moved(23, 25), "stands above the first section"),
    (laboratory, sources(28, "others", "dots"), "of the laboratory needs dots of a section"),
    (laboratory, sources(3, "claim(", "lambda: dots\nclaim("), "of the lesson needs dots of a section"),
    (closing_cell, sources(21, "- Five.", "- Five.\n- Six."), "6 lines to take along"),
    (
        guesses,
        shown(12, "text/html", '<p data-since="{}">Measured: <strong>a</strong>'),
        "no reason why 'b' is",
    ),
]


@pytest.mark.parametrize(
    ("rule", "plant", "complaint"),
    VIOLATIONS,
    ids=[f"{number}-{rule.__name__}" for number, (rule, _, _) in enumerate(VIOLATIONS)],
)
def test_a_planted_violation_is_caught(rule, plant, complaint, tmp_path):
    path = folder_of(tmp_path)
    notebook = notebooks.read(path)
    plant(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")  # nbformat would mend some of it
    assert complaint in "\n".join(rule(notebook, path))


def test_a_missing_newline_is_caught(chapters):
    path = chapters / "02_chapter.ipynb"
    path.write_text(path.read_text().rstrip())
    assert small_file(notebooks.read(path), path) == ["the file does not end with a newline"]


def test_a_gap_in_the_numbers_is_caught(chapters):
    assert not numbered(chapters)
    (chapters / "02_chapter.ipynb").unlink()
    assert numbered(chapters) == ["03_after.ipynb should be a chapter 02_name.ipynb"]


def test_every_rule_has_a_violation():
    assert {rule for rule, _, _ in VIOLATIONS} == set(RULES)
