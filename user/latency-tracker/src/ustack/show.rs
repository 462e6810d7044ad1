// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The stack in user space, as lines.

use lt_common::out;
use lt_proc::{Alert, UserEnd, UserFrame, UserNames, UserStack};

/// A chain of at most this many functions is likely to be cut off.
const FEW: usize = 2;

const FEW_WHY: &str =
    "the program probably has no frame pointers: rebuild it with -fno-omit-frame-pointer";

/// Functions in which threads start: a chain that ends in such a function is complete.
const STARTS: [&str; 6] = [
    "_start",
    "main",
    "start_thread",
    "clone",
    "clone3",
    "__libc_start_call_main",
];

/// Returns the user-space stack as lines indented by `indent`; none if the alert has no such stack.
pub(crate) fn lines(alert: &Alert, indent: usize) -> Vec<String> {
    let say = |text: &str| out::wrap(&format!("in user space: {}", out::printable(text)), indent);
    let (addresses, end) = match alert.user_stack() {
        None => return Vec::new(),
        Some(UserStack::Hidden) => {
            return say("a stack that only a reader with CAP_PERFMON or CAP_SYS_ADMIN may see");
        }
        Some(UserStack::Elsewhere) => {
            return say("not recorded, since the task itself did not raise this alert");
        }
        Some(UserStack::Kernel) => return say("none, since the task works for the kernel"),
        Some(UserStack::None) => return say("no stack of the task"),
        Some(UserStack::Addresses { .. }) if super::replaced_program(alert) => {
            return say("not recorded, since this call replaced the program");
        }
        Some(UserStack::Addresses { addresses, end }) => (addresses, end),
    };
    let names = names(alert, &addresses);
    let mut lines = out::wrap("in user space:", indent);
    let inner = indent + 2;
    let row = |one: &UserFrame| {
        let text = out::printable(&frame(one));
        out::fit_line(&format!("{:inner$}{text}", ""))
    };
    lines.extend(names.frames.iter().map(row));
    let notes = [ended(&names, &end).map(String::from), names.note];
    for note in notes.into_iter().flatten() {
        lines.extend(out::wrap(&format!("({})", out::printable(&note)), inner));
    }
    lines
}

/// The names that were found when the alert was read; if there are none, the addresses.
pub(crate) fn names(alert: &Alert, addresses: &[u64]) -> UserNames {
    alert.ustack_names.clone().unwrap_or_else(|| UserNames {
        frames: super::frames(addresses, &[]),
        note: Some("no names: they were not looked up when the alert was read".into()),
    })
}

/// A function and its file, or as much as is known.
pub(crate) fn frame(frame: &UserFrame) -> String {
    let UserFrame {
        address,
        name,
        offset,
        file,
        file_offset,
    } = frame;
    let place = match (file, file_offset) {
        (Some(file), Some(at)) if name.is_none() => format!(" [{file}+{at:#x}]"),
        (Some(file), _) => format!(" [{file}]"),
        (None, _) => String::new(),
    };
    match (name, offset) {
        (Some(name), Some(offset)) => format!("{name}+{offset:#x}{place}"),
        (Some(name), None) => format!("{name}{place}"),
        (None, _) => format!("{address}{place}"),
    }
}

/// Why functions may be missing.
fn ended(names: &UserNames, end: &UserEnd) -> Option<&'static str> {
    let outermost = names.frames.last();
    let name = outermost.and_then(|frame| frame.name.as_deref());
    let is_whole = name.is_some_and(|name| STARTS.contains(&name));
    // Without a file, nothing is known about the program.
    let is_known = outermost.is_some_and(|frame| frame.file.is_some());
    match end {
        UserEnd::Unsupported => {
            Some("only the innermost address: the frames of 32-bit programs are not read here")
        }
        _ if names.frames.len() <= FEW && is_known && !is_whole => Some(FEW_WHY),
        UserEnd::Outermost | UserEnd::Other(_) => None,
        UserEnd::Broken => Some(
            "here the chain of frame pointers breaks: a function further out does not keep them",
        ),
        UserEnd::Unreadable => Some("the functions further out were not in memory"),
        UserEnd::Depth => Some("the functions further out are not recorded"),
    }
}
