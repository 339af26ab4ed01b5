"""A JupyterHub on loopback, and three users who each open chapter 1 and move a slider: `make hub`.

It runs the environment of the course under a spawner of local processes, as The Littlest JupyterHub does with
system users. In the end it prints what memory a user needs. It needs Chromium, and npm for the Hub's proxy.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil
from browser import FLAGS, Notebook, chromium
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
HUB = ROOT / ".venv-hub"
USERS = ("ada", "grace", "emmy")
CHAPTER = "01_permutation_invariance.ipynb"

CONFIG = """
import os
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub}
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.DummyAuthenticator.password = os.environ["CLASS_PASSWORD"]
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{homes}/{{username}}"
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root", "--LabApp.expose_app_in_browser=True"]
c.Spawner.environment = {{
    "JUPYTER_PATH": "{course}/share/jupyter",
    "JUPYTER_CONFIG_PATH": "{course}/etc/jupyter",
    "OMP_NUM_THREADS": "1",
}}
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = 120
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.auth_token = os.urandom(16).hex()
"""


def install() -> None:
    """Make .venv-hub: JupyterHub over what .venv has, and its proxy from npm."""
    if (HUB / "installed").exists():
        return
    if not shutil.which("npm"):
        sys.exit("The Hub's proxy needs npm: apt-get install npm")
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", HUB], check=True)
    (site,) = HUB.glob("lib/python3*/site-packages")
    (course,) = (ROOT / ".venv").glob("lib/python3*/site-packages")
    (site / "course.pth").write_text(f"{course}\n{ROOT / 'src'}\n")
    pip = [HUB / "bin" / "python", "-m", "pip", "install", "-q", "-c", "constraints.txt", "jupyterhub"]
    subprocess.run(pip, check=True, cwd=ROOT)
    npm = [
        "npm",
        "install",
        "--no-fund",
        "--no-audit",
        "--silent",
        "--prefix",
        HUB,
        "configurable-http-proxy",
    ]
    subprocess.run(npm, check=True)
    (HUB / "installed").touch()


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def memory(process: psutil.Process) -> float:
    """What a process and all below it hold that no other shares, in MB."""
    return sum(each.memory_full_info().uss for each in [process, *process.children(recursive=True)]) / 1e6


def move_a_slider(notebook: Notebook) -> None:
    """Run the cells that the first figure with a slider needs, and move it by the keyboard."""
    notebook.page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    for words in (
        "import torch",
        "figures.sentence_box()",
        "tokens = figures.read",
        "figures.permutation(sentence)",
    ):
        notebook.run(words, timeout=120)
    notebook.page.wait_for_selector("img.widget-image")
    figure = len(notebook.figures) - 1
    slider = next(control for control in notebook.controls(figure) if control.kind == "slider")
    before = notebook.picture(figure)
    slider.change()
    assert notebook.new_picture(figure, before), "the picture stayed"


def main() -> None:
    install()
    folder = Path(tempfile.mkdtemp())
    for user in USERS:
        (folder / user).mkdir()
        shutil.copy(ROOT / "notebooks" / CHAPTER, folder / user)
    port, hub, api = free_ports(3)
    proxy, python = (
        str(HUB / "node_modules" / ".bin" / "configurable-http-proxy"),
        str(HUB / "bin" / "python"),
    )
    config = folder / "jupyterhub_config.py"
    config.write_text(
        CONFIG.format(
            port=port, hub=hub, api=api, homes=folder, course=ROOT / ".venv", python=python, proxy=proxy
        )
    )
    password = os.urandom(8).hex()
    environment = os.environ | {"CLASS_PASSWORD": password, "PATH": f"{HUB / 'bin'}:{os.environ['PATH']}"}
    log = (folder / "log").open("w")
    command = [python, "-m", "jupyterhub", "-f", str(config)]
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        visit(f"http://127.0.0.1:{port}", server, password, folder)
    except Exception:
        print((folder / "log").read_text()[-5000:], file=sys.stderr)
        raise
    finally:
        for process in [*psutil.Process(server.pid).children(recursive=True), server]:
            process.terminate()
        server.wait(30)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def visit(url: str, server: subprocess.Popen, password: str, folder: Path) -> None:
    """Let all users in, each in a browser window of their own, and tell what memory they need."""
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/hub/api", timeout=1)
            break
        except OSError:
            time.sleep(0.1)
    with sync_playwright() as playwright:
        root = ["--no-sandbox"] * (os.geteuid() == 0)
        settings = {
            "executable_path": chromium(),
            "args": FLAGS + root,
            "env": os.environ | {"HOME": str(folder)},
        }
        browser = playwright.chromium.launch(**settings)
        for user in USERS:
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.goto(f"{url}/hub/login?next=/hub/spawn")
            page.fill("#username_input", user)
            page.fill("#password_input", password)
            page.click("#login_submit")
            page.wait_for_url(f"**/user/{user}/**", timeout=120_000)
            page.goto(f"{url}/user/{user}/doc/tree/{CHAPTER}?reset")
            move_a_slider(Notebook(page))
            print(f"{user} has opened chapter 1 and moved a slider")
        users = [
            p
            for p in psutil.Process(server.pid).children(recursive=True)
            if "jupyterhub.singleuser" in p.cmdline()
        ]
        needs = [memory(process) for process in users]
        total = memory(psutil.Process(server.pid))
        print(
            f"a user needs {max(needs):.0f} MB, server and kernel; the Hub and its proxy {total - sum(needs):.0f} MB"
        )
        assert len(needs) == len(USERS)
        browser.close()


if __name__ == "__main__":
    main()
