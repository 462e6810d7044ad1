// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What reaches a person: lines, tables, colour on a terminal only, and silence when the reader left.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;

/// Lines are kept below this.
pub(crate) const WIDTH: usize = 79;

/// Prints one line to standard output. A closed pipe is an error that `main` ends quietly on.
pub(crate) fn line(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches(' '))?;
    out.flush()?;
    Ok(())
}

/// Says something about the run itself, on standard error; nobody listening is no error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "latency-tracker: {text}");
}

/// Prints one value as one line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Whether an error is only that nobody reads any more.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|e| e.downcast_ref::<io::Error>());
    io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Colours, which are empty unless standard output is a terminal that has them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    /// What is fine.
    Green,
    /// What to look at.
    Yellow,
    /// What is wrong, or late.
    Red,
    /// Headings.
    Bold,
}

/// `text` in a colour.
pub(crate) fn paint(colour: Colour, text: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
        || std::env::var_os("TERM").is_some_and(|t| t == "dumb")
        || !io::stdout().is_terminal();
    if plain {
        return text.to_string();
    }
    let code = match colour {
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Red => 31,
        Colour::Bold => 1,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// `text`, cut to `width` characters; what was cut shows as `~`.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('~');
    cut
}

/// A function of a stack, below the line that it belongs to.
pub(crate) fn frame(function: &str) -> String {
    fit(&format!("    {}", printable(function)), WIDTH)
}

/// A task may be named anything; a terminal should not have to obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// `text` in lines below [`WIDTH`], each `indent` to the right.
pub(crate) fn wrap(text: &str, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{:indent$}{word}", "")),
        }
    }
    lines
}

/// A number with its thousands apart: 1,234,567.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number of bytes: 512 KiB, 4.0 MiB.
pub(crate) fn bytes(n: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, scale)| n >= *scale) {
        Some((unit, scale)) if n.is_multiple_of(*scale) => format!("{} {unit}", n / scale),
        Some((unit, scale)) => format!("{:.1} {unit}", n as f64 / *scale as f64),
        None => format!("{n} B"),
    }
}

/// Columns: as wide as their widest cell, the last one cut so that lines stay below [`WIDTH`].
/// A column whose heading starts with `>` is aligned to the right.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let names: Vec<String> = head
        .iter()
        .map(|h| h.trim_start_matches('>').to_string())
        .collect();
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|r| r.get(i)).chain(names.get(i));
        cells.map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let draw = |row: &Vec<String>| {
        let mut text = String::new();
        for (i, cell) in row.iter().enumerate().take(widths.len()) {
            let w = widths[i];
            if head[i].starts_with('>') {
                text.push_str(&format!("{cell:>w$}  "));
            } else {
                text.push_str(&format!("{cell:<w$}  "));
            }
        }
        fit(text.trim_end(), WIDTH)
    };
    std::iter::once(&names).chain(rows).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(bytes(4 << 20), "4 MiB");
        assert_eq!(bytes(1536), "1.5 KiB");
    }

    #[test]
    fn a_function_of_a_stack_is_indented_and_narrow() {
        let name = "bio_await+0x79/0xb0";
        assert_eq!(frame(name), format!("    {name}"));
        assert_eq!(frame(&"x".repeat(500)).chars().count(), WIDTH);
        assert_eq!(printable("a\u{1b}[31m"), "a?[31m");
    }

    #[test]
    fn tables_are_aligned_and_narrow() {
        let rows = [
            vec!["a".into(), "1".into(), "x".repeat(100)],
            vec!["bbb".into(), "22".into(), "y".into()],
        ];
        let lines = table(&["NAME", ">N", "WHAT"], &rows);
        assert_eq!(lines[0], "NAME   N  WHAT");
        assert_eq!(lines[2], "bbb   22  y");
        assert!(lines.iter().all(|l| l.chars().count() <= WIDTH));
        assert!(lines[1].ends_with("x~"));
    }
}
