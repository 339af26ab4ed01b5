"""Drive notebooks in a real JupyterLab with a real Chromium, by menu, mouse and keyboard as a learner would."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import BrowserContext, Error, Locator, Page, sync_playwright

from courseware.lab import CONNECTION, UNFOLD

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
KINDS = {  # of controls: the class of their box, and what takes the keys; of a choice an option that is not chosen
    "slider": ("widget-slider", ".noUi-handle"),
    "choice": ("widget-toggle-buttons", "button:not(.mod-active)"),
    "switch": ("widget-checkbox", "input"),
    "text": ("widget-text", "input"),
}
LAST_STOP = 1200  # seconds, against waiting for ever
SENTENCES = ("the old cat saw a bird", "a bird saw the cat")

# JavaScript expressions
NOTEBOOK = "window.jupyterapp.shell.currentWidget.content"
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel"
CODE_CELLS = f"[...{NOTEBOOK}.model.cells].filter(cell => cell.type === 'code' && cell.sharedModel.source.trim())"
ERRORS = f"""{CODE_CELLS}.flatMap(cell => cell.outputs.toJSON())
    .filter(output => output.output_type === 'error').map(output => output.ename + ': ' + output.evalue)"""


def chromium() -> str | None:
    """Where a Chromium is installed, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@dataclass
class Control:
    """One control of one figure: a slider, choice, switch or text."""

    kind: str
    label: str
    box: Locator

    @property
    def handle(self) -> Locator:
        """What takes the keys."""
        return self.box.locator(KINDS[self.kind][1]).first

    @property
    def value(self) -> str:
        """The value that the page shows."""
        if self.kind == "choice":
            return self.box.locator(".mod-active").text_content()
        if self.kind == "slider":
            return self.handle.get_attribute("aria-valuetext")
        return self.handle.evaluate("e => e.type === 'checkbox' ? String(e.checked) : e.value")

    def focus(self) -> None:
        """Let the control take the keys."""
        self.handle.focus()

    def focused(self) -> bool:
        """Whether it still takes the keys."""
        return self.box.evaluate("e => e.contains(document.activeElement)")

    def press(self, *keys: str) -> None:
        """Send keys to whatever has the focus."""
        for key in keys:
            self.box.page.keyboard.press(key)

    def there_and_back(self, steps: int) -> Iterator[str]:
        """Go with the keyboard so many steps of a slider, to another option or text, and back; yields the value at each."""
        start, ends = self.value, self.handle.get_attribute
        arrows = ["ArrowRight", "ArrowLeft"]
        if self.kind == "slider" and ends("aria-valuenow") == ends("aria-valuemax"):
            arrows.reverse()
        self.focus()
        for back in (False, True):
            if self.kind == "slider":
                self.press(*[arrows[back]] * steps)
            elif self.kind == "choice":
                option = self.box.get_by_role("button", name=start, exact=True) if back else self.handle
                option.focus()
                self.press("Space")
            elif self.kind == "text":
                self.write(start if back else SENTENCES[start == SENTENCES[0]])
            else:
                self.press("Space")
            yield self.value

    def write(self, words: str) -> None:
        """Type words into a text control."""
        self.focus()
        self.press("Control+a")
        self.box.page.keyboard.type(words)
        self.press("Enter")


class Notebook:
    """A notebook that is open in JupyterLab. Figures count from 0, in the order of the page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set_default_timeout(1000 * LAST_STOP)
        page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        self._wait(f"{KERNEL}?.connectionStatus === 'connected' && {KERNEL}.status === 'idle'")
        page.evaluate(
            f"""() => {{
                window.unanswered = new Set();
                {KERNEL}.anyMessage.connect((_, {{msg, direction}}) => {{
                    const idle = msg.content.execution_state === 'idle';
                    if (direction === 'send' && msg.channel !== 'stdin') unanswered.add(msg.header.msg_id);
                    else if (idle || msg.header.msg_type.endsWith('_reply')) unanswered.delete(msg.parent_header.msg_id);
                }});
            }}"""
        )

    def settle(self) -> None:
        """Wait until the kernel has answered all that the page has said, and the page has taken it in."""
        self.page.evaluate("() => { window.quiet = 0 }")
        self._wait("(quiet = unanswered.size ? 0 : quiet + 1) > 3", polling=20)

    def run_all(self) -> None:
        """Clear all outputs and run all cells through the menu; wait for the last one or an error."""
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
        self.page.click('.lm-MenuBar-itemLabel:text-is("Run")')
        self.page.click('.lm-Menu-item[data-command="runmenu:run-all"]')
        done = f"{CODE_CELLS}.every(cell => cell.executionCount !== null)"
        self._wait(f"{done} || {ERRORS}.length")
        self._wait("[...document.querySelectorAll('img.widget-image')].every(image => image.naturalWidth)")
        self.settle()

    def errors(self) -> list[str]:
        """The errors among the outputs, one line each."""
        return self.page.evaluate(ERRORS)

    def run(self, words: str, source: str | None = None) -> str:
        """Run the first code cell that contains the words, after writing source into it; the text it prints."""
        here, done = self.start(words, source)
        self._wait(done)
        outputs = self.page.evaluate(f"{here}.outputs.toJSON()")
        return "".join(line for output in outputs for line in output.get("text", ""))

    def start(self, words: str, source: str | None = None) -> tuple[str, str]:
        """Begin to run that cell; the expressions for its model, and for whether it has ended."""
        code = f"cell.model.type === 'code' && cell.model.sharedModel.source.includes({json.dumps(words)})"
        number = self.page.evaluate(f"{NOTEBOOK}.widgets.findIndex(cell => {code})")
        here = f"{NOTEBOOK}.widgets[{number}].model"
        before = self.page.evaluate(f"{here}.executionCount")
        self.page.evaluate(f"{NOTEBOOK}.activeCellIndex = {number}; {NOTEBOOK}.scrollToItem({number})")
        if source is None:
            self.page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
        else:
            cell = self.page.locator(f'.jp-Notebook-cell[data-windowed-list-index="{number}"]')
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(source)
            self.page.keyboard.press("Shift+Enter")
        return here, f"![null, {before or 0}].includes({here}.executionCount)"

    @property
    def figures(self) -> list[Locator]:
        """The slider figures of the page."""
        return self.page.locator(".widget-vbox:has(> img.widget-image)").all()

    def controls(self, figure: int) -> list[Control]:
        """The controls of one figure, in the order of the page."""
        controls = []
        for box in self.figures[figure].locator("> :not(img):not(.widget-html):not(.widget-play)").all():
            kind = next(kind for kind, (box_class, _) in KINDS.items() if box_class in box.get_attribute("class"))
            label = box.evaluate("e => (e.querySelector('span') ?? e.querySelector('label')).textContent")
            controls.append(Control(kind, label, box))
        return controls

    def picture(self, figure: int) -> str:
        """The bytes of the picture that is shown, in base64."""
        read = """async image => {
            const bytes = new Uint8Array(await (await fetch(image.src)).arrayBuffer());
            return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''));
        }"""
        return self.figures[figure].locator("> img").evaluate(read)

    def new_picture(self, figure: int, old: str) -> str | None:
        """The picture once it is another one, also while a cell runs; None when it stays."""
        deadline = time.monotonic() + LAST_STOP
        while time.monotonic() < deadline:
            with suppress(Error):  # the page threw this picture away for the next one
                if (picture := self.picture(figure)) != old:
                    return picture
            time.sleep(0.05)
        return None

    def alert(self, figure: int) -> Locator:
        """The error line under a figure."""
        return self.figures[figure].get_by_role("alert")

    def press(self, box: Locator, presses: int) -> list[float]:
        """Press arrows on the first slider in a box, one step up and one down; ms from each key to changed pixels of the
        picture in the box, which may be another element each time."""
        box.evaluate(
            """box => {
                let start, before, changed;
                addEventListener('keydown', () => {
                    start = performance.now();
                    before = box.querySelector('img').src;
                    window.answer = new Promise((resolve, reject) => {
                        changed = resolve;
                        setTimeout(reject, 60000, new Error('the picture stays'));
                    });
                }, true);
                new MutationObserver(async () => {
                    const image = box.querySelector('img');
                    if (!image || image.src === before) return;
                    await image.decode().catch(() => {});  // thrown away for the next one
                    requestAnimationFrame(() => changed(performance.now() - start));
                }).observe(box, {subtree: true, childList: true, attributeFilter: ['src']});
            }"""
        )
        slider = box.locator(".noUi-handle").first
        slider.focus()
        times = []
        for press in range(6 + presses):  # the first messages start the thread that the callbacks run in
            slider.press("ArrowLeft" if press % 2 else "ArrowRight")
            times.append(self.page.evaluate("window.answer"))
        return times[6:]

    def close(self) -> None:
        """Close the page; the kernel ends with the server."""
        self.page.close()

    def _wait(self, condition: str, polling: int = 50) -> None:
        self.page.wait_for_function(condition, polling=polling)


@dataclass
class Lab:
    """A JupyterLab that serves one folder, and a Chromium to look at it."""

    folder: Path
    url: str
    token: str
    browser: BrowserContext

    def open(self, name: str) -> Notebook:
        """Open a notebook of the folder."""
        page = self.browser.new_page()
        page.goto(f"{self.url}/doc/tree/{name}?token={self.token}&reset")
        return Notebook(page)


@contextmanager
def lab(folder: Path, home: Path, *, plain: bool = False) -> Iterator[Lab]:
    """Serve a folder as `server` does, and open a browser; all that they write goes into home."""
    with server(folder, home, plain=plain) as (url, token), sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            home / "chromium",
            executable_path=chromium(),
            headless=True,
            env=_at_home(home),
            args=FLAGS + ["--no-sandbox"] * (os.geteuid() == 0),
            viewport={"width": 1280, "height": 900},
        )
        yield Lab(folder, url, token, browser)
        browser.close()


@contextmanager
def server(folder: Path, home: Path, *, plain: bool = False, course: bool = False) -> Iterator[tuple[str, str]]:
    """Serve a folder on loopback; yields the address and the token.

    With plain, the server is without what `make lab` adds; with course, the folder is a clone of the course, and the
    server is that of `make lab`.
    """
    config = home / ".jupyter"
    (config / "labconfig").mkdir(parents=True)
    if not course:
        disabled = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
        (config / "labconfig" / "page_config.json").write_text(json.dumps(disabled))
    (config / "jupyter_lab_config.json").write_text(json.dumps({"LabApp": {"expose_app_in_browser": True}}))
    token = os.urandom(16).hex()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = _at_home(home) | {"JUPYTER_TOKEN": token, "BROWSER": "true"}  # the program that opens nothing
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"]
    command += [CONNECTION, UNFOLD] * (not plain)
    if course:
        start = "import pathlib, sys; from courseware import lab; lab.main([sys.argv[1]], pathlib.Path(sys.argv[2]))"
        command = [sys.executable, "-c", start, str(port), str(folder)]
    log = home / "jupyterlab.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, process, log)
        yield url, token
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _at_home(home: Path) -> dict[str, str]:
    """The environment of a user who has this home and has set nothing."""
    own = ("JUPYTER", "IPYTHON", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return kept | {"HOME": str(home), "OMP_NUM_THREADS": "1"}


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + LAST_STOP
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/api", timeout=10)
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
