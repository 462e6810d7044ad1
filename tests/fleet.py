# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# fleet.py: checks that each query of the guide gives the same answer in DuckDB and in Spark as `latency-tracker analyze
# --json` and `latency-tracker explain --json`.
#
# usage: fleet.py LATENCY_TRACKER PAGE DIRECTORY     PAGE is the guide, DIRECTORY is empty

import collections
import datetime
import decimal
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

from ctf import Trace

command, page, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
TABLES = ('wakeups', 'cpu', 'irq', 'syscalls', 'io')
SERVER = 100
READ = 1 << 2
ALL = 1 << 20


def load(trace, seed, disk, late):
    """A server reads from a disk; a backup often has the server's CPU; on the other CPU, a worker runs and sleeps."""
    chance = random.Random(seed)
    between = lambda least, most: chance.randrange(least, most)
    tasks = {0: ('swapper/0', 0), SERVER: ('server', SERVER), 200: ('backup', 200), 300: ('worker', 300)}

    def switch(cpu, time, prev, state, next_):
        trace.event(cpu, time, 'sched_switch', prev_comm=tasks[prev][0], prev_tid=prev, prev_prio=20, prev_state=state,
                    next_comm=tasks[next_][0], next_tid=next_, next_prio=20)

    def waking(cpu, time, tid):
        trace.event(cpu, time, 'sched_waking', comm=tasks[tid][0], tid=tid, prio=20, target_cpu=cpu)

    time, dev, running = 1_000_000_000 + seed, 253 << 20 | seed, 0
    dump = lambda time: trace.event(0, time, 'lttng_statedump_block_device', dev=dev, diskname=disk)
    if not late:
        dump(time)
    waking(0, time + 10, SERVER)
    switch(0, time + 2000, 0, 0, SERVER)
    time += 2000
    for round_ in range(150):
        request = {'dev': dev, 'sector': 64 * round_, 'nr_sector': 8, 'rwbs': READ}
        time += between(1000, 90_000)
        trace.event(0, time, 'syscall_entry_read', fd=3)
        time += between(100, 3000)
        trace.event(0, time, 'block_rq_insert', tid=SERVER, comm='server', **request)
        time += between(100, 9000)
        trace.event(0, time, 'block_rq_issue', tid=SERVER, comm='server', **request)
        time += between(100, 3000)
        running = 200 if round_ % 3 else 0
        if running and round_ % 3 == 1:
            waking(0, time, 200)
            time += 50
        switch(0, time, SERVER, 1, running)
        time += between(50_000, 4_000_000)
        for what in ('irq_softirq_raise', 'irq_softirq_entry'):
            trace.event(0, time, what, vec=4)
            time += between(100, 5000)
        trace.event(0, time, 'block_rq_complete', error=0, **request)
        waking(0, time + 20, SERVER)
        time += between(100, 9000)
        trace.event(0, time, 'irq_softirq_exit', vec=4)
        time += between(1000, 2_500_000) if running else between(1000, 30_000)
        # of each three rounds, the backup runs in the last two: it is still runnable after the first of these, and
        # sleeps after the second
        switch(0, time, running, 1 if running and round_ % 3 == 2 else 0, SERVER)
        time += between(100, 3000)
        trace.event(0, time, 'syscall_exit_read', ret=4096)
    if late:
        dump(time + 10)
    at = 1_000_000_500 + seed
    while at < time:
        waking(1, at, 300)
        at += between(1000, 1_500_000)
        switch(1, at, 0, 0, 300)
        at += between(1000, 300_000)
        switch(1, at, 300, 1, 0)
        at += between(1000, 9_000_000)


def day(number):
    return int(datetime.datetime(2026, 11, number, 12, tzinfo=datetime.timezone.utc).timestamp())


# The host, the seed, the day, the disk, what is lost, whether the name of the disk comes last, and the seed of the
# alerts: both traces of web2 have the same alerts.
MADE = [('web1', 1, 18, 'vda', None, False, 1), ('web1', 2, 10, 'vda', None, False, 2), ('web2', 3, 19, 'vda', None, True, 3),
        ('web2', 5, 19, 'vda', None, False, 3), ('007', 4, 20, 'nvme0n1', (0, 20), False, 4)]


def latency_tracker(*args):
    done = subprocess.run([command, *map(str, args)], cwd=work, check=True, capture_output=True, text=True)
    return done.stdout


def written(directory):
    """Returns the rows of each Parquet file below a directory."""
    import duckdb
    read = lambda file: duckdb.execute('SELECT * FROM read_parquet(?, hive_partitioning = false)', [str(file)]).fetchall()
    return {file: read(file) for file in sorted(directory.rglob('*.parquet'))}


def make():
    """Makes the traces, analyzes each on its host, and merges the directories. Returns the JSON of every analysis."""
    found = []
    for number, (host, seed, date, disk, lost, late, alert) in enumerate(MADE):
        trace = Trace(host, seed, day(date))
        load(trace, seed, disk, late)
        capture = work / f'captures/{number}'
        trace.write(capture / 'trace', lost)
        # an alert of a softirq has no path
        alerts = [{'seq': n, 'time': 1_100_000_000 + 40_000_000 * n + alert, 'instance': instance, 'tracker': tracker,
                   'reason': 'threshold', 'delay': 8_000_000 + 1_000_000 * alert + n, 'threshold': 1_000_000, 'cpu': 0,
                   'pid': SERVER, 'tid': SERVER, 'comm': 'server', 'call': 'read'}
                  for n in range(alert) for instance, tracker in (('slow', 'syscall'), (host, 'softirq'))]
        # an alert that was read twice is one alert
        alerts.append(alerts[0])
        (capture / 'alert.json').write_text(json.dumps({'alerts': alerts}))
        analyses = {of: ['analyze', of, capture / 'trace'] for of in TABLES} | {
            'path': ['analyze', 'path', capture / 'trace', '--tid', SERVER], 'explain': ['explain', capture]}
        result = {'host': host, 'day': date, 'offset': day(date) * 10**9, 'alerts': alerts}
        for of, args in analyses.items():
            args = [*args, '--json']
            objects = [json.loads(line) for line in latency_tracker(*args, *(['-n', ALL] if of in TABLES else [])).splitlines()]
            result[of] = objects if of == 'explain' else objects[0]
            # twice: the second run replaces the first, and nothing else
            latency_tracker(*args, '--parquet', work / 'of' / host)
            before = written(work / 'of' / host)
            latency_tracker(*args, '--parquet', work / 'of' / host)
            assert before and written(work / 'of' / host) == before, f'{host}: {of}: the second run differs'
        result['io by device'] = json.loads(latency_tracker('analyze', 'io', capture / 'trace', '--by', 'device', '--json'))
        result['disk'] = disk
        found.append(result)
    for host in (work / 'of').iterdir():
        shutil.copytree(host, work / 'fleet', dirs_exist_ok=True)
    return found


def table(result, analysis, name):
    return next(table for table in result[analysis]['tables'] if table['table'] == name)


def rank(durations, share):
    """Returns the percentile by nearest rank, as `analyze` and SQL define it."""
    return sorted(durations)[max(math.ceil(len(durations) * share), 1) - 1]


def grouped(pairs):
    groups = collections.defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


class Expected:
    """The answer to each question, from the JSON of the command."""

    def __init__(self, found):
        self.found = found

    def worst(self, analysis, name):
        return [(result, case) for result in self.found for case in table(result, analysis, name)['worst']]

    @staticmethod
    def lost(result):
        return any('lost' in caveat for caveat in result['wakeups']['caveats'])

    def question_1(self):
        # MADE lists what was lost
        return [(host, 1, lost[1], 0) for host, _, _, _, lost, *_ in MADE if lost]

    def question_2(self):
        sums = collections.defaultdict(lambda: [0, 0, 0, 0])
        for result in self.found:
            for analysis in TABLES:
                for one in result[analysis]['tables']:
                    missed = one['not_measured']
                    row = sums[result['host'], analysis, one['table']]
                    for place, value in enumerate([len(one['worst']), missed['lost'], missed['outside'], missed['identical']]):
                        row[place] += value
        return [(*key, *row) for key, row in sorted(sums.items())]

    def question_3(self):
        groups = grouped(((result['host'], case['disk']), case['took']) for result, case in self.worst('io', 'device'))
        rows = [(*key, len(durations), rank(durations, 0.99)) for key, durations in groups.items()]
        # a host with one trace has the percentile that the command prints
        for result in self.found:
            if [other['host'] for other in self.found].count(result['host']) == 1:
                printed, = table(result, 'io by device', 'device')['rows']
                assert (result['host'], result['disk'], printed['count'], printed['p99']) in rows, printed
        return sorted(rows, key=lambda row: (-row[3], row[0], row[1]))

    def question_4(self):
        late = [(result['host'], case) for result, case in self.worst('wakeups', 'wakeup')
                if case['took'] >= 1_000_000 and not self.lost(result)]
        groups = grouped(((host, case['thread']['comm']), case['took']) for host, case in late)
        best = {}
        for (host, comm), durations in groups.items():
            best.setdefault(host, []).append((-len(durations), -max(durations), comm))
        return [(host, min(of)[2], -min(of)[0], -min(of)[1]) for host, of in sorted(best.items())]

    def question_5(self):
        longest, names = {}, set()
        for result in self.found:
            for report in result['explain'] if 16 <= result['day'] < 23 else []:
                times = collections.Counter()
                for step in report.get('path', {}).get('path', []):
                    cause = step['cause']
                    key = cause['kind'], cause.get('by'), cause.get('disk', cause.get('name')), cause.get('held'), cause['known']
                    times[key] += step['end'] - step['begin']
                names |= {what for _, _, what, _, _ in times}
                alert = report['alert']
                key = result['host'], alert['instance'], alert['seq'], alert['time']
                # an alert that several traces have is one alert
                of_all = [longest.get(key, ((None,) * 5, None)), *times.items()]
                longest[key] = max(of_all, key=lambda item: item[1] or 0)
        # the names of disks are in the traces
        assert {'vda', 'nvme0n1'} <= names, names
        groups = grouped((cause, (host, took)) for (host, *_), (cause, took) in longest.items())
        # each of the three hosts has alerts without a path
        assert len({host for host, _ in groups[(None,) * 5]}) == 3 and len(groups) > 1, groups
        rows = [(*cause, len({host for host, _ in of}), len(of), sum(took for _, took in of) if cause[0] else None)
                for cause, of in groups.items()]
        return sorted(rows, key=lambda row: (-row[5], -row[6], [(text is None, text) for text in row[:5]]))

    def question_6(self):
        groups = grouped((case['call'], (result['host'], case['took'])) for result, case in self.worst('syscalls', 'call'))
        rows = [(call, len({host for host, _ in of}), len(of), rank([took for _, took in of], 0.5), max(took for _, took in of))
                for call, of in groups.items()]
        return sorted(rows, key=lambda row: (-row[4], row[0]))

    def question_7(self):
        ranges = collections.Counter()
        for result in self.found:
            ranges[result['host']] += result['irq']['to'] - result['irq']['from']
        groups = grouped(((result['host'], case['name']), case['took']) for result, case in self.worst('irq', 'softirq'))
        rows = [(*key, sum(of), sum(of) * 100 / ranges[key[0]]) for key, of in groups.items()]
        return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))

    def question_8(self):
        shared = collections.Counter()
        for result in self.found:
            runs = table(result, 'cpu', 'run')['worst']
            for wait in table(result, 'wakeups', 'wakeup')['worst']:
                for run in runs if wait['took'] >= 1_000_000 else []:
                    both = min(wait['end'], run['end']) - max(wait['begin'], run['begin'])
                    if run['cpu'] == wait['cpu'] and both > 0:
                        shared[result['host'], wait['thread']['comm'], run['thread']['comm']] += both
        rows = [(*key, both) for key, both in shared.items()]
        return sorted(rows, key=lambda row: (-row[3], *row[:3]))

    def question_9(self):
        groups = grouped((case['thread']['comm'], (result['host'], case['took'])) for result, case in self.worst('cpu', 'run'))
        rows = [(comm, len({host for host, _ in of}), len(of), sum(took for _, took in of)) for comm, of in groups.items()]
        return sorted(rows, key=lambda row: (-row[3], row[0]))

    def question_10(self):
        alerts = {(result['host'], alert['seq'], alert['instance'], alert['delay'], alert['time'] + result['offset'])
                  for result in self.found for alert in result['alerts']}
        groups = grouped((instance, (host, delay, time)) for host, _, instance, delay, time in alerts)
        rows = [(instance, 'syscall' if instance == 'slow' else 'softirq', len({host for host, _, _ in of}), len(of),
                 max(delay for _, delay, _ in of),
                 datetime.datetime.fromtimestamp(0) + datetime.timedelta(microseconds=min(time for _, _, time in of) // 1000))
                for instance, of in groups.items()]
        return sorted(rows, key=lambda row: (-row[2], -row[3], row[0]))


def plain(value):
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 9)
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return value


def rows(answer):
    return [tuple(plain(value) for value in row) for row in answer]


def blocks(text):
    return [block.strip() for block in re.findall(r'```sql\n(.*?)```', text, re.S)]


def main():
    os.environ['TZ'] = 'UTC'
    os.chdir(work)
    found = make()
    setup, questions = page.read_text().split('## Ten questions')
    in_duckdb, in_spark = blocks(setup)
    questions = re.split(r'^### ', questions.split('\n## ')[0], flags=re.M)[1:]
    assert len(questions) == 10, len(questions)
    import duckdb
    from pyspark.sql import SparkSession
    duck = duckdb.connect()
    duck.execute(in_duckdb)
    spark = SparkSession.builder.master('local[1]')
    for key, value in {'ui.enabled': 'false', 'driver.host': '127.0.0.1', 'driver.bindAddress': '127.0.0.1',
                       'sql.shuffle.partitions': '1', 'sql.warehouse.dir': str(work / 'warehouse')}.items():
        spark = spark.config(f'spark.{key}', value)
    spark = spark.getOrCreate()
    for statement in in_spark.split(';'):
        if statement.strip():
            spark.sql(statement)
    # the traces begin and end on all CPUs at once
    gaps = duck.execute('SELECT DISTINCT host, analysis, cpu, why FROM gaps ORDER BY analysis').fetchall()
    # an explanation covers only the delays, which may be before the gap
    gaps = [gap for gap in gaps if gap[1] != 'explain']
    assert gaps == [('007', of, 0, 'lost') for of in sorted([*TABLES, 'path'])], gaps
    # the second runs have doubled nothing
    count, = duck.execute("SELECT count(*) FROM intervals WHERE kind = 'wakeup'").fetchone()
    assert count == sum(len(table(result, 'wakeups', 'wakeup')['worst']) for result in found), count
    expected = Expected(found)
    for number, question in enumerate(questions, 1):
        title, (query,) = question.splitlines()[0], blocks(question)
        answers = {'DuckDB': rows(duck.execute(query).fetchall()), 'Spark': rows(map(tuple, spark.sql(query).collect())),
                   'analyze': rows(getattr(expected, f'question_{number}')())}
        assert answers['analyze'], title
        for name, answer in answers.items():
            assert answer == answers['analyze'], '\n'.join([title, *(f'{name}: {of}' for name, of in answers.items())])
        print(f'ok: {title}: {len(answers["analyze"])} rows', flush=True)
    spark.stop()


main()
