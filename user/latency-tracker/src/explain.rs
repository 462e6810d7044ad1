// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Explains one late block request from the trace around it.
//!
//! ```text
//!   trace text --Explainer::feed--> requests of the device, who ran where --finish--> Explanation
//! ```
//!
//! Events go by once, in order of time; only what concerns the alert's device and window is kept, so a
//! trace of any size will do. An alert of another tracker is not explained (yet): there the trace
//! itself is the answer.

mod model;
mod render;
mod requests;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use lt_proc::Alert;

pub(crate) use self::model::{Explainer, Explanation};
use crate::exec::{Exec, cannot_run};

/// Explains those of `alerts` that can be, from the trace below `trace`, in one reading.
pub(crate) fn explain(trace: &Path, alerts: &[Alert]) -> Result<Vec<Explanation>> {
    let mut explainers: Vec<Explainer> = alerts.iter().filter_map(Explainer::new).collect();
    if explainers.is_empty() {
        return Ok(Vec::new());
    }
    let exec = Exec::new(
        "babeltrace2",
        lt_trace::ARGS
            .iter()
            .map(AsRef::as_ref)
            .chain([trace.as_os_str()]),
    );
    let (mut command, shown) = exec.into_inner();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| cannot_run(&shown))?;
    let errors = child
        .stderr
        .take()
        .map(|err| std::thread::spawn(move || read_warnings(BufReader::new(err))));
    if let Some(out) = child.stdout.take() {
        let mut lines = BufReader::new(out);
        let mut line = Vec::new();
        while lines
            .read_until(b'\n', &mut line)
            .context("cannot read from babeltrace2")?
            > 0
        {
            let text = String::from_utf8_lossy(&line);
            // A line that is no event is not worth losing the others.
            if let Ok(event) = lt_trace::parse_line(text.trim_end()) {
                explainers.iter_mut().for_each(|e| e.feed(&event));
            }
            line.clear();
        }
    }
    let status = child.wait().context("babeltrace2")?;
    let (said, discarded) = errors.and_then(|e| e.join().ok()).unwrap_or_default();
    if !status.success() {
        anyhow::bail!("`{shown}` failed ({status}):\n  {}", said.join("\n  "));
    }
    let finish = |e: Explainer| e.finish(discarded);
    Ok(explainers.into_iter().map(finish).collect())
}

/// The last lines of standard error, and how many events it says were discarded.
fn read_warnings(from: impl BufRead) -> (Vec<String>, u64) {
    let mut said = Vec::new();
    let mut discarded = 0;
    for line in from.lines().map_while(Result::ok) {
        discarded += lt_trace::discarded(&line).unwrap_or(0);
        said.push(line);
        if said.len() > 6 {
            said.remove(0);
        }
    }
    (said, discarded)
}
