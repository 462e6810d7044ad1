// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Screens of several sizes, on a terminal in memory.

use std::time::{Duration, Instant};

use ratatui::style::{Color, Modifier};

use super::{Made, alert, names, reading, screen, shown, state};
use crate::cli::{By, Column};
use crate::cmd::top::input::Key;
use crate::cmd::top::keys::Todo;
use crate::cmd::top::state::State;

#[test]
fn the_screen_has_everything_at_each_size() {
    let mut state = state();
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let lines = shown(&state, width, height);
        assert!(
            lines[0].starts_with("latency-tracker top  14:03:20  3 instances, every 2s, by P99")
        );
        assert_eq!(lines[1], "lost: slow_disk full=3");
        let words = |line: &str| {
            line.split_whitespace()
                .map(String::from)
                .collect::<Vec<_>>()
        };
        let headings = words(&lines[2]);
        let known = [
            "NAME", "TRACKER", "RATE", "P50", "P99", "MAX", "ALERTS", "PENDING", "OLDEST", "LOST",
        ];
        assert_eq!(headings[..10], known, "{width}: {lines:#?}");
        let disk = words(&lines[3]);
        let expected = [
            "slow_disk",
            "block",
            "150",
            "2.05us",
            "10.49ms",
            "10.49ms",
            "4",
            "+3",
            "2",
            "500.0ms",
            "3",
        ];
        assert_eq!(disk[..11], expected, "{width}");
        assert!(
            width < 120 || lines[3].contains('█'),
            "the graph: {}",
            lines[3]
        );
        let at = |text: &str| {
            lines
                .iter()
                .position(|line| line.contains(text))
                .unwrap_or(0)
        };
        let (alerts, in_flight) = (at("ALERTS (newest first)"), at("IN FLIGHT (oldest first)"));
        assert!(5 < alerts && alerts + 2 < in_flight, "{lines:#?}");
        assert_eq!(
            words(&lines[alerts + 1])[..4],
            ["0ns", "12.00ms", "slow_disk", "f?o/812"]
        );
        assert!(
            lines[alerts + 1].contains("sda WS sector 2048"),
            "{lines:#?}"
        );
        assert_eq!(words(&lines[alerts + 2])[..2], ["1s", "20.00ms"]);
        assert_eq!(
            words(&lines[in_flight + 1])[..3],
            ["500.0ms", "slow_disk", "dd/7"]
        );
        assert!(
            lines[usize::from(height) - 1].starts_with("hHelp  /Filter  <>Sort"),
            "{lines:#?}"
        );
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    }
    state.press(Key::Char('h'));
    let help = shown(&state, 80, 24);
    assert!(
        help.iter()
            .any(|line| line.contains("OLDEST   age of the oldest")),
        "{help:#?}"
    );
    assert!(
        help.iter().any(|line| line.contains("q F10 Esc ^C")),
        "{help:#?}"
    );
}

#[test]
fn details_replace_the_lists() {
    let mut state = state();
    state.press(Key::Enter);
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let lines = shown(&state, width, height);
        let text = lines.join("\n");
        let title = "slow_disk: 300 ended in the interval";
        assert!(text.contains(title), "{text}");
        assert!(
            text.contains("1.02us - 2.05us") && text.contains(" 290 █"),
            "{text}"
        );
        assert!(
            text.contains("8.39ms - 16.78ms") && text.contains(" 10 █"),
            "{text}"
        );
        // Losses come first.
        let counters = lines
            .iter()
            .find(|line| line.contains("1.02us - 2.05us"))
            .unwrap();
        assert!(counters.contains("full "), "{text}");
        assert!(
            text.contains("attempts ") && !text.contains("IN FLIGHT"),
            "{text}"
        );
    }
}

#[test]
fn details_without_a_delay_have_no_histogram() {
    let mut state = state();
    state.press(Key::End);
    state.press(Key::Enter);
    let text = shown(&state, 80, 24).join("\n");
    let title = "calls: 0 ended in the interval";
    assert!(
        text.contains(title) && text.contains("no delay recorded"),
        "{text}"
    );
}

#[test]
fn groups_replace_the_alerts() {
    let mut state = state();
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        state.by = Some(By::Subject);
        let lines = shown(&state, width, height);
        let text = lines.join("\n");
        let title = "INSTANCE   COUNT   LONGEST BY SUBJECT (longest total first)";
        let at = lines.iter().position(|line| line.contains(title));
        let row: Vec<&str> = lines[at.unwrap() + 1].split_whitespace().collect();
        let expected = ["0ns", "32.00ms", "slow_disk", "2", "20.00ms", "sda"];
        assert_eq!(row, expected, "{text}");
        assert!(text.contains("IN FLIGHT (oldest first)"), "{text}");
        state.longest_first = true;
        let text = shown(&state, width, height).join("\n");
        assert!(text.contains("BY SUBJECT (longest delay first)"), "{text}");
        state.longest_first = false;
        state.by = Some(By::Task);
        let text = shown(&state, width, height).join("\n");
        assert!(text.contains(" f?o/812\n"), "{text}");
        state.by = Some(By::Stack);
        let text = shown(&state, width, height).join("\n");
        assert!(text.contains(" [no stack]\n"), "{text}");
    }
    state.filter = "calls".to_string();
    let text = shown(&state, 80, 24).join("\n");
    assert!(text.contains("\nno alerts\n"), "{text}");
}

#[test]
fn colours_mark_what_is_bad_and_can_be_switched_off() {
    let mut state = state();
    state.press(Key::Down);
    let colours = |state: &State| {
        let terminal = screen(state, 120, 40);
        let cells = terminal.backend().buffer().content.clone();
        cells
            .iter()
            .filter(|cell| cell.fg == Color::Red)
            .map(|cell| cell.symbol().to_string())
            .collect::<String>()
    };
    let red = colours(&state);
    assert!(
        red.contains("4 +3") && red.contains("500.0ms") && red.contains("12.00ms"),
        "{red}"
    );
    assert!(
        !red.contains("2.00ms ") || red.contains("12.00ms"),
        "below the threshold: {red}"
    );
    state.has_colour = false;
    let terminal = screen(&state, 120, 40);
    let cells = &terminal.backend().buffer().content;
    assert!(
        cells
            .iter()
            .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
    assert!(
        cells
            .iter()
            .any(|cell| cell.modifier.contains(Modifier::REVERSED))
    );
}

#[test]
fn a_small_terminal_causes_no_panic() {
    let mut state = state();
    for (details, by) in [(false, None), (false, Some(By::Stack)), (true, None)] {
        state.shows_details = details;
        state.by = by;
        for width in 1..=90 {
            for height in 1..=30 {
                let lines = shown(&state, width, height);
                let small = width < 40 || height < 10;
                let title = "latency-tracker top  14:03:20";
                assert_eq!(lines[0].starts_with(title), !small, "{width}x{height}");
            }
        }
    }
    state.press(Key::Char('h'));
    shown(&state, 40, 10);
}

#[test]
fn a_screen_without_instances_has_advice() {
    let mut state = State::new(Duration::from_secs(1), Column::P99);
    state.update(reading(0, Vec::new()));
    let lines = shown(&state, 80, 24);
    let advice = "no instances; start one: latency-tracker start slow_disk block threshold=10ms";
    assert!(lines.iter().any(|line| line == advice), "{lines:#?}");
    for key in [
        Key::Down,
        Key::Up,
        Key::End,
        Key::Enter,
        Key::PageDown,
        Key::Home,
    ] {
        assert_eq!(state.press(key), Todo::Draw);
        shown(&state, 80, 24);
    }
}

#[test]
fn instances_appear_and_disappear() {
    let mut state = state();
    state.press(Key::End);
    let made = Made {
        start: Instant::now(),
    };
    let one = made.one(9, "new", "irq", "attempts=4 ended=4", "640 704 4");
    state.update(reading(4, vec![one]));
    assert_eq!(
        (names(&state), state.selected.as_deref()),
        (vec!["new"], Some("new"))
    );
    assert!(state.graph_of("slow_disk").is_empty());
    assert_eq!(state.graph_of("new"), [Some(703)]);
    shown(&state, 80, 24);
}

#[test]
fn many_instances_scroll_with_the_selection() {
    let made = Made {
        start: Instant::now(),
    };
    let all = (0..40).map(|n| {
        made.one(
            0,
            &format!("i{n:02}"),
            "irq",
            "attempts=1 ended=1",
            "640 704 1",
        )
    });
    let mut state = State::new(Duration::from_secs(1), Column::Name);
    state.update(reading(0, all.collect()));
    let lines = shown(&state, 80, 24);
    assert!(lines[0].contains("1-8 of 40 instances"), "{}", lines[0]);
    assert!(lines[2].starts_with("i00") && lines[9].starts_with("i07"));
    state.press(Key::End);
    let lines = shown(&state, 80, 24);
    assert!(lines[0].contains("33-40 of 40 instances"), "{}", lines[0]);
    assert!(lines[9].starts_with("i39"), "{lines:#?}");
}

#[test]
fn alerts_are_kept_up_to_a_limit() {
    let mut state = State::new(Duration::from_secs(1), Column::P99);
    let mut new = reading(0, Vec::new());
    new.alerts = (0..300).map(|n| alert(0, "gone", n)).collect();
    new.missed = 5;
    state.update(new);
    assert_eq!(state.alerts().len(), 256);
    assert_eq!(state.alerts()[0].delay, 299);
    let lines = shown(&state, 80, 24);
    assert_eq!(lines[1], "lost: 5 alerts overwritten before being read");
    // The sums are of the alerts that are kept, which the heading shows.
    state.by = Some(By::Task);
    let text = shown(&state, 80, 24).join("\n");
    assert!(text.contains("BY TASK (256 of 300 alerts; "), "{text}");
    assert!(text.contains(" 256 "), "{text}");
    assert!(text.contains("lost: 5 alerts"), "{text}");
}
