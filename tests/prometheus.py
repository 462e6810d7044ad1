# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# prometheus.py COMMAND WORK DASHBOARD: checks what host/prometheus expects of Prometheus. WORK/trees has the /proc tree
# of a module at two times, and its alerts. WORK/pip has OpenTelemetry's decoder. (The test runs in a network namespace
# of its own.)

import http.server
import itertools
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

command, work, dashboard = sys.argv[1:]
sys.path.insert(0, f"{work}/pip")
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

PAGE = "http://127.0.0.1:9817/metrics"
API = "http://127.0.0.1:9090/api/v1/"
started = []


def run(name, *words, **environment):
    """Starts a process that ends with this test; its output is in WORK/NAME.log."""
    log = open(f"{work}/{name}.log", "w")
    process = subprocess.Popen(words, stdout=log, stderr=log, env=os.environ | environment)
    started.append((name, process))
    return process


def api(path, **parameters):
    with urllib.request.urlopen(API + path + "?" + urllib.parse.urlencode(parameters), timeout=60) as answer:
        return json.load(answer)["data"]


def query(text):
    """Returns the value of each series, by its labels without the target's labels."""
    result = api("query", query=text)["result"]
    own = lambda labels: tuple(sorted((k, v) for k, v in labels.items() if k not in ("__name__", "instance", "job")))
    return {own(series["metric"]): float(series["value"][1]) for series in result}


def value(text):
    values = list(query(text).values())
    assert len(values) == 1, f"{text}: {values}"
    return values[0]


def until(what, test):
    """Waits, however slow this machine is: the test as a whole has a time limit."""
    print(f"  {what}", flush=True)
    while True:
        for name, process in started:
            assert process.poll() is None, f"{name} ended: " + open(f"{work}/{name}.log").read()
        try:
            if test():
                return
        except (OSError, AssertionError) as error:
            last = error
        time.sleep(0.2)


def expect(text, expected, near=0.0):
    found = value(text)
    assert abs(found - expected) <= near, f"{text}: {found}, expected {expected}"


def tree(n):
    """Exports the nth tree from now on."""
    os.symlink(f"{work}/trees/{n}", f"{work}/next")
    os.rename(f"{work}/next", f"{work}/root")


def stats(n, name):
    return {key: int(number) for key, number in (line.split() for line in open(f"{work}/trees/{n}/{name}/stats"))}


def shows(n):
    """Returns whether Prometheus has the kernel's numbers of the nth tree."""
    slow, ended = stats(n, "slow"), value('latency_tracker_ended_total{name="slow",job="scrape"}')
    return ended == slow["ended"]


def identity(labels):
    """Returns the labels of a series as a key. A bound may be written in several ways."""
    return frozenset((key, float(value) if key == "le" else value) for key, value in labels.items())


def series(job):
    """Returns the values that Prometheus has from a job, by the labels of the series without the target's labels. The
    series about the exporter itself are left out."""
    found = {}
    text = f'{{__name__=~"latency_tracker_.*",__name__!~"latency_tracker_export_.*",job="{job}"}}'
    for one in api("query", query=text)["result"]:
        own = {key: value for key, value in one["metric"].items() if key not in ("instance", "job")}
        found[identity(own)] = float(one["value"][1])
    return found


def translated(metrics):
    """Returns the series that Prometheus makes of the metrics of a message, by its rules for names and units."""
    found = {}
    for metric in metrics:
        if metric.name.startswith("latency_tracker.export_"):
            continue
        kind = metric.WhichOneof("data")
        name = metric.name.replace(".", "_") + {"": "", "s": "_seconds"}[metric.unit] + ("_total" if kind == "sum" else "")
        for point in getattr(metric, kind).data_points:
            if kind == "histogram":
                bounds = [{"le": bound} for bound in [*point.explicit_bounds, math.inf]]
                values = [("_bucket", *one) for one in zip(bounds, itertools.accumulate(point.bucket_counts), strict=True)]
                values += [("_count", {}, point.count), ("_sum", {}, point.sum)]
            else:
                values = [("", {}, getattr(point, point.WhichOneof("value")))]
            for suffix, le, value in values:
                found[identity({"__name__": name + suffix} | labels(point.attributes) | le)] = value
    return found


def same(found, expected):
    wrong = {key: (found.get(key), expected.get(key)) for key in found.keys() | expected.keys()
        if found.get(key) != expected.get(key)}
    assert found and not wrong, f"found and expected: {wrong}"


def receives():
    """Returns whether this Prometheus receives OTLP, by an empty message."""
    empty = urllib.request.Request(API + "otlp/v1/metrics", b"", {"Content-Type": "application/x-protobuf"})
    try:
        with urllib.request.urlopen(empty, timeout=60):
            return True
    except urllib.error.HTTPError as error:
        assert error.code == 404, error
        return False


def dropped():
    """Returns how many data points the exporter that sends to Prometheus has dropped."""
    with urllib.request.urlopen("http://127.0.0.1:9818/metrics", timeout=60) as answer:
        page = answer.read().decode()
    return int(re.search(r'^latency_tracker_export_dropped_total{signal="metrics"} (\d+)$', page, re.MULTILINE)[1])


def lint():
    """Returns the page for a textfile collector, which Prometheus' own tool has checked."""
    once = subprocess.run([command, "export", "--once"], env=os.environ | root, check=True, capture_output=True).stdout
    said = subprocess.run(["promtool", "check", "metrics"], input=once, capture_output=True)
    said = (said.returncode, said.stdout + said.stderr)
    assert said == (0, b""), f"promtool: {said}"
    return once.decode()


root = {"LATENCY_TRACKER_PROC_ROOT": f"{work}/root"}
tree(1)
with open(f"{work}/prometheus.yml", "w") as config:
    target = '{static_configs: [{targets: ["127.0.0.1:9817"]}], scrape_interval: 1s, scrape_timeout: 1s, job_name: %s%s}'
    config.write("scrape_configs:\n")
    for name, more in (
        ("scrape", ", scrape_protocols: [OpenMetricsText1.0.0]"),
        ("older", ", scrape_protocols: [PrometheusText0.0.4]"),
        ("native", ", convert_classic_histograms_to_nhcb: true"),
    ):
        config.write("  - " + target % (name, more) + "\n")
page = lint()
# a capture of two of the alerts
alerts = [line.strip() for line in open(f"{work}/trees/alerts")]
fields = [dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line)) for line in alerts]
delays = [int(alert["delay"]) for alert in fields]
assert len(alerts) == 30 and all(1 << 24 < delay <= 1 << 25 for delay in delays[:2]), delays
os.makedirs(f"{work}/captures/0007")
with open(f"{work}/captures/0007/alert.json", "w") as file:
    saved = {"capture": 7, "taken": int(time.time()), "instance": "slow", "tracker": "block"}
    json.dump(saved | {"alerts": [{"delay": delay} for delay in delays[:2]]}, file)
# A FIFO behaves like the module's file: a reader waits for alerts, and sees no end of the file.
os.mkfifo(f"{work}/alerts")
for n in 1, 2:
    os.symlink(f"{work}/alerts", f"{work}/trees/{n}/alerts")
kernel = os.fdopen(os.open(f"{work}/alerts", os.O_RDWR), "w", buffering=1)


# A collector of OTLP, which is busy at first.
received = {"/v1/metrics": [], "/v1/logs": []}


class Collector(http.server.BaseHTTPRequestHandler):
    busy = 2

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if Collector.busy:
            Collector.busy -= 1
            self.send_error(503)
            return
        assert self.headers["Content-Type"] == "application/x-protobuf", self.headers
        kind = ExportMetricsServiceRequest if self.path == "/v1/metrics" else ExportLogsServiceRequest
        received[self.path].append(kind.FromString(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


collector = http.server.ThreadingHTTPServer(("127.0.0.1", 4318), Collector)
threading.Thread(target=collector.serve_forever, daemon=True).start()

run("export", command, "export", "--captures", f"{work}/captures", "--interval", "1s", "--otlp", "http://localhost:4318",
    "--alerts", **root)
# Prometheus 3 has an option for its receiver of OTLP, but Debian builds it without that receiver (3.5.3+ds1-6).
receiver = "--web.enable-otlp-receiver"
known = subprocess.run(["prometheus", "--help"], check=True, capture_output=True, text=True)
run("prometheus", "prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data",
    "--web.listen-address=127.0.0.1:9090", "--enable-feature=exemplar-storage,native-histograms",
    *([receiver] if receiver.strip("-") in known.stdout + known.stderr else []))
until("the first numbers", lambda: shows(1) and len(query("up == 1")) == 1 and value("count(up == 1)") == 3)

# the kernel's numbers, whichever format the page has
slow = stats(1, "slow")
assert slow["alerts"] == 20, slow
for job in "scrape", "older":
    of = f'{{name="slow",tracker="block",job="{job}"}}'
    for key in "started", "ended", "alerts", "full":
        expect(f"latency_tracker_{key}_total{of}", slow[key])
    for key in "pending", "capacity":
        expect(f"latency_tracker_{key}{of}", slow[key])
    expect(f"latency_tracker_threshold_seconds{of}", 0.01)
    expect(f"latency_tracker_delay_seconds_count{of}", slow["ended"])
    expect(f"latency_tracker_delay_seconds_sum{of}", slow["sum_us"] / 1e6, 1e-9)
    expect(f'latency_tracker_delay_seconds_bucket{{name="slow",job="{job}",le="0.016777216"}}', 0)
    expect(f'latency_tracker_module_info{{version="{open(work + "/trees/1/version").read().strip()}",job="{job}"}}', 1)
kinds = {name: kind[0]["type"] for name, kind in api("metadata").items()}
for name, kind in (("started_total", "counter"), ("pending", "gauge"), ("delay_seconds", "histogram")):
    assert kinds[f"latency_tracker_{name}"] == kind, kinds
# a disk that takes 20 ms: the median is in the bucket from 16.8 ms to 33.6 ms, also as a native histogram
for text in 'latency_tracker_delay_seconds_bucket{name="slow",job="scrape"}', 'latency_tracker_delay_seconds{name="slow",job="native"}':
    median = value(f"histogram_quantile(0.5, {text})")
    assert 0.0167 < median < 0.0336, f"{text}: median {median}"
expect('histogram_count(latency_tracker_delay_seconds{name="slow",job="native"})', slow["ended"])

# the bucket of these delays names their capture
text = 'latency_tracker_delay_seconds_bucket{name="slow",job="scrape"}'
exemplars = lambda: api("query_exemplars", query=text, start=time.time() - 3600, end=time.time() + 60)
until("the exemplar", exemplars)
found = [(e["labels"], float(e["value"])) for series in exemplars() for e in series["exemplars"]]
assert found == [({"capture": "0007"}, delays[1] / 1e9)], found

# OTLP, as OpenTelemetry decodes it
until("a message with metrics", lambda: received["/v1/metrics"])
message = received["/v1/metrics"][0].resource_metrics[0]
labels = lambda attributes: {a.key: a.value.string_value or a.value.int_value for a in attributes}
resource = labels(message.resource.attributes)
assert resource["service.name"] == "latency-tracker" and resource["host.name"] == os.uname().nodename, resource
metrics = {metric.name: metric for metric in message.scope_metrics[0].metrics}
point = lambda points: next(p for p in points if labels(p.attributes) == {"name": "slow", "tracker": "block"})
counter = metrics["latency_tracker.started"].sum
assert counter.is_monotonic and counter.aggregation_temporality == 2, counter
assert point(counter.data_points).as_int == slow["started"], counter
histogram = metrics["latency_tracker.delay"]
assert histogram.unit == "s", histogram
delay = point(histogram.histogram.data_points)
assert delay.count == slow["ended"] == sum(delay.bucket_counts), delay
assert len(delay.bucket_counts) == len(delay.explicit_bounds) + 1, delay
assert labels(delay.exemplars[0].filtered_attributes) == {"capture": "0007"}, delay
# By its rules, Prometheus would turn this message into the series that it has scraped.
same(translated(message.scope_metrics[0].metrics), series("scrape"))
# If messages are sent to this Prometheus, it does so, or it refuses each message and the log has one line about that.
run("push", command, "export", "--listen", "127.0.0.1:9818", "--captures", f"{work}/captures", "--interval", "1s",
    "--otlp", API + "otlp", **root)
received_here = receives()
if received_here:
    until("the push", lambda: series("latency-tracker"))
    same(series("latency-tracker"), series("scrape"))
else:
    until("a refused message", dropped)
    first = dropped()
    until("another refused message", lambda: dropped() > first)
    notes = [line for line in open(f"{work}/push.log") if "/api/v1/otlp" in line]
    assert len(notes) == 1 and re.fullmatch(
        r"latency-tracker: http://127\.0\.0\.1:9090/api/v1/otlp/v1/metrics: 404 .*; dropped\n", notes[0]), notes
kernel.write("\n".join(alerts[:3]) + "\nlost=2\n")
until("the alerts", lambda: sum(len(m.resource_logs[0].scope_logs[0].log_records) for m in received["/v1/logs"]) == 3)
records = [r for m in received["/v1/logs"] for r in m.resource_logs[0].scope_logs[0].log_records]
for record, line, alert in zip(records, alerts, fields):
    assert record.body.string_value == line, (record, line)
    assert record.severity_number == 13 and record.event_name == "latency_tracker.alert", record
    for key in "delay", "seq", "sector":
        assert labels(record.attributes)[f"latency_tracker.{key}"] == int(alert[key]), record
until("what was missed", lambda: value('latency_tracker_export_dropped_total{job="scrape",signal="logs"}') == 2)

# later events
tree(2)
until("the later numbers", lambda: shows(2))
more = stats(2, "slow")["ended"] - slow["ended"]
assert more == 10, more
if received_here:
    until("the later push", lambda: series("latency-tracker") == series("scrape"))
until("the increase", lambda: value('increase(latency_tracker_ended_total{name="slow",job="scrape"}[10m])') > 0)

# every query of the dashboard has an answer
with open(dashboard) as file:
    board = json.load(file)
for variable in board["templating"]["list"]:
    if variable["type"] == "query":
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
        selector = selector.replace("$instance", ".*")
        assert api(f"label/{label}/values", **{"match[]": selector}), variable
queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
assert len(queries) >= 10, queries
for text in queries:
    text = text.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$name", ".*")
    assert "$" not in text, text
    # Without `> 0`: nothing timed out, so that query would have no answer.
    until(text, lambda: query(text.removesuffix(" > 0")))

lines = [line for line in page.splitlines() if not line.startswith("#")]
print(f"{len(lines)} series for 2 instances, {len(page)} bytes")
version = api("status/buildinfo")["version"]
print(f"Prometheus {version} {'received OTLP' if received_here else 'has no receiver of OTLP, and refused it'}")
print("ok")
