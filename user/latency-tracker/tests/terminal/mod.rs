// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A terminal for commands, whose output may have another width there than in a pipe.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};

/// Runs a command whose standard output is a terminal of this many columns, without colours.
/// Returns its exit status, and its output on the terminal and on standard error.
pub(crate) fn on_a_terminal(mut command: Command, columns: usize) -> (i32, String, String) {
    // Unlike with openpty(3), no child of a test in another thread inherits either side.
    let mut master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let mut slave = OpenOptions::new();
    slave.read(true).write(true);
    slave.custom_flags(OFlag::O_NOCTTY.bits());
    let slave = slave.open(ptsname_r(&master).unwrap()).unwrap();
    command
        .env("COLUMNS", columns.to_string())
        .env("NO_COLOR", "1");
    command.stdout(slave).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Now only the child has the terminal open, so that its exit ends the reads below.
    drop(command);
    let mut out = Vec::new();
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
