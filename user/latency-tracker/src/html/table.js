// SPDX-License-Identifier: GPL-2.0 OR MIT
//
// Tables: click a heading to sort, a time to show it in the time line, or the button of a row to show its histogram.

const NUMBERS = ['count', 'time', 'at', 'percent', 'clock'];
// This is made once: localeCompare with options would make a collator for each pair of cells.
const collator = new Intl.Collator('en-US', { numeric: true });

function cell(kind, value) {
	if (typeof value === 'string') return value;
	if (kind === 'time') return nanos(value);
	if (kind === 'at') return offset(value, 1000);
	return kind === 'percent' ? fixed(value, 1) : value.toLocaleString('en-US');
}

function table({ title, columns, rows, note }) {
	/* Rows shown at first. */
	const SOME = 100;
	let most = SOME, order = rows.slice();
	const body = el('tbody'), more = el('button', { type: 'button' });
	const fill = () => {
		body.replaceChildren(...order.slice(0, most).map(([cells, at]) => el('tr', {}, ...columns.map(([, kind], i) => {
			const data = el('td', { className: NUMBERS.includes(kind) ? 'number' : '' });
			const link = (textContent, title, onclick) => data.append(el('button', { type: 'button', textContent, title, onclick }));
			if (kind === 'histogram') { if (cells[i].length) link('Show', 'Show the histogram below', () => choose(cells, i)); }
			else if (i === 0 && at && lanes.length) link(cell(kind, cells[i]), 'Show in the time line', () => goTo(at));
			else data.textContent = cell(kind, cells[i]);
			return data;
		}))));
		more.hidden = order.length <= most;
		more.textContent = `Show all ${order.length.toLocaleString('en-US')} rows`;
	};
	more.onclick = () => { most = Infinity; fill(); };
	const chosen = el('div', { className: 'histogram', hidden: true });
	const choose = (cells, i) => {
		const name = cells.filter((_, i) => ['clock', 'text'].includes(columns[i][1])).join(' ').trim();
		chosen.replaceChildren(...histogram(name, cells[i]));
		chosen.hidden = false;
		chosen.scrollIntoView({ block: 'nearest' });
	};
	const heads = columns.map(([name, kind], i) => {
		if (kind === 'histogram') return el('th', { scope: 'col' }, el('span', { textContent: name }));
		const number = NUMBERS.includes(kind), button = el('button', { type: 'button', textContent: name });
		const head = el('th', { scope: 'col', className: number ? 'number' : '' }, button);
		button.onclick = () => {
			const up = head.ariaSort ? head.ariaSort === 'descending' : !number || kind === 'at' || kind === 'clock';
			for (const other of heads) { other.ariaSort = null; other.firstChild.textContent = columns[heads.indexOf(other)][0]; }
			head.ariaSort = up ? 'ascending' : 'descending';
			button.textContent = name + (up ? ' \u25b4' : ' \u25be');
			const compare = (a, b) => typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a).trim(), String(b).trim());
			order = rows.slice().sort((a, b) => (up ? 1 : -1) * compare(a[0][i], b[0][i]));
			fill();
		};
		return head;
	});
	fill();
	const caption = el('h2', { textContent: title });
	const parts = [caption, el('div', { className: 'wide' }, el('table', { ariaLabel: title }, el('thead', {}, el('tr', {}, ...heads)), body)), more, chosen];
	if (note) parts.push(el('p', { className: 'note', textContent: note }));
	return el('section', {}, ...parts);
}

// A heading, and a bar for each power of two, with the number of durations from that power to the next.
function histogram(name, bars) {
	const most = Math.max(...bars.map(([, count]) => count));
	const row = ([low, count]) => el('tr', {}, el('td', { className: 'number', textContent: nanos(low) }),
		el('td', { className: 'number', textContent: cell('count', count) }), el('td', {}, el('meter', { max: most, value: count })));
	const head = name => el('th', { scope: 'col', className: 'number', textContent: name });
	return [
		el('h3', { textContent: `Durations of ${name}` }),
		el('table', {}, el('thead', {}, el('tr', {}, head('From'), head('Count'), el('th'))), el('tbody', {}, ...bars.map(row))),
	];
}

// Shows a time of a table in the time line, and selects its bar.
function goTo([begin, end]) {
	const is = bar => bar[BEGIN] === begin && bar[BEGIN] + bar[TOOK] === end;
	for (let lane = 0; lane < lanes.length; lane++) {
		const bar = lanes[lane].bars.findIndex(is);
		if (bar >= 0) { showAround(begin, end); select({ lane, bar }); break; }
		if (lane === lanes.length - 1) { select(null); showAround(begin, end); }
	}
	$('timeline').scrollIntoView({ block: 'start' });
	canvas.focus({ preventScroll: true });
}
