// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Kernel modules seen from user space: whether ours is installed, how to load it, and which others are built in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::user::{group_name, join};

pub use crate::user::is_root;

/// Whether modprobe finds this module for the running kernel. Needs no privilege.
pub fn is_installed(module: &str) -> bool {
    is_listed("modules.dep", module)
}

/// Whether the running kernel contains this module. Needs no privilege.
pub fn is_built_in(module: &str) -> bool {
    is_listed("modules.builtin", module)
}

/// Whether this list of the running kernel's modules contains a module.
fn is_listed(list: &str, module: &str) -> bool {
    let Ok(release) = nix::sys::utsname::uname() else {
        return false;
    };
    let release = release.release().to_string_lossy();
    ["/lib/modules", "/usr/lib/modules"].iter().any(|root| {
        let list = fs::read_to_string(format!("{root}/{release}/{list}"));
        list.is_ok_and(|list| lists(&list, module))
    })
}

/// Whether a `modules.dep` or `modules.builtin` lists the module, compressed or not. Its file may have - instead of _.
fn lists(list: &str, module: &str) -> bool {
    list.lines().any(|line| {
        let path = line.split(':').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        let name = file.split_once(".ko").map(|(name, _)| name);
        name.is_some_and(|name| name.replace('-', "_") == module)
    })
}

/// Whether the module is being unloaded, which removes its instances before its other files.
pub fn is_going() -> bool {
    let state = fs::read_to_string("/sys/module/latency_tracker/initstate");
    state.is_ok_and(|state| state.trim() == "going")
}

/// Returns the remedy if the module is not loaded.
pub fn how_to_load() -> &'static str {
    match (is_installed("latency_tracker"), is_root()) {
        (true, true) => "it is installed: load it with `modprobe latency_tracker`",
        (true, false) => "it is installed: as root, `modprobe latency_tracker` loads it",
        (false, _) => {
            "nor is it installed for this kernel: `make install` in its source installs it, or the \
             package latency-tracker-dkms; `insmod build/$(uname -r)/latency_tracker.ko` in the \
             source loads it once; all as root"
        }
    }
}

/// Returns the remedy if the kernel refuses this user access to `path`.
pub fn how_to_be_let_in(path: &Path) -> String {
    if is_root() {
        return "root alone is not enough: reading takes CAP_PERFMON or CAP_SYS_ADMIN, changing CAP_SYS_ADMIN, of the \
                host; a container has them only if it was given them"
            .to_string();
    }
    // Files of a directory that may not be searched do not show their group; the directory does.
    let group = path.ancestors().find_map(|path| fs::metadata(path).ok());
    match group.map_or(0, |meta| meta.gid()) {
        0 => "run it as root, e.g. with sudo; the module's parameter gid= lets a group read"
            .to_string(),
        gid => format!(
            "run it as root, e.g. with sudo, or read as a member of a group: {}",
            join(&group_name(gid))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_modules_shows_whether_a_module_is_there() {
        let has = |list| lists(list, "latency_tracker");
        assert!(has("kernel/a.ko: x\nupdates/latency_tracker.ko:\n"));
        assert!(has("extra/latency_tracker.ko.xz: kernel/b.ko\n"));
        assert!(lists("updates/dkms/lttng-tracer.ko.xz:\n", "lttng_tracer"));
        assert!(!has("updates/other.ko: updates/latency_tracker.ko\n"));
        assert!(!has("kernel/latency_tracker_x.ko:\n"));
        assert!(!has(""));
        let built_in = "kernel/fs/ext4/ext4.ko\nkernel/drivers/md/dm-mod.ko\n";
        assert!(lists(built_in, "ext4") && lists(built_in, "dm_mod"));
        assert!(!lists(built_in, "ext"));
    }
}
