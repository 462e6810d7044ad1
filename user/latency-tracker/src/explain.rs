// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Explains one late block request from the trace around it.
//!
//! ```text
//!   trace (lt-ctf) --Explainer::feed--> requests of the device, who ran where --finish--> Explanation
//! ```
//!
//! Events go by once, in order of time; only what concerns the alert's device and window is kept, so a
//! trace of any size will do. An alert of another tracker is not explained (yet): there the trace
//! itself is the answer.

mod event;
mod model;
mod render;
mod requests;

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::Result;
use lt_ctf::{FieldIndex, Item, Options, Part, Progress};
use lt_proc::Alert;

use self::event::Event;
pub(crate) use self::model::{Explainer, Explanation};

/// Explains those of `alerts` that can be, from the trace below `trace`, in one reading.
pub(crate) fn explain(trace: &Path, alerts: &[Alert]) -> Result<Vec<Explanation>> {
    let mut explainers: Vec<Explainer> = alerts.iter().filter_map(Explainer::new).collect();
    if explainers.is_empty() {
        return Ok(Vec::new());
    }
    let mut shown = false;
    let mut progress = |progress: Progress| {
        if std::io::stderr().is_terminal() {
            shown = true;
            let percent = 100 * progress.done / progress.of.max(1);
            let _ = write!(std::io::stderr(), "\r  converting the trace: {percent} %");
        }
    };
    let opened = Options::default().progress(&mut progress).open(trace);
    if shown {
        let _ = writeln!(std::io::stderr());
    }
    let mut reader = opened?;
    // The fields of the classes that matter; nothing is looked up by name afterwards.
    let wanted: Vec<Option<Vec<(FieldIndex, String)>>> = reader
        .classes()
        .map(|class| {
            let wanted = class.name == "sched_switch" || class.name.starts_with("block_rq_");
            let fields = class.fields().map(|(i, f)| (i, f.name.clone()));
            wanted.then(|| fields.collect())
        })
        .collect();
    let (mut events, mut discarded, mut unreadable) = (0u64, 0, None);
    loop {
        match reader.next() {
            Ok(None) => break,
            Ok(Some(Item::Event(event))) => {
                events += 1;
                let fields = wanted.get(event.class_index()).and_then(Option::as_ref);
                let plain = plain(&event, fields.map_or(&[], Vec::as_slice));
                explainers.iter_mut().for_each(|e| e.feed(&plain));
            }
            Ok(Some(Item::Lost(lost))) if !lost.packets => discarded += lost.count,
            Ok(Some(Item::Lost(_))) => {}
            // An unreadable part is no reason to lose the rest.
            Err(error) => {
                unreadable.get_or_insert(error);
            }
        }
    }
    match unreadable {
        Some(error) if events == 0 => Err(error.into()),
        unreadable => {
            let unreadable = unreadable.map(|e| e.to_string());
            let finish = |e: Explainer| e.finish(discarded, unreadable.clone());
            Ok(explainers.into_iter().map(finish).collect())
        }
    }
}

/// The event with these of its fields.
fn plain(event: &lt_ctf::Event<'_>, fields: &[(FieldIndex, String)]) -> Event {
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
        time: event.cycles(),
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
