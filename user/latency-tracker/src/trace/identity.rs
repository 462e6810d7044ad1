// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Identifies a trace and its host, by the metadata and the headers of packets.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::Result;
use lt_ctf::{Reader, Span};

use super::several::{self, SECOND, environment, nanoseconds};

/// A trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Distinguishes the traces of a host: a part of the UUID (without one, a hash of the path), the start, and a hash
    /// of the UUID and the range of each stream. It differs between snapshots in which one CPU has different packets,
    /// and changes when a trace grows.
    pub(crate) id: String,
    /// Name of the host.
    pub(crate) host: Option<String>,
    /// Release of the kernel.
    pub(crate) kernel: Option<String>,
    /// The unique ID of the clock: for LTTng, the boot of the host.
    pub(crate) boot: Option<String>,
    /// Difference between the time since 1970 and the trace's clock, ns; `None` if the trace does not record it.
    pub(crate) utc_offset: Option<i64>,
    /// Whether the clock is CLOCK_MONOTONIC, as in alerts.
    pub(crate) is_monotonic: bool,
}

/// Difference between the time since 1970 and the clock of the kernel's trace, ns. `None` if it is not recorded.
pub(super) fn epoch(reader: &Reader) -> Option<i128> {
    let kernels = several::kernels(reader);
    let traces = reader.traces().iter().zip(kernels);
    let mut clocks = traces.filter_map(|(trace, is)| trace.schema.clocks().first().filter(|_| is));
    // A clock without an offset counts since the boot.
    let clock = clocks.next().filter(|clock| clock.offset_seconds > 0)?;
    let cycles = i128::from(clock.offset_cycles) * i128::from(SECOND);
    let seconds = i128::from(clock.offset_seconds) * i128::from(SECOND);
    Some(seconds + cycles / i128::from(clock.frequency.max(1)))
}

/// Difference between the time since 1970 and CLOCK_MONOTONIC, ns. `None` if it is not recorded, or if the kernel's
/// trace has another clock.
pub(super) fn epoch_of_monotonic(reader: &Reader) -> Option<i128> {
    let kernels = several::kernels(reader);
    let mut traces = reader.traces().iter().zip(kernels).filter(|(_, is)| *is);
    let (trace, _) = traces.next()?;
    let clock = trace.schema.clocks().first()?;
    epoch(reader).filter(|_| clock.name == "monotonic")
}

impl Identity {
    /// Reads the metadata and the headers of packets.
    ///
    /// # Errors
    /// If there is no trace that can be read.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let reader = Reader::open(path)?;
        let kernels = several::kernels(&reader);
        let is_kernel = |trace: usize| kernels.get(trace) == Some(&true);
        let frequencies = several::frequencies(&reader);
        let mut spans = reader.spans();
        spans.retain(|span| is_kernel(span.trace));
        let starts = spans.iter().map(|span| {
            let frequency = frequencies.get(span.trace).copied();
            nanoseconds(span.cycles.0, frequency.unwrap_or(SECOND))
        });
        let start = starts.min().unwrap_or(0);
        let mut of_kernel = reader.traces().iter().zip(&kernels);
        let Some((trace, _)) = of_kernel.find(|(_, is)| **is) else {
            return Ok(Self::default());
        };
        let clock = trace.schema.clocks().first();
        let text = |names: &[&str]| environment(trace, names).map(str::to_string);
        let uuid = trace.schema.uuid();
        let named = uuid.map_or_else(|| by_place(path), |uuid| hex(&uuid[..4]));
        Ok(Self {
            id: format!("{named}-{start}-{}", by_ranges(uuid, &spans)),
            host: text(&["hostname", "host"]),
            kernel: text(&["kernel_release", "release"]),
            // The older format has it in quotes.
            boot: clock.and_then(|clock| Some(clock.uid.as_ref()?.trim_matches('"').to_string())),
            utc_offset: epoch(&reader).and_then(|offset| i64::try_from(offset).ok()),
            is_monotonic: clock.is_some_and(|clock| clock.name == "monotonic"),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Stands for the UUID of a trace that has none: a hash of the path of its directory.
fn by_place(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    hash(path.as_os_str().as_bytes())
}

/// A hash of the UUID, and of the first and the last time of each stream. The order of the streams does not matter,
/// since it depends on the order of the files in the directory.
fn by_ranges(uuid: Option<[u8; 16]>, spans: &[Span]) -> String {
    let range = |span: &Span| {
        let (cpu, of) = (span.cpu.map_or(u64::MAX, u64::from), span.stream.0 as u64);
        [cpu, of, span.cycles.0, span.cycles.1]
    };
    let mut ranges: Vec<[u64; 4]> = spans.iter().map(range).collect();
    ranges.sort_unstable();
    let mut bytes = uuid.unwrap_or_default().to_vec();
    let numbers = ranges.iter().flatten();
    bytes.extend(numbers.flat_map(|number| number.to_be_bytes()));
    hash(&bytes)
}

/// FNV-1a of 64 bits, folded to 32.
fn hash(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let folded = (hash ^ (hash >> 32)) as u32;
    hex(&folded.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::super::feed::tests::traces;
    use super::*;

    #[test]
    fn a_trace_has_an_id_and_names_its_host() {
        let dir = traces();
        let of = |trace: &str| Identity::of(&dir.path().join(trace)).unwrap();
        let (compact, all) = (of("compact"), of("all"));
        // The first bytes of its UUID.
        assert!(compact.id.starts_with("4fd49bd2-"), "{compact:?}");
        assert_ne!(compact.id, all.id);
        assert!(compact.host.is_some() && compact.boot.is_some() && compact.is_monotonic);
        // The trace was recorded in 2020 or later.
        assert!(
            compact
                .utc_offset
                .is_some_and(|offset| offset > 1_577_836_800_000_000_000)
        );
        assert_eq!(of("compact"), compact);
        assert_eq!(of("ust"), Identity::default());
        assert!(Identity::of(&dir.path().join("nothing")).is_err());
        assert_eq!(by_place(Path::new("/nonexistent/a")).len(), 8);
    }

    /// As in snapshots of one session: the buffer of one CPU has wrapped, or has more packets at its end.
    #[test]
    fn a_trace_in_which_one_stream_has_different_packets_has_a_different_id() {
        const PACKET: usize = 16384;
        let dir = traces();
        let trace = dir.path().join("compact");
        let id = || Identity::of(&trace).unwrap().id;
        let mut names = BTreeSet::from([id()]);
        for channel in ["channel_0", "channel_1"] {
            let file = trace.join("kernel").join(channel);
            let whole = fs::read(&file).unwrap();
            for part in [&whole[PACKET..], &whole[..whole.len() - PACKET]] {
                fs::write(&file, part).unwrap();
                assert!(names.insert(id()), "{channel}: {names:?}");
            }
            fs::write(&file, whole).unwrap();
        }
        assert!(!names.insert(id()));
        // A copy has the same ID.
        let copy = dir.path().join("copy");
        fs::rename(&trace, &copy).unwrap();
        assert!(names.contains(&Identity::of(&copy).unwrap().id));
    }
}
