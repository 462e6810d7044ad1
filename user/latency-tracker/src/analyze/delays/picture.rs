// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The picture of `analyze delays --perfetto`: the states of each thread, and the paths that explain its waits.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use lt_model::why::{self, Piece, Segment};

use super::super::picture::{Picture, States, Way};
use super::Report;
use super::tree::branch;

impl Report<'_> {
    /// Writes the picture, replacing `file`.
    pub(super) fn draw_picture(&self, file: &Path, interrupted: &AtomicBool) -> Result<()> {
        let path = |of: &Segment| why::path(self.model, of.thread, of.begin, of.end);
        let paths: Vec<Vec<Piece>> = self.segments.iter().map(path).collect();
        let ways = self.segments.iter().zip(&paths).map(|(of, pieces)| Way {
            thread: of.thread,
            range: (of.begin, of.end),
            pieces,
            alert: None,
        });
        let picture = Picture {
            model: self.model,
            facts: &self.facts,
            range: self.range,
            alerts: Vec::new(),
            states: self.segments.iter().map(|of| self.states(of)).collect(),
            paths: ways.collect(),
        };
        picture.write(file, interrupted)
    }

    fn states(&self, of: &Segment) -> States {
        let words = self.words();
        let stays = of.states.iter().map(|stay| {
            let text = branch(&words, &stay).join(": ");
            (stay.begin, stay.end, text)
        });
        States {
            title: format!("States of {}", words.name(of.thread)),
            stays: stays.collect(),
        }
    }
}
