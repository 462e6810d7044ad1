// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Keys, without a terminal.

use std::time::Duration;

use super::{MS, names, shown, state};
use crate::cli::{By, Column};
use crate::cmd::top::input::Key;
use crate::cmd::top::keys::Todo;
use crate::cmd::top::state::State;

#[test]
fn every_key_of_the_help_does_what_it_says() {
    let mut state = state();
    let press = |state: &mut State, key| state.press(key);
    assert_eq!(state.selected.as_deref(), Some("slow_disk"));
    press(&mut state, Key::Down);
    assert_eq!(state.selected.as_deref(), Some("late"));
    press(&mut state, Key::Char('k'));
    assert_eq!(state.selected.as_deref(), Some("slow_disk"));
    press(&mut state, Key::End);
    assert_eq!(state.selected.as_deref(), Some("calls"));
    press(&mut state, Key::Char('j'));
    assert_eq!(
        state.selected.as_deref(),
        Some("calls"),
        "the last one stays selected"
    );
    // The selection is an instance, not a line.
    press(&mut state, Key::Char('r'));
    assert_eq!(names(&state)[0], "calls");
    assert_eq!(state.selected.as_deref(), Some("calls"));
    press(&mut state, Key::Char('I'));
    press(&mut state, Key::Char('>'));
    assert_eq!(state.sort, Column::Max);
    press(&mut state, Key::Char('<'));
    press(&mut state, Key::Char('<'));
    assert_eq!(state.sort, Column::P50);
    (0..5).for_each(|_| assert_eq!(state.press(Key::F(6)), Todo::Draw));
    assert_eq!(state.sort, Column::Oldest);
    press(&mut state, Key::Enter);
    assert!(state.shows_details);
    press(&mut state, Key::Enter);
    assert!(!state.shows_details);
    assert_eq!(press(&mut state, Key::Char(' ')), Todo::Reschedule);
    assert!(state.is_paused);
    assert_eq!(press(&mut state, Key::Char('p')), Todo::Reschedule);
    assert!(!state.is_paused);
    press(&mut state, Key::Char('w'));
    let delays: Vec<u64> = state
        .alerts()
        .iter()
        .map(|alert| alert.delay / MS)
        .collect();
    assert_eq!(delays, [20, 12]);
    let groups = [Some(By::Task), Some(By::Subject), Some(By::Stack), None];
    let keys = [Key::Char('t'), Key::F(5)].repeat(2);
    for (by, key) in groups.into_iter().zip(keys) {
        assert_eq!(press(&mut state, key), Todo::Draw);
        assert_eq!(state.by, by);
    }
    press(&mut state, Key::Char('?'));
    assert!(state.shows_help);
    press(&mut state, Key::Esc);
    assert!(!state.shows_help, "Esc leaves the help, not the program");
    assert_eq!(press(&mut state, Key::Ctrl('l')), Todo::Clear);
    assert_eq!(press(&mut state, Key::Ctrl('z')), Todo::Suspend);
    for key in [Key::Char('q'), Key::F(10), Key::Esc, Key::Ctrl('c')] {
        assert_eq!(press(&mut state, key), Todo::Quit, "{key:?}");
    }
}

#[test]
fn the_interval_has_steps_and_can_be_typed() {
    let mut state = state();
    assert_eq!(state.press(Key::Char('+')), Todo::Reschedule);
    assert_eq!(state.interval, Duration::from_secs(5));
    (0..3).for_each(|_| assert_eq!(state.press(Key::Char('-')), Todo::Reschedule));
    assert_eq!(state.interval, Duration::from_millis(500));
    (0..9).for_each(|_| assert_eq!(state.press(Key::Char('-')), Todo::Reschedule));
    assert_eq!(state.interval, Duration::from_millis(100));
    let typed = |state: &mut State, text: &str| {
        state.press(Key::Char('d'));
        text.chars()
            .for_each(|c| assert_eq!(state.press(Key::Char(c)), Todo::Draw));
        state.press(Key::Enter)
    };
    assert_eq!(typed(&mut state, "250ms"), Todo::Reschedule);
    assert_eq!(state.interval, Duration::from_millis(250));
    assert_eq!(typed(&mut state, "2"), Todo::Reschedule);
    for wrong in ["0", "1ms", "x", ""] {
        assert_eq!(typed(&mut state, wrong), Todo::Draw);
        assert!(state.note.as_ref().unwrap().contains("expected"), "{wrong}");
        assert!(shown(&state, 80, 24)[23].starts_with("interval"), "{wrong}");
    }
    assert_eq!(state.interval, Duration::from_secs(2));
}

#[test]
fn a_filter_takes_effect_at_once_and_esc_restores_it() {
    let mut state = state();
    let typed = |state: &mut State, text: &str| {
        text.chars()
            .for_each(|c| assert_eq!(state.press(Key::Char(c)), Todo::Draw));
    };
    state.press(Key::Char('/'));
    typed(&mut state, "SYSx");
    state.press(Key::Backspace);
    assert_eq!(names(&state), ["calls"], "by its tracker");
    assert_eq!(state.selected.as_deref(), Some("calls"));
    assert!(state.alerts().is_empty() && state.pending(9).is_empty());
    assert_eq!(shown(&state, 80, 24)[23], "filter: SYS_");
    state.press(Key::Enter);
    assert!(shown(&state, 80, 24)[0].contains("filter SYS"));
    state.press(Key::Char('/'));
    typed(&mut state, "q");
    assert!(names(&state).is_empty());
    assert!(
        shown(&state, 80, 24)
            .iter()
            .any(|line| line == "no instance passes the filter")
    );
    state.press(Key::Esc);
    assert_eq!(names(&state), ["calls"]);
}
