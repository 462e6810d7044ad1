// SPDX-License-Identifier: GPL-2.0 OR MIT

//! An LTTng trace, as babeltrace2 prints it with `--clock-cycles`. The file must also contain the standard error of
//! babeltrace2, which reports discarded events.

use anyhow::{Context, Result, bail};

use crate::babeltrace;
use crate::input::{BlockEvent, Kind, position};

/// Reads the whole text.
pub(crate) fn parse(text: &str) -> Result<Vec<BlockEvent>> {
    let mut events = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if let Some(warning) = babeltrace::discarded(line) {
            bail!("the trace is incomplete, enlarge the sub-buffers: {warning}");
        }
        if !line.contains(" block_rq_") {
            continue;
        }
        let place = || format!("line {}", i + 1);
        let event = babeltrace::parse_line(line).with_context(place)?;
        let Some(kind) = Kind::of(&event.name) else {
            continue;
        };
        let number = |key| {
            event
                .unsigned(key)
                .with_context(|| format!("line {}: no {key}", i + 1))
        };
        events.push(BlockEvent {
            time: event.time,
            kind,
            dev: event.dev().with_context(place)?,
            sector: position(number("sector")?),
            sectors: number("nr_sector")?,
            op: event.text("rwbs").unwrap_or("").to_string(),
        });
    }
    events.sort_by_key(|e| e.time);
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "[00000000012264987586] (+000000677551) (none) block_rq_complete: { cpu_id = 0 }, \
        { dev = 266338304, sector = 128056, nr_sector = 8, error = 0, rwbs = 4 }\n";

    #[test]
    fn real_lines_are_read() {
        let events = parse(&format!(
            "[1] h sched_switch: {{ cpu_id = 0 }}, {{ }}\n{LINE}"
        ))
        .unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].dev.to_string(), "254:0");
        assert_eq!(events[0].kind, Kind::Complete);
    }

    #[test]
    fn a_trace_that_lost_events_is_refused() {
        let text =
            format!("{LINE}WARNING: Tracer discarded 3 events between [a] and [b] in trace ...\n");
        assert!(
            parse(&text)
                .unwrap_err()
                .to_string()
                .contains("discarded 3")
        );
    }
}
