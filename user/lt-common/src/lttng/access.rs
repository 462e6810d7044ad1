// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Whether the user may use LTTng, and where our `lttng` commands keep their configuration.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use nix::unistd::{AccessFlags, access, geteuid};

use crate::private::make_private;
use crate::user::{group_name, is_root, join};

/// The socket on which root's session daemon receives commands.
const SOCKET: &str = "/run/lttng/client-lttng-sessiond";

/// Directory for this user's runs. It is LTTNG_HOME for our commands, in place of the home directory, and its files
/// record what a run has set up.
pub fn run_dir() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        if is_root() {
            return "/run/latency-tracker".into();
        }
        match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(directory) => Path::new(&directory).join("latency-tracker"),
            None => std::env::temp_dir().join(format!("latency-tracker-{}", geteuid())),
        }
    })
}

/// Creates the directory [`run_dir`]. No other user can redirect the files in it.
pub fn make_run_dir() -> Result<()> {
    if is_root() {
        return fs::create_dir_all(run_dir()).with_context(|| run_dir().display().to_string());
    }
    let remedy = "set XDG_RUNTIME_DIR to a directory of your own";
    make_private(run_dir(), remedy).map(drop)
}

/// Fails unless this user, who is not root, may use the session daemon of root, and that daemon runs.
pub(super) fn check(daemon: Option<i32>) -> Result<()> {
    if daemon.is_none() {
        bail!(
            "only root's LTTng session daemon can trace the kernel, and it is not running; as root, start it with \
             `systemctl start lttng-sessiond`"
        );
    }
    if access(SOCKET, AccessFlags::W_OK).is_ok() {
        return Ok(());
    }
    let group = fs::metadata(SOCKET)
        .map_or_else(|_| "tracing".to_string(), |socket| group_name(socket.gid()));
    bail!(
        "this user may not use LTTng's session daemon: {}",
        join(&group)
    )
}
