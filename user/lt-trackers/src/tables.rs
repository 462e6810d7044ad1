// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Checks texts that are written by hand against the declarations, and the declarations against
//! tests/abi.txt, which the test vm/abi compares with the module.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::abi;
use crate::declaration::{Control, Tracker};
use crate::text::{files, is_of_name, read};

/// Checks that each tracker has a page with the right title.
pub(crate) fn check_pages(names: &[String]) -> Result<()> {
    for name in names {
        let path = format!("Documentation/trackers/{name}.md");
        if !Path::new(&path).exists() {
            bail!(
                "{path} is missing: a page whose title is '# {name}: what it measures' \
                 (CONTRIBUTING.md, A new tracker)"
            );
        }
        let page = read(&path)?;
        let title = page.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.with_context(|| format!("{path}: no title"))?;
        if !title.replace('`', "").starts_with(&format!("{name}: ")) {
            bail!("{path}: the title is not '# {name}: ...'");
        }
    }
    Ok(())
}

/// Returns a page with the new list of the trackers' pages.
pub(crate) fn with_list(path: &str, names: &[String]) -> Result<String> {
    let page = read(path)?;
    let (begin, end) = ("<!-- trackers -->\n", "<!-- end -->\n");
    let parts = page.split_once(begin);
    let parts = parts.and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let (before, after) = parts.with_context(|| format!("{path}: no <!-- trackers -->"))?;
    let link = |name: &String| format!("[{name}](../trackers/{name}.md)");
    let links = names.iter().map(link).collect::<Vec<_>>().join(",\n");
    Ok(format!("{before}{begin}{links}.\n{end}{after}"))
}

/// Compares tests/abi.txt with the declarations. Returns the parameters and counters that it lacks,
/// and the fields in its lines that are not declared.
pub(crate) fn abi(trackers: &[Tracker]) -> Result<Vec<String>> {
    let text = read("tests/abi.txt")?;
    let mut wrong = Vec::new();
    for tracker in trackers {
        let name = &tracker.name;
        let mut parts = text.split("\n\n");
        let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
        let (Some(control), Some(printed)) = (&tracker.control, part) else {
            continue;
        };
        for part in not_printed(control, printed) {
            wrong.push(format!("tests/abi.txt: {name} has no:{part}"));
        }
        for field in not_described(tracker, printed) {
            wrong.push(format!(
                "tests/abi.txt: the line of {name} has {field}, which is in no comment of a field"
            ));
        }
    }
    Ok(wrong)
}

fn not_printed(control: &Control, printed: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for param in &control.params {
        let mut line = format!("  {}={} {}", param.name, param.default, param.kind);
        if param.is_fixed {
            line += " (at creation only)";
        }
        if !printed.lines().any(|printed| is_like(printed, &line)) {
            missing.push(line);
        }
    }
    let names = control.counters.iter().map(|(name, _)| format!("{name} "));
    let counters = format!(" readers {}crowded ", String::from_iter(names));
    if !control.counters.is_empty() && !printed.contains(&counters) {
        missing.push(counters);
    }
    missing
}

/// Whether a line is the expected one, with a number in place of MAX.
fn is_like(line: &str, expected: &str) -> bool {
    let Some((before, after)) = expected.split_once("MAX") else {
        return line == expected;
    };
    let rest = line.strip_prefix(before);
    let number = rest.and_then(|rest| rest.strip_suffix(after));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

fn not_described<'a>(tracker: &Tracker, printed: &'a str) -> impl Iterator<Item = &'a str> {
    let rows = abi::shown(tracker);
    let mut lines = printed.lines();
    let line = lines.find_map(|line| line.strip_prefix("  alert: "));
    let (_, own) = line
        .and_then(|line| line.rsplit_once(" comm="))
        .unwrap_or_default();
    let fields = own.split(' ').filter_map(|field| field.strip_suffix('='));
    fields.filter(move |field| {
        let mut names = rows.iter().flat_map(|(names, _)| names.split(", "));
        *field != "stack" && !names.any(|name| name == *field)
    })
}

/// Returns the trackers for which the table of README.md has no row.
pub(crate) fn readme(names: &[String]) -> Result<Vec<String>> {
    let readme = read("README.md")?;
    let has_row = |name: &str| {
        let row = format!("| [{name}](Documentation/trackers/{name}.md) | ");
        let mut rest = readme.lines().filter_map(|line| line.strip_prefix(&row));
        rest.any(|rest| rest.len() > 2 && rest.ends_with(" |"))
    };
    let missing = names.iter().filter(|name| !has_row(name));
    let missing = missing.map(|it| format!("README.md: the table of trackers has no row for {it}"));
    Ok(missing.collect())
}

/// Checks that each row of Documentation/status.md names a test, and only tests that exist. Leaves
/// out the rows that scripts/matrix writes. Returns the faults.
pub(crate) fn status() -> Result<Vec<String>> {
    let path = "Documentation/status.md";
    let mut status = read(path)?;
    if let Some((before, rest)) = status.split_once("<!-- matrix -->") {
        let (_, after) = rest.split_once("<!-- end -->").unwrap_or_default();
        status = format!("{before}{after}");
    }
    let mut wrong = Vec::new();
    let rows = status
        .lines()
        .filter(|row| row.starts_with("| ") && !row.starts_with("| Works "));
    for row in rows {
        let cells = row.strip_suffix('|').unwrap_or_default();
        let (_, last) = cells.rsplit_once('|').unwrap_or_default();
        let words = last.split(|c| !is_of_name(c) && c != '/' && c != '-');
        let mut tests: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        if tests.is_empty() {
            tests.push("none");
        }
        tests.retain(|test| !Path::new(&format!("tests/{test}.sh")).exists());
        let missing = tests.iter();
        wrong.extend(missing.map(|test| format!("{path}: there is no test {test}: {row}")));
    }
    Ok(wrong)
}

/// Returns the tests of tests/vm for which the table of Documentation/design/testing.md has no row.
pub(crate) fn testing() -> Result<Vec<String>> {
    let path = "Documentation/design/testing.md";
    let testing = read(path)?;
    let has_row = |test: &str| {
        let row = format!("| {test} |");
        testing.lines().any(|line| line.starts_with(&row))
    };
    let mut wrong = Vec::new();
    for file in files("tests/vm", ".sh")? {
        let test = file.trim_start_matches("tests/").trim_end_matches(".sh");
        if !has_row(test) {
            wrong.push(format!("{file} is not in the table of {path}"));
        }
    }
    Ok(wrong)
}
