// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which trace this is, and of which host: what its metadata and its first packets say.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::Result;
use lt_ctf::Reader;

use super::several::{self, SECOND, environment, nanoseconds};

/// A trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Distinguishes the traces of a host: a part of the UUID, and the start. A trace that is still being written keeps it.
    pub(crate) id: String,
    /// Name of the host.
    pub(crate) host: Option<String>,
    /// Release of the kernel.
    pub(crate) kernel: Option<String>,
    /// The boot of the host for LTTng, and otherwise the clock.
    pub(crate) boot: Option<String>,
    /// Difference between the time since 1970 and the trace's clock, ns; `None` if the trace does not record it.
    pub(crate) utc_offset: Option<i64>,
    /// Whether the clock is CLOCK_MONOTONIC, as that of alerts.
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
        let spans = reader.spans().into_iter();
        let starts = spans.filter(|span| is_kernel(span.trace)).map(|span| {
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
        Ok(Self {
            id: format!(
                "{}-{start}",
                uuid.map_or_else(|| by_place(path), |uuid| hex(&uuid[..4]))
            ),
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

/// Stands for the UUID of a trace that has none: a hash (FNV-1a) of its directory.
fn by_place(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let bytes = path.as_os_str().as_bytes().iter();
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    hex(&hash.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::feed::tests::traces;
    use super::*;

    #[test]
    fn a_trace_has_the_name_of_its_host_and_of_itself() {
        let dir = traces();
        let of = |trace: &str| Identity::of(&dir.path().join(trace)).unwrap();
        let (compact, all) = (of("compact"), of("all"));
        // The first bytes of its UUID.
        assert!(compact.id.starts_with("4fd49bd2-"), "{compact:?}");
        assert_ne!(compact.id, all.id);
        assert!(compact.host.is_some() && compact.boot.is_some() && compact.is_monotonic);
        // Recorded in 2020 or later.
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
}
