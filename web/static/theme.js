// The theme changes at once, without asking the server; the cookie tells it
// the next time.
const names = ["system", "light", "dark"];

export function current() {
	return document.documentElement.dataset.theme;
}

export function choose(name) {
	document.documentElement.dataset.theme = name;
	document.cookie = `holdfast_theme=${name}; path=/; max-age=31536000; samesite=strict`;
	for (const button of document.querySelectorAll(".theme button")) {
		button.setAttribute("aria-pressed", String(button.value === name));
	}
}

export function next() {
	choose(names[(names.indexOf(current()) + 1) % names.length]);
}

export function switchThemes() {
	document.querySelector(".theme")?.addEventListener("click", (event) => {
		const button = event.target.closest("button");
		if (!button) return;
		event.preventDefault();
		choose(button.value);
	});
}
