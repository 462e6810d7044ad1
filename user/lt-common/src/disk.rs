// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The names of disks.

/// Replaces the number of each disk that still exists with its name: `dev=8:0` becomes `dev=sda`.
pub fn named(subject: &str) -> String {
    replaced(subject, name_of)
}

fn replaced(subject: &str, name_of: impl Fn(&str) -> Option<String>) -> String {
    let word = |word: &str| {
        let name = word.strip_prefix("dev=").and_then(&name_of);
        name.map_or(word.to_string(), |name| format!("dev={name}"))
    };
    subject.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the name of the disk with this number, such as 8:0, if it still exists.
fn name_of(number: &str) -> Option<String> {
    let (major, minor) = number.split_once(':')?;
    let _: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let link = std::fs::read_link(format!("/sys/dev/block/{number}")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_its_name() {
        let disk_8 = |number: &str| (number == "8:0").then(|| "sda".to_string());
        assert_eq!(replaced("dev=8:0 sector=8", disk_8), "dev=sda sector=8");
        assert_eq!(replaced("op=R dev=9:0 x", disk_8), "op=R dev=9:0 x");
        assert_eq!(name_of("../8:0"), None);
        assert_eq!(name_of("4000:7"), None);
    }
}
