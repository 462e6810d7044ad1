// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Chooses the CPUs of the threads under test; the others are left to all other tasks.
//!
//! A loop at a real-time priority keeps all other tasks off its CPU. A bench therefore leaves the
//! system at least one CPU that is not isolated.

use anyhow::{Result, bail};
use lt_readiness::{Cpus, ONLINE, Root};

/// The chosen CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// CPUs that each have a thread under test.
    pub(super) cpus: Cpus,
    /// CPUs for the system, and for the watching thread.
    pub(super) rest: Cpus,
    /// Whether all CPUs under test are isolated.
    pub(super) isolated: bool,
}

impl Place {
    /// Chooses among the CPUs of this machine.
    pub(super) fn here(asked: &Cpus) -> Result<Self> {
        let root = Root::new("/");
        let online = online(&root)?;
        Self::choose(asked, &online, &lt_readiness::isolated(&root))
    }

    /// Chooses `asked`, else the last isolated CPU, else the last CPU.
    fn choose(asked: &Cpus, online: &Cpus, isolated: &Cpus) -> Result<Self> {
        let absent = asked.without(online);
        if !absent.is_empty() {
            bail!("CPU {absent} is not online (online: {online})");
        }
        if online.iter().count() < 2 {
            bail!(
                "CPU {online} is the only one online, and the rest of the system needs it: a benchmark occupies a \
                 whole CPU"
            );
        }
        let isolated = isolated.and(online);
        let cpus = match asked.is_empty() {
            false => asked.clone(),
            true => isolated.last().or(online.last()).into_iter().collect(),
        };
        let open = online.without(&isolated);
        let rest = open.without(&cpus);
        if rest.is_empty() {
            let instead = match isolated.is_empty() {
                true => String::new(),
                false => format!("; choose isolated CPUs, such as {isolated}"),
            };
            match open.iter().count() {
                0 => bail!(
                    "all CPUs that are online ({online}) are isolated, and the rest of the system needs one that is \
                     not: bring such a CPU online, or isolate fewer"
                ),
                1 => bail!(
                    "CPU {open} is the only CPU that is not isolated, and the rest of the system needs it{instead}"
                ),
                _ => bail!(
                    "CPUs {open} are the only ones that are not isolated, and the rest of the system needs one \
                     of them: leave one out{instead}"
                ),
            }
        }
        Ok(Self {
            isolated: cpus.within(&isolated),
            cpus,
            rest,
        })
    }
}

/// Returns the CPUs that are online. A container may lack /sys, but /proc/stat has a line for each
/// online CPU, too.
fn online(root: &Root) -> Result<Cpus> {
    let missing = match root.cpus(ONLINE) {
        Ok(online) => return Ok(online),
        Err(missing) => missing,
    };
    let stat = root.text("/proc/stat").unwrap_or_default();
    let cpu = |line: &str| line.split(' ').next()?.strip_prefix("cpu")?.parse().ok();
    let online: Cpus = stat.lines().filter_map(cpu).collect();
    match online.is_empty() {
        true => bail!("cannot determine the online CPUs: {missing}"),
        false => Ok(online),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn choose(asked: &str, online: &str, isolated: &str) -> Result<Place, String> {
        let cpus = |text: &str| text.parse::<Cpus>().unwrap();
        Place::choose(&cpus(asked), &cpus(online), &cpus(isolated))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_last_isolated_cpu_is_the_default() {
        for (online, isolated, cpus, rest) in [
            ("0-3", "", "3", "0-2"),
            ("0-3", "1-2", "2", "0,3"),
            ("0-1", "1", "1", "0"),
            // Isolated, but offline.
            ("0-2", "3", "2", "0-1"),
        ] {
            let place = choose("", online, isolated).unwrap();
            assert_eq!(
                (place.cpus.to_string(), place.rest.to_string()),
                (cpus.into(), rest.into())
            );
            assert_eq!(place.isolated, isolated == "1-2" || isolated == "1");
        }
    }

    #[test]
    fn without_sys_the_cpus_are_read_from_proc() {
        let dir = std::env::temp_dir().join(format!("lt-online-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("proc")).unwrap();
        let root = Root::new(&dir);
        assert!(
            online(&root)
                .unwrap_err()
                .to_string()
                .contains("cannot determine the online CPUs")
        );
        std::fs::write(
            dir.join("proc/stat"),
            "cpu  1 2\ncpu0 1 2\ncpu2 1 2\nintr 5\n",
        )
        .unwrap();
        assert_eq!(online(&root).unwrap().to_string(), "0,2");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn cpus_that_the_system_needs_are_refused() {
        for (asked, online, isolated, says) in [
            ("", "0", "", "CPU 0 is the only one online, and"),
            ("2", "2", "1-3", "CPU 2 is the only one online, and"),
            ("", "1-3", "1-3", "online (1-3) are isolated"),
            ("1", "1-3", "0-3", "online (1-3) are isolated"),
            (
                "0",
                "0-3",
                "1-3",
                "CPU 0 is the only CPU that is not isolated",
            ),
            ("0", "0-3", "1-3", "choose isolated CPUs, such as 1-3"),
            ("0-3", "0-3", "1-3", "only CPU that is not isolated"),
            (
                "0-1",
                "0-1",
                "",
                "CPUs 0-1 are the only ones that are not isolated",
            ),
            ("9", "0-1", "", "CPU 9 is not online (online: 0-1)"),
        ] {
            let error = choose(asked, online, isolated).unwrap_err();
            assert!(error.contains(says), "{asked} of {online}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_cpu_is_always_left(asked in prop::collection::btree_set(0u32..8, 0..8), online in prop::collection::btree_set(0u32..8, 1..8),
                isolated in prop::collection::btree_set(0u32..8, 0..8)) {
            let set = |cpus: &std::collections::BTreeSet<u32>| cpus.iter().copied().collect::<Cpus>();
            let (asked, online, isolated) = (set(&asked), set(&online), set(&isolated));
            if let Ok(place) = Place::choose(&asked, &online, &isolated) {
                prop_assert!(!place.cpus.is_empty() && !place.rest.is_empty());
                prop_assert!(place.cpus.and(&place.rest).is_empty() && place.rest.and(&isolated).is_empty());
                prop_assert!(place.cpus.within(&online) && place.rest.within(&online));
            }
        }
    }
}
