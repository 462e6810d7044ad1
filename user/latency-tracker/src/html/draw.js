// SPDX-License-Identifier: GPL-2.0 OR MIT
//
// Draws the time line: lanes of bars on a canvas, and arrows between them.

let view, lanes, height, from, to, selected, colours, patterns;
const canvas = $('lanes'), ruler = $('ruler');
const ROW = 22, HEAD = 24, GAP = 3;

function gutter() { return Math.round(Math.min(190, Math.max(92, canvas.clientWidth * 0.2))); }
function plot() { return Math.max(40, canvas.clientWidth - gutter()); }
function x(at) { return gutter() + (at - from) * plot() / (to - from); }
function time(px) { return from + (px - gutter()) * (to - from) / plot(); }

// Makes room for the lanes of the view.
function layOut() {
	let top = 0;
	lanes = [];
	for (const group of view.groups) {
		top += HEAD;
		for (const lane of group.lanes) {
			lanes.push({ ...lane, top, group });
			top += ROW;
		}
	}
	height = top + 6;
	canvas.style.height = height + 'px';
}

function hatch(colour, over, slope) {
	const tile = el('canvas', { width: 8, height: 8 }), ctx = tile.getContext('2d');
	ctx.fillStyle = colour;
	ctx.fillRect(0, 0, 8, 8);
	ctx.strokeStyle = over;
	ctx.lineWidth = 1.5;
	for (const shift of [-8, 0, 8]) {
		ctx.moveTo(shift, slope > 0 ? 8 : 0);
		ctx.lineTo(shift + 8, slope > 0 ? 0 : 8);
	}
	ctx.stroke();
	return canvas.getContext('2d').createPattern(tile, 'repeat');
}

function readColours() {
	const style = getComputedStyle(document.documentElement);
	colours = name => style.getPropertyValue('--' + name).trim();
	patterns = kinds.map(({ name }) => colours(name));
	patterns[UNKNOWN] = hatch(colours('unknown'), colours('hatch'), 1);
	patterns[MERGED] = hatch(colours('merged'), colours('on-merged') + '66', -1);
}

function context(of, tall) {
	const ratio = window.devicePixelRatio || 1;
	of.width = Math.round(of.clientWidth * ratio);
	of.height = Math.round(tall * ratio);
	const ctx = of.getContext('2d');
	ctx.scale(ratio, ratio);
	ctx.font = '12px system-ui, sans-serif';
	ctx.textBaseline = 'middle';
	return ctx;
}

// `text`, cut to a width in pixels.
function fit(ctx, text, width) {
	if (ctx.measureText(text).width <= width) return text;
	let [low, high] = [0, text.length];
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (ctx.measureText(text.slice(0, middle) + '\u2026').width <= width) low = middle; else high = middle - 1;
	}
	return low > 0 ? text.slice(0, low) + '\u2026' : '';
}

// The index of the first bar that ends after `at`.
function first(bars, at) {
	let [low, high] = [0, bars.length];
	while (low < high) {
		const middle = (low + high) >> 1;
		if (bars[middle][BEGIN] + bars[middle][TOOK] <= at) low = middle + 1; else high = middle;
	}
	return low;
}

// One lane. Bars narrower than a pixel share a pixel, which shows the kind with the most time.
function drawLane(ctx, lane) {
	const y = lane.top + GAP, tall = ROW - GAP - 1, scale = plot() / (to - from);
	let pixel = -1, shares = [];
	const flush = () => {
		if (pixel < 0) return;
		const kind = shares.reduce((most, share, kind) => share > (shares[most] ?? 0) ? kind : most, -1);
		if (kind >= 0) box(ctx, kind, pixel, y, 1, tall);
		[pixel, shares] = [-1, []];
	};
	for (let i = first(lane.bars, from); i < lane.bars.length; i++) {
		const bar = lane.bars[i];
		if (bar[BEGIN] >= to) break;
		const left = Math.max(x(bar[BEGIN]), gutter()), right = Math.min(x(bar[BEGIN] + bar[TOOK]), gutter() + plot());
		if (bar[TOOK] * scale < 1) {
			if (Math.floor(left) !== pixel) { flush(); pixel = Math.floor(left); }
			shares[bar[KIND]] = (shares[bar[KIND]] || 0) + bar[TOOK];
			continue;
		}
		flush();
		box(ctx, bar[KIND], left, y, right - left, tall);
		if (right - left > 26 && bar[KIND] !== IDLE) {
			const text = fit(ctx, view.words[bar[WORD]], right - left - 8);
			if ([UNKNOWN, MERGED].includes(bar[KIND]) && text) {
				ctx.fillStyle = colours(kinds[bar[KIND]].name);
				ctx.fillRect(left + 2, y + 2, Math.min(ctx.measureText(text).width + 4, right - left - 4), tall - 4);
			}
			ctx.fillStyle = colours('on-' + kinds[bar[KIND]].name);
			ctx.fillText(text, left + 4, y + tall / 2 + 0.5);
		}
	}
	flush();
}

function box(ctx, kind, left, y, width, tall) {
	ctx.fillStyle = patterns[kind];
	// An idle CPU is a thin line.
	if (kind === IDLE) ctx.fillRect(left, y + tall / 2 - 1, width, 2);
	else ctx.fillRect(left, y, Math.max(width - (width > 3 ? 0.75 : 0), 1), tall);
}

function drawArrows(ctx) {
	/* If there are more wakeups outside of the path than this, none of these is drawn: they would hide the bars. The
	   wakeups of the path are always drawn, but faintly if there are more than this. */
	const MOST = 60;
	const seen = view.arrows.filter(([begin, , end]) => end >= from && begin <= to);
	const ofPath = seen.filter(arrow => arrow[4]), others = seen.filter(arrow => !arrow[4]);
	const drawn = others.length <= MOST ? others.concat(ofPath) : ofPath;
	const faint = ofPath.length > MOST ? 0.35 : 0.85;
	for (const [begin, fromLane, end, toLane, isOfPath] of drawn) {
		const [a, b] = [lanes[fromLane], lanes[toLane]];
		const down = b.top > a.top, y1 = a.top + ROW / 2, y2 = b.top + (down ? GAP : ROW - 1);
		ctx.strokeStyle = ctx.fillStyle = colours('arrow');
		ctx.globalAlpha = isOfPath ? faint : 0.35;
		ctx.lineWidth = 1.2;
		ctx.beginPath();
		ctx.arc(x(begin), y1, 2.2, 0, 7);
		ctx.fill();
		ctx.beginPath();
		ctx.moveTo(x(begin), y1);
		ctx.lineTo(x(end), y2);
		ctx.stroke();
		ctx.beginPath();
		ctx.moveTo(x(end), y2);
		ctx.lineTo(x(end) - 3.2, y2 + (down ? -6 : 6));
		ctx.lineTo(x(end) + 3.2, y2 + (down ? -6 : 6));
		ctx.fill();
	}
	ctx.globalAlpha = 1;
	const hidden = seen.length - drawn.length;
	$('arrows').hidden = hidden === 0;
	$('arrows').textContent = `${hidden} wakeups outside of the path have no arrow here: zoom in to see them.`;
}

function drawRuler() {
	const ctx = context(ruler, 30);
	const least = (to - from) * 90 / plot(), power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
	const step = Math.max(1, [1, 2, 5, 10].map(n => n * power).find(step => step >= least));
	const most = Math.max(Math.abs(from - view.focus[0]), Math.abs(to - view.focus[0]));
	ctx.fillStyle = colours('dim');
	for (let at = Math.ceil((from - view.focus[0]) / step) * step; at <= to - view.focus[0]; at += step) {
		const px = x(at + view.focus[0]);
		ctx.fillRect(px, 22, 1, 8);
		const text = at === 0 ? '0' : offset(at, step, most), width = ctx.measureText(text).width;
		ctx.fillText(text, Math.min(px + 3, gutter() + plot() - width), 14);
	}
	return step;
}

function draw() {
	if (!view.groups.length) return;
	const ctx = context(canvas, height), step = drawRuler();
	const [edge, width] = [gutter(), plot()];
	for (const lane of lanes) {
		ctx.fillStyle = colours('lane');
		ctx.fillRect(edge, lane.top + GAP, width, ROW - GAP - 1);
	}
	ctx.save();
	ctx.beginPath();
	ctx.rect(edge, 0, width, height);
	ctx.clip();
	ctx.fillStyle = colours('line');
	for (let at = Math.ceil((from - view.focus[0]) / step) * step; at <= to - view.focus[0]; at += step)
		ctx.fillRect(x(at + view.focus[0]), 0, 1, height);
	for (const lane of lanes) drawLane(ctx, lane);
	// Shade the time outside of the delay.
	ctx.fillStyle = colours('shade');
	const [begin, end] = view.focus;
	if (begin > 0 || end < view.length) {
		ctx.fillRect(edge, 0, Math.max(0, x(begin) - edge), height);
		ctx.fillRect(Math.max(edge, x(end)), 0, edge + width - x(end), height);
		ctx.fillStyle = colours('alert');
		for (const at of [begin, end]) ctx.fillRect(x(at) - 0.5, 0, 1.5, height);
	}
	drawArrows(ctx);
	let place = null;
	if (selected) {
		const lane = lanes[selected.lane], bar = lane.bars[selected.bar];
		place = [x(bar[BEGIN]), lane.top + GAP, Math.max(2, bar[TOOK] * width / (to - from)), ROW - GAP - 1];
		ctx.strokeStyle = colours('select');
		ctx.lineWidth = 2.5;
		ctx.strokeRect(place[0] - 0.5, place[1] - 0.5, place[2], place[3] + 1);
	}
	ctx.restore();
	ctx.font = '600 12px system-ui, sans-serif';
	ctx.fillStyle = colours('dim');
	for (const group of view.groups) {
		const lane = lanes.find(lane => lane.group === group);
		ctx.fillStyle = colours('card');
		ctx.fillRect(0, lane.top - HEAD + 4, ctx.measureText(group.name).width + 8, HEAD - 5);
		ctx.fillStyle = colours('dim');
		ctx.fillText(group.name, 0, lane.top - HEAD / 2 + 3);
	}
	ctx.font = '12px system-ui, sans-serif';
	ctx.fillStyle = colours('text');
	for (const lane of lanes) ctx.fillText(fit(ctx, lane.name, edge - 10), 0, lane.top + ROW / 2 + 1);
	canvas.dataset.range = `${Math.round(from)} ${Math.round(to)}`;
	canvas.dataset.selected = place ? place.map(Math.round).join(' ') : '';
}

let drawing = false;
function redraw() {
	if (!drawing) requestAnimationFrame(() => { drawing = false; draw(); });
	drawing = true;
}
