// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about tracing by processes: BPF programs, perf events, LTTng sessions.
//!
//! The kernel shows which files of a process are BPF links and programs (`/proc/PID/fdinfo/N`). A
//! link that is only pinned in a BPF file system is not an open file of a process: `bpftool link`
//! shows it.

use std::collections::BTreeSet;

use super::Target;
use super::answer::{Found, ok, some, warn};
use super::root::{Missing, Root};

/// Kinds of links that run a BPF program at a traced point of the kernel or of a user-space program
/// (BPF_LINK_TYPE in include/linux/bpf_types.h).
const LINKS: [&str; 8] = [
    "raw_tracepoint",
    "tracing",
    "tracing_multi",
    "perf",
    "kprobe_multi",
    "kretprobe_multi",
    "uprobe_multi",
    "uretprobe_multi",
];
/// Types of programs (enum bpf_prog_type) that run at a traced point: kprobe, tracepoint and
/// perf_event, which can be attached without a link, and raw_tracepoint.
const TYPES: [u64; 4] = [2, 5, 7, 17];
/// Attach types (enum bpf_attach_type) of programs that trace nothing although a `tracing` link
/// attaches them: 0 for a program that replaces a function of another program, as in an XDP
/// dispatcher, and 27 for a security module.
const NO_TRACING: [u64; 2] = [0, 27];

pub(super) fn tracing(root: &Root, _: &Target) -> Found {
    // A user who may not read this directory may not read most others, either.
    root.names("/proc/1/fdinfo")?;
    let pids = root.names("/proc")?;
    let mut found = Vec::new();
    for pid in pids.iter().filter_map(|pid| pid.parse::<u32>().ok()) {
        // The process may exit meanwhile.
        let files = root
            .names(&format!("/proc/{pid}/fdinfo"))
            .unwrap_or_default();
        let program = |file: &String| {
            let text = root.text(&format!("/proc/{pid}/fdinfo/{file}"));
            text.ok().and_then(|text| tracing_program(&text))
        };
        let programs: BTreeSet<u64> = files.iter().filter_map(program).collect();
        if !programs.is_empty() {
            let name = root.text(&format!("/proc/{pid}/comm")).unwrap_or_default();
            found.push(format!("{name}[{pid}] has {}", programs.len()));
        }
    }
    match found.is_empty() {
        true => Ok(ok("none that a process has open")),
        false => Ok(warn(some(&found))),
    }
}

/// Returns the processes with open files of LTTng's kernel tracer or of perf events, such as
/// `LTTng session of lttng-sessiond[123]`.
pub(super) fn tracers(root: &Root) -> Result<Vec<String>, Missing> {
    const KINDS: [(&str, &str); 2] = [
        ("anon_inode:[lttng_session]", "LTTng session of"),
        ("anon_inode:[perf_event]", "perf events of"),
    ];
    // A user who may not read this directory may not read most others, either.
    root.names("/proc/1/fd")?;
    let mut found = Vec::new();
    for pid in root
        .names("/proc")?
        .iter()
        .filter_map(|pid| pid.parse::<u32>().ok())
    {
        // The process may exit meanwhile.
        let directory = format!("/proc/{pid}/fd");
        let files = root.names(&directory).unwrap_or_default();
        let links = files
            .iter()
            .filter_map(|file| root.link(&format!("{directory}/{file}")));
        let links: Vec<String> = links.collect();
        for (link, what) in KINDS {
            if links.iter().any(|l| l == link) {
                let name = root.text(&format!("/proc/{pid}/comm")).unwrap_or_default();
                found.push(format!("{what} {name}[{pid}]"));
            }
        }
    }
    Ok(found)
}

/// Returns the number of the tracing program that this descriptor stands for, or that its link
/// runs; `None` if there is none. A process usually has descriptors of both the program and its
/// link.
fn tracing_program(fdinfo: &str) -> Option<u64> {
    let value = |key: &str| {
        let mut lines = fdinfo.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value.trim())
    };
    let number = |key| value(key).and_then(|value| value.parse::<u64>().ok());
    let is_tracing = match value("link_type") {
        Some(kind) => {
            LINKS.contains(&kind)
                && number("attach_type").is_none_or(|kind| !NO_TRACING.contains(&kind))
        }
        None => number("prog_type").is_some_and(|kind| TYPES.contains(&kind)),
    };
    number("prog_id").filter(|_| is_tracing)
}
