// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The fix for an answer: a command for a root shell, or words of the kernel's command line.
//!
//! The words of all rows become one edit of `/etc/default/grub`. The edit is idempotent: it first
//! removes these parameters, whatever their values, from `GRUB_CMDLINE_LINUX` and
//! `GRUB_CMDLINE_LINUX_DEFAULT`. It fails if the file has no line `GRUB_CMDLINE_LINUX="..."`.

use std::collections::BTreeMap;

const GRUB: &str = "/etc/default/grub";

/// The fix for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fix {
    Command(String),
    Boot(Words),
}

/// Parameters of the kernel's command line, by name. A name without a value is a parameter to
/// remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words(BTreeMap<String, Option<String>>);

/// Returns the fix that sets `words`, such as `nohz_full=2-3 skew_tick=1`, from the next boot on.
pub(super) fn boot(words: &str) -> Fix {
    let pairs = words
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    let set = |(key, value): (&str, &str)| (key.to_string(), Some(value.to_string()));
    Fix::Boot(Words(pairs.map(set).collect()))
}

/// Returns the fix that removes the parameter `key` from the next boot on.
pub(super) fn without(key: &str) -> Fix {
    Fix::Boot(Words([(key.to_string(), None)].into()))
}

impl From<String> for Fix {
    fn from(command: String) -> Self {
        Self::Command(command)
    }
}

impl From<&str> for Fix {
    fn from(command: &str) -> Self {
        Self::Command(command.to_string())
    }
}

impl Fix {
    /// Returns the command.
    pub(super) fn command(&self) -> String {
        match self {
            Self::Command(command) => command.clone(),
            Self::Boot(words) => words.command(GRUB, "update-grub"),
        }
    }

    /// Returns the fix as one line of text.
    pub(super) fn brief(&self) -> String {
        match self {
            Self::Command(command) => command.clone(),
            Self::Boot(words) => words.brief(),
        }
    }
}

impl Words {
    /// Merges the words of `other`, which take precedence.
    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the words to add.
    fn added(&self) -> String {
        let set = self
            .0
            .iter()
            .filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
        set.collect::<Vec<_>>().join(" ")
    }

    fn brief(&self) -> String {
        let added = self.added();
        let removed: Vec<&str> = self
            .0
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(key, _)| key.as_str())
            .collect();
        match (added.is_empty(), removed.is_empty()) {
            (false, _) => format!("boot with {added} (--print-fix)"),
            (true, _) => format!("boot without {} (--print-fix)", removed.join(" ")),
        }
    }

    /// Returns a command that edits `file`, then executes `after`.
    pub(super) fn command(&self, file: &str, after: &str) -> String {
        // The kernel treats - and _ in names alike.
        let keys: Vec<String> = self.0.keys().map(|key| key.replace('_', "[-_]")).collect();
        let line = r#"^GRUB_CMDLINE_LINUX=""#;
        let added = match self.added() {
            none if none.is_empty() => String::new(),
            added => format!(r#"s/{line}/&{added} /; "#),
        };
        let edit = format!(
            r#"/^GRUB_CMDLINE_LINUX(_DEFAULT)?="/{{ s/(["[:space:]])({keys})=[^"[:space:]]*/\1/g; {added}s/[[:space:]]+/ /g; s/=" /="/; s/ "/"/ }}"#,
            keys = keys.join("|"),
        );
        format!(
            "if grep -q '{line}' {file}; then sed -E -i '{edit}' {file} && {after}; \
             else echo '{file}: expected a line GRUB_CMDLINE_LINUX=\"...\"' >&2; false; fi # then boot"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// Returns the file after the edit, and whether the command succeeded.
    fn edited(fix: &Fix, before: &str) -> (String, bool) {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("lt-grub-{}-{number}", std::process::id()));
        fs::write(&file, before).unwrap();
        let Fix::Boot(words) = fix else {
            panic!("{fix:?}")
        };
        let command = words.command(file.to_str().unwrap(), "true");
        let mut shell = Command::new("sh");
        let success = shell
            .args(["-eu", "-c", &command])
            .output()
            .unwrap()
            .status
            .success();
        let after = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        (after, success)
    }

    #[test]
    fn an_edit_can_be_repeated_and_replaces_other_values() {
        let fix = boot("isolcpus=managed_irq,domain,2-3 skew_tick=1");
        let both = |default: &str, own: &str| {
            format!(
                "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT=\"{default}\"\nGRUB_CMDLINE_LINUX=\"{own}\"\n# isolcpus=1\n"
            )
        };
        let want = both(
            "quiet",
            "isolcpus=managed_irq,domain,2-3 skew_tick=1 root=x",
        );
        for (default, own) in [
            ("quiet", "root=x"),
            (
                "quiet isolcpus=1",
                "skew-tick=0 root=x isolcpus=2 isolcpus=3",
            ),
            ("isolcpus=1 quiet", " root=x  "),
        ] {
            let (once, success) = edited(&fix, &both(default, own));
            assert!(success);
            assert_eq!(once, want, "{default} {own}");
            assert_eq!(edited(&fix, &once).0, once, "a second time");
        }
        let (empty, _) = edited(&boot("skew_tick=1"), "GRUB_CMDLINE_LINUX=\"\"\n");
        assert_eq!(empty, "GRUB_CMDLINE_LINUX=\"skew_tick=1\"\n");
        // A parameter whose name ends in the name of another parameter is left alone.
        let (other, _) = edited(&boot("tsc=nowatchdog"), "GRUB_CMDLINE_LINUX=\"notsc=1\"\n");
        assert_eq!(other, "GRUB_CMDLINE_LINUX=\"tsc=nowatchdog notsc=1\"\n");
    }

    #[test]
    fn a_parameter_can_be_removed() {
        let (after, success) = edited(
            &without("highres"),
            "GRUB_CMDLINE_LINUX=\"a highres=off b\"\n",
        );
        assert!(success);
        assert_eq!(after, "GRUB_CMDLINE_LINUX=\"a b\"\n");
        assert_eq!(
            without("highres").brief(),
            "boot without highres (--print-fix)"
        );
    }

    #[test]
    fn a_file_without_the_line_is_an_error() {
        let before = "GRUB_TIMEOUT=5\n";
        assert_eq!(edited(&boot("skew_tick=1"), before), (before.into(), false));
    }
}
