// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Counts the events in the trace of a run. Our own reader reads each event, and thus also finds losses
//! that LTTng does not report.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lt_common::wait::{Signals, Wake};
use lt_ctf::{FieldIndex, Item, Reader};

use super::args::Kind;
use super::ust;

/// Number of events between two checks for a signal.
const LOOK: u64 = 1 << 18;

/// The contents of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Events of the run.
    pub(super) events: u64,
    /// Events and packets that are missing according to the trace itself.
    pub(super) lost: u64,
    /// Bytes of its streams.
    pub(super) bytes: u64,
}

/// What identifies our events besides their name: fields, and the number that each must have.
struct Wanted {
    fields: Vec<(FieldIndex, i64)>,
}

/// Counts the events of a trace; `None` if a signal ended the count.
pub(super) fn count(trace: &Path, kind: Kind, signals: &Signals) -> Result<Option<Kept>> {
    let bytes = streams(trace).with_context(|| trace.display().to_string())?;
    let mut kept = Kept {
        bytes,
        ..Kept::default()
    };
    if bytes == 0 {
        // No packet at all: nothing was recorded.
        return Ok(Some(kept));
    }
    let mut reader = Reader::open(trace).context("the trace of a run cannot be read")?;
    let own = i64::from(std::process::id());
    let wanted: Vec<Option<Wanted>> = reader
        .classes()
        .map(|class| wanted(class, kind, own))
        .collect::<Result<_>>()?;
    let mut seen = 0u64;
    while let Some(item) = reader.next().context("the trace of a run cannot be read")? {
        match item {
            Item::Lost(lost) => kept.lost += lost.count,
            Item::Event(event) => {
                let Some(Some(wanted)) = wanted.get(event.class_index()) else {
                    continue;
                };
                let value = |field| {
                    let unsigned = || event.unsigned(field).and_then(|n| n.try_into().ok());
                    event.signed(field).or_else(unsigned)
                };
                let ours = |(field, number): &(FieldIndex, i64)| value(*field) == Some(*number);
                kept.events += u64::from(wanted.fields.iter().all(ours));
            }
        }
        seen += 1;
        if seen.is_multiple_of(LOOK) && interrupted(signals)? {
            return Ok(None);
        }
    }
    Ok(Some(kept))
}

/// Whether a signal has requested the end.
pub(super) fn interrupted(signals: &Signals) -> Result<bool> {
    Ok(signals.wait(None, Some(std::time::Instant::now()))? == Wake::Signal)
}

/// Returns how to identify our events of a class; `None` if it has none.
fn wanted(class: &lt_ctf::Class, kind: Kind, own: i64) -> Result<Option<Wanted>> {
    let (names, fields): (&[&str], &[(&str, i64)]) = match kind {
        Kind::Syscall => (&["syscall_entry_getppid", "syscall_exit_getppid"], &[]),
        Kind::Ust => (&[ust::EVENT], &[]),
        Kind::Kernel => (
            &["signal_generate"],
            &[("sig", libc::SIGURG as i64), ("pid", own)],
        ),
    };
    if !names.contains(&class.name.as_str()) {
        return Ok(None);
    }
    let mut found = Vec::new();
    for (name, number) in fields {
        let Some((index, _)) = class.fields().find(|(_, field)| field.name == *name) else {
            bail!("{} has no field {name}", class.name);
        };
        found.push((index, *number));
    }
    Ok(Some(Wanted { fields: found }))
}

/// Returns the size of all files in a directory and below it, except the metadata and the indexes.
fn streams(directory: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if name != "index" {
                sum += streams(&entry.path())?;
            }
        } else if name != "metadata" {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_the_size_of_the_streams() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = dir.path().join("kernel");
        fs::create_dir_all(kernel.join("index")).unwrap();
        for (name, size) in [
            ("metadata", 5),
            ("channel_0", 7),
            ("channel_1", 11),
            ("index/channel_0.idx", 13),
        ] {
            fs::write(kernel.join(name), vec![0; size]).unwrap();
        }
        assert_eq!(streams(dir.path()).unwrap(), 18);
    }

    #[test]
    fn a_trace_without_a_packet_has_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let signals = Signals::catch().unwrap();
        let kept = count(dir.path(), Kind::Syscall, &signals).unwrap();
        assert_eq!(kept, Some(Kept::default()));
    }
}
