# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# pages.py: opens the pages of --html in Chromium, and uses them as a reader does.
#
# usage: pages.py LATENCY_TRACKER DIRECTORY     the directory has the traces of lt-ctf's tests, and gets the pages

import json
import pathlib
import re
import subprocess
import sys

from browser import Browser

HOSTILE = '</script><img src=x onerror=pwned=1>'
# the analyses with a page of tables, apart from cpu, and a trace with operations for all of their tables: of perf, or
# made up by bench/load.py
TABLES = {'wakeups': 'perf', 'sleeps': 'perf', 'irq': 'perf', 'syscalls': 'perf',
          'io': 'load', 'locks': 'load', 'work': 'load', 'reclaim': 'load', 'net': 'load'}
command, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def say(what):
    print(what, flush=True)


def same(found, expected, what):
    assert found == expected, f'{what}: {found!r} instead of {expected!r}'
    say(f'ok: {what}')


def true(is_true, what, *more):
    assert is_true, f'{what}: {more}'
    say(f'ok: {what}')


def latency_tracker(*args):
    done = subprocess.run([command, *map(str, args)], cwd=work, check=True, capture_output=True, text=True)
    return done.stdout


def make_pages():
    """Makes the pages of a path, of delays, of a table, and of two alerts, one with a hostile task name; returns their
    data."""
    # two threads get hostile names as long as their own: one would end the script, the other would make an element
    for name, hostile in (b'kdamond.0', b'</script>'), (b'rcu_preempt', b'<img src=x>'):
        assert len(name) == len(hostile)
        for stream in (work / 'perf').glob('perf_stream_*'):
            stream.write_bytes(stream.read_bytes().replace(name, hostile))
    path = json.loads(latency_tracker('analyze', 'path', 'perf', '--tid', 177, '--json', '--html', 'path.html'))
    latency_tracker('analyze', 'delays', 'perf', '--tid', 177, '--html', 'delays.html')
    delays = json.loads(latency_tracker('analyze', 'delays', 'perf', '--tid', 177, '--json'))
    reads = [stay for stay in delays['segments'][0]['states']
             if stay['class'] == 'blocked' and stay['cause'].get('syscall') == 'read' and 'woken_by' in stay]
    reads = sorted(reads, key=lambda stay: stay['begin'] - stay['end'])[:2]
    lines = [f'seq={i} time={stay["end"]} instance=slow tracker=offcpu reason=threshold delay={stay["end"] - stay["begin"]} '
             f'threshold=10000000 cpu=1 pid=177 tid=177 comm="{name}"\n'
             for i, (stay, name) in enumerate(zip(reads, ['python3', HOSTILE]), 1)]
    (work / 'late').write_text(''.join(lines))
    text = latency_tracker('explain', 'perf', '--alerts', 'late', '--html', 'alerts.html')
    tables = json.loads(latency_tracker('analyze', 'cpu', 'perf', '--json', '--html', 'cpu.html'))['tables']
    return path, reads, text, tables


def make_tables():
    """Makes the pages of all other tables, and of the delays of all threads; returns their data."""
    known = re.findall(r'^  ([a-z]+)  ', latency_tracker('analyze', '--help'), re.M)
    same(sorted(known), sorted(['path', 'delays', 'cpu', 'help', *TABLES]), 'the page of each analysis is opened')
    load = pathlib.Path(__file__).parent / 'bench' / 'load.py'
    subprocess.run([sys.executable, '-B', load, work / 'load', '1'], check=True)
    tables = {kind: json.loads(latency_tracker('analyze', kind, trace, '--json', '--html', f'{kind}.html'))['tables']
              for kind, trace in TABLES.items()}
    threads = json.loads(latency_tracker('analyze', 'delays', 'perf', '--json', '--html', 'threads.html'))['threads']
    return tables, threads


def state(browser):
    """Returns the start and end of what is shown, the place of the selected bar, and the details."""
    browser.run('return new Promise(requestAnimationFrame)')
    found = browser.run('''const lanes = document.getElementById('lanes'), details = document.getElementById('details');
        return [lanes.dataset.range, lanes.dataset.selected, details.hidden ? '' : details.innerText]''')
    numbers = [[int(word) for word in text.split()] for text in found[:2]]
    return *numbers, found[2]


def is_clean(browser, what):
    """Checks that no script in a name ran, no request was made, and no error is in the log."""
    found = browser.run('''return [typeof pwned, document.querySelectorAll('img, b, iframe, link').length,
        performance.getEntriesByType('resource').length, document.scripts.length]''')
    same(found, ['undefined', 0, 0, 2], f'{what}: names are text, and nothing is loaded')
    same(browser.complaints(), [], f'{what}: the browser does not complain')


def centre(browser, place):
    """Returns the offset of a place from the centre of the canvas."""
    width, height = browser.run('const box = document.getElementById("lanes").getBoundingClientRect(); '
                                'return [box.width, box.height]')
    x, y, w, h = place
    return round(x + w / 2 - width / 2), round(y + h / 2 - height / 2)


def use_time_line(browser, length):
    (begin, end), _, _ = state(browser)
    same((begin, end), (0, length), 'everything is shown at first')
    browser.click('#in')
    shown, _, _ = state(browser)
    true(shown[1] - shown[0] < length, 'a button zooms in', shown)
    browser.click('#right')
    later, _, _ = state(browser)
    true(later[0] > shown[0] and abs(later[1] - later[0] - shown[1] + shown[0]) <= 1, 'a button goes to later times', later)
    browser.click('#all')
    same(state(browser)[0], [0, length], 'a button shows everything')

    browser.wheel('#lanes', 0, -20, -240)
    wheeled, _, _ = state(browser)
    true(0 < wheeled[0] < wheeled[1] < length, 'the wheel zooms in', wheeled)
    browser.pointer('#lanes', [('move', 0, 0), ('down',), ('move', -60, 0), ('up',)])
    dragged, _, details = state(browser)
    true(dragged[0] > wheeled[0] and not details, 'dragging moves and selects nothing', dragged, details)
    browser.click('#all')


def use_keys(browser):
    """Keys select a bar, and a click on its place selects it, too."""
    browser.keys('#lanes', '\ue015\ue015\ue014')  # down, down, right
    _, place, details = state(browser)
    true(details and place, 'keys select a bar', details)
    browser.keys('#lanes', '\ue007')  # Enter
    shown, place, _ = state(browser)
    true(place[2] > 300, 'Enter zooms to it', shown, place)
    browser.keys('#lanes', '\ue00c')  # Escape
    _, gone, hidden = state(browser)
    same((gone, hidden), ([], ''), 'Escape selects nothing')
    x, y = centre(browser, place)
    browser.pointer('#lanes', [('move', x, y), ('down',), ('up',)])
    same(state(browser)[2], details, 'a click selects the bar under the pointer')
    tip = browser.text('#tip')
    true(details.startswith(tip.split(' \u2013 ')[0]), 'the tip names it, too', tip)
    browser.keys('#lanes', '\ue00c')
    browser.keys('#lanes', '\ue011')  # Home


def rows(browser, table):
    return browser.run('''return [...document.querySelectorAll('#tables section')[arguments[0]].querySelector('tbody').rows]
        .map(row => [...row.cells].map(cell => cell.textContent))''', table)


def use_tables(browser, path):
    """The table of causes has the values of --json; a click sorts it; a click on a step shows it."""
    causes = rows(browser, 0)
    same([int(row[2].replace(',', '')) for row in causes], [cause['count'] for cause in path['causes']], 'causes in their order')
    total = path['to'] - path['from']
    for row, cause in zip(causes, path['causes']):
        ns = {'s': 1e9, 'ms': 1e6, 'us': 1e3, 'ns': 1}
        number, unit = re.fullmatch(r'([\d.]+)(\w+)', row[0]).groups()
        assert abs(float(number) * ns[unit] / cause['time'] - 1) < 0.01, (row, cause)
        assert abs(float(row[1]) - cause['time'] * 100 / total) < 0.1, (row, cause)
    say('ok: their times and shares')
    browser.click('#tables section:nth-child(1) th:nth-child(3) button')
    counts = [int(row[2].replace(',', '')) for row in rows(browser, 0)]
    same(counts, sorted(counts, reverse=True), 'a click sorts, the largest first')
    browser.click('#tables section:nth-child(1) th:nth-child(3) button')
    same([int(row[2].replace(',', '')) for row in rows(browser, 0)], sorted(counts), 'a second one, the smallest first')
    same(browser.run('return document.querySelector("#tables th:nth-child(3)").ariaSort'), 'ascending', 'it is announced')

    steps = rows(browser, 1)
    same(len(steps), 100, 'of many steps, some are shown')
    browser.click('#tables section:nth-child(2) > button')
    same(len(rows(browser, 1)), len(path['path']), 'and all of them on request')
    browser.click('#tables section:nth-child(2) tbody tr:nth-child(40) button')
    _, place, details = state(browser)
    step = path['path'][39]
    true(f'({step["begin"]} ns)' in details and f'({step["end"]} ns)' in details, 'a click on a step selects its bar', details)
    true(place and browser.run('return document.activeElement.id') == 'lanes', 'and the keys continue from there', place)


def use_rows(browser, tables):
    """The rows of a table match --json; a click sorts them; the button of a row shows its histogram."""
    def counts():
        return [int(row[2].replace(',', '')) for row in rows(browser, 0)]

    (table,) = [table for table in tables if table['table'] == 'run']
    expected = [table['all']['count']] + [row['count'] for row in table['rows']]
    true(1 < len(expected) <= 100, 'the table has some rows', len(expected))
    same(sorted(counts()), sorted(expected), 'all rows of --json, and their sum')
    same(browser.text('#tables section:nth-child(1) th:nth-last-child(2)'), 'Thread', 'the name of the groups is a heading')
    browser.click('#tables section:nth-child(1) th:nth-child(3) button')
    same(counts(), sorted(expected, reverse=True), 'a click sorts them')
    true(browser.run('return document.querySelector(".histogram").hidden'), 'no histogram is shown at first')
    browser.click('#tables section:nth-child(1) tbody tr:nth-child(2) td:last-child button')
    heading = browser.run('return document.querySelector(".histogram h3").textContent')
    same(heading, f'Durations of {rows(browser, 0)[1][-2]}', 'a click shows the histogram of a row')
    bars = browser.run('''return [...document.querySelectorAll('.histogram tbody tr')].map(
        row => [Number(row.cells[1].textContent.replaceAll(',', '')), row.querySelector('meter').value])''')
    same(sum(count for count, _ in bars), counts()[1], 'with all of its durations')
    same([length for _, length in bars], [count for count, _ in bars], 'as bars of this length')
    cells = browser.run('''return [...document.querySelectorAll('#texts svg title')].map(title => title.textContent)''')
    operations = sum(int(text.split()[0].replace(',', '')) for text in cells if re.match(r'[\d,]+ of \d', text))
    same(operations, sum(table['all']['count'] for table in tables), 'the picture has all operations')
    wide = browser.run('return document.querySelector("#texts svg").getBoundingClientRect().width')
    true(wide > 300, 'and is drawn', wide)


def use_sections(browser, kind, tables):
    """All tables of --json are there, with the number of their operations; the first one is sorted, and has
    histograms."""
    def shown():
        return browser.run('''const texts = row => [...row.cells].map(cell => cell.textContent);
            return [...document.querySelectorAll('#tables section')].map(section =>
                [...section.querySelectorAll('tr')].filter(row => !row.closest('.histogram')).map(texts))''')

    sections = shown()
    found, expected = [], []
    for table, (heads, *body), (_, *worst) in zip(tables, sections[::2], sections[1::2]):
        count = heads.index('Count')
        found.append((body[0][count], len(body), len(worst)))
        groups = len(table['rows'])
        # a row for all groups is above several groups, and some rows are shown at first
        shown_groups = min(groups + (groups > 1), 100)
        expected.append((f'{table["all"]["count"]:,}', shown_groups, len(table['worst'])))
    same((len(sections), found), (2 * len(tables), expected), f'{kind}: the tables have the rows of --json')
    true(all(table['all']['count'] > 0 for table in tables), f'{kind}: there are operations in each')
    count = sections[0][0].index('Count')
    browser.click(f'#tables section:nth-child(1) th:nth-child({count + 1}) button')
    counts = [int(row[count].replace(',', '')) for row in shown()[0][1:]]
    same(counts, sorted(counts, reverse=True), f'{kind}: a click sorts')
    browser.click('#tables section:nth-child(1) tbody tr:nth-child(1) td:last-child button')
    bars = browser.run('''return [...document.querySelectorAll('.histogram tbody tr')].map(
        row => Number(row.cells[1].textContent.replaceAll(',', '')))''')
    same(sum(bars), counts[0], f'{kind}: a click shows the histogram of a row')
    true(browser.run('return document.querySelector("#texts svg") !== null'), f'{kind}: there is a heat map')


def use_alerts(browser, reads, text):
    same(browser.text('#verdict').split(':')[0], re.search(r'\n  (\d+ % of the (?:delay|time) \([^)]*\))', text)[1], 'the verdict is that of the text')
    explained = browser.run('return [...document.querySelectorAll("#texts pre")].map(pre => pre.textContent)')
    same('\n'.join(explained), text, 'the explanation is that of the terminal')
    shown = browser.run('return [...document.querySelectorAll("#texts article")].map(article => !article.hidden)')
    same(shown, [True, False], 'the first alert is shown')
    browser.keys('#views', '\ue015')
    true(browser.text('#facts').startswith(f'Task\n{HOSTILE}/177'), 'the second one can be chosen', browser.text('#facts'))
    same(browser.run('return document.querySelectorAll("#texts article:not([hidden])").length'), 1, 'with its text')
    browser.keys('#lanes', '\ue015')
    details = state(browser)[2]
    true(f'({reads[1]["begin"]} ns)' in details and f'({reads[1]["end"]} ns)' in details, 'and its time', details)


def looks(browser, file):
    """Checks that nothing reaches beyond the window, whatever its width, and saves a screenshot."""
    for width in 360, 768, 1280, 1920:
        browser.ask('POST', '/goog/cdp/execute', {'cmd': 'Emulation.setDeviceMetricsOverride', 'params': {
            'width': width, 'height': 800, 'deviceScaleFactor': 1, 'mobile': False}})
        wide = browser.run('return document.documentElement.scrollWidth')
        assert wide <= width, f'{file} is {wide} pixels wide in a window of {width}'
    browser.ask('POST', '/goog/cdp/execute', {'cmd': 'Emulation.clearDeviceMetricsOverride', 'params': {}})
    browser.screenshot(work / f'{file}.png')
    say(f'ok: {file} fits into windows of any width')


def colours(browser, scheme):
    browser.ask('POST', '/goog/cdp/execute', {'cmd': 'Emulation.setEmulatedMedia', 'params': {
        'features': [{'name': 'prefers-color-scheme', 'value': scheme}]}})
    return browser.run('''const ctx = document.getElementById('lanes').getContext('2d');
        const text = getComputedStyle(document.body).color, page = getComputedStyle(document.body).backgroundColor;
        return [text, page]''')


def main():
    path, reads, text, tables = make_pages()
    others, threads = make_tables()
    with Browser() as browser:
        browser.open(work / 'path.html')
        use_time_line(browser, path['to'] - path['from'])
        use_keys(browser)
        use_tables(browser, path)
        light, dark = colours(browser, 'light'), colours(browser, 'dark')
        true(light != dark, 'there are dark and light colours', light, dark)
        looks(browser, 'path')
        lanes = browser.run('return JSON.parse(document.getElementById("data").textContent).views[0].groups.flatMap('
                            'group => group.lanes.map(lane => lane.name.split("/").slice(0, -1).join("/")))')
        true({'</script>', '<img src=x>'} < set(lanes), 'path: threads have names that look like tags', lanes)
        is_clean(browser, 'path')
        browser.open(work / 'delays.html')
        browser.keys('#lanes', '\ue015')
        true('Lane\nStates and waits: states' in state(browser)[2], 'delays have a lane of states', state(browser)[2])
        looks(browser, 'delays')
        is_clean(browser, 'delays')
        browser.open(work / 'cpu.html')
        use_rows(browser, tables)
        looks(browser, 'cpu')
        names = [row[-2].rsplit('/', 1)[0] for row in rows(browser, 0)]
        true({'</script>', '<img src=x>'} < set(names), 'cpu: threads have names that look like tags', names)
        is_clean(browser, 'cpu')
        for kind, of_kind in others.items():
            browser.open(work / f'{kind}.html')
            use_sections(browser, kind, of_kind)
            looks(browser, kind)
            is_clean(browser, kind)
        browser.open(work / 'threads.html')
        same([row[2].rsplit('/', 1)[-1] for row in rows(browser, 0)], [str(row['thread']['tid']) for row in threads],
             'threads: all threads of --json, in their order')
        looks(browser, 'threads')
        is_clean(browser, 'threads')
        browser.open(work / 'alerts.html')
        use_alerts(browser, reads, text)
        looks(browser, 'alerts')
        is_clean(browser, 'alerts')


main()
