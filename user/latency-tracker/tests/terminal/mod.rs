// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A terminal for a command: what it prints there may have another width than in a pipe.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use nix::pty::openpty;

/// Runs a command whose standard output is a terminal that says `columns`, and shows no colours: its exit status, what
/// it printed there, and on standard error.
pub(crate) fn on_a_terminal(mut command: Command, columns: usize) -> (i32, String, String) {
    let pty = openpty(None, None).unwrap();
    command
        .env("COLUMNS", columns.to_string())
        .env("NO_COLOR", "1");
    command.stdout(pty.slave).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // The last one that has the terminal open is the child, whose end is ours.
    drop(command);
    let (mut out, mut master) = (Vec::new(), File::from(pty.master));
    let mut part = [0; 4096];
    // It ends with an error, EIO.
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
