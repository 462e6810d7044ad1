// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Names of kernel functions, of which a trace has only the addresses.
//!
//! The addresses differ between boots, so the running kernel names functions only for a trace of its own boot. Functions
//! of modules are left out: their addresses may have belonged to another module.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::trace::Identity;

/// The note if no function can be named.
pub(super) const UNKNOWN: &str = "functions are shown by address: the trace is not known to be of \
                                  this boot, or /proc/kallsyms hides the addresses (run as root)";

/// The names of the kernel's functions by address; empty if this boot did not record the trace, or if the addresses are
/// hidden.
///
/// # Errors
/// If there is no trace that can be read.
pub(super) fn of(trace: &Path) -> Result<BTreeMap<u64, String>> {
    let boot = Identity::of(trace)?.boot;
    let this = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let is_this = this.is_ok_and(|this| boot.is_some_and(|boot| boot == this.trim_end()));
    let symbols = match is_this {
        true => fs::read("/proc/kallsyms").unwrap_or_default(),
        false => Vec::new(),
    };
    Ok(names(&String::from_utf8_lossy(&symbols)))
}

/// The functions in lines such as `ffffffff81130a20 t wb_workfn`. If an address has several names, the first counts.
fn names(symbols: &str) -> BTreeMap<u64, String> {
    let mut names = BTreeMap::new();
    for line in symbols.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [address, "t" | "T" | "w" | "W", name] = words[..]
            && let Ok(address @ 1..) = u64::from_str_radix(address, 16)
        {
            names.entry(address).or_insert_with(|| name.to_string());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_itself_have_names() {
        let symbols = "ffffffff81000010 t wb_workfn\n\
                       ffffffff81000010 t an_alias\n\
                       ffffffff81000020 T vmstat_update\n\
                       ffffffff81000030 D some_data\n\
                       ffffffffc0000000 t lt_work_slow\t[lt_works]\n";
        let expected = [
            (0xffff_ffff_8100_0010, "wb_workfn".to_string()),
            (0xffff_ffff_8100_0020, "vmstat_update".to_string()),
        ];
        assert_eq!(names(symbols), BTreeMap::from(expected));
        assert!(names("0000000000000000 t wb_workfn\n").is_empty());
    }
}
