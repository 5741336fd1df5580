// morph makes one element like another and touches only what differs, so that
// focus, selection and scroll positions stay. Both are of this program's own
// pages; nothing is ever parsed from a text that a client chose.

export function morph(from, to) {
	copyAttributes(from, to);
	if (from.matches("input, select, textarea")) return; // what is typed belongs to who types
	morphChildren(from, to);
}

function copyAttributes(from, to) {
	for (const { name } of [...from.attributes]) {
		if (!to.hasAttribute(name) && !kept(from, name)) from.removeAttribute(name);
	}
	for (const { name, value } of to.attributes) {
		if (from.getAttribute(name) !== value && !kept(from, name)) from.setAttribute(name, value);
	}
}

// kept are attributes that modules have set.
function kept(element, name) {
	return name === "class" && element.matches("tr.at");
}

function keyOf(node) {
	return node.nodeType === Node.ELEMENT_NODE ? node.dataset.id || node.id : "";
}

function same(a, b) {
	return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

function morphChildren(from, to) {
	const keyed = new Map();
	for (const child of from.childNodes) {
		const key = keyOf(child);
		if (key) keyed.set(key, child);
	}
	let at = from.firstChild;
	for (const wanted of [...to.childNodes]) {
		const key = keyOf(wanted);
		const old = key ? keyed.get(key) : at;
		if (old && same(old, wanted)) {
			if (old === at) at = at.nextSibling;
			else from.insertBefore(old, at);
			change(old, wanted);
		} else {
			from.insertBefore(document.importNode(wanted, true), at);
		}
	}
	while (at) {
		const gone = at;
		at = at.nextSibling;
		gone.remove();
	}
}

function change(old, wanted) {
	if (old.nodeType === Node.ELEMENT_NODE) morph(old, wanted);
	else if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
}
