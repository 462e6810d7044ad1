// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Names of block devices: a trace has only their numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lt_proc::evidence::Disk;

/// The names of block devices by their numbers.
#[derive(Debug, Default)]
pub(super) struct Disks(BTreeMap<(u32, u32), Option<String>>);

impl Disks {
    /// Reads the current names. A number that has had two names is omitted.
    pub(super) fn read(&mut self, root: &Path) {
        let entries = fs::read_dir(root.join("sys/dev/block"));
        for entry in entries.into_iter().flatten().flatten() {
            let Some((number, name)) = named(&entry.path()) else {
                continue;
            };
            let known = self.0.entry(number).or_insert_with(|| Some(name.clone()));
            *known = known.take().filter(|known| *known == name);
        }
    }

    /// The devices with a name.
    pub(super) fn evidence(&self) -> Vec<Disk> {
        let disk = |(&(major, minor), name): (&(u32, u32), &Option<String>)| {
            let name = name.clone()?;
            Some(Disk { major, minor, name })
        };
        self.0.iter().filter_map(disk).collect()
    }
}

/// The number and the name of the device behind a link such as `8:0`.
fn named(link: &Path) -> Option<((u32, u32), String)> {
    let (major, minor) = link.file_name()?.to_str()?.split_once(':')?;
    let number = (major.parse().ok()?, minor.parse().ok()?);
    let mapped = fs::read_to_string(link.join("dm/name")).ok();
    let mapped = mapped.map(|name| name.trim_end().to_string());
    let name = mapped.filter(|name| !name.is_empty()).or_else(|| {
        let target = fs::read_link(link).ok()?;
        Some(target.file_name()?.to_str()?.replace('!', "/"))
    });
    Some((number, name?))
}
