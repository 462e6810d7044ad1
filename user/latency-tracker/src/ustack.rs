// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The stack of a late task in user space: finds the names of its functions, and shows them.
//!
//! ```text
//!   the kernel: addresses            this program, when it reads the alert
//!   ustack=0x401136,0x401180  --->  /proc/PID/maps, the files mapped there  --->  ustack_names
//! ```
//!
//! Names are looked up at once: after the process has exited, only addresses are left. They are looked up only in the
//! process of the alert, never in a process that has reused its PID. Explanations of a capture show the names that were
//! found when the alert was read.

mod debug;
mod process;
mod show;

use std::collections::HashMap;
use std::path::Path;

use blazesym::Pid;
use blazesym::symbolize::source::{Process, Source};
use blazesym::symbolize::{Input, Symbolizer};
use lt_common::pids::are_numbered_as_in_alerts;
use lt_proc::{Alert, UserFrame, UserNames, UserStack};

use self::debug::symbol;
use self::process::{Found, Mapping};
pub(crate) use self::process::{since_boot, start_in};
pub(crate) use self::show::{frame, lines, names};

/// Maximum number of processes whose mappings are remembered. Beyond that, all are forgotten.
const MOST: usize = 256;

/// Number of alerts for which one symbolizer is used: it keeps open every file that it has read.
const LOOKUPS: u32 = 64;

const FOREIGN: &str =
    "no names: in this PID namespace, processes have other numbers than in alerts";

/// Looks up names, and remembers the mappings of processes that have been seen.
#[derive(Debug, Default)]
pub(crate) struct Names {
    symbolizer: Option<Symbolizer>,
    /// Number of alerts looked up so far. The symbolizer is replaced at each multiple of [`LOOKUPS`].
    lookups: u32,
    /// By PID and name of the thread: another program has other mappings.
    seen: HashMap<(u64, String), Found>,
}

impl Names {
    /// Adds the names of functions to the user-space stack of an alert that was just read.
    pub(crate) fn find(&mut self, alert: &mut Alert) {
        let Some(UserStack::Addresses { addresses, .. }) = alert.user_stack() else {
            return;
        };
        if replaced_program(alert) {
            return;
        }
        let found = match are_numbered_as_in_alerts(Path::new("/")) {
            true => process::find(alert),
            false => Err(FOREIGN.into()),
        };
        alert.ustack_names = Some(match found {
            Ok(found) => {
                let names = self.names(alert, &addresses, &found);
                if self.seen.len() >= MOST {
                    self.seen.clear();
                }
                self.seen.insert(key(alert), found);
                names
            }
            Err(why) => self.without(alert, &addresses, &why),
        });
    }

    /// The names of functions in a process that exists.
    fn names(&mut self, alert: &Alert, addresses: &[u64], found: &Found) -> UserNames {
        let mut frames = frames(addresses, &found.mappings);
        if self.lookups.is_multiple_of(LOOKUPS) {
            self.symbolizer = None;
        }
        self.lookups = self.lookups.wrapping_add(1);
        let symbolizer: &Symbolizer = self.symbolizer.get_or_insert_with(|| {
            Symbolizer::builder()
                .enable_code_info(false)
                .enable_inlined_fns(false)
                .build()
        });
        let mut process = Process::new(Pid::from(alert.pid as u32));
        process.debug_syms = false;
        // Reads the files that the process has mapped, not their paths: a path may lead to another program or to a pipe
        // by now. The user of the process controls /tmp/perf-PID.map, so it is not read.
        process.map_files = true;
        process.perf_map = false;
        let source = Source::Process(process);
        let mut error = None;
        // Each address is looked up separately: without frame pointers, it may lie anywhere, and an error must not
        // affect the other names.
        for (n, (frame, address)) in frames.iter_mut().zip(addresses).enumerate() {
            // The innermost address is the next instruction, perhaps the first one of its function. All others are
            // return addresses: each follows a call instruction, which may be the last one of its function.
            let back = u64::from(n > 0);
            let place = address.saturating_sub(back);
            let Some(mapping) = found.mappings.iter().find(|mapping| mapping.has(place)) else {
                continue;
            };
            let link = mapping.link(alert.pid);
            let in_debug_file = || debug::find(symbolizer, &link, mapping.offset_of(place));
            let named = symbolizer.symbolize_single(&source, Input::AbsAddr(place));
            let named = match symbol(named) {
                Ok(None) => in_debug_file(),
                Err(why) => in_debug_file().and_then(|one| one.map(Some).ok_or(why)),
                named => named,
            };
            match named {
                Ok(Some((name, offset))) => {
                    frame.name = Some(name);
                    frame.offset = Some(offset + back);
                }
                Ok(None) => {}
                Err(why) => error = error.or(Some(why)),
            }
        }
        // The PID may have been reused meanwhile.
        if !process::find(alert).is_ok_and(|again| again.start == found.start) {
            for frame in &mut frames {
                (frame.name, frame.offset) = (None, None);
            }
            let note = Some(process::GONE.to_string());
            return UserNames { frames, note };
        }
        let is_unnamed = frames.iter().any(|frame| frame.name.is_none());
        let note = match error {
            Some(error) if frames.iter().all(|frame| frame.name.is_none()) => {
                Some(format!("no names: {error}"))
            }
            Some(error) => Some(format!("not all names: {error}")),
            None => is_unnamed.then(|| {
                "functions without a name are in no symbol table, nor in a debug file".into()
            }),
        };
        UserNames { frames, note }
    }

    /// What is known of a process that cannot be read: its files, if it was seen before.
    fn without(&self, alert: &Alert, addresses: &[u64], why: &str) -> UserNames {
        let known = self.seen.get(&key(alert));
        let known = known.filter(|found| process::began_before(found.start, alert));
        let mappings = known.map_or(&[][..], |found| &found.mappings);
        UserNames {
            frames: frames(addresses, mappings),
            note: Some(why.to_string()),
        }
    }
}

/// Whether the call has replaced the program, so that the recorded address is the entry point of the new program.
pub(crate) fn replaced_program(alert: &Alert) -> bool {
    let is_exec = |call| ["execve", "execveat"].contains(&call);
    let call = alert.fields.text("call");
    call.as_deref().is_some_and(is_exec) && alert.fields.number("ret") == Some(0)
}

fn key(alert: &Alert) -> (u64, String) {
    (alert.pid, alert.comm.text().into_owned())
}

/// The addresses, and the files that are mapped there.
fn frames(addresses: &[u64], mappings: &[Mapping]) -> Vec<UserFrame> {
    let frame = |&address: &u64| {
        let mapping = mappings.iter().find(|mapping| mapping.has(address));
        UserFrame {
            address: format!("{address:#x}"),
            file: mapping.map(|mapping| mapping.file.clone()),
            file_offset: mapping.map(|mapping| mapping.offset_of(address)),
            ..UserFrame::default()
        }
    };
    addresses.iter().map(frame).collect()
}

#[cfg(test)]
mod tests;
