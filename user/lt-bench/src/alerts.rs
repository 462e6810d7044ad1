// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The alerts that the trackers raise while a bench runs, in its own instances and in others.

use std::collections::VecDeque;
use std::fs::File;

use lt_common::out::note;
use lt_common::wait::Lines;
use lt_proc::{Alert, ProcRoot, StreamLine};

/// Maximum number of alerts kept. Each is examined soon after its arrival.
const KEPT: usize = 1000;

/// The latest alerts of all instances, including instances of other users.
#[derive(Debug)]
pub(super) struct Tail {
    file: Option<File>,
    lines: Lines,
    pub(super) kept: VecDeque<Alert>,
}

impl Tail {
    /// Follows the alerts from now on. There are none without the module.
    pub(super) fn open(root: &ProcRoot) -> Self {
        Self {
            file: root.open_alerts(None, false).ok(),
            lines: Lines::default(),
            kept: VecDeque::new(),
        }
    }

    /// Reads the alerts that have arrived.
    pub(super) fn read(&mut self) {
        while let Some(file) = &self.file {
            let chunk = match self.lines.read(file) {
                Ok(chunk) => chunk,
                Err(error) => {
                    note(&format!("alerts can no longer be read: {error}"));
                    self.file = None;
                    return;
                }
            };
            for line in &chunk.lines {
                if let Ok(StreamLine::Alert(alert)) = StreamLine::parse(line) {
                    self.kept.push_back(*alert);
                }
            }
            while self.kept.len() > KEPT {
                self.kept.pop_front();
            }
            if chunk.end || chunk.lines.is_empty() {
                return;
            }
        }
    }
}
