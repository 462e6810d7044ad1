// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Whether an existing instance is the one that a line requests. The kernel shows values in a canonical form.

use std::fs;

use lt_common::group;
use lt_proc::{Instance, Setting, parse_duration};

/// The tracker, or the first parameter, in which an existing instance differs from the request.
pub(super) fn difference(
    instance: &Instance,
    tracker: &str,
    settings: &[Setting],
) -> Option<String> {
    if instance.tracker != tracker {
        return Some(format!("tracker {}", instance.tracker));
    }
    let differs = |wish: &&Setting| {
        let is = instance.params.text(&wish.key);
        is.as_ref()
            .is_none_or(|is| !same(&wish.key, is, &wish.value))
    };
    let wish = settings.iter().find(differs)?;
    let is = instance.params.text(&wish.key).unwrap_or("nothing".into());
    Some(format!("{}={is}", wish.key))
}

/// Whether the kernel's canonical value equals the user's.
fn same(key: &str, is: &str, wish: &str) -> bool {
    let (time, wished) = (parse_duration(is), parse_duration(wish));
    let disk = || {
        let name = wish.trim_start_matches("/dev/");
        let number = fs::read_to_string(format!("/sys/class/block/{name}/dev"));
        number.is_ok_and(|n| n.trim() == is)
    };
    // The kernel decodes escapes in a path.
    let cgroup = || {
        let number = group::number(wish).filter(|_| !wish.contains('\\'));
        number.is_some_and(|n| n.to_string() == is)
    };
    is == wish
        || (time.is_ok() && time == wished)
        || (key == "dev" && !wish.contains('.') && disk())
        || (key == "cgroup" && cgroup())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_instance_may_be_reused_and_no_other() {
        let instance = Instance::parse("a block threshold=10000000 from=issue dev=all").unwrap();
        let settings = |words: &[&str]| {
            words
                .iter()
                .map(|w| w.parse().unwrap())
                .collect::<Vec<Setting>>()
        };
        assert_eq!(
            difference(
                &instance,
                "block",
                &settings(&["threshold=10ms", "dev=all"])
            ),
            None
        );
        assert_eq!(difference(&instance, "block", &[]), None);
        assert_eq!(
            difference(&instance, "other", &[]).unwrap(),
            "tracker block"
        );
        assert_eq!(
            difference(&instance, "block", &settings(&["threshold=20ms"])).unwrap(),
            "threshold=10000000"
        );
        assert_eq!(
            difference(&instance, "block", &settings(&["shade=1"])).unwrap(),
            "shade=nothing"
        );
    }
}
