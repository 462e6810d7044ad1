// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sets of CPUs, in the two forms that the kernel prints: lists (`0-3,8`) and masks
//! (`ff,ffffffff`).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The kernel's own limit (`NR_CPUS` on x86-64): a list with this or a higher number is a mistake.
const MOST: u32 = 8192;

/// A set of CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpus(BTreeSet<u32>);

impl Cpus {
    /// Parses a mask: hexadecimal words of 32 bits, the highest first, separated by commas.
    pub(super) fn from_mask(text: &str) -> Option<Self> {
        let mut cpus = BTreeSet::new();
        for (word, digits) in text.trim().rsplit(',').enumerate() {
            let bits = u32::from_str_radix(digits, 16).ok()?;
            let first = u32::try_from(word).ok()?.checked_mul(32)?;
            cpus.extend(
                (0..32)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .map(|bit| first + bit),
            );
        }
        cpus.last()
            .is_none_or(|last| *last < MOST)
            .then_some(Self(cpus))
    }

    /// Formats the set as a mask, for files that do not take a list.
    pub(super) fn mask(&self) -> String {
        let words = self.0.last().map_or(1, |last| last / 32 + 1);
        let word = |word: u32| {
            (0..32)
                .filter(|b| self.contains(word * 32 + b))
                .fold(0u32, |m, b| m | 1 << b)
        };
        let words: Vec<String> = (0..words)
            .rev()
            .map(|w| format!("{:08x}", word(w)))
            .collect();
        words.join(",")
    }

    /// Parses a list of the kernel's command line, in which `N` is the last CPU and `all` is all
    /// CPUs.
    pub(super) fn from_boot(text: &str, last: u32) -> Option<Self> {
        if text == "all" {
            return Some((0..=last).collect());
        }
        text.replace('N', &last.to_string()).parse().ok()
    }

    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the lowest CPU.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// Returns the highest CPU.
    pub fn last(&self) -> Option<u32> {
        self.0.last().copied()
    }

    /// Returns the CPUs, the lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Whether all CPUs of the set are in `other`.
    pub fn within(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// Returns the CPUs in both sets.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Returns the CPUs in either set.
    pub fn or(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// Returns the CPUs that are not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for Cpus {
    type Err = String;

    /// Parses `0-3,8`, and `0-31:2/4` (the first 2 of every 4). An empty list is the empty set.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let number = |digits: &str| {
            let digit = |c: char| c.is_ascii_digit();
            let cpu = digits
                .chars()
                .all(digit)
                .then(|| digits.parse::<u32>().ok());
            let cpu = cpu.flatten().filter(|cpu| *cpu < MOST);
            cpu.ok_or_else(|| format!("'{digits}': expected a list of CPUs such as 0-3,8"))
        };
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (range, group) = match part.split_once(':') {
                Some((range, group)) => (range, Some(group)),
                None => (part, None),
            };
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(range)?, number(range)?),
            };
            let (used, size) = match group.map(|group| group.split_once('/')) {
                None => (1, 1),
                Some(Some((used, size))) => (number(used)?, number(size)?),
                Some(None) => return Err(format!("'{part}': expected FIRST-LAST:USED/GROUP")),
            };
            if first > last {
                return Err(format!("'{part}': the first CPU is above the last"));
            }
            if used == 0 || size == 0 || used > size {
                return Err(format!(
                    "'{part}': expected USED from 1 to GROUP in {used}/{size}"
                ));
            }
            cpus.extend((first..=last).filter(|cpu| (cpu - first) % size < used));
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return out.write_str("none");
        }
        let mut rest = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|next| *next == last + 1) {
                last = next;
            }
            match last {
                last if last == first => write!(out, "{comma}{first}")?,
                last => write!(out, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> Vec<u32> {
        text.parse::<Cpus>().unwrap().iter().collect()
    }

    #[test]
    fn lists_as_the_kernel_writes_them() {
        assert_eq!(list(""), [0u32; 0]);
        assert_eq!(list("0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(list("0-9:2/4"), [0, 1, 4, 5, 8, 9]);
        assert_eq!(Cpus::from_boot("1-N", 3).unwrap().to_string(), "1-3");
        assert_eq!(Cpus::from_boot("all", 3).unwrap().to_string(), "0-3");
        assert_eq!(Cpus::from_mask("1,00000003").unwrap().to_string(), "0-1,32");
        for bad in [
            "x",
            "3-1",
            "1,",
            "0-",
            "-1",
            "+1",
            "0-4294967295",
            "8192",
            "0-3:0/2",
            "0-3:3/2",
            "0-3:1",
        ] {
            assert!(bad.parse::<Cpus>().is_err(), "{bad}");
        }
        for bad in ["", "g", "1,,1", "100000000"] {
            assert_eq!(Cpus::from_mask(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_set_survives_both_forms(cpus in prop::collection::btree_set(0u32..MOST, 1..60)) {
            let cpus = Cpus(cpus);
            prop_assert_eq!(cpus.to_string().parse::<Cpus>().unwrap(), cpus.clone());
            prop_assert_eq!(Cpus::from_mask(&cpus.mask()).unwrap(), cpus);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9,:/N+ -]{0,20}") {
            let _ = text.parse::<Cpus>();
            let _ = Cpus::from_boot(&text, 7);
            let _ = Cpus::from_mask(&text);
        }

        #[test]
        fn sets_are_sets(a in prop::collection::btree_set(0u32..70, 0..40), b in prop::collection::btree_set(0u32..70, 0..40)) {
            let (a, b) = (Cpus(a), Cpus(b));
            prop_assert!(a.and(&b).within(&a) && a.within(&a.or(&b)));
            prop_assert_eq!(a.without(&b).or(&a.and(&b)), a.clone());
            prop_assert!(a.without(&b).and(&b).is_empty());
        }
    }
}
