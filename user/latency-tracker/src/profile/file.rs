// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A file of profiles: `save` writes one sample, `record` many. The format is in
//! Documentation/guide/profile.md.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use lt_common::out::file::replace;
use lt_proc::{ClassCounts, ProcRoot, Profile};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// The value of `format`.
const FORMAT: &str = "latency-tracker profile";

/// The value of `version`: it changes when an older reader would misread the file.
const VERSION: u32 = 1;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProfileFile {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// The machine's name.
    pub(crate) host: String,
    /// Release and version of its kernel.
    pub(crate) kernel: String,
    /// The line of the file `version`.
    pub(crate) module: String,
    pub(crate) instance: String,
    /// Parameters of the instance, durations in ns.
    pub(crate) parameters: serde_json::Map<String, serde_json::Value>,
    /// The shortest delay of each row, ns. A row ends where the next one begins; the last row has
    /// no end.
    pub(crate) low: Vec<u64>,
    /// In time order. Each sample starts where its predecessor ends, unless resets between them lost
    /// counts.
    pub(crate) samples: Vec<Sample>,
}

/// One sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// `CLOCK_MONOTONIC` ns.
    pub(crate) begin: u64,
    /// `CLOCK_MONOTONIC` ns.
    pub(crate) end: u64,
    /// When the sample was read, seconds since 1970.
    pub(crate) time: u64,
    /// For each class, a count for each row.
    pub(crate) counts: Counts,
}

/// Counts by class name, in the order of the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts(pub(crate) Vec<(String, Vec<u64>)>);

impl Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(name, counts)| (name, counts)))
    }
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(CountsVisitor)
    }
}

/// Reads entry by entry: a map would lose the order, and the position of a fault in the file.
struct CountsVisitor;

impl<'de> Visitor<'de> for CountsVisitor {
    type Value = Counts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counts of classes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counts, A::Error> {
        let mut counts = Vec::new();
        while let Some(entry) = map.next_entry()? {
            counts.push(entry);
        }
        Ok(Counts(counts))
    }
}

impl Sample {
    /// Makes a sample of a profile that was read just now.
    pub(crate) fn of(profile: Profile) -> Self {
        let counts = |class: ClassCounts| (class.name, class.counts);
        Self {
            begin: profile.begin,
            end: profile.end,
            time: seconds_since_1970(),
            counts: Counts(profile.classes.into_iter().map(counts).collect()),
        }
    }

    /// Length of the sample, s.
    pub(crate) fn seconds(&self) -> f64 {
        self.end.saturating_sub(self.begin) as f64 / 1e9
    }
}

fn seconds_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| d.as_secs())
}

impl ProfileFile {
    /// Makes an empty file with the rows of `like`.
    pub(crate) fn new(root: &ProcRoot, name: &str, like: &Profile) -> Result<Self> {
        let uname = nix::sys::utsname::uname().context("uname")?;
        let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
        let kernel = format!("{} {}", text(uname.release()), text(uname.version()));
        let parameters = serde_json::to_value(root.instance(name)?.params)?;
        Ok(Self {
            format: FORMAT.into(),
            version: VERSION,
            host: text(uname.nodename()),
            kernel,
            module: root.version()?,
            instance: name.into(),
            parameters: parameters.as_object().cloned().unwrap_or_default(),
            low: like.rows.iter().map(|row| row.low).collect(),
            samples: Vec::new(),
        })
    }

    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        let field = |key| value.as_ref().and_then(|value| value.get(key));
        // Errors of a damaged profile are reported below.
        let format = field("format").and_then(serde_json::Value::as_str);
        let damaged =
            value.is_none() && text.trim_start().starts_with('{') && text.contains(FORMAT);
        ensure!(
            damaged || format == Some(FORMAT),
            "not a profile: expected a file that `latency-tracker profile save` or `record` wrote"
        );
        let value: serde_json::Value = serde_json::from_str(text)?;
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        match version {
            Some(version) if version <= u64::from(VERSION) => {}
            Some(version) => {
                bail!("version {version} is newer than this command, which reads {VERSION}")
            }
            None => bail!("version: expected a number"),
        }
        // The file is parsed from the text, not from the value, so an error names the line.
        let file: Self = serde_json::from_str(text)?;
        ensure!(
            !file.low.is_empty() && file.low.is_sorted_by(|a, b| a < b),
            "low: expected rising numbers, at least one"
        );
        ensure!(!file.samples.is_empty(), "samples: expected at least one");
        let (mut last_end, mut all) = (0, 0u64);
        for (i, sample) in file.samples.iter().enumerate() {
            ensure!(
                sample.begin <= sample.end,
                "sample {i}: it ends before it starts"
            );
            ensure!(
                sample.begin >= last_end,
                "sample {i}: it starts before sample {} ends",
                i - 1
            );
            last_end = sample.end;
            for (at, (class, counts)) in sample.counts.0.iter().enumerate() {
                let (found, expected) = (counts.len(), file.low.len());
                ensure!(
                    found == expected,
                    "sample {i}: {class} has {found} rows, not {expected}"
                );
                let is_new = sample.counts.0[..at].iter().all(|(name, _)| name != class);
                ensure!(is_new, "sample {i}: duplicate {class}");
                // If the sum of all counts does not overflow, no other sum of counts does.
                let sum = counts.iter().try_fold(all, |all, n| all.checked_add(*n));
                all = sum.with_context(|| {
                    format!(
                        "sample {i}: {class}: the sum of all counts so far exceeds {}",
                        u64::MAX
                    )
                })?;
            }
        }
        Ok(file)
    }

    /// Writes the file atomically.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string(self)?;
        text.push('\n');
        replace(path, |out| Ok(out.write_all(text.as_bytes())?))
    }

    /// Total length of the samples, s.
    pub(crate) fn seconds(&self) -> f64 {
        self.samples.iter().map(Sample::seconds).sum()
    }

    /// Whether `later` continues this profile, and so includes all its operations.
    pub(crate) fn is_in(&self, later: &Self) -> bool {
        let (Some(own), Some(its)) = (self.samples.first(), later.samples.first()) else {
            return false;
        };
        let is_same = self.host == later.host && self.instance == later.instance;
        is_same && own.begin == its.begin && own.end < its.end
    }

    /// All samples together, by class.
    pub(crate) fn sums(&self) -> BTreeMap<&str, Vec<u64>> {
        let mut sums: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (class, counts) in self.samples.iter().flat_map(|sample| &sample.counts.0) {
            let sum = sums.entry(class).or_insert_with(|| vec![0; counts.len()]);
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        sums
    }

    /// All classes, in the order of the table.
    pub(crate) fn classes(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (class, _) in self.samples.iter().flat_map(|sample| &sample.counts.0) {
            if !names.contains(&class.as_str()) {
                names.push(class);
            }
        }
        names
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Samples of a second each, of two classes.
    pub(crate) fn file(low: &[u64], samples: &[(&[u64], &[u64])]) -> ProfileFile {
        let sample = |(i, (read, write)): (usize, &(&[u64], &[u64]))| Sample {
            begin: i as u64 * 1_000_000_000,
            end: (i as u64 + 1) * 1_000_000_000,
            time: 1_700_000_000 + i as u64,
            counts: Counts(vec![
                ("s_read".into(), read.to_vec()),
                ("b_write".into(), write.to_vec()),
            ]),
        };
        ProfileFile {
            format: FORMAT.into(),
            version: VERSION,
            host: "h".into(),
            kernel: "k".into(),
            module: "m".into(),
            instance: "io".into(),
            parameters: serde_json::Map::new(),
            low: low.to_vec(),
            samples: samples.iter().enumerate().map(sample).collect(),
        }
    }

    #[test]
    fn a_file_is_read_back_unchanged_and_in_order() {
        let file = file(
            &[1, 2, 4],
            &[(&[1, 2, 3], &[4, 5, 6]), (&[1, 0, 0], &[0, 0, 1])],
        );
        let text = serde_json::to_string(&file).unwrap();
        assert!(text.starts_with(r#"{"format":"latency-tracker profile","version":1,"host":"h""#));
        assert!(text.contains(r#""counts":{"s_read":[1,2,3],"b_write":[4,5,6]}"#));
        assert_eq!(ProfileFile::parse(&text).unwrap(), file);
        assert_eq!(file.sums()["s_read"], [2, 2, 3]);
        assert_eq!(file.classes(), ["s_read", "b_write"]);
        assert_eq!(file.seconds(), 2.0);
    }

    #[test]
    fn other_files_are_no_profiles() {
        for text in ["root:x:0:0:root:/root:/bin/bash\n", "", "{}", "[1, 2]"] {
            let error = format!("{:#}", ProfileFile::parse(text).unwrap_err());
            assert!(error.starts_with("not a profile: expected"), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_reported() {
        let text = serde_json::to_string(&file(&[1, 2], &[(&[1, 2], &[3, 4])])).unwrap();
        for (from, to, error) in [
            ("latency-tracker profile", "x", "not a profile: expected"),
            ("\"version\":1", "\"version\":2", "version 2 is newer"),
            ("\"version\":1", "\"version\":null", "version: expected"),
            (
                "[1,2],\"samples\"",
                "[2,1],\"samples\"",
                "low: expected rising",
            ),
            ("[1,2],\"samples\"", "[],\"samples\"", "at least one"),
            ("[3,4]", "[3]", "sample 0: b_write has 1 rows, not 2"),
            (
                "[3,4]",
                "[3,\n-4]",
                "invalid value: integer `-4`, expected u64 at line 2 column 2",
            ),
            (
                "[3,4]",
                "[3,\n4.5]",
                "`4.5`, expected u64 at line 2 column 3",
            ),
            ("[3,4]", "[3,\n4", "at line 2 column 2"),
            ("\"end\":1000000000", "\"end\":1", ""),
            (
                "\"end\":1000000000",
                "\"end\":\n\"x\"",
                "expected u64 at line 2",
            ),
            (
                "\"host\":\"h\",",
                "",
                "missing field `host` at line 1 column",
            ),
            (
                "\"begin\":0",
                "\"begin\":1000000001",
                "sample 0: it ends before it starts",
            ),
            ("\"b_write\"", "\"s_read\"", "sample 0: duplicate s_read"),
            (
                "[3,4]",
                "[3,18446744073709551615]",
                "sample 0: b_write: the sum of all counts so far exceeds 18446744073709551615",
            ),
            ("[3,4]", "[0,18446744073709551612]", ""),
        ] {
            assert!(text.contains(from), "{from}");
            let found = ProfileFile::parse(&text.replace(from, to));
            match found {
                Err(found) => assert!(
                    format!("{found:#}").contains(error) && !error.is_empty(),
                    "{found:#}"
                ),
                Ok(_) => assert!(error.is_empty(), "{to}"),
            }
        }
    }

    #[test]
    fn samples_are_in_order_and_there_is_at_least_one() {
        let sample: (&[u64], &[u64]) = (&[1, 2], &[3, 4]);
        let error_of = |file: &ProfileFile| {
            let text = serde_json::to_string(file).unwrap();
            ProfileFile::parse(&text).unwrap_err().to_string()
        };
        let none = error_of(&file(&[1, 2], &[]));
        assert_eq!(none, "samples: expected at least one");
        let mut unordered = file(&[1, 2], &[sample; 3]);
        unordered.samples.swap(1, 2);
        let error = "sample 2: it starts before sample 1 ends";
        assert_eq!(error_of(&unordered), error);
    }
}
