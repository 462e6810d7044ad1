// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The stack of a late task in user space: finds the names of its functions, and shows them.
//!
//! ```text
//!   the kernel: addresses            this program, when it reads the alert
//!   ustack=0x401136,0x401180  --->  /proc/PID/maps, the files mapped there  --->  ustack_names
//! ```
//!
//! Names are looked up at once, since the process may exit, and then only addresses are left. They are looked up in the
//! process of the alert, never in another one that has got its number since. Explanations of a capture only show what
//! was found then.

mod process;
mod show;

use std::collections::HashMap;

use blazesym::Pid;
use blazesym::symbolize::source::{Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use lt_proc::{Alert, UserFrame, UserNames, UserStack};

use self::process::{Found, Mapping};
pub(crate) use self::show::lines;

/// Processes of which the mappings are remembered. Beyond that, all are forgotten.
const MOST: usize = 256;

/// Looks up names, and remembers the mappings of processes that have been seen.
#[derive(Debug, Default)]
pub(crate) struct Names {
    symbolizer: Option<Symbolizer>,
    /// By the number of the process, and the name of the thread: another program has other mappings.
    seen: HashMap<(u64, String), Found>,
}

impl Names {
    /// Adds the names of the functions of its stack in user space to an alert that was read just now.
    pub(crate) fn find(&mut self, alert: &mut Alert) {
        let Some(UserStack::Addresses { addresses, .. }) = alert.user_stack() else {
            return;
        };
        let found = process::find(alert);
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
        // A return address is behind the call, which may be the last instruction of its function.
        let calls: Vec<u64> = addresses.iter().map(|a| a.saturating_sub(1)).collect();
        let symbolizer = self.symbolizer.get_or_insert_with(|| {
            Symbolizer::builder()
                .enable_code_info(false)
                .enable_inlined_fns(false)
                .build()
        });
        let mut result = Err(String::new());
        // The files as they are mapped need more rights than their paths.
        for map_files in [true, false] {
            let mut process = Process::new(Pid::from(alert.pid as u32));
            process.debug_syms = false;
            process.map_files = map_files;
            let source = Source::Process(process);
            let symbols = symbolizer.symbolize(&source, Input::AbsAddr(&calls));
            result = symbols.map_err(|error| error.to_string());
            if result.is_ok() {
                break;
            }
        }
        // The number may have passed to another process meanwhile.
        if !process::find(alert).is_ok_and(|again| again.start == found.start) {
            let note = Some(process::GONE.to_string());
            return UserNames { frames, note };
        }
        let note = match result {
            Err(error) => Some(format!("no names: {error}")),
            Ok(symbols) => {
                for (frame, symbol) in frames.iter_mut().zip(symbols) {
                    if let Symbolized::Sym(symbol) = symbol {
                        frame.name = Some(symbol.name.into_owned());
                        frame.offset = Some(symbol.offset as u64 + 1);
                    }
                }
                let unnamed = frames.iter().any(|frame| frame.name.is_none());
                unnamed.then(|| {
                    "functions without a name are not in the symbol table of their file".into()
                })
            }
        };
        UserNames { frames, note }
    }

    /// What is left of a process that cannot be read: the files, if it has been seen before.
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
