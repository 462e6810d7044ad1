// SPDX-License-Identifier: GPL-2.0 OR MIT
//
// Handles input on the time line: zooms, moves, selects.

// Shows from `a` to `b`, within the view.
function show(a, b) {
	const length = Math.min(Math.max(b - a, 20), view.length);
	from = Math.min(Math.max((a + b - length) / 2, 0), view.length - length);
	to = from + length;
	redraw();
}
function zoom(factor, at = (from + to) / 2) { show(at - (at - from) * factor, at + (to - at) * factor); }
function pan(part) {
	const length = to - from, begin = Math.min(Math.max(from + length * part, 0), view.length - length);
	show(begin, begin + length);
}
function showAround(begin, end) { show(begin - (end - begin) * 0.15, end + (end - begin) * 0.15); }

// The bar at a point, or up to 3 pixels away.
function hit(px, py) {
	const lane = lanes.findIndex(lane => py >= lane.top && py < lane.top + ROW);
	if (lane < 0 || px < gutter()) return null;
	const bars = lanes[lane].bars, slack = 3 * (to - from) / plot();
	let best = null;
	for (let bar = first(bars, time(px) - slack); bar < bars.length && bars[bar][BEGIN] <= time(px) + slack; bar++) {
		const away = Math.max(bars[bar][BEGIN] - time(px), time(px) - bars[bar][BEGIN] - bars[bar][TOOK], 0);
		const better = best === null || away < best.away || (away === best.away && bars[bar][TOOK] > bars[best.bar][TOOK]);
		if (better) best = { lane, bar, away };
	}
	return best;
}

function select(choice) {
	selected = choice;
	const details = $('details');
	details.hidden = !choice;
	if (choice) {
		const lane = lanes[choice.lane], bar = lane.bars[choice.bar], end = bar[BEGIN] + bar[TOOK];
		if (end <= from || bar[BEGIN] >= to) show((bar[BEGIN] + end - to + from) / 2, (bar[BEGIN] + end + to - from) / 2);
		const [begin, last] = view.focus;
		const within = Math.max(0, Math.min(end, last) - Math.max(bar[BEGIN], begin));
		const wakeup = view.arrows.find(arrow => arrow[2] === end && arrow[3] === choice.lane);
		const facts = [
			['Lane', `${lane.group.name}: ${lane.name}`], ['State', kinds[bar[KIND]].label], ['Took', nanos(bar[TOOK])],
			['Share of the delay', `${fixed(within * 100 / (last - begin), 1)} %`],
			['From', `${relative(bar[BEGIN])} (${absolute(bar[BEGIN])} ns)`], ['To', `${relative(end)} (${absolute(end)} ns)`],
		];
		if (bar[CPU] !== null) facts.push(['CPU', bar[CPU]]);
		if (bar[MORE] !== null) facts.push(['More', view.words[bar[MORE]]]);
		if (wakeup) facts.push(['Woken from', `${lanes[wakeup[1]].name} at ${relative(wakeup[0])}`]);
		const around = el('button', { type: 'button', textContent: 'Zoom to it' });
		around.onclick = () => showAround(bar[BEGIN], end);
		const close = el('button', { type: 'button', textContent: 'Close' });
		close.onclick = () => { select(null); canvas.focus(); };
		details.replaceChildren(el('p', { className: 'what', textContent: view.words[bar[WORD]] }), list(facts), around, ' ', close);
	}
	redraw();
}

function list(facts) {
	const one = ([name, value]) => el('div', {}, el('dt', { textContent: name }), el('dd', { textContent: value }));
	return el('dl', {}, ...facts.map(one));
}

// Selects the neighbour of the selected bar in its lane, or the bar at the same time in the next
// lane with bars.
function step(bars, rows) {
	if (!selected) return select(lanes.some(lane => lane.bars.length) ? { lane: lanes.findIndex(lane => lane.bars.length), bar: 0 } : null);
	const { lane, bar } = selected, now = lanes[lane].bars[bar];
	if (bars) return lanes[lane].bars[bar + bars] && select({ lane, bar: bar + bars });
	const middle = Math.min(Math.max(now[BEGIN] + now[TOOK] / 2, from), to);
	for (let next = lane + rows; lanes[next]; next += rows) {
		const all = lanes[next].bars;
		if (all.length) return select({ lane: next, bar: Math.min(first(all, middle), all.length - 1) });
	}
}

const KEYS = {
	ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1),
	'+': () => zoom(0.6), '=': () => zoom(0.6), w: () => zoom(0.6), '-': () => zoom(1 / 0.6), s: () => zoom(1 / 0.6),
	a: () => pan(-0.25), d: () => pan(0.25), Home: () => showAround(...view.focus), End: () => show(0, view.length),
	Escape: () => select(null),
	Enter: () => {
		if (!selected) return;
		const bar = lanes[selected.lane].bars[selected.bar];
		showAround(bar[BEGIN], bar[BEGIN] + bar[TOOK]);
	},
};

function listen() {
	const buttons = { in: '+', out: '-', left: 'a', right: 'd', delay: 'Home', all: 'End' };
	for (const [id, key] of Object.entries(buttons)) $(id).onclick = KEYS[key];
	canvas.onkeydown = event => {
		const act = !event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key.length > 1 ? event.key : event.key.toLowerCase()];
		if (act) { event.preventDefault(); act(); }
	};
	canvas.addEventListener('wheel', event => {
		// Left of the lanes, and when zooming out while everything is shown, the page scrolls.
		const all = to - from >= view.length;
		if (event.offsetX < gutter() || (all && event.deltaY > 0)) return;
		event.preventDefault();
		if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / plot());
		else zoom(Math.exp(Math.max(-300, Math.min(300, event.deltaY)) * 0.002), time(event.offsetX));
	}, { passive: false });
	let grip = null;
	canvas.onpointerdown = event => {
		if (event.button !== 0) return;
		grip = { px: event.offsetX, from, to, moved: false };
		canvas.setPointerCapture(event.pointerId);
	};
	canvas.onpointermove = event => {
		if (grip && Math.abs(event.offsetX - grip.px) > 4) grip.moved = true;
		if (grip && grip.moved) {
			canvas.classList.add('drag');
			const by = (grip.px - event.offsetX) * (grip.to - grip.from) / plot();
			const begin = Math.min(Math.max(grip.from + by, 0), view.length - (grip.to - grip.from));
			show(begin, begin + grip.to - grip.from);
		}
		tip(grip ? null : hit(event.offsetX, event.offsetY), event);
	};
	canvas.onpointerup = event => {
		if (grip && !grip.moved) { canvas.focus({ preventScroll: true }); select(hit(event.offsetX, event.offsetY)); }
		grip = null;
		canvas.classList.remove('drag');
	};
	canvas.onpointercancel = () => { grip = null; };
	canvas.onpointerleave = () => tip(null);
	canvas.ondblclick = () => KEYS.Enter();
	new ResizeObserver(redraw).observe(canvas);
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColours(); legend(); redraw(); });
}

function tip(choice, event) {
	$('tip').hidden = !choice;
	if (!choice) return;
	const bar = lanes[choice.lane].bars[choice.bar];
	$('tip').textContent = `${view.words[bar[WORD]]} \u2013 ${nanos(bar[TOOK])}`;
	const left = Math.min(event.offsetX + 14, canvas.clientWidth - $('tip').offsetWidth);
	Object.assign($('tip').style, { left: Math.max(0, left) + 'px', top: canvas.offsetTop + event.offsetY + 18 + 'px' });
}

function legend() {
	const used = new Set(lanes.flatMap(lane => lane.bars.map(bar => bar[KIND])));
	const item = (_, kind) => {
		const sample = el('canvas', { width: 22, height: 12 });
		box(sample.getContext('2d'), kind, 0, 0, 24, 12);
		return el('li', {}, sample, kinds[kind].label);
	};
	const items = kinds.map(item).filter((_, kind) => used.has(kind));
	if (view.arrows.length) items.push(el('li', {}, '\u2193 wakeup'));
	$('legend').replaceChildren(...items);
}
