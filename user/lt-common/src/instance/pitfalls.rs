// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Settings that the kernel accepts although they cannot raise an alert, or match nothing at present, and hints about
//! refused settings.

use std::fs;
use std::path::Path;

use lt_proc::{Setting, TrackerInfo, parse_duration};

use super::meant;

/// Returns why these settings can never raise an alert, if their `threshold` and `max` rule it out.
pub(super) fn contradiction(settings: &[Setting]) -> Option<String> {
    let time = |key: &str| {
        let setting = settings.iter().rfind(|setting| setting.key == key)?;
        Some((setting, parse_duration(&setting.value).ok()?))
    };
    let ((threshold, least), (max, most)) = (time("threshold")?, time("max")?);
    // 0 means no limit.
    (most.0 > 0 && most <= least).then(|| {
        format!("{threshold} {max}: no delay can be above the threshold and at most max; expected max= to be greater")
    })
}

/// Returns warnings about settings that are accepted but match nothing at present: the kernel accepts any name of a
/// network device, since a device may appear later, or be in another namespace. `sys` is /sys.
pub(super) fn warnings(settings: &[Setting], info: &TrackerInfo, sys: &Path) -> Vec<String> {
    let of = |setting: &Setting| {
        let kind = info.params.iter().find(|p| p.name == setting.key)?;
        let name = setting.value.as_str();
        // Escapes are left to the kernel to decode.
        if name == "all" || name.contains('\\') || !kind.kind.starts_with("net-device") {
            return None;
        }
        no_such_device(name, sys).map(|text| format!("{setting}: {text}"))
    };
    settings.iter().filter_map(of).collect()
}

fn no_such_device(name: &str, sys: &Path) -> Option<String> {
    let devices = sys.join("class/net");
    let mut names = names(&devices);
    // `bonding_masters` is a file.
    names.retain(|name| devices.join(name).is_dir());
    if names.is_empty() || names.iter().any(|n| n == name) {
        return None;
    }
    Some(format!(
        "no such network device at present; there are {}",
        names.join(", ")
    ))
}

/// Returns a hint about a disk that the kernel refused: the disks below it, if its driver passes bios on to other disks
/// (device mapper, md).
fn disks_below(name: &str, sys: &Path) -> Option<String> {
    let kind = if name.contains(':') {
        "dev/block"
    } else {
        "block"
    };
    let slaves = sys.join(kind).join(name).join("slaves");
    let disk_of = |below: &String| match slaves.join(below).canonicalize() {
        Ok(partition) if partition.join("partition").exists() => {
            Some(partition.parent()?.file_name()?.to_str()?.to_string())
        }
        _ => Some(below.clone()),
    };
    let mut disks: Vec<String> = names(&slaves).iter().filter_map(disk_of).collect();
    disks.dedup();
    (!disks.is_empty()).then(|| format!("track the disks below {name}: {}", disks.join(", ")))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Returns the probable mistake in a setting that the kernel refused.
pub(super) fn hint(setting: &Setting, info: &TrackerInfo, sys: &Path) -> Option<String> {
    let param = info.params.iter().find(|p| p.name == setting.key)?;
    let value = setting.value.as_str();
    if param.kind.starts_with("disk") {
        return disks_below(value, sys);
    }
    if !param.kind.contains("!names") {
        return None;
    }
    if value.contains(",!") {
        let all_but = value.trim_start_matches('!').replace(",!", ",");
        return Some(format!(
            "! is allowed before the first name only, and means all but these: {}=!{all_but}",
            setting.key
        ));
    }
    if setting.key != "calls" {
        return None;
    }
    // The kernel does not list the names that it knows, but ftrace lists nearly all of them.
    let events = names(&sys.join("kernel/tracing/events/syscalls"));
    let calls: Vec<&str> = events
        .iter()
        .filter_map(|event| event.strip_prefix("sys_enter_"))
        .collect();
    let given = value.trim_start_matches('!').split(',');
    let mut unknown = given.filter(|name| !calls.is_empty() && !calls.contains(name));
    unknown.find_map(|name| {
        Some(format!(
            "{name}: did you mean {}?",
            meant(name, calls.iter().copied())?
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(words: &[&str]) -> Vec<Setting> {
        words.iter().map(|word| word.parse().unwrap()).collect()
    }

    fn info(text: &str) -> TrackerInfo {
        TrackerInfo::parse_all(text).unwrap().remove(0)
    }

    /// Creates a directory tree that stands for /sys.
    fn sys(name: &str, directories: &[&str]) -> std::path::PathBuf {
        let sys = std::env::temp_dir().join(format!("lt-sys-{name}-{}", std::process::id()));
        for directory in directories {
            fs::create_dir_all(sys.join(directory)).unwrap();
        }
        sys
    }

    #[test]
    fn a_maximum_below_the_threshold_is_a_contradiction() {
        let said = contradiction(&settings(&["threshold=2s", "max=1s"])).unwrap();
        assert!(said.starts_with("threshold=2s max=1s: "), "{said}");
        assert!(contradiction(&settings(&["threshold=1s", "max=1s"])).is_some());
        for fine in [
            &["threshold=1s", "max=2s"][..],
            &["max=1s"],
            &["threshold=x", "max=1s"],
            &["threshold=1s", "max=0"],
            &[],
        ] {
            assert_eq!(contradiction(&settings(fine)), None, "{fine:?}");
        }
    }

    #[test]
    fn a_setting_that_matches_nothing_now_is_reported() {
        let sys = sys(
            "match",
            &[
                "class/net/eth0",
                "class/net/lo",
                "block/sda/mq",
                "block/dm-0/slaves/sda",
            ],
        );
        fs::write(sys.join("class/net/bonding_masters"), "").unwrap();
        let net = info("net: packets\n  dev=all net-device|all: which\n");
        let block =
            info("block: requests\n  dev=all disk|all: which\n  comm=all command|all: whose\n");
        let said = |word: &str, info| {
            warnings(&settings(&[word]), info, &sys)
                .pop()
                .unwrap_or_default()
        };
        assert_eq!(
            said("dev=nosuch", &net),
            "dev=nosuch: no such network device at present; there are eth0, lo"
        );
        assert_eq!(said("dev=eth0", &net), "");
        assert_eq!(said("dev=all", &net), "");
        assert_eq!(said(r"dev=\x61ll", &net), "");
        let refused = |word: &str| hint(&word.parse().unwrap(), &block, &sys);
        let below = refused("dev=dm-0").unwrap();
        assert_eq!(below, "track the disks below dm-0: sda");
        for other in ["dev=sda", "dev=none", "dev=all", "comm=dm-0"] {
            assert_eq!(refused(other), None);
        }
        fs::remove_dir_all(&sys).unwrap();
    }

    #[test]
    fn a_name_that_was_refused_is_guessed() {
        let calls = "kernel/tracing/events/syscalls/sys_enter_";
        let sys = sys(
            "names",
            &[&format!("{calls}read"), &format!("{calls}write")],
        );
        let info = info(
            "syscall: calls\n  calls=all names|!names|all: which\n  comm=all command|all: whose\n",
        );
        let hint = |word: &str| super::hint(&word.parse().unwrap(), &info, &sys);
        assert_eq!(
            hint("calls=reaad").as_deref(),
            Some("reaad: did you mean read?")
        );
        assert_eq!(
            hint("calls=!write,reaad").as_deref(),
            Some("reaad: did you mean read?")
        );
        let all_but = hint("calls=read,!write").unwrap();
        assert!(
            all_but.ends_with("all but these: calls=!read,write"),
            "{all_but}"
        );
        assert_eq!(hint("calls=read,write"), None);
        assert_eq!(hint("comm=reaad"), None);
        fs::remove_dir_all(&sys).unwrap();
    }
}
