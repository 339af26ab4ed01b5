"""Drive notebooks in a real JupyterLab with a real Chromium, by menu, mouse and keyboard as a learner would."""

import asyncio
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import BrowserContext, Error, Locator, Page, Playwright, sync_playwright

from courseware.lab import CONNECTION, UNFOLD

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
KINDS = {
    "widget-slider": ("slider", ".noUi-handle"),
    "widget-toggle-buttons": ("choice", "button:not(.mod-active)"),
    "widget-checkbox": ("switch", "input"),
    "widget-text": ("text", "input"),
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
        """What takes the keys; of a choice, the first option that is not chosen."""
        return self.box.locator(dict(KINDS.values())[self.kind]).first

    @property
    def value(self) -> str:
        """The value that the page shows."""
        if self.kind == "choice":
            return self.box.locator(".mod-active").text_content()
        if self.kind == "slider":
            return self.handle.get_attribute("aria-valuetext")
        return self.handle.evaluate("e => e.type === 'checkbox' ? String(e.checked) : e.value")

    def end(self, name: str) -> float:
        """Where a slider stands or ends: now, min or max, to a tenth."""
        return float(self.handle.get_attribute(f"aria-value{name}"))

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

    def others(self) -> Iterator[str]:
        """Go with the keyboard to both ends of a slider, to every other option, to another text, and back to where it
        stands; yields the value at each."""
        start = self.value
        self.focus()
        if self.kind == "slider":
            now, low, high = map(self.end, ("now", "min", "max"))
            to_nearer, back = ("Home", "ArrowRight") if now - low <= high - now else ("End", "ArrowLeft")
            for key in ("Home" if to_nearer == "End" else "End", to_nearer):
                self.press(key)
                yield self.value
            while self.value != start:
                if back == "ArrowLeft" and self.end("now") == low:  # its end is no whole number of steps away
                    self.press("Home")
                    back = "ArrowRight"
                else:
                    self.press(back)
        elif self.kind == "choice":
            options = self.box.locator("button").all()
            for option in sorted(options, key=lambda each: each.text_content() == start):  # its own at last
                option.focus()
                self.press("Space")
                yield self.value
        elif self.kind == "text":
            self.write(SENTENCES[start == SENTENCES[0]])
            yield self.value
            self.write(start)
        else:
            self.press("Space")
            yield self.value
            self.press("Space")

    def write(self, words: str) -> None:
        """Type words into a text control."""
        self.focus()
        self.press("Control+a")
        self.box.page.keyboard.type(words)
        self.press("Enter")


@dataclass
class Answer:
    """What a key press led to."""

    milliseconds: float | None  # until the pixels had changed; None where they did not within a second
    ends: list[str]  # which of min and max the slider stands at


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
        self.page.evaluate(
            """async seconds => {
                const end = performance.now() + 1000 * seconds;
                for (let quiet = 0; quiet < 3; quiet += 1) {
                    await new Promise(resolve => setTimeout(resolve, 20));
                    if (unanswered.size) quiet = -1;
                    if (performance.now() > end) throw new Error('the kernel does not answer');
                }
            }""",
            LAST_STOP,
        )

    def run_all(self) -> None:
        """Clear all outputs and run all cells through the menu; wait for the last one or an error."""
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
        self.page.click('.lm-MenuBar-itemLabel:text-is("Run")')
        self.page.click('.lm-Menu-item[data-command="runmenu:run-all"]')
        done = f"{CODE_CELLS}.every(cell => cell.executionCount !== null)"
        self._wait(f"{done} || {ERRORS}.length")
        self._wait("[...document.querySelectorAll('img.widget-image')].every(image => image.naturalWidth)")
        self.settle()

    def unfold(self) -> None:
        """Show the sections that start folded; what is not shown takes no keys."""
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:expand-all-headings')")

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
            name = next(name for name in KINDS if name in box.get_attribute("class"))
            label = box.evaluate("e => (e.querySelector('span') ?? e.querySelector('label')).textContent")
            controls.append(Control(KINDS[name][0], label, box))
        return controls

    def picture(self, figure: int) -> bytes:
        """The bytes of the picture that is shown."""
        image = self.figures[figure].locator("> img")
        encoded = image.evaluate(
            """async image => {
                const reader = new FileReader();
                const done = new Promise(resolve => { reader.onload = resolve });
                reader.readAsDataURL(await (await fetch(image.src)).blob());
                await done;
                return reader.result.split(',')[1];
            }"""
        )
        return base64.b64decode(encoded)

    def new_picture(self, figure: int, old: bytes) -> bytes | None:
        """The picture once it is another one, also while a cell runs; None when it stays."""
        deadline = time.monotonic() + LAST_STOP
        while time.monotonic() < deadline:
            try:
                if (picture := self.picture(figure)) != old:
                    return picture
            except Error:  # the page threw this picture away for the next one
                pass
            time.sleep(0.05)
        return None

    def alert(self, figure: int) -> Locator:
        """The error line under a figure."""
        return self.figures[figure].get_by_role("alert")

    def press(self, figure: int, slider: Control, presses: int) -> list[Answer]:
        """Press arrows on a slider, up from where it stands, back half way or at an end; what each press led to, and
        how soon."""
        self.figures[figure].locator("> img").evaluate(
            """image => {
                const look = milliseconds => {
                    const handle = document.activeElement;
                    const ends = ['min', 'max'];
                    return {milliseconds, ends: ends.filter(
                        end => handle.ariaValueNow === handle.getAttribute('aria-value' + end))};
                };
                let start, changed = () => {};
                addEventListener('keydown', () => {
                    start = performance.now();
                    window.answer = Promise.race([
                        new Promise(resolve => { changed = resolve }),
                        new Promise(resolve => setTimeout(resolve, 1000, null)),
                    ]).then(look);
                }, true);
                new MutationObserver(async () => {
                    await image.decode();
                    requestAnimationFrame(() => changed(performance.now() - start));
                }).observe(image, {attributeFilter: ['src']});
                window.answer = look(null);
            }"""
        )
        slider.focus()
        ends, key, answers = [], "ArrowRight", []
        for press in range(-6, presses):  # the first messages start the thread that the callbacks run in
            if "max" in ends or press == presses // 2:
                key = "ArrowLeft"
            if "min" in ends:
                key = "ArrowRight"
            slider.press(key)
            answers.append(Answer(**self.page.evaluate("window.answer")))
            ends = answers[-1].ends
        return answers[6:]

    def drag(self, figure: int, slider: Control, moves: int = 30, every: float = 0.035) -> int:
        """Drag a slider by this many moves of the mouse, `every` seconds one; how many pictures that draws."""
        self.figures[figure].locator("> img").evaluate(
            """image => {
                window.counting?.disconnect();
                window.counting = new MutationObserver(() => { window.drawn += 1 });
                window.counting.observe(image, {attributeFilter: ['src']});
            }"""
        )
        slider.handle.scroll_into_view_if_needed()
        track = slider.box.locator(".noUi-target").bounding_box()
        handle = slider.handle.bounding_box()
        y = handle["y"] + handle["height"] / 2
        x = [track["x"] + track["width"] * move / moves for move in range(moves + 1)]
        self.page.mouse.move(handle["x"] + handle["width"] / 2, y)
        self.page.mouse.down()
        self.page.mouse.move(x[0], y)
        self.page.wait_for_timeout(500)
        self.page.evaluate("window.drawn = 0")
        start = time.monotonic()
        for move in range(1, moves + 1):
            time.sleep(max(0, start + move * every - time.monotonic()))
            self.page.mouse.move(x[move], y)
        self.page.mouse.up()
        self.page.wait_for_timeout(1000)
        return self.page.evaluate("window.drawn")

    def screenshot(self, path: Path, width: int = 1280, height: int | None = None) -> None:
        """The page at this width; without a height, all of the notebook."""
        self.page.set_viewport_size({"width": width, "height": height or 900})
        for _ in range(0 if height else 2):  # cells that come into sight may take more room than was thought
            self.page.locator(".jp-WindowedPanel-outer").evaluate("e => { e.scrollTop = 0 }")
            last = self.page.locator(".jp-Notebook-cell").last
            end = last.evaluate("e => Math.ceil(e.getBoundingClientRect().bottom)")
            self.page.set_viewport_size({"width": width, "height": min(end + 80, 16_000)})
            self.page.wait_for_timeout(1000)
        self.page.mouse.move(0, 0)
        self.page.wait_for_timeout(500)
        self.page.screenshot(path=path)

    def close(self) -> None:
        """Close the page; the kernel ends with the server."""
        self.page.close()

    def _wait(self, condition: str) -> None:
        self.page.wait_for_function(condition, polling=50)


@dataclass
class Lab:
    """A JupyterLab that serves one folder, and a Chromium to look at it."""

    folder: Path
    url: str
    token: str
    settings: Path
    browser: BrowserContext

    def open(self, name: str, theme: str = "Light") -> Notebook:
        """Open a notebook of the folder; the theme is Light or Dark."""
        themes = self.settings / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
        themes.parent.mkdir(parents=True, exist_ok=True)
        themes.write_text(json.dumps({"theme": f"JupyterLab {theme}"}))
        page = self.browser.new_page()
        page.goto(f"{self.url}/doc/tree/{name}?token={self.token}&reset")
        return Notebook(page)


@contextmanager
def lab(folder: Path, home: Path, *, plain: bool = False, course: bool = False, delay: float = 0) -> Iterator[Lab]:
    """Serve a folder on loopback and open a browser; all that they write goes into home.

    With plain, the server is without what `make lab` adds; with course, the folder is a clone of the course, and
    the server is that of `make lab`. What server and browser say arrives `delay` seconds later.
    """
    (home / "config" / "labconfig").mkdir(parents=True)
    if not course:
        config = home / "config" / "labconfig" / "page_config.json"
        config.write_text(json.dumps({"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}))
    config = home / "config" / "jupyter_lab_config.json"
    config.write_text(json.dumps({"LabApp": {"expose_app_in_browser": True}}))
    token = os.urandom(16).hex()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTER_TOKEN": token,
        "BROWSER": "true",  # the program of that name, which opens nothing
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"]
    command += [CONNECTION, UNFOLD] * (not plain)
    if course:
        start = "import pathlib, sys; from courseware import lab; lab.main([sys.argv[1]], pathlib.Path(sys.argv[2]))"
        command = [sys.executable, "-c", start, str(port), str(folder)]
    log = home / "jupyterlab.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, server, log)
        with _delayed(port, delay) as port, _playwright() as playwright:
            browser = playwright.chromium.launch_persistent_context(
                home / "chromium",
                executable_path=chromium(),
                headless=True,
                env=environment,
                args=FLAGS + ["--no-sandbox"] * (os.geteuid() == 0),
                viewport={"width": 1280, "height": 900},
            )
            yield Lab(folder, f"http://127.0.0.1:{port}", token, home / "settings", browser)
            browser.close()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


_running: list[Playwright] = []


@contextmanager
def _playwright() -> Iterator[Playwright]:
    """The one of this process, which takes no second."""
    if _running:
        yield _running[0]
        return
    with sync_playwright() as playwright:
        _running.append(playwright)
        yield playwright
    _running.clear()


@contextmanager
def _delayed(port: int, seconds: float) -> Iterator[int]:
    """A port on loopback from which and to which everything arrives later than at this one."""
    if not seconds:
        yield port
        return

    async def forward(reader, writer):
        loop = asyncio.get_running_loop()
        while data := await reader.read(65536):
            loop.call_later(seconds, writer.write, data)
        loop.call_later(seconds, writer.close)

    async def serve(reader, writer):
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(forward(reader, other_writer), forward(other_reader, writer), return_exceptions=True)

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    yield server.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)


def _wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + LAST_STOP
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/api", timeout=10)
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
