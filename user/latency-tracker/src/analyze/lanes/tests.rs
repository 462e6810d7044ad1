// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The lanes of known events.

use lt_model::{What, why};
use serde_json::Value;

use super::super::made::{R, S, at, chain, model, switch};
use super::super::page::{Limits, page, path};
use super::*;
use crate::html::Arrow;
use crate::html::tests::data;

/// The view of the path of thread 7 in that time, with a margin.
fn view(model: &Model, range: (u64, u64), margin: u64, most: usize) -> View {
    let thread = model.by_tid(7).next().unwrap();
    let pieces = why::path(model, thread, range.0, range.1);
    let shown = Shown {
        model,
        thread,
        range,
        pieces: &pieces,
        facts: &Facts::NONE,
    };
    let drawn = (range.0.saturating_sub(margin), range.1 + margin);
    let mut view = View {
        origin: drawn.0,
        length: drawn.1 - drawn.0,
        ..View::default()
    };
    let limits = Limits {
        bars: most,
        interrupted: &AtomicBool::new(false),
    };
    path(&mut view, &shown, &Facts::NONE, drawn, None, limits).unwrap();
    view
}

/// Each bar as `LANE begin..end kind text`.
fn bars(view: &View) -> Vec<String> {
    let json = serde_json::to_value(view).unwrap();
    let mut all = Vec::new();
    for group in json["groups"].as_array().unwrap() {
        for lane in group["lanes"].as_array().unwrap() {
            for bar in lane["bars"].as_array().unwrap() {
                let number = |i: usize| bar[i].as_u64().unwrap();
                let (begin, took) = (number(0), number(1));
                all.push(format!(
                    "{} {begin}..{} {} {}",
                    lane["name"].as_str().unwrap(),
                    begin + took,
                    number(2),
                    json["words"][number(3) as usize].as_str().unwrap()
                ));
            }
        }
    }
    all
}

#[test]
fn a_chain_is_drawn_lane_by_lane() {
    let view = view(&model(&chain(10)), (10, 30), 2, 1000);
    assert_eq!(
        bars(&view),
        [
            "late/7 2..3 0 late/7 runs",
            "late/7 3..5 0 late/7 runs in fsync",
            "late/7 5..17 3 late/7 waits in fsync for hog/8",
            "late/7 17..20 2 late/7 woken, waits for a CPU",
            "late/7 20..22 0 late/7 runs in fsync",
            "waited for 5..7 0 hog/8 runs",
            "waited for 7..12 3 hog/8 waits for disk (interrupt 24)",
            "waited for 12..14 2 hog/8 woken, waits for a CPU",
            "waited for 14..17 0 hog/8 runs",
            // The time before and after the trace is unknown.
            "late/7 0..2 4 not recorded: the trace starts later",
            "late/7 2..3 0 runs",
            "late/7 3..5 0 runs in fsync",
            "late/7 5..17 3 waits in fsync for hog/8",
            "late/7 17..20 2 woken, waits for a CPU",
            "late/7 20..22 0 runs in fsync",
            "late/7 22..24 4 not recorded: the trace ends earlier",
            "hog/8 0..2 4 not recorded: the trace starts later",
            "hog/8 2..5 4 not recorded: no earlier event names the thread",
            "hog/8 5..7 0 runs",
            "hog/8 7..12 3 waits for disk (interrupt 24)",
            "hog/8 12..14 2 woken, waits for a CPU",
            "hog/8 14..20 0 runs",
            "hog/8 20..22 3 waits; the waker is not recorded",
            "hog/8 22..24 4 not recorded: the trace ends earlier",
            "CPU 0 0..2 4 not recorded: the trace starts later",
            "CPU 0 2..5 0 late/7",
            "CPU 0 5..7 0 hog/8",
            "CPU 0 7..11 6 idle",
            "CPU 0 11..13 1 disk (interrupt 24)",
            "CPU 0 13..14 6 idle",
            "CPU 0 14..20 0 hog/8",
            "CPU 0 20..22 0 late/7",
            "CPU 0 22..24 4 not recorded: the trace ends earlier",
        ]
    );
    // From the interrupt's CPU (lane 4) to thread 8 (lane 3), and from thread 8 to thread 7 (lane 2).
    assert_eq!(
        view.arrows,
        [Arrow(12, 4, 12, 3, true), Arrow(17, 3, 17, 2, true)]
    );
    assert!(view.left_out.is_empty());
}

#[test]
fn the_tables_have_every_step() {
    let model = model(&chain(10));
    let thread = model.by_tid(7).next().unwrap();
    let pieces = why::path(&model, thread, 10, 30);
    let shown = Shown {
        model: &model,
        thread,
        range: (10, 30),
        pieces: &pieces,
        facts: &Facts::NONE,
    };
    let limits = Limits {
        bars: 1000,
        interrupted: &AtomicBool::new(false),
    };
    let page = page(&shown, "the text".into(), vec!["A note.".into()], limits).unwrap();
    let written = page.page().unwrap();
    assert!(written.contains("<pre tabindex=\"0\">the text</pre>"));
    let data = data(&written);
    let view = &data["views"][0];
    assert_eq!(view["verdict"].as_str(), shown.verdict().as_deref());
    assert_eq!(view["notes"][0], "A note.");
    let rows = |i: usize| view["tables"][i]["rows"].as_array().unwrap().clone();
    let time = |row: &Value, cell: usize| row[0][cell].as_u64().unwrap();
    assert_eq!(rows(0).iter().map(|row| time(row, 0)).sum::<u64>(), 20);
    let steps: Vec<_> = rows(1)
        .iter()
        .map(|row| (time(row, 0), time(row, 1)))
        .collect();
    let expected: Vec<_> = pieces
        .iter()
        .map(|p| (p.begin - 10, p.end - p.begin))
        .collect();
    assert_eq!(steps, expected);
    assert_eq!(rows(1)[2][0][2], " hog/8");
    assert_eq!(rows(1)[6][0][4], "woken, waits for CPU 0 (hog/8 for 3ns)");
    // The picture has the same bars and arrows.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("it.svg");
    page.draw(&file).unwrap();
    let picture = std::fs::read_to_string(&file).unwrap();
    for title in [
        "hog/8 waits for disk (interrupt 24): 5ns at +5ns",
        "late/7 waits in fsync for hog/8: 12ns at +3ns",
        "hog/8 woken, waits for a CPU: 2ns at +10ns, CPU 0; woken, waits for CPU 0",
        "not recorded: no earlier event names the thread: 3ns at +0ns",
    ] {
        let title = format!("<title>{title}");
        assert!(picture.contains(&title), "{title} {picture}");
    }
    assert_eq!(picture.matches("<line").count(), 2);
}

/// Bars beyond a limit are counted.
#[test]
fn what_is_not_drawn_is_stated() {
    let mut events = vec![switch(0, 0, 0, R, 7)];
    let mut time = 0;
    // Thread 7 is interrupted often; 100 other threads run for a moment on another CPU.
    for i in 0..1000 {
        let irq = What::Irq {
            number: 24,
            name: b"disk",
        };
        time += 10;
        events.push(at(time, 0, irq));
        events.push(at(time + 2, 0, What::IrqEnd { number: 24 }));
        let (prev, next) = (100 + i % 100, 100 + (i + 1) % 100);
        events.push(switch(time + 3, 1, if i == 0 { 0 } else { prev }, S, next));
    }
    events.push(switch(time + 500_000, 0, 7, S, 0));
    let model = model(&events);
    let end = time + 500_000;
    let all = view(&model, (0, end), 0, usize::MAX);
    let few = view(&model, (0, end), 0, 300);
    let (all, drawn) = (bars(&all), bars(&few));
    assert!(drawn.len() <= 300, "{}", drawn.len());
    let merged = drawn.iter().filter(|bar| bar.contains(" 7 "));
    let count = |bar: &String| {
        let (_, text) = bar.split_once(" 7 ").unwrap();
        let (count, _) = text.split_once(" states shorter").unwrap();
        count.replace(',', "").parse::<usize>().unwrap()
    };
    let (number, of) = merged.fold((0, 0), |(n, of), bar| (n + 1, of + count(bar)));
    assert_eq!(drawn.len() - number + of, all.len());
    let note = few.left_out.last().unwrap();
    assert!(
        note.starts_with(&format!(
            "{} states shorter than ",
            out::thousands(of as u64)
        )) && note.ends_with(&format!(
            ", as {} hatched bars.",
            out::thousands(number as u64)
        )),
        "{note}"
    );
    assert_eq!(
        few.left_out[0],
        format!(
            "Of 100 other threads that were awake, only the 24 that were awake the longest have lanes; the remaining \
             76 were awake for {} in all.",
            Nanos(76 * 100)
        )
    );
}
