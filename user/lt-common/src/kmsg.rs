// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The module's messages in the kernel log during an operation: they name the offending word of a refused line.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// The kernel log from now on; empty if the caller may not read it.
#[derive(Debug)]
pub struct Kmsg(Option<File>);

impl Kmsg {
    /// Opens the log, skipping everything before this call.
    pub fn from_now() -> Self {
        let mut options = OpenOptions::new();
        let opened = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg");
        Self(
            opened
                .ok()
                .and_then(|mut f| f.seek(SeekFrom::End(0)).ok().map(|_| f)),
        )
    }

    /// The module's messages since the log was opened.
    pub fn said(&mut self) -> Vec<String> {
        let Some(file) = &mut self.0 else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        // Each read returns one record: "priority,sequence,time,flags;text\n" and continuation lines.
        while let Ok(n) = file.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..n]);
            let message = text
                .split_once(';')
                .map(|(_, m)| m.lines().next().unwrap_or(""));
            lines.extend(message.and_then(ours));
            if n == 0 {
                break;
            }
        }
        lines
    }
}

fn ours(message: &str) -> Option<String> {
    let rest = message.strip_prefix("latency_tracker: ")?;
    Some(crate::out::printable(&unescape(rest.trim())))
}

/// Decodes a message: /dev/kmsg escapes backslashes and unprintable bytes as `\xHH`.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let digits = tail.strip_prefix(b"x").and_then(|t| t.get(..2));
        let digits = digits.and_then(|d| std::str::from_utf8(d).ok());
        let escaped = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
        match escaped {
            Some(escaped) if *byte == b'\\' => {
                bytes.push(escaped);
                rest = tail.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_module_is_heard() {
        assert_eq!(
            ours("latency_tracker: bad word \"x\""),
            Some("bad word \"x\"".into())
        );
        assert_eq!(ours("usb 1-1: new device"), None);
    }

    #[test]
    fn what_the_log_escapes_reads_as_it_was_written() {
        let logged = r#"latency_tracker: expected \x5cxHH: "a\x1b\x5c""#;
        assert_eq!(ours(logged).unwrap(), r#"expected \xHH: "a?\""#);
        assert_eq!(unescape(r"a\x5"), r"a\x5");
        assert_eq!(unescape(r"\xzz\"), r"\xzz\");
        assert_eq!(unescape(r"caf\xc3\xa9"), "café");
    }
}
