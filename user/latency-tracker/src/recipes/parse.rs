// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The text of a recipe: `key: value`, where an indented line continues the value above it.
//!
//! ```text
//! # a comment
//! question: How long do fsync and fdatasync take?
//! run: syscall calls=fsync,fdatasync
//!     threshold=50ms
//! normal: One or two flushes of the disk cache.
//! next: Measure disk-flush.
//! needs: module xfs                 optional; or: option CONFIG_X
//! ```

use std::path::Path;

use lt_proc::Setting;

use super::{Need, Recipe};

const KEYS: [&str; 5] = ["question", "run", "normal", "next", "needs"];

/// A line, counted from 1, and its fault.
type Fault = (usize, String);

/// A value, and the line where it starts.
struct Value {
    key: &'static str,
    line: usize,
    text: String,
}

/// Reads a recipe.
pub(super) fn recipe(name: &str, file: Option<&Path>, text: &str) -> Result<Recipe, Fault> {
    let values = values(text)?;
    let end = text.lines().count().max(1);
    let find = |key: &str| values.iter().find(|value| value.key == key);
    let get = |key: &str| find(key).ok_or_else(|| (end, format!("there is no line `{key}:`")));
    let question = get("question")?.text.clone();
    let (tracker, settings) = line(get("run")?)?;
    Ok(Recipe {
        name: name.into(),
        file: file.map(Path::to_path_buf),
        question,
        tracker,
        settings,
        normal: get("normal")?.text.clone(),
        next: get("next")?.text.clone(),
        needs: find("needs").map(need).transpose()?,
    })
}

fn values(text: &str) -> Result<Vec<Value>, Fault> {
    let mut values: Vec<Value> = Vec::new();
    for (at, whole) in text.lines().enumerate() {
        let line = at + 1;
        let text = whole.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if whole.starts_with([' ', '\t']) {
            let Some(value) = values.last_mut() else {
                let what = "an indented line continues the one above, but there is none".into();
                return Err((line, what));
            };
            let gap = if value.text.is_empty() { "" } else { " " };
            value.text.extend([gap, text]);
            continue;
        }
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some(key) = KEYS.iter().find(|key| **key == word) else {
            let known = KEYS.join(":, ");
            return Err((
                line,
                format!("{text:?}: expected one of {known}: and a value"),
            ));
        };
        if let Some(first) = values.iter().find(|value| value.key == *key) {
            return Err((line, format!("`{key}:` is in line {} already", first.line)));
        }
        values.push(Value {
            key,
            line,
            text: rest.trim().into(),
        });
    }
    match values.iter().find(|value| value.text.is_empty()) {
        Some(value) => Err((value.line, format!("`{}:` has no value", value.key))),
        None => Ok(values),
    }
}

/// The line of the control language, without a name.
fn line(value: &Value) -> Result<(String, Vec<Setting>), Fault> {
    let mut words = value.text.split_whitespace();
    let tracker = words.next().unwrap_or_default();
    if tracker.contains('=') {
        let what = format!("{tracker:?}: expected TRACKER [key=value ...]");
        return Err((value.line, what));
    }
    let settings = words.map(|word| word.parse::<Setting>());
    let settings = settings.collect::<Result<Vec<_>, _>>();
    let settings = settings.map_err(|error| {
        let what = format!("{:?}: expected {}", error.word, error.expected);
        (value.line, what)
    })?;
    Ok((tracker.into(), settings))
}

fn need(value: &Value) -> Result<Need, Fault> {
    match value
        .text
        .split_once(' ')
        .map(|(kind, name)| (kind, name.trim()))
    {
        Some(("module", name)) if !name.contains(' ') => Ok(Need::Module(name.into())),
        Some(("option", name)) if !name.contains(' ') => Ok(Need::Option(name.into())),
        _ => Err((
            value.line,
            format!(
                "{:?}: expected `module NAME` or `option CONFIG_NAME`",
                value.text
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# SPDX\nquestion: How long?\n\nrun: syscall calls=fsync\n\tthreshold=5ms\n\
        # why not\n  pid=1\nnormal: N: n.\nnext: X.\nneeds: module xfs\n";

    #[test]
    fn values_continue_in_indented_lines() {
        let recipe = recipe("a", None, TEXT).unwrap();
        assert_eq!(recipe.question, "How long?");
        assert_eq!(recipe.line(), "syscall calls=fsync threshold=5ms pid=1");
        assert_eq!(recipe.normal, "N: n.");
        assert_eq!(recipe.needs, Some(Need::Module("xfs".into())));
    }

    #[test]
    fn the_line_at_fault_is_named() {
        let replaced = |from: &str, to: &str| TEXT.replace(from, to);
        for (text, line, word) in [
            (replaced("question:", "title:"), 2, "\"title: How long?\""),
            (replaced("question: How", "  How"), 2, "there is none"),
            (replaced("How long?", ""), 2, "`question:` has no value"),
            (replaced("syscall ", ""), 4, "expected TRACKER"),
            (replaced("pid=1", "oops"), 4, "\"oops\": expected key=value"),
            (replaced("next: X.", "normal: X."), 9, "in line 8 already"),
            (replaced("next: X.", "# X"), 10, "no line `next:`"),
            (
                replaced("module xfs", "xfs"),
                10,
                "\"xfs\": expected `module",
            ),
            (String::new(), 1, "no line `question:`"),
        ] {
            let (at, what) = recipe("a", None, &text).unwrap_err();
            assert_eq!(at, line, "{what}");
            assert!(what.contains(word), "{word}: {what}");
        }
    }
}
