// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The row about caches that the CPUs share with other CPUs.
//!
//! Some processors can partition a cache (cat_l2, cat_l3 in their flags): the resctrl group of the
//! CPUs then determines the part in which they allocate. This check does not judge the choice of
//! that part.

use super::answer::{Found, ok, warn};
use super::root::Root;
use super::{Cpus, Target};

const GROUPS: &str = "/sys/fs/resctrl";

/// A cache that some of the CPUs share with other CPUs.
struct Shared {
    level: u64,
    others: Cpus,
}

pub(super) fn shared(root: &Root, target: &Target) -> Found {
    let mut shared: Vec<Shared> = Vec::new();
    for cpu in target.cpus.iter() {
        let directory = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
        for index in root.directories(&directory)? {
            let cache = format!("{directory}/{index}");
            if !index.starts_with("index") {
                continue;
            }
            let level: u64 = root.value(&format!("{cache}/level"))?;
            let users = root.cpus(&format!("{cache}/shared_cpu_list"))?;
            let others = users.and(&target.online).without(&target.cpus);
            if others.is_empty() {
                continue;
            }
            match shared.iter_mut().find(|known| known.level == level) {
                Some(known) => known.others = known.others.or(&others),
                None => shared.push(Shared { level, others }),
            }
        }
    }
    if shared.is_empty() {
        return Ok(ok("shared with no other CPU"));
    }
    let each = |cache: &Shared| format!("L{} shared with CPU {}", cache.level, cache.others);
    let found = shared.iter().map(each).collect::<Vec<_>>().join(", ");
    let mut divisible = false;
    for level in shared.iter().map(|cache| cache.level) {
        divisible |= root.cpu_flag(&format!("cat_l{level}"))?;
    }
    if !divisible {
        return Ok(ok(format!("{found}; this processor cannot divide it")));
    }
    // The CPUs that are in no other group are in the root group. If resctrl is not mounted, there
    // are no groups.
    let with_others = match root.cpus(&format!("{GROUPS}/cpus_list")) {
        Ok(rest) => rest.and(&target.cpus),
        Err(_) => target.cpus.clone(),
    };
    if with_others.is_empty() {
        let text = format!("{found}; CPU {} not in resctrl's root group", target.cpus);
        return Ok(ok(text));
    }
    let answer = warn(format!(
        "{found}, and no resctrl group divides it for CPU {with_others}"
    ));
    Ok(answer.fixes([
        format!("mountpoint -q {GROUPS} || mount -t resctrl resctrl {GROUPS}"),
        format!("mkdir -p {GROUPS}/rt"),
        format!(
            "echo {} > {GROUPS}/rt/cpus_list # then give it a part: {GROUPS}/rt/schemata",
            target.cpus
        ),
    ]))
}
