// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Explains one late block request from the trace around it.
//!
//! ```text
//!   trace (crate::trace) --Explainer::feed--> requests of the device, tasks per CPU --finish--> Explanation
//! ```
//!
//! Events are read once, in order of time. Only the requests of the alert's device, and the task switches in
//! the window of the alert, are kept.

mod event;
mod model;
mod render;
mod requests;

use std::collections::HashMap;

use lt_ctf::{FieldIndex, Part, Reader};
use lt_proc::Alert;

use self::event::Event;
use self::model::Explainer;
pub(super) use self::model::Explanation;
use crate::trace::{Beside, Told};

/// Whether the alert is about a request.
pub(super) fn explains(alert: &Alert) -> bool {
    Explainer::new(alert).is_some()
}

/// Explains the alerts that are about requests.
pub(super) struct Explainers {
    all: Vec<Explainer>,
    /// The fields of each event class, `None` if it is irrelevant. Looked up once, before events are read.
    wanted: Vec<Option<Vec<(FieldIndex, String)>>>,
}

impl Explainers {
    pub(super) fn new(alerts: &[Alert]) -> Self {
        Self {
            all: alerts.iter().filter_map(Explainer::new).collect(),
            wanted: Vec::new(),
        }
    }

    /// Returns an explanation for each alert about a request, in order, once the whole trace has been read.
    pub(super) fn finish(self, told: &Told) -> impl Iterator<Item = Explanation> + use<'_> {
        // An unreadable part does not invalidate the rest of the trace.
        let fault = told.fault.as_ref().map(ToString::to_string);
        let lost = told.lost;
        let begins: HashMap<u32, u64> = told
            .model
            .gaps()
            .filter(|(_, (from, _), _)| *from == 0)
            .map(|(cpu, (_, begin), _)| (cpu, begin))
            .collect();
        let gap = move |from, to| told.model.gap(from, to);
        self.all.into_iter().map(move |explainer| {
            let begin = |cpu: u32| begins.get(&cpu).copied();
            let mut explanation = explainer.finish(lost, fault.clone(), gap, begin);
            explanation.clock = told.time_of_day(explanation.alert.time);
            explanation
        })
    }
}

impl Beside for Explainers {
    fn begin(&mut self, reader: &Reader) {
        let wanted = |class: &lt_ctf::Class| {
            let wanted = class.name == "sched_switch" || class.name.starts_with("block_rq_");
            let fields = class.fields().map(|(i, f)| (i, f.name.clone()));
            wanted.then(|| fields.collect())
        };
        self.wanted = reader.classes().map(wanted).collect();
    }

    fn see(&mut self, time: u64, event: &lt_ctf::Event<'_>) {
        if self.all.is_empty() {
            return;
        }
        let fields = self
            .wanted
            .get(event.class_index())
            .and_then(Option::as_ref);
        let plain = plain(time, event, fields.map_or(&[], Vec::as_slice));
        self.all.iter_mut().for_each(|e| e.feed(&plain));
    }
}

/// Converts an event, keeping only these fields.
fn plain(time: u64, event: &lt_ctf::Event<'_>, fields: &[(FieldIndex, String)]) -> Event {
    let value = |index| {
        let mut value = String::new();
        event.visit(index, &mut |part| {
            value = match part {
                Part::Unsigned(number, ..) => number.to_string(),
                Part::Signed(number, ..) => number.to_string(),
                Part::Text(text) => String::from_utf8_lossy(&text).into_owned(),
                _ => return,
            };
        });
        value
    };
    Event {
        time,
        cpu: event.cpu().unwrap_or(0),
        name: if fields.is_empty() {
            String::new()
        } else {
            event.name().to_string()
        },
        fields: fields
            .iter()
            .map(|(i, name)| (name.clone(), value(*i)))
            .collect(),
    }
}
