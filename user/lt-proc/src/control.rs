// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `control`: one line per instance, `NAME TRACKER key=value ...`. Writing such a line creates or
//! changes an instance.

use std::fmt;

use serde::Serialize;

use crate::{Field, Fields, ParseError, Value};

/// Names that no instance can have: files at the top of the tree.
const RESERVED: [&str; 10] = [
    "trackers",
    "control",
    "wakeup",
    "alerts",
    "version",
    "stats",
    "hwnoise",
    "work_begin",
    "work_done",
    "measure",
];

/// Whether the kernel accepts `name` for an instance: a letter or `_`, then up to 30 letters,
/// digits, `_` or `-`, and not the name of a file of the tree itself.
#[must_use]
pub fn valid_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 31
        && bytes
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        && !RESERVED.contains(&name)
}

/// A parameter and its new value, as typed by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The parameter.
    pub key: String,
    /// Value, verbatim.
    pub value: String,
}

impl std::str::FromStr for Setting {
    type Err = ParseError;

    /// Parses `key=value`. The value must not contain white space, which separates the words of a
    /// line.
    fn from_str(word: &str) -> Result<Self, ParseError> {
        match word.split_once('=') {
            Some((key, value))
                if !key.is_empty()
                    && !word.contains(|c: char| c.is_whitespace() || c.is_control()) =>
            {
                Ok(Self {
                    key: key.to_string(),
                    value: value.to_string(),
                })
            }
            _ => Err(ParseError::new(word, "key=value, without spaces")),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// A line of `control`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Name of the instance and of its directory.
    pub name: String,
    /// Name of its tracker.
    pub tracker: String,
    /// All parameters; durations are in nanoseconds.
    pub params: Fields,
}

impl Instance {
    /// Parses one line.
    ///
    /// # Errors
    /// Names the misplaced word.
    pub fn parse(line: &str) -> Result<Self, ParseError> {
        let line = line.trim();
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim_start();
        let (tracker, params) = rest.split_once(' ').unwrap_or((rest, ""));
        if !valid_name(name) {
            return Err(ParseError::new(name, "the name of an instance"));
        }
        if tracker.is_empty() || tracker.contains('=') {
            return Err(ParseError::new(tracker, "the name of a tracker"));
        }
        Ok(Self {
            name: name.to_string(),
            tracker: tracker.to_string(),
            params: Fields::parse(params)?,
        })
    }

    /// Parses the whole file.
    ///
    /// # Errors
    /// As [`Instance::parse`], with the number of the line.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ParseError> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, l)| !l.trim().is_empty());
        lines
            .map(|(i, line)| Self::parse(line).map_err(|e| e.at_line(i + 1)))
            .collect()
    }

    /// Returns the settings that create an instance with the same parameters.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let fields = self.params.0.iter();
        let setting = |field: &Field| Setting {
            key: field.key.clone(),
            value: field.value.to_string(),
        };
        fields.map(setting).collect()
    }

    /// Returns the line that creates or changes an instance.
    #[must_use]
    pub fn request(name: &str, tracker: &str, settings: &[Setting]) -> String {
        let params = settings.iter().map(|s| Field {
            key: s.key.clone(),
            value: Value::Bare(s.value.clone()),
        });
        let instance = Self {
            name: name.to_string(),
            tracker: tracker.to_string(),
            params: Fields(params.collect()),
        };
        instance.to_string()
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.tracker)?;
        if !self.params.0.is_empty() {
            write!(f, " {}", self.params)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_read_in_order() {
        let text = "slow block enabled=1 threshold=10000000 dev=all\n\nother block\n";
        let all = Instance::parse_all(text).unwrap();
        assert_eq!(all[0].params.number("threshold"), Some(10_000_000));
        assert_eq!(all[1].to_string(), "other block");
    }

    #[test]
    fn the_line_at_fault_is_counted() {
        let err = Instance::parse_all("a block\n\n9b block\n").unwrap_err();
        assert_eq!((err.line, err.word.as_str()), (3, "9b"));
        assert_eq!(
            Instance::parse("a threshold=1").unwrap_err().word,
            "threshold=1"
        );
        assert_eq!(Instance::parse("a block oops").unwrap_err().word, "oops");
    }

    #[test]
    fn names_follow_the_rule_of_the_kernel() {
        for good in ["a", "_", "slow_disk-2", "abcdefghijklmnopqrstuvwxyz01234"] {
            assert!(valid_name(good), "{good}");
        }
        for bad in [
            "",
            "-a",
            "1a",
            "a.b",
            "a/b",
            "control",
            "alerts",
            "é",
            "abcdefghijklmnopqrstuvwxyz012345",
        ] {
            assert!(!valid_name(bad), "{bad}");
        }
    }

    #[test]
    fn the_settings_of_an_instance_make_its_line() {
        let line = r#"a block threshold=1 dev=8:0 comm=a\x20b name="c\x20d""#;
        let instance = Instance::parse(line).unwrap();
        let again = Instance::request("a", "block", &instance.settings());
        assert_eq!(again, instance.to_string());
        assert!(again.starts_with(r"a block threshold=1 dev=8:0 comm=a\x20b name="));
    }

    #[test]
    fn a_setting_cannot_smuggle_a_second_line() {
        assert!("threshold=1\n-other".parse::<Setting>().is_err());
        assert!("=1".parse::<Setting>().is_err());
        assert_eq!("dev=8:0".parse::<Setting>().unwrap().to_string(), "dev=8:0");
    }

    proptest! {
        #[test]
        fn lines_round_trip(name in "[a-z_][a-z0-9_-]{0,30}", key in "[a-z_]{1,9}", value in "[a-z0-9:]{0,9}") {
            prop_assume!(valid_name(&name));
            let settings = [Setting { key, value }];
            let line = Instance::request(&name, "block", &settings);
            prop_assert_eq!(Instance::parse(&line).unwrap().to_string(), line);
        }
    }
}
