// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A terminal for a command: what it prints there may have another width than in a pipe.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use nix::pty::openpty;

/// Runs a command whose standard output is a terminal of this many columns, without colours.
/// Returns its exit status, and what it printed there and on standard error.
pub(crate) fn on_a_terminal(mut command: Command, columns: usize) -> (i32, String, String) {
    let pty = openpty(None, None).unwrap();
    command
        .env("COLUMNS", columns.to_string())
        .env("NO_COLOR", "1");
    command.stdout(pty.slave).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Now only the child has the terminal open, so that its exit ends the reads below.
    drop(command);
    let (mut out, mut master) = (Vec::new(), File::from(pty.master));
    let mut part = [0; 4096];
    // The last read fails with EIO.
    while let Ok(read) = master.read(&mut part) {
        if read == 0 {
            break;
        }
        out.extend_from_slice(&part[..read]);
    }
    let ended = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    (ended.status.code().unwrap(), text(out), text(ended.stderr))
}
