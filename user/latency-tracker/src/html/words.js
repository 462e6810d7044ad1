// SPDX-License-Identifier: GPL-2.0 OR MIT
//
// The data of the page, and how its numbers are written. Times are ns since the start of the view.
//
// The files of this directory are one script, in the order words.js, draw.js, use.js, table.js, view.js. Texts of the
// data only become text nodes, or are drawn.

const page = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const [BEGIN, TOOK, KIND, WORD, CPU, MORE] = [0, 1, 2, 3, 4, 5];
const kinds = page.kinds.map(([name, label]) => ({ name, label }));
const MERGED = kinds.findIndex(kind => kind.name === 'merged');
const IDLE = kinds.findIndex(kind => kind.name === 'idle');
const UNKNOWN = kinds.findIndex(kind => kind.name === 'unknown');

// el NAME, properties, children: an element; text is never markup.
function el(name, properties, ...children) {
	const element = Object.assign(document.createElement(name), properties);
	element.append(...children);
	return element;
}

// Formats with a fixed number of digits; rounds ties to even, as the command does.
function fixed(value, digits) {
	const halves = value * 2 ** (digits + 1);
	if (!Number.isInteger(halves) || halves % 2 === 0) return value.toFixed(digits);
	const low = Math.floor(value * 10 ** digits);
	return ((low + low % 2) / 10 ** digits).toFixed(digits);
}

// A length, as the command prints it.
function nanos(ns) {
	for (const [unit, scale] of [['s', 1e9], ['ms', 1e6], ['us', 1e3]]) {
		const value = ns / scale;
		if (ns >= scale) return fixed(value, value < 99.995 ? 2 : value < 999.95 ? 1 : 0) + unit;
	}
	return Math.round(ns) + 'ns';
}

// A time relative to the start of the delay, in the unit for times up to `most`, with enough digits for `step`.
function offset(ns, step, most = Math.abs(ns)) {
	const [unit, scale] = [['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]].find(([, scale]) => most >= scale) || ['ns', 1];
	const digits = Math.max(0, Math.ceil(-Math.log10(Math.max(step, 1) / scale) - 1e-9));
	return (ns < 0 ? '\u2212' : '+') + (Math.abs(ns) / scale).toFixed(digits) + unit;
}

const relative = at => offset(at - view.focus[0], 1);
const absolute = at => (BigInt(view.origin) + BigInt(Math.round(at))).toString();
