// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Views of alerts.

use std::sync::atomic::Ordering;

use super::super::reports;
use super::*;
use crate::analyze::lanes::bars_of_each;
use crate::analyze::made::{R, S, model, switch, waking};
use crate::html::tests::data;

/// Thread 7 waits from 100 to 900 for CPU 0, which runs thread 8.
fn told() -> Told {
    let events = [
        switch(0, 0, 0, R, 7),
        switch(50, 0, 7, S, 8),
        switch(60, 1, 0, R, 9),
        waking(100, 1, 7),
        switch(900, 0, 8, R, 7),
        switch(1000, 0, 7, S, 0),
    ];
    Told::made(model(&events), 3)
}

fn alert(seq: usize, tracker: &str, delay: u64, tid: i32) -> Alert {
    let line = format!(
        "seq={seq} time=900 instance=slow tracker={tracker} reason=threshold delay={delay} threshold=10 cpu=0 \
         pid={tid} tid={tid} comm=\"late\" stack=\"a+0x1,b+0x2\""
    );
    Alert::parse(&line).unwrap()
}

fn written(told: &Told, alerts: &[Alert]) -> (Page, serde_json::Value) {
    let evidence = Evidence::default();
    let never = AtomicBool::new(false);
    let requests = Vec::new();
    let no = ByThread::new(&[]);
    let reports = reports(told, alerts, &evidence, &no, requests, &never, &mut || ());
    let reports = reports.unwrap();
    let page = page(told, &evidence, &no, &reports, bars_of_each, &never).unwrap();
    let data = data(&page.page().unwrap());
    (page, data)
}

#[test]
fn a_signal_ends_the_explanations_at_the_next_alert() {
    let (told, evidence) = (told(), Evidence::default());
    let alerts = [alert(3, "wakeup", 800, 7), alert(4, "wakeup", 800, 7)];
    let signal = AtomicBool::new(false);
    let mut begun = 0;
    let goes_on = &mut || {
        begun += 1;
        signal.store(true, Ordering::Relaxed);
    };
    let (no, requests) = (ByThread::new(&[]), Vec::new());
    let reports = reports(&told, &alerts, &evidence, &no, requests, &signal, goes_on);
    let error = reports.err().map(|error| error.to_string());
    assert_eq!((error.as_deref(), begun), (Some("interrupted"), 1));
}

#[test]
fn a_view_has_the_words_of_the_terminal() {
    let told = told();
    let alerts = [alert(3, "wakeup", 800, 7)];
    let (page, data) = written(&told, &alerts);
    let why = Why::new(&told, &alerts[0], &Evidence::default(), &[]);
    assert_eq!(page.title, "Alert 3 of slow: wakeup");
    let view = &data["views"][0];
    let text = with_stacks(why.text(), "stack of the task\n  a+0x1\n  b+0x2\n");
    assert_eq!(page.views[0].text, text);
    assert!(!why.text().contains("a+0x1"), "{text}");
    assert_eq!(view["verdict"], why.verdict());
    assert_eq!(
        view["notes"],
        serde_json::json!([
            "The tracer lost 3 events, so the result may be incomplete: record with larger buffers."
        ])
    );
    assert_eq!(view["facts"][0], serde_json::json!(["Task", "late/7"]));
    // A tenth of the delay on either side.
    assert_eq!(
        (view["origin"].as_str(), view["length"].as_u64()),
        (Some("20"), Some(960))
    );
    assert_eq!(view["focus"], serde_json::json!([80, 880]));
    let groups = view["groups"].as_array().unwrap();
    let names: Vec<_> = groups
        .iter()
        .filter_map(|group| group["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "Critical path",
            "Threads of the path",
            "CPUs",
            "Other threads"
        ]
    );
    assert_eq!(
        groups[0]["lanes"][0]["bars"][0],
        serde_json::json!([80, 800, 8, 0, null, null])
    );
    let titles: Vec<_> = page.views[0]
        .tables
        .iter()
        .map(|table| table.title.as_str())
        .collect();
    assert_eq!(
        titles,
        [
            "Where the time went",
            "The critical path, step by step",
            "What used CPU 0, on which the delay ended"
        ]
    );
}

#[test]
fn an_alert_without_a_thread_has_no_path() {
    let (page, data) = written(&told(), &[alert(3, "irq", 800, 7)]);
    let groups = data["views"][0]["groups"].as_array().unwrap();
    assert_eq!(groups[0]["name"], "Alert");
    assert_eq!(groups[1]["name"], "CPUs");
    assert_eq!(page.views[0].tables.len(), 1);
}

#[test]
fn the_longest_of_many_alerts_are_on_the_page() {
    let alerts: Vec<_> = (1..=60)
        .map(|i| alert(i, "wakeup", 200 + i as u64, 7))
        .collect();
    let (page, data) = written(&told(), &alerts);
    assert_eq!(page.views.len(), 50);
    assert_eq!(page.views[0].name, "Alert 11 of slow: wakeup");
    assert_eq!(
        data["left_out"],
        serde_json::json!([
            "Of 60 alerts, only the 50 with the longest delays are included; explain --seq chooses others."
        ])
    );
}
