// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The user-space stack of a late operation, in a form that can be summed: without the addresses of functions in known
//! files, which differ from process to process.

use lt_proc::{Alert, UserEnd, UserFrame, UserStack};

use crate::ustack;

/// The stack in user space that an alert records, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum User {
    /// The functions, the innermost first, and whether outer functions may be missing.
    Stack {
        functions: Vec<UserFrame>,
        is_cut: bool,
    },
    /// No stack. The words follow the number of such operations.
    Missing(&'static str),
}

impl User {
    /// The stack in user space of an alert; `None` if its instance does not record such stacks.
    pub(super) fn of(alert: &Alert) -> Option<Self> {
        Some(match alert.user_stack()? {
            UserStack::Hidden => {
                Self::Missing("hidden from readers with neither CAP_PERFMON nor CAP_SYS_ADMIN")
            }
            UserStack::Elsewhere => Self::Missing("whose alert another task raised"),
            UserStack::Kernel => Self::Missing("of kernel threads"),
            UserStack::None => Self::Missing("of tasks without one"),
            UserStack::Addresses { .. } if ustack::replaced_program(alert) => {
                Self::Missing("that replaced the program")
            }
            UserStack::Addresses { addresses, end } => Self::Stack {
                functions: ustack::names(alert, &addresses)
                    .frames
                    .into_iter()
                    .map(function)
                    .collect(),
                is_cut: end != UserEnd::Outermost,
            },
        })
    }

    /// The functions, the innermost first; none if there is no stack.
    pub(super) fn functions(&self) -> &[UserFrame] {
        match self {
            Self::Stack { functions, .. } => functions,
            Self::Missing(_) => &[],
        }
    }

    /// The stack without offsets: equal for all operations that are summed together.
    pub(super) fn key(&self) -> Self {
        let mut key = self.clone();
        if let Self::Stack { functions, .. } = &mut key {
            for function in functions {
                function.offset = None;
            }
        }
        key
    }

    /// Keeps the offset of each function only if another operation, with an equal key, shares it.
    pub(super) fn join(&mut self, other: &Self) {
        if let Self::Stack { functions, .. } = self {
            for (function, other) in functions.iter_mut().zip(other.functions()) {
                if function.offset != other.offset {
                    function.offset = None;
                }
            }
        }
    }

    /// The functions with their offsets and files, the innermost first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.frames(text)
    }

    /// The functions as frames of a flame graph, the innermost first.
    pub(super) fn names(&self) -> Vec<String> {
        self.frames(|function| function.name.clone().unwrap_or_else(|| text(function)))
    }

    fn frames(&self, frame: impl Fn(&UserFrame) -> String) -> Vec<String> {
        match self {
            Self::Stack { functions, .. } => functions.iter().map(frame).collect(),
            Self::Missing(_) => vec!["[no user stack]".into()],
        }
    }
}

/// Leaves out the address of a function whose file is known, and the offset in the file if the function's name is
/// known.
fn function(mut frame: UserFrame) -> UserFrame {
    if frame.file.is_some() {
        frame.address.clear();
    }
    frame.file_offset = frame.file_offset.filter(|_| frame.name.is_none());
    frame
}

/// A function such as `inner+0x19 [/usr/bin/late]`; `[/usr/bin/late+0x1019]` without a name.
pub(super) fn text(function: &UserFrame) -> String {
    ustack::frame(function).trim_start().to_string()
}
