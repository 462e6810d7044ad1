// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `trackers`: the trackers that this module has on this kernel, and their parameters.
//!
//! ```text
//! block: block I/O request, issue or insert to completion (key: the request)
//!   threshold=10ms duration: report a delay longer than this
//!   from=issue issue|insert: where the delay starts (at creation only)
//! syscall: system calls, from entry to exit (key: the task); lacks: calls in flight at the start
//! ```

use serde::Serialize;

use crate::ParseError;

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParamInfo {
    /// Its name.
    pub name: String,
    /// Its default.
    pub default: String,
    /// The values it takes, e.g. `duration` or `issue|insert`.
    pub kind: String,
    /// The description.
    pub text: String,
}

impl ParamInfo {
    /// Whether it can only be given at creation.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.text.ends_with("(at creation only)")
    }
}

/// One tracker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrackerInfo {
    /// Its name.
    pub name: String,
    /// The operation that it tracks.
    pub text: String,
    /// Why this kernel cannot run it.
    pub unavailable: Option<String>,
    /// Its parameters, in order.
    pub params: Vec<ParamInfo>,
    /// What it does not see on this architecture.
    pub lacks: Option<String>,
}

impl TrackerInfo {
    /// Parses the whole file.
    ///
    /// # Errors
    /// Names the line that is neither a tracker nor a parameter of one.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ParseError> {
        let mut all: Vec<Self> = Vec::new();
        for (i, line) in text
            .lines()
            .enumerate()
            .filter(|(_, l)| !l.trim().is_empty())
        {
            let bad = |what: &str| ParseError::new(line.trim(), what).at_line(i + 1);
            let (head, text) = line
                .trim()
                .split_once(": ")
                .ok_or_else(|| bad("name: text"))?;
            let text = text.trim();
            if !line.starts_with([' ', '\t']) {
                let (text, lacks) = match text.split_once("; lacks: ") {
                    Some((text, lacks)) => (text, Some(lacks.to_string())),
                    None => (text, None),
                };
                all.push(Self {
                    name: head.to_string(),
                    text: text.to_string(),
                    unavailable: None,
                    params: Vec::new(),
                    lacks,
                });
                continue;
            }
            let tracker = all
                .last_mut()
                .ok_or_else(|| bad("a tracker before its parameters"))?;
            if head == "unavailable" {
                tracker.unavailable = Some(text.to_string());
                continue;
            }
            let (name, rest) = head
                .split_once('=')
                .ok_or_else(|| bad("name=default type: text"))?;
            let (default, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            tracker.params.push(ParamInfo {
                name: name.to_string(),
                default: default.to_string(),
                kind: kind.trim().to_string(),
                text: text.to_string(),
            });
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "block: block I/O request, issue or insert to completion (key: the request)\n  \
        threshold=10ms duration: report a delay longer than this\n  \
        from=issue issue|insert: where the delay starts (at creation only)\n\
        other: something\n  unavailable: no such tracepoint\n\
        third: something; lacks: NMIs\n  a=1 number: b\n";

    #[test]
    fn trackers_and_their_parameters_are_read() {
        let all = TrackerInfo::parse_all(TEXT).unwrap();
        assert_eq!(
            all[0].text,
            "block I/O request, issue or insert to completion (key: the request)"
        );
        assert_eq!(all[0].params[1].name, "from");
        assert_eq!(all[0].params[1].kind, "issue|insert");
        assert!(!all[0].params[0].is_fixed() && all[0].params[1].is_fixed());
        assert_eq!(all[1].unavailable.as_deref(), Some("no such tracepoint"));
        assert_eq!(all[1].lacks, None);
        assert_eq!(all[2].text, "something");
        assert_eq!(all[2].lacks.as_deref(), Some("NMIs"));
        assert_eq!(all[2].params[0].name, "a");
    }

    #[test]
    fn the_line_at_fault_is_named() {
        assert_eq!(
            TrackerInfo::parse_all("  a=1 b: c").unwrap_err().word,
            "a=1 b: c"
        );
        assert_eq!(
            TrackerInfo::parse_all("block: x\n  oops").unwrap_err().line,
            2
        );
    }
}
