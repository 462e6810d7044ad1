// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The text of tracefs' `trace` file.
//!
//! ```text
//! # entries-in-buffer/entries-written: 1042/1042   #P:2
//!   fio-171  [000] d.h..  12.265358: block_rq_complete: 254,0 R () 128056 + 8 be,0,4 [0]
//!   fio-171  [000] .....  12.262482: block_rq_issue: 254,0 R 4096 () 128056 + 8 be,0,4 [fio]
//! ```
//!
//! A trace that has lost events proves nothing: it is refused.

use crate::babeltrace::Dev;
use anyhow::{Context, Result, bail};

use crate::input::{BlockEvent, Kind, position};

/// Reads the whole file.
pub(crate) fn parse(text: &str) -> Result<Vec<BlockEvent>> {
    check_complete(text)?;
    let mut events = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.starts_with('#') || !line.contains(": block_rq_") {
            continue;
        }
        let event = parse_line(line).with_context(|| format!("line {}: {line:?}", i + 1))?;
        events.extend(event);
    }
    events.sort_by_key(|e| e.time);
    Ok(events)
}

/// Checks that no line reports lost events and that, by the header, the ring still has every entry
/// that was written.
pub(crate) fn check_complete(text: &str) -> Result<()> {
    if let Some(line) = text
        .lines()
        .find(|l| l.contains("LOST") && l.contains("EVENTS"))
    {
        bail!(
            "the trace lost events ({}): enlarge buffer_size_kb",
            line.trim()
        );
    }
    let mark = "entries-in-buffer/entries-written:";
    let header = text.lines().find_map(|l| l.split_once(mark));
    let Some((_, counts)) = header else {
        bail!("no {mark} line: copy the file `trace`, with its header");
    };
    let counts = counts.split_whitespace().next().unwrap_or("");
    match counts.split_once('/') {
        Some((held, written)) if held == written => Ok(()),
        _ => bail!("the ring held {counts} entries: events were lost; enlarge buffer_size_kb"),
    }
}

/// Parses a line; `None` for an event of the block layer that is irrelevant to pairing.
fn parse_line(line: &str) -> Result<Option<BlockEvent>> {
    let (prefix, payload) = line.split_once(": block_rq_").context("no event")?;
    let (name, payload) = payload.split_once(": ").context("no payload")?;
    let Some(kind) = Kind::of(&format!("block_rq_{name}")) else {
        return Ok(None);
    };
    let stamp = prefix.rsplit(' ').next().unwrap_or("");
    let time =
        parse_seconds(stamp).with_context(|| format!("{stamp:?}: expected SECONDS.FRACTION"))?;
    let mut words = payload.split(' ');
    let dev = words.next().and_then(Dev::parse).context("no MAJ,MIN")?;
    let op = words.next().context("no operation")?.to_string();
    // `bytes (command)` or `(command)`, then `sector + sectors`.
    let words: Vec<&str> = words.collect();
    let plus = words
        .iter()
        .position(|w| *w == "+")
        .context("no sector + sectors")?;
    let number = |at: Option<usize>| -> Result<u64> {
        let word = at
            .and_then(|i| words.get(i))
            .context("no number beside +")?;
        word.parse()
            .with_context(|| format!("{word:?}: expected a number"))
    };
    Ok(Some(BlockEvent {
        time,
        kind,
        dev,
        sector: position(number(plus.checked_sub(1))?),
        sectors: number(Some(plus + 1))?,
        op,
    }))
}

/// `12.265358` is 12,265,358,000 ns.
pub(crate) fn parse_seconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let ns: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 2/2   #P:2\n#\n";

    #[test]
    fn real_lines_are_read() {
        let text = format!(
            "{HEADER}             fio-171     [000] .....    12.262482: block_rq_issue: 254,0 R 4096 () 128056 + 8 be,0,4 [fio]\n\
             \x20   kworker/0:1H-95      [001] d.h..    12.265358: block_rq_complete: 254,0 R () 128056 + 8 be,0,4 [0]\n"
        );
        let events = parse(&text).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].kind, Kind::Issue);
        assert_eq!(events[0].time, 12_262_482_000);
        assert_eq!((events[1].sector, events[1].sectors), (128_056, 8));
        assert_eq!(events[1].dev.to_string(), "254:0");
    }

    #[test]
    fn a_request_without_a_sector_has_sector_0() {
        let line = "a-1 [000] ..... 1.0: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 none,0,0 [0]";
        assert_eq!(parse_line(line).unwrap().unwrap().sector, 0);
    }

    #[test]
    fn a_trace_that_lost_events_is_refused() {
        assert!(parse("").is_err());
        assert!(parse("# tracer: nop\n").is_err());
        assert!(parse(&HEADER.replace("2/2", "2/3")).is_err());
        assert!(parse(&format!("{HEADER}CPU:0 [LOST 5 EVENTS]\n")).is_err());
        assert!(parse(HEADER).unwrap().is_empty());
    }

    #[test]
    fn a_broken_line_is_named() {
        let text =
            format!("{HEADER}a-1 [000] ..... 1.0: block_rq_issue: 8,0 R 4096 () x + 8 [a]\n");
        assert!(format!("{:#}", parse(&text).unwrap_err()).contains("line 5"));
    }
}
