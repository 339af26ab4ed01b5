// Answers the predictions, and moves the slider figures: each control has stops, each position of all controls has a picture made of tiles.

// An address ends in #figure, or with its controls in #figure&m=9&n=4.
const anchored = () => {
    const [whole, anchor, ...values] = [decodeURIComponent(location.hash.slice(1)), ...location.hash.slice(1).split("&")];
    return document.getElementById(whole) ? [whole, ""] : [decodeURIComponent(anchor), values.join("&")];
};

for (const figure of document.querySelectorAll(".live")) start(figure);
for (const picture of document.querySelectorAll("[data-cut]")) {
    const still = picture.querySelector("img");
    still.decode().then(() => inTwo(picture, still, Number(picture.dataset.cut))());
}
for (const prediction of document.querySelectorAll(".prediction")) ask(prediction);

// A link to what is folded unfolds it.
reveal();
addEventListener("hashchange", reveal);
addEventListener("click", event => { if (event.target.closest("a")?.hash === location.hash) reveal(); });

function reveal() {
    const target = document.getElementById(anchored()[0]);
    for (let part = target; part; part = part.parentElement) if (part.matches("details")) part.open = true;
    target?.scrollIntoView();
}

// The menus close behind who has chosen or turned away; the second says which section is in view.
const menus = document.querySelectorAll("header details");
addEventListener("click", event => { for (const menu of menus) if (!menu.contains(event.target) || event.target.closest("a")) menu.open = false; });
addEventListener("keydown", event => { if (event.key === "Escape") for (const menu of menus) menu.open = false; });

const headings = [...document.querySelectorAll("main h2")];
const sections = document.querySelector(".sections");
if (sections) addEventListener("scroll", look, { passive: true });

function look() {
    const seen = headings.findLast(heading => heading.checkVisibility() && heading.getBoundingClientRect().top < 160);
    sections.querySelector("summary").textContent = seen?.textContent ?? "Sections";
    for (const link of sections.querySelectorAll("a")) {
        if (seen && decodeURIComponent(link.hash.slice(1)) === seen.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
    }
}

// The options of a prediction are buttons; what the same question shows below, once measured, follows the choice.
function ask(prediction) {
    const items = [...prediction.querySelectorAll("li")];
    const options = items.map(item => item.textContent.slice(2));
    const several = items[0].textContent.startsWith("☐");
    const asked = prediction.querySelector("strong").textContent;
    const comparisons = [...document.querySelectorAll(".comparison")]
        .filter(comparison => comparison.querySelector("strong").textContent === asked);
    const buttons = options.map(() => Object.assign(document.createElement("button"), { type: "button" }));
    const isChosen = button => button.ariaPressed === "true";

    function press(button, chosen) {
        const [empty, full] = several ? "☐☑" : "○●";
        button.ariaPressed = chosen;
        button.textContent = `${chosen ? full : empty} ${options[buttons.indexOf(button)]}`;
    }

    function answer() {
        const chosen = options.filter((_, n) => isChosen(buttons[n]));
        const comma = options.some(option => option.includes(",")) ? "; " : ", ";
        const words = chosen.map(option => option.replace(/\.+$/, "")).join(comma);
        for (const comparison of comparisons) {
            const since = JSON.parse(comparison.dataset.since);
            comparison.querySelector(".said").textContent = words && `You said: ${words}. `;
            comparison.querySelectorAll(".reason").forEach(reason => reason.remove());
            for (const option of chosen.filter(option => option in since)) {
                const reason = comparison.appendChild(document.createElement("div"));
                reason.className = "reason";
                reason.appendChild(document.createElement("em")).textContent = option;
                reason.append(`: ${since[option]}`);
            }
        }
    }

    items.forEach((item, n) => {
        press(buttons[n], false);
        item.replaceChildren(buttons[n]);
        buttons[n].addEventListener("click", () => {
            const chosen = !isChosen(buttons[n]);
            if (!several) buttons.forEach(button => press(button, false));
            press(buttons[n], chosen);
            answer();
        });
    });
}


async function start(figure) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const places = new Uint16Array(await inflated(data.places));
    const atlas = await createImageBitmap(new Blob([decoded(data.atlas)], { type: "image/webp" }));

    const canvas = figure.querySelector("canvas");
    const brush = canvas.getContext("2d");
    const across = Math.ceil(canvas.width / data.tile);
    const shown = new Array(places.length / data.says.length);

    const inputs = [...figure.querySelectorAll(".control")].map(box => [...box.querySelectorAll("input")]);
    const counts = data.controls.map(control => control.stops.length);
    const strides = counts.map((_, n) => counts.slice(n + 1).reduce((product, count) => product * count, 1));
    const stop = n => Math.floor(position / strides[n]) % counts[n];
    const name = figure.closest("[id]").id;
    let position = data.start;

    function follow(n) {
        const at = counts.map((_, control) => stop(control));
        let step = chosen(inputs[n]) - at[n];
        const [, locked] = data.together.find(([lock, sliders]) => at[lock] && sliders.includes(n)) ?? [n, [n]];
        for (const other of locked) step = Math.min(Math.max(step, -at[other]), counts[other] - 1 - at[other]);
        for (const other of locked) at[other] += step;
        position = at.reduce((sum, place, control) => sum + place * strides[control], 0);
        const stands = data.controls.map((control, n) => `${control.label} ${control.stops[stop(n)]}`).join("; ");
        figure.querySelector(".says").textContent = data.texts[data.says[position]] || stands;
        draw();
    }

    // Stand where the address says.
    function go() {
        const [anchor, values] = anchored();
        if (anchor !== name) return;
        const told = new URLSearchParams(values);
        const at = data.controls.map((control, n) => {
            const there = control.stops.indexOf(told.get(control.name));
            return there < 0 ? stop(n) : there;
        });
        position = at.reduce((sum, place, control) => sum + place * strides[control], 0);
        draw();
    }

    function tell() {
        const values = new URLSearchParams(data.controls.map((control, n) => [control.name, control.stops[stop(n)]]));
        history.replaceState(null, "", `#${name}&${values}`);
    }

    function draw() {
        for (let place = 0; place < shown.length; place++) {
            const tile = places[place * data.says.length + position];
            if (tile === shown[place]) continue;
            shown[place] = tile;
            brush.drawImage(
                atlas,
                (tile % data.columns) * data.tile, Math.floor(tile / data.columns) * data.tile, data.tile, data.tile,
                (place % across) * data.tile, Math.floor(place / across) * data.tile, data.tile, data.tile,
            );
        }
        data.controls.forEach((control, n) => choose(inputs[n], stop(n), control.stops[stop(n)]));
        below?.();
    }

    const below = data.cut && inTwo(figure.querySelector(".picture"), canvas, data.cut);
    draw();
    go();
    addEventListener("hashchange", go);
    inputs.forEach((group, n) => group.forEach(input => {
        input.addEventListener("input", () => follow(n));
        input.addEventListener("change", tell);
    }));
    figure.querySelector("img")?.setAttribute("hidden", "");
    canvas.hidden = figure.querySelector(".controls").hidden = false;
}

// A second picture for narrow screens, in which what is right of the cut stands below the rest; draws it anew.
function inTwo(picture, source, cut) {
    const width = source.naturalWidth ?? source.width, height = source.naturalHeight ?? source.height;
    const canvas = Object.assign(document.createElement("canvas"), { className: "narrow", role: "img" });
    canvas.ariaLabel = source.ariaLabel ?? source.alt;
    [canvas.width, canvas.height] = [Math.max(cut, width - cut), 2 * height];
    const brush = canvas.getContext("2d");
    picture.append(canvas);
    picture.classList.add("cut");
    return () => {
        brush.drawImage(source, 0, 0, cut, height, 0, 0, cut, height);
        brush.drawImage(source, cut, 0, width - cut, height, 0, height, width - cut, height);
    };
}

// The number of the stop that a slider, a box to tick or a group of options stands at.
function chosen([input, ...others]) {
    if (input.type === "radio") return [input, ...others].findIndex(option => option.checked);
    return input.type === "range" ? Number(input.value) : Number(input.checked);
}

function choose(inputs, stop, words) {
    const [input] = inputs;
    if (input.type === "radio") inputs[stop].checked = true;
    else if (input.type === "checkbox") input.checked = Boolean(stop);
    else {
        input.value = stop;
        input.setAttribute("aria-valuetext", words);
        input.nextElementSibling.textContent = words;
    }
}

function decoded(base64) {
    return Uint8Array.from(atob(base64), character => character.charCodeAt(0));
}

function inflated(base64) {
    const bytes = new Blob([decoded(base64)]).stream();
    return new Response(bytes.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}
