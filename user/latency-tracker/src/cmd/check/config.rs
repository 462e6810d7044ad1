// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `check --config`: validates configuration files as `apply` does. Nothing is started.

use std::path::PathBuf;

use lt_common::instance;
use lt_proc::ProcRoot;

use super::{Answer, State, answer};
use crate::config::{Config, DIRECTORY, Entry};

const WHAT: &str = "config";

/// Returns the answers for each line, and an answer for the parts that could not be checked.
pub(super) fn answers(root: &ProcRoot, paths: &[PathBuf]) -> Vec<Answer> {
    let default = [PathBuf::from(DIRECTORY)];
    let config = Config::read(if paths.is_empty() { &default } else { paths });
    let wrong = |fault: &String| answer(State::Bad, WHAT, fault.as_str(), "");
    let mut answers: Vec<Answer> = config.faults.iter().map(wrong).collect();
    let judged = root.is_loaded();
    for entry in &config.entries {
        answers.extend(of(root, entry, judged));
    }
    if !judged && !config.entries.is_empty() {
        let found = "trackers, parameters and values were not checked: the module is not loaded";
        let todo = "modprobe latency_tracker";
        answers.push(answer(State::Warn, WHAT, found, "").by(todo));
    }
    if answers.is_empty() {
        let found = "no configuration: there is no *.conf with a line that starts an instance";
        answers.push(answer(State::Ok, WHAT, found, ""));
    }
    answers
}

fn of(root: &ProcRoot, entry: &Entry, judged: bool) -> Vec<Answer> {
    let place = entry.place();
    let odd = std::cell::RefCell::new(Vec::new());
    let say = |text: &str| {
        let found = format!("{place}: {text}");
        odd.borrow_mut().push(answer(State::Warn, WHAT, found, ""));
    };
    let tried = entry.settings().and_then(|settings| match judged {
        true => instance::try_out(root, &entry.tracker, &settings, &say).map(drop),
        false => Ok(()),
    });
    let mut answers = odd.take();
    match tried {
        Ok(()) if answers.is_empty() => {
            let found = format!("{place}: {} {}", entry.name, entry.tracker);
            answers.push(answer(State::Ok, WHAT, found, ""));
        }
        Ok(()) => {}
        Err(error) => {
            let found = format!("{place}: {error:#}");
            answers.push(answer(State::Bad, WHAT, found, ""));
        }
    }
    answers
}
