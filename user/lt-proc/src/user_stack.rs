// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The stack of an alert's task in user space: addresses from the kernel, and names from the program that
//! read the alert while the process still existed.

use serde::{Deserialize, Serialize};

use crate::{Alert, Value};

/// The field `ustack` of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserStack {
    /// Addresses, the innermost first.
    Addresses {
        /// The next instruction, then return addresses.
        addresses: Vec<u64>,
        /// Where the addresses end.
        end: UserEnd,
    },
    /// The task had a stack, but this reader may not see it.
    Hidden,
    /// The alert was raised by another task, or by an interrupt.
    Elsewhere,
    /// The task is a kernel thread or a user worker (`PF_USER_WORKER`), such as one of io_uring.
    Kernel,
    /// The task had no stack in user space, or the field has a word that only a newer module defines.
    None,
}

/// Where the addresses of a stack end: the field `ustack_end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEnd {
    /// At the outermost function.
    Outermost,
    /// At an invalid frame pointer.
    Broken,
    /// At memory that was not present.
    Unreadable,
    /// At the maximum number of addresses.
    Depth,
    /// At the first address: the module does not know the frames of this kind of program.
    Unsupported,
    /// A word of a newer module.
    Other(String),
}

impl From<&str> for UserEnd {
    fn from(word: &str) -> Self {
        match word {
            "outermost" => UserEnd::Outermost,
            "broken" => UserEnd::Broken,
            "unreadable" => UserEnd::Unreadable,
            "depth" => UserEnd::Depth,
            "unsupported" => UserEnd::Unsupported,
            other => UserEnd::Other(other.to_string()),
        }
    }
}

/// What a reader of the alert found about the addresses of `ustack`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserNames {
    /// A frame for each address, in the same order.
    pub frames: Vec<UserFrame>,
    /// Why names are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An address of a stack in user space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UserFrame {
    /// In hexadecimal digits, with 0x.
    pub address: String,
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Distance from the start of the function in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The file that was mapped there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Distance from the start of the file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_offset: Option<u64>,
}

pub(crate) const USTACK: &str = "ustack";
pub(crate) const USTACK_END: &str = "ustack_end";

impl Alert {
    /// Returns the stack in user space; `None` if the instance does not record such stacks.
    #[must_use]
    pub fn user_stack(&self) -> Option<UserStack> {
        let text = self.fields.text(USTACK)?;
        let address = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        let addresses: Option<Vec<u64>> = text.split(',').map(address).collect();
        Some(match (&*text, addresses) {
            ("hidden", _) => UserStack::Hidden,
            ("elsewhere", _) => UserStack::Elsewhere,
            ("kernel", _) => UserStack::Kernel,
            (_, None) => UserStack::None,
            (_, Some(addresses)) => {
                let end = self.fields.text(USTACK_END).unwrap_or_default();
                let end = UserEnd::from(&*end);
                UserStack::Addresses { addresses, end }
            }
        })
    }

    /// Returns a copy without user-space addresses, as the kernel shows the alert to unprivileged
    /// readers.
    #[must_use]
    pub fn without_user_addresses(&self) -> Self {
        let mut alert = self.clone();
        if let Some(UserStack::Addresses { .. }) = self.user_stack() {
            alert.ustack_names = None;
            alert.fields.0.retain(|field| field.key != USTACK_END);
            let stack = alert.fields.0.iter_mut().find(|f| f.key == USTACK);
            if let Some(stack) = stack {
                stack.value = Value::Bare("hidden".into());
            }
        }
        alert
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(rest: &str) -> Alert {
        let line = "seq=1 time=9 instance=i tracker=syscall reason=threshold delay=5 threshold=1 cpu=0 \
                    pid=7 tid=7 comm=\"cat\" call=read";
        Alert::parse(&format!("{line} {rest}")).unwrap()
    }

    #[test]
    fn the_words_of_a_stack_are_read() {
        let stack = |rest: &str| alert(rest).user_stack();
        assert_eq!(stack(""), None);
        assert_eq!(stack("ustack=hidden"), Some(UserStack::Hidden));
        assert_eq!(stack("ustack=elsewhere"), Some(UserStack::Elsewhere));
        assert_eq!(stack("ustack=kernel"), Some(UserStack::Kernel));
        assert_eq!(stack("ustack=none"), Some(UserStack::None));
        assert_eq!(stack("ustack=0x12,frog"), Some(UserStack::None));
        let words = [
            "outermost",
            "broken",
            "unreadable",
            "depth",
            "unsupported",
            "frog",
        ];
        for word in words {
            let addresses = vec![0x40_1136, 0x7fff_ffff_f000];
            let end = UserEnd::from(word);
            let line = format!("ustack=0x401136,0x7ffffffff000 ustack_end={word}");
            assert_eq!(stack(&line), Some(UserStack::Addresses { addresses, end }));
        }
        assert_eq!(UserEnd::from("frog"), UserEnd::Other("frog".into()));
        assert_ne!(UserEnd::from("depth"), UserEnd::from("broken"));
    }

    #[test]
    fn addresses_are_not_part_of_the_subject() {
        let alert = alert("stack=\"f+0x1\" ustack=0x401136 ustack_end=outermost");
        assert_eq!(alert.subject(), "call=read");
    }

    #[test]
    fn names_and_fields_survive_json() {
        let mut alert = alert("ustack=0x401136,0x401150 ustack_end=outermost");
        let plain = serde_json::to_string(&alert).unwrap();
        assert!(!plain.contains("ustack_names"), "{plain}");
        let frame = |address: &str, name: Option<&str>| UserFrame {
            address: address.into(),
            name: name.map(String::from),
            offset: name.map(|_| 6),
            file: Some("/bin/cat".into()),
            file_offset: None,
        };
        let frames = vec![
            frame("0x401136", Some("a<b, c>::d; e")),
            frame("0x401150", None),
        ];
        let note = Some("no name is near".into());
        alert.ustack_names = Some(UserNames { frames, note });
        let json = serde_json::to_string(&alert).unwrap();
        let end = r#""ustack":"0x401136,0x401150","ustack_end":"outermost","ustack_names":{"frames":[{"address":"0x401136","name":"a<b, c>::d; e","offset":6,"file":"/bin/cat"},{"address":"0x401150","file":"/bin/cat"}],"note":"no name is near"}}"#;
        assert!(json.ends_with(end), "{json}");
        let back: Alert = serde_json::from_str(&json).unwrap();
        assert_eq!(back.ustack_names, alert.ustack_names);
        assert_eq!(back.user_stack(), alert.user_stack());
        assert_eq!(back.fields.0.len(), alert.fields.0.len());
    }
}
