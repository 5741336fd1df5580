// live keeps the open page up to date: when the node says that something has
// changed, the page is asked for again and what differs is put into place.
import { feed } from "./feed.js";
import { morph } from "./morph.js";
import { offer, patchRows, withdraw } from "./rows.js";

const atLeast = 1000; // from one refresh to the next
const restFor = 4; // times what the last one took: a node with a million keys has other things to do

const pill = document.getElementById("pill");
const label = document.getElementById("pill-text");
const pauseButton = document.getElementById("pause");

let paused = false;
let connected = null; // null: not yet known
let answers = true; // the last time that the page was asked for
let freshAt = Date.now();
let startedAt = 0;
let took = 0;
let busy = false;
let again = false;
let timer = 0;

export function follow() {
	if (!pill) return;
	pauseButton.hidden = false;
	pauseButton.addEventListener("click", togglePause);
	document.addEventListener("visibilitychange", () => document.hidden || refreshSoon());
	feed(refreshSoon, (state) => {
		connected = state === "live";
		show();
	});
	setInterval(show, 1000);
	show();
}

export function togglePause() {
	if (!pill) return;
	paused = !paused;
	pauseButton.textContent = paused ? "Go on" : "Pause";
	pauseButton.setAttribute("aria-pressed", String(paused));
	show();
	if (!paused) refreshSoon();
}

// refreshSoon coalesces: however much is pushed, a page is asked for once a
// second, and never while it is not looked at.
function refreshSoon() {
	if (paused || document.hidden || timer) return;
	if (busy) {
		again = true;
		return;
	}
	timer = setTimeout(refresh, Math.max(0, startedAt + Math.max(atLeast, restFor * took) - Date.now()));
}

async function refresh() {
	timer = 0;
	if (paused) return;
	busy = true;
	startedAt = Date.now();
	const page = await ask();
	took = Date.now() - startedAt;
	answers = page !== null;
	if (page && !paused) {
		apply(page);
		freshAt = Date.now();
	}
	busy = false;
	show();
	if (again) {
		again = false;
		refreshSoon();
	}
}

// ask returns the page as it is now, null if it can't be had.
async function ask() {
	try {
		const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
		if (!answer.ok) return null;
		return new DOMParser().parseFromString(await answer.text(), "text/html");
	} catch {
		return null; // the pill tells how old the page is
	}
}

function apply(page) {
	for (const part of document.querySelectorAll("[data-live=on]")) {
		const fresh = page.getElementById(part.id);
		if (fresh) applyPart(part, fresh);
	}
}

function applyPart(part, fresh) {
	const table = part.querySelector("table[data-rows]");
	const wanted = fresh.querySelector("table[data-rows]");
	if (!table || !wanted || table.tBodies[0].rows.length === 0) {
		morph(part, fresh);
		return;
	}
	const shown = table.tBodies[0];
	const full = wanted.tBodies[0].cloneNode(true);
	if (!patchRows(shown, wanted.tBodies[0])) {
		withdraw();
	} else {
		offer(table, () => morph(shown, full));
	}
	wanted.tBodies[0].replaceWith(shown.cloneNode(true)); // the rows are done
	const note = document.querySelector(".moved");
	note?.remove();
	morph(part, fresh);
	if (note) table.closest(".scroll").before(note);
}

function show() {
	if (connected === null && !paused) return; // the page says when it was made
	const age = Math.round((Date.now() - freshAt) / 1000);
	let state = "live";
	let words = age > 3 ? `live · no change for ${age} s` : "live";
	if (paused) {
		state = "paused";
		words = `paused · ${age} s old`;
	} else if (!answers) {
		state = "lost";
		words = `reconnecting · ${age} s old`;
	} else if (!connected) {
		state = "asking"; // something between cuts WebSockets: it goes on, only slower
		words = `no live feed · ${age} s old`;
	}
	if (pill.dataset.state !== state) {
		pill.dataset.state = state;
		label.setAttribute("role", "status");
	} else {
		label.removeAttribute("role"); // a change of state is announced, each second is not
	}
	if (label.textContent !== words) label.textContent = words;
}
