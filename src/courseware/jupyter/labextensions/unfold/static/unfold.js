// For JupyterLab, which follows no link to what stands in a folded section: unfold the section first.
// It is written as JupyterLab loads extensions, so nothing has to be built.

const target = (cells, fragment) => {
    const words = decodeURIComponent(fragment.replace(/^#/, ""));
    const id = words.match(/^cell-id=(.*)/)?.[1];
    const anchors = cell => cell.model.type === "markdown"
        ? [...cell.model.sharedModel.getSource().matchAll(/^#+ (.*)$/gm)]
            .map(([, heading]) => heading.trim().replace(/[`*]/g, "").replaceAll(" ", "-"))
        : [];
    return cells.findIndex(cell => id ? cell.model.id === id : anchors(cell).includes(words));
};

const unfold = (cells, index) => {
    const folded = [];
    let level = Infinity;
    for (const cell of cells.slice(0, Math.max(index, 0)).reverse()) {
        const own = cell.model.type === "markdown" && /^#+(?= )/m.exec(cell.model.sharedModel.getSource())?.[0].length;
        if (own && own < level) {
            level = own;
            if (cell.headingCollapsed) folded.push(cell);
        }
    }
    folded.reverse().forEach(cell => { cell.headingCollapsed = false; });
    return folded.length > 0;
};

const follow = notebook => {
    const all = Object.getPrototypeOf(notebook); // also those that a link opens
    if (!all.unfolds) {
        const jump = all.setFragment;
        all.setFragment = async function (fragment) {
            const index = target(this.widgets, fragment);
            if (index < 0) return jump.call(this, fragment);
            if (unfold(this.widgets, index)) await new Promise(resolve => setTimeout(resolve, 100)); // cells come back
            return jump.call(this, `#cell-id=${this.widgets[index].model.id}`);
        };
        all.unfolds = true;
    }
    notebook.node.addEventListener("click", event => { // JupyterLab would look only among what it has drawn
        const link = event.target.closest?.('a[href^="#"]');
        if (!link) return;
        event.preventDefault();
        event.stopPropagation();
        notebook.setFragment(link.getAttribute("href"));
    }, true);
    notebook.follows = true;
};

const plugin = {
    id: "unfold:plugin",
    autoStart: true,
    activate: app => {
        app.shell.layoutModified?.connect(() => {
            for (const { content } of app.shell.widgets("main")) {
                if (content?.widgets && content.setFragment && !content.follows) follow(content);
            }
        });
    },
};

(window._JUPYTERLAB ??= {}).unfold = { init: () => {}, get: async () => () => ({ default: plugin, __esModule: true }) };
