// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables for programs; times are in ns, times of events on the trace's clock.

use lt_model::tables::{Case, File, InCall, Key, Object, Row, Table, TaskId, Trigger};
use lt_model::{Disk, Name};
use serde_json::{Map, Value, json};

use super::view::{self, Line, Report};

/// The whole report.
pub(super) fn of(report: &Report<'_>) -> Value {
    let (from, to) = report.found.range;
    let tables = report.found.tables.tables.iter();
    json!({
        "analysis": report.found.subject.name(),
        "from": from,
        "to": to,
        "interval": report.args.interval.map(|every| every.0),
        "caveats": report.caveats(),
        "tables": tables.map(|of| table(report, of)).collect::<Vec<_>>(),
    })
}

fn table(report: &Report<'_>, table: &Table) -> Value {
    let rows = report.shown(table, None).0;
    let row = |line: &Line<'_>| {
        let mut row = Map::new();
        if report.args.interval.is_some() {
            row.insert("from".into(), line.interval.into());
        }
        row.extend(key(report, line.key));
        sums(&mut row, table, line.row);
        if let Some(share) = report.share(table, line) {
            row.insert("share".into(), json!((share * 1e6).round() / 1e6));
        }
        Value::Object(row)
    };
    let mut whole = Map::new();
    sums(&mut whole, table, &table.whole);
    json!({
        "table": view::name(table.kind),
        "by": view::grouping(table),
        "all": whole,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "worst": table.worst.iter().map(|of| case(report, of)).collect::<Vec<_>>(),
        "not_measured": {
            "lost": table.missed.lost,
            "outside": table.missed.outside,
            "identical": table.missed.identical,
        },
    })
}

fn sums(row: &mut Map<String, Value>, table: &Table, of: &Row) {
    let sums = &of.sums;
    let some = |ns: u64| (sums.count > 0).then_some(ns);
    for (name, value) in [
        ("count", Some(sums.count)),
        ("sum", Some(sums.sum)),
        ("min", some(sums.least)),
        ("p50", sums.percentile(50)),
        ("p90", sums.percentile(90)),
        ("p99", sums.percentile(99)),
        ("max", some(sums.most)),
    ] {
        row.insert(name.into(), value.into());
    }
    row.insert("exact".into(), sums.is_exact().into());
    for (name, which) in view::extras(table.kind) {
        row.insert((*name).into(), of.extra(*which).into());
    }
}

fn thread(report: &Report<'_>, id: TaskId) -> Value {
    let (tid, comm) = report.found.tables.task(id);
    json!({"tid": tid, "comm": comm})
}

fn key(report: &Report<'_>, key: Key) -> Map<String, Value> {
    let one = |name: &str, value: Value| Map::from_iter([(name.to_string(), value)]);
    match key {
        Key::Thread(of) => one("thread", of.map_or(Value::Null, |id| thread(report, id))),
        Key::Process(of) => one("process", of.map_or(Value::Null, |id| thread(report, id))),
        Key::Name(name) => one("comm", named(report, name)),
        Key::Cpu(cpu) => one("cpu", cpu.into()),
        Key::Priority(prio) => one("prio", prio.into()),
        Key::Object(of) => object(report, of),
        Key::Device(disk) => one("device", disk.to_string().into()),
        Key::Network(device) => one("device", report.found.tables.text(device).into()),
        Key::Lock(lock) => one("lock", format!("{lock:#x}").into()),
        Key::Call(call) => in_call(report, Some(call)),
        Key::File(of) => file(report, of),
        Key::State(sleep) => one("state", view::state(sleep).into()),
        Key::Waker(by) => waker(report, by),
        Key::Queuer(by) => queuer(report, by),
        Key::Workqueue(name) => one("workqueue", named(report, name)),
        Key::Stack(of, what) => {
            let task = |id: Option<TaskId>| id.map_or(Value::Null, |id| thread(report, id));
            let process = of.and_then(|id| report.found.tables.process(id));
            let mut map = one("process", task(process));
            map.insert("thread".into(), task(of));
            map.extend(what.into_iter().flat_map(|what| object(report, what)));
            map
        }
    }
}

/// The file of a system call: null if it is not recorded, missing if the call works on no file, or on several.
fn file(report: &Report<'_>, file: Option<File>) -> Map<String, Value> {
    let name = file.map(|file| match file {
        File::Named(name) => report.found.tables.file(name).into(),
        File::Unknown => Value::Null,
    });
    name.map(|name| ("file".to_string(), name))
        .into_iter()
        .collect()
}

/// The system call in which a thread slept: null if it is not recorded, missing if the thread was in no call.
fn in_call(report: &Report<'_>, call: Option<InCall>) -> Map<String, Value> {
    let call = match call {
        Some(InCall::Named(name)) => Some(report.found.tables.text(name).into()),
        Some(InCall::Unknown) => Some(Value::Null),
        Some(InCall::Outside) | None => None,
    };
    call.map(|call| ("call".to_string(), call))
        .into_iter()
        .collect()
}

fn object(report: &Report<'_>, object: Object) -> Map<String, Value> {
    let text = |name| report.found.tables.text(name);
    let with_address = |name: &str, what: &str, address: u64| {
        let mut map = Map::from_iter([(name.to_string(), what.into())]);
        if address != 0 {
            map.insert("lock".into(), format!("{address:#x}").into());
        }
        map
    };
    let value = match object {
        Object::Line(number, name) => json!({"line": number, "name": text(name)}),
        Object::Vector(vector) => json!({"vector": vector.0, "name": vector.name()}),
        Object::Call(name) => json!({"call": text(name)}),
        Object::Disk(of, op) => {
            let mut map = disk(report, of);
            map.insert("operation".into(), view::operation(op).into());
            return map;
        }
        Object::Lock(kind, address) => return with_address("kind", kind, address),
        Object::Futex(op, address) => return with_address("operation", op, address),
        Object::Reclaim(kind) => json!({"reclaim": view::reclaim(kind)}),
        Object::Packet(device, None) => json!({"device": text(device)}),
        Object::Packet(device, Some(end)) => {
            json!({"device": text(device), "ended": view::ended(end)})
        }
        Object::Work(address, queue, by) => {
            let mut map = function(report, address);
            map.insert("workqueue".into(), named(report, queue));
            map.extend(by.into_iter().flat_map(|by| queuer(report, by)));
            return map;
        }
        Object::Sleep(sleep, by) => {
            let mut map = Map::from_iter([("state".to_string(), view::state(sleep).into())]);
            map.extend(waker(report, by));
            return map;
        }
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A name, or null if it is not recorded.
fn named(report: &Report<'_>, name: Option<Name>) -> Value {
    name.map(|name| report.found.tables.text(name)).into()
}

fn disk(report: &Report<'_>, disk: Disk) -> Map<String, Value> {
    Map::from_iter([
        ("device".to_string(), disk.to_string().into()),
        ("disk".to_string(), json!(report.found.disks.get(&disk))),
    ])
}

/// A function of work items.
fn function(report: &Report<'_>, address: u64) -> Map<String, Value> {
    let name = report.found.functions.get(&address);
    Map::from_iter([
        ("function".to_string(), format!("{address:#x}").into()),
        ("name".to_string(), json!(name)),
    ])
}

/// What ended a sleep.
fn waker(report: &Report<'_>, by: Trigger) -> Map<String, Value> {
    let mut map = Map::from_iter([("waker".to_string(), view::trigger(by).into())]);
    match by {
        Trigger::Thread(Some(id)) | Trigger::Perhaps(Some(id)) => {
            map.insert("woken_by".into(), thread(report, id));
        }
        by => map.extend(details(report, by)),
    }
    map
}

/// What queued a work item.
fn queuer(report: &Report<'_>, by: Trigger) -> Map<String, Value> {
    let mut map = Map::from_iter([("queuer".to_string(), view::trigger(by).into())]);
    let by = details(report, by);
    if !by.is_empty() {
        map.insert("queued_by".into(), Value::Object(by));
    }
    map
}

/// The thread, interrupt, softirq, disk or function that ended a sleep or queued a work item.
fn details(report: &Report<'_>, by: Trigger) -> Map<String, Value> {
    let text = |name| report.found.tables.text(name);
    let value = match by {
        Trigger::Thread(Some(id)) | Trigger::Perhaps(Some(id)) => thread(report, id),
        Trigger::Irq(number, name) => json!({"line": number, "name": text(name)}),
        Trigger::Softirq(vector) => json!({"vector": vector.0, "name": vector.name()}),
        Trigger::Disk(of) => return disk(report, of),
        Trigger::Ipi(name) => json!({"name": text(name)}),
        Trigger::Work(address) => return function(report, address),
        Trigger::Thread(None) | Trigger::Perhaps(None) => Value::Null,
        Trigger::Timer | Trigger::Unrecorded => Value::Null,
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn case(report: &Report<'_>, case: &Case) -> Value {
    let mut map = Map::from_iter([
        ("took".to_string(), case.took().into()),
        ("begin".to_string(), case.begin.into()),
        ("end".to_string(), case.end.into()),
        ("cpu".to_string(), case.cpu.into()),
    ]);
    if let Some(id) = case.thread {
        map.insert("thread".into(), thread(report, id));
    }
    if let Some(prio) = case.priority {
        map.insert("prio".into(), prio.0.into());
    }
    if let Some(of) = case.object {
        map.extend(object(report, of));
    }
    map.extend(file(report, case.file));
    map.extend(in_call(report, case.call));
    Value::Object(map)
}
