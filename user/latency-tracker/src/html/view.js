// SPDX-License-Identifier: GPL-2.0 OR MIT
//
// Shows one view of the page at a time.

const notes = texts => texts.map(text => el('p', { className: 'note', textContent: text }));

function open(number) {
	view = page.views[number];
	selected = null;
	$('verdict').textContent = view.verdict || '';
	$('verdict').hidden = !view.verdict;
	$('facts').replaceChildren(...list(view.facts).children);
	$('notes').replaceChildren(...notes(page.left_out.concat(view.notes)));
	document.querySelectorAll('#texts article').forEach((article, i) => { article.hidden = i !== number; });
	$('summary').hidden = false;
	$('timeline').hidden = !view.groups.length;
	layOut();
	$('tables').replaceChildren(...view.tables.map(table));
	$('left-out').replaceChildren(...notes(view.left_out));
	$('details').hidden = true;
	legend();
	if (view.groups.length) { showAround(...view.focus); draw(); }
}

readColours();
listen();
$('choice').textContent = page.choice;
$('views').append(...page.views.map((view, i) => el('option', { value: i, textContent: view.name })));
$('views').onchange = () => open(Number($('views').value));
$('choose').hidden = page.views.length < 2;
if (page.views.length) open(0);
document.documentElement.dataset.ready = 'yes';
