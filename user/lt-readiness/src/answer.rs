// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A row of the check, and its answer.

use serde::Serialize;

use super::Target;
use super::fix::Fix;
use super::root::{Missing, Root};

/// The verdict of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Fit for real-time work.
    Ok,
    /// Adds latency, at least in some circumstances.
    Warn,
    /// Makes real-time work pointless on these CPUs.
    Bad,
    /// Cannot be determined on this machine, or by this user.
    #[serde(rename = "n/a")]
    Unknown,
}

/// The answer of a row.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) state: State,
    pub(super) found: String,
    /// How to fix it.
    pub(super) fix: Vec<Fix>,
}

impl Answer {
    pub(super) fn is_bad(&self) -> bool {
        self.state == State::Bad
    }

    /// Adds a command that fixes it.
    pub(super) fn fix(mut self, fix: impl Into<Fix>) -> Self {
        self.fix.push(fix.into());
        self
    }

    /// Adds several commands.
    pub(super) fn fixes(mut self, commands: impl IntoIterator<Item = String>) -> Self {
        self.fix.extend(commands.into_iter().map(Fix::from));
        self
    }
}

/// An answer, or the missing facts.
pub(super) type Found = Result<Answer, Missing>;

fn answer(state: State, found: impl Into<String>) -> Answer {
    let found = found.into();
    Answer {
        state,
        found,
        fix: Vec::new(),
    }
}

pub(super) fn ok(found: impl Into<String>) -> Answer {
    answer(State::Ok, found)
}

pub(super) fn warn(found: impl Into<String>) -> Answer {
    answer(State::Warn, found)
}

pub(super) fn bad(found: impl Into<String>) -> Answer {
    answer(State::Bad, found)
}

/// A row: one question of the check.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Why it matters, in half a sentence.
    pub(super) why: &'static str,
    pub(super) question: fn(&Root, &Target) -> Found,
}

impl Row {
    pub(super) fn ask(&self, root: &Root, target: &Target) -> Answer {
        let missing = |missing: Missing| answer(State::Unknown, missing.to_string());
        (self.question)(root, target).unwrap_or_else(missing)
    }
}

/// Returns the first few items as text, and the number of the others.
pub(super) fn some(all: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = all
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
}
