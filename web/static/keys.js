// Shortcuts of one key. They do nothing while something is typed, and can be
// switched off on the help page.
import { next as nextTheme } from "./theme.js";
import { togglePause } from "./live.js";

const off = "holdfast_keys_off";

const actions = {
	"/": () => focusOn(document.querySelector("[data-filter]")),
	j: () => step(1),
	k: () => step(-1),
	p: togglePause,
	t: nextTheme,
	"?": () => location.assign("/ui/help"),
};

export function listen() {
	document.addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.altKey || event.metaKey || isOff()) return;
		if (event.target.closest("input, select, textarea")) {
			if (event.key === "Escape") event.target.blur();
			return;
		}
		const action = actions[event.key];
		if (!action) return;
		event.preventDefault();
		action();
	});
	const button = document.getElementById("shortcuts");
	if (!button) return;
	button.hidden = false;
	tell(button);
	button.addEventListener("click", () => {
		if (isOff()) localStorage.removeItem(off);
		else localStorage.setItem(off, "1");
		tell(button);
	});
}

function isOff() {
	return localStorage.getItem(off) !== null;
}

function tell(button) {
	button.setAttribute("aria-pressed", String(!isOff()));
	button.textContent = isOff() ? "Keys are off" : "Keys are on";
}

function focusOn(field) {
	field?.focus();
	field?.select();
}

// step moves to another row and puts the focus on its link, so that Enter opens it.
function step(by) {
	const rows = [...document.querySelectorAll("tbody tr")].filter((row) => row.querySelector("a"));
	if (rows.length === 0) return;
	const at = rows.findIndex((row) => row.classList.contains("at"));
	rows[at]?.classList.remove("at");
	const to = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
	to.classList.add("at");
	to.querySelector("a").focus();
}
