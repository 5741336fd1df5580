// A list of rows must not jump while somebody reads it: rows that stand on the
// page change where they are, and one that should stand elsewhere, or is new,
// waits until the reader asks for it.
import { morph } from "./morph.js";

// patchRows brings the rows of a table up to date in their places, and says
// whether the list as it should be is another one.
export function patchRows(from, to) {
	const wanted = new Map();
	for (const row of to.rows) wanted.set(row.dataset.id, row);
	for (const row of from.rows) {
		const fresh = wanted.get(row.dataset.id);
		row.classList.toggle("gone", !fresh);
		if (fresh) morph(row, fresh);
	}
	return order(from) !== order(to);
}

function order(body) {
	return [...body.rows].map((row) => row.dataset.id).join("\n");
}

// offer shows that the list has changed, with a button that applies it.
export function offer(table, apply) {
	let note = document.querySelector(".moved");
	if (!note) {
		note = document.createElement("p");
		note.className = "moved";
		note.setAttribute("role", "status");
		const button = document.createElement("button");
		button.type = "button";
		button.className = "button plain";
		button.textContent = "Show";
		note.append("Rows have come, gone or changed places. ", button);
		table.closest(".scroll").before(note);
	}
	note.querySelector("button").onclick = () => {
		note.remove();
		apply();
	};
}

export function withdraw() {
	document.querySelector(".moved")?.remove();
}
