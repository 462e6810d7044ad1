// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Programs that a test creates and then runs.
//!
//! Another process writes them. If this process did, they could be busy (ETXTBSY) when they are
//! run: a thread of another test may fork meanwhile, and its child has all of our files open until
//! it has called exec.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Creates a program with these contents.
pub(crate) fn program(path: &Path, content: impl AsRef<[u8]>) {
    let mut install = Command::new("install")
        .args(["-m", "755", "--", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = install.stdin.take().unwrap();
    input.write_all(content.as_ref()).unwrap();
    drop(input);
    assert!(install.wait().unwrap().success());
}
