// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Settings that the kernel accepts although they cannot raise an alert, and hints about refused settings.

use std::fs;
use std::path::Path;

use lt_proc::{Setting, TrackerInfo, parse_duration};

use super::meant;

/// Returns why these settings can never raise an alert, if they cannot.
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

/// Returns warnings about settings that are accepted but match nothing at present. `sys` is /sys.
pub(super) fn warnings(settings: &[Setting], info: &TrackerInfo, sys: &Path) -> Vec<String> {
    let of = |setting: &Setting| {
        let kind = info.params.iter().find(|p| p.name == setting.key)?;
        let name = setting.value.as_str();
        match kind.kind.split('|').next()? {
            _ if name == "all" => None,
            "net-device" => no_such_device(name, sys).map(|text| format!("{setting}: {text}")),
            "disk" if info.name == "block" => {
                not_by_requests(name, sys).map(|text| format!("{setting}: {text}"))
            }
            _ => None,
        }
    };
    settings.iter().filter_map(of).collect()
}

fn no_such_device(name: &str, sys: &Path) -> Option<String> {
    let names = names(&sys.join("class/net"));
    if names.is_empty() || names.iter().any(|n| n == name) {
        return None;
    }
    Some(format!(
        "no such network device at present; there are {}",
        names.join(", ")
    ))
}

/// Returns a warning about a disk without a request queue (device mapper, zram). Its driver handles bios
/// itself, so the tracker block gets no events from it.
fn not_by_requests(name: &str, sys: &Path) -> Option<String> {
    let kind = if name.contains(':') {
        "dev/block"
    } else {
        "block"
    };
    let disk = sys.join(kind).join(name);
    if !disk.exists() || disk.join("mq").exists() {
        return None;
    }
    let below = names(&disk.join("slaves"));
    let hint = match below.is_empty() {
        true => String::new(),
        false => format!("; track the disks below it: {}", below.join(", ")),
    };
    Some(format!(
        "this disk has no request queue, so there is nothing to track{hint}"
    ))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Returns the probable mistake in the names listed in a setting that the kernel refused.
pub(super) fn names_hint(setting: &Setting, info: &TrackerInfo, sys: &Path) -> Option<String> {
    let param = info.params.iter().find(|p| p.name == setting.key)?;
    if !param.kind.contains("!names") {
        return None;
    }
    let value = setting.value.as_str();
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
    fn what_matches_nothing_now_is_said() {
        let sys = sys(
            "match",
            &[
                "class/net/eth0",
                "class/net/lo",
                "block/sda/mq",
                "block/dm-0/slaves/sda",
            ],
        );
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
        assert!(said("dev=dm-0", &block).ends_with("track the disks below it: sda"));
        for fine in ["dev=sda", "dev=none", "dev=all", "comm=dm-0"] {
            assert_eq!(said(fine, &block), "");
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
        let hint = |word: &str| names_hint(&word.parse().unwrap(), &info, &sys);
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
