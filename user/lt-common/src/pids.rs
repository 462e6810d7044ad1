// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The numbers of processes and threads.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The initial PID namespace: `PROC_PID_INIT_INO` in include/uapi/linux/nsfs.h.
const INITIAL: &str = "pid:[4026531836]";

/// Whether `proc` below this root shows thread IDs as alerts do, which use the initial PID namespace.
pub fn are_numbered_as_in_alerts(root: &Path) -> bool {
    match fs::read_link(root.join("proc/self/ns/pid")) {
        Ok(link) => link == Path::new(INITIAL),
        // This kernel has no PID namespaces.
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}
