// SPDX-License-Identifier: GPL-2.0

//! Cgroups of version 2, identified by their numbers.
//!
//! C header: [`include/linux/cgroup.h`](srctree/include/linux/cgroup.h)
//!
//! The number of a cgroup is the inode number of its directory, and is not reused while the machine
//! runs. So no reference is needed: a removed cgroup has no tasks.

use crate::sys::bindings;
use core::ffi::CStr;
use kernel::{error::to_result, prelude::*};

/// Returns the number of the cgroup at a path below the root that the caller sees. May sleep; fails
/// with `ENOENT`, with `ENOTDIR` for a file, or with `ENOTSUPP` on a kernel without cgroups.
pub(crate) fn lookup(path: &CStr) -> Result<u64> {
    let mut id = 0;
    // SAFETY: The path is a C string; the function writes `id` on success.
    to_result(unsafe { bindings::lt_cgroup_lookup(path.as_ptr().cast(), &mut id) })?;
    Ok(id)
}
