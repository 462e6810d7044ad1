// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The module's messages in the kernel log during an operation: they name the offending word of a refused line.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
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
        self.0.as_mut().map(read).unwrap_or_default()
    }
}

/// Reads the available records, and returns the module's messages.
fn read(log: &mut impl Read) -> Vec<String> {
    let mut lines = Vec::new();
    let mut record = [0; 8192];
    // Each read returns one record: "priority,sequence,time,flags;text\n" and continuation lines.
    loop {
        match log.read(&mut record) {
            Ok(0) => return lines,
            Ok(n) => {
                let text = String::from_utf8_lossy(&record[..n]);
                let message = text
                    .split_once(';')
                    .map(|(_, m)| m.lines().next().unwrap_or(""));
                lines.extend(message.and_then(ours));
            }
            // The record was overwritten; the next read returns the oldest record.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(_) => return lines,
        }
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
        // `from_str_radix` accepts a sign.
        let digits = digits.filter(|d| d.iter().all(u8::is_ascii_hexdigit));
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
    fn only_messages_of_the_module_are_returned() {
        assert_eq!(
            ours("latency_tracker: bad word \"x\""),
            Some("bad word \"x\"".into())
        );
        assert_eq!(ours("usb 1-1: new device"), None);
    }

    /// A log whose reads have these results.
    struct Log(Vec<Result<&'static str, i32>>);

    impl Read for Log {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            match self.0.remove(0) {
                Ok(text) => text.as_bytes().read(to),
                Err(errno) => Err(std::io::Error::from_raw_os_error(errno)),
            }
        }
    }

    #[test]
    fn messages_after_overwritten_ones_are_read() {
        let mut log = Log(vec![
            Ok("4,1,5,-;latency_tracker: first\n"),
            Err(libc::EPIPE),
            Ok("6,90,6,-;usb 1-1: new device\n"),
            Ok("4,91,7,-;latency_tracker: second\n KEY=value\n"),
            Err(libc::EAGAIN),
        ]);
        assert_eq!(read(&mut log), ["first", "second"]);
        assert!(log.0.is_empty());
    }

    #[test]
    fn an_escaped_message_reads_as_it_was_written() {
        let logged = r#"latency_tracker: expected \x5cxHH: "a\x1b\x5c""#;
        assert_eq!(ours(logged).unwrap(), r#"expected \xHH: "a?\""#);
        assert_eq!(unescape(r"a\x5"), r"a\x5");
        assert_eq!(unescape(r"\xzz\"), r"\xzz\");
        assert_eq!(unescape(r"\x+5"), r"\x+5");
        assert_eq!(unescape(r"caf\xc3\xa9"), "café");
    }
}
