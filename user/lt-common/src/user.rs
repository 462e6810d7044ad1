// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The user of the command, and groups that grant permissions.

use std::fs;

/// Whether this process runs as root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Returns a sentence on how root adds this user to a group.
pub(crate) fn join(group: &str) -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "USER".to_string());
    format!(
        "to allow it, run `usermod --append --groups {group} {user}` as root, then log in again"
    )
}

/// The name of a group; its number if it has none.
pub(crate) fn group_name(gid: u32) -> String {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    named(gid, &groups).unwrap_or_else(|| gid.to_string())
}

/// The name of a group in the text of `/etc/group`.
fn named(gid: u32, groups: &str) -> Option<String> {
    let mut groups = groups.lines().map(|line| line.split(':'));
    groups.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_name_of_its_number() {
        let groups = "root:x:0:\ntracing:x:102:anna,u\nlatency-tracker:x:990:u\n";
        assert_eq!(named(990, groups).as_deref(), Some("latency-tracker"));
        assert_eq!(named(102, groups).as_deref(), Some("tracing"));
        assert_eq!(named(10, groups), None);
    }
}
