// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Output for people: lines, tables, colour on a terminal only, and silence when the reader is gone.
//!
//! Lines are cut to the width of a terminal. In a pipe or a file they are complete, so that they can be searched.
//! `COLUMNS` overrides the width. Paragraphs always wrap below 80 columns.

pub mod file;

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use anyhow::{Result, bail};
use lt_proc::{Nanos, Stats};

/// The width of help and of paragraphs.
pub const HELP_WIDTH: usize = 79;

/// The smallest width that is used: a terminal that reports fewer columns counts as this wide.
const NARROWEST: usize = 40;

thread_local! {
    /// Whether lines are complete although standard output is a terminal.
    static WHOLE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `write` without cutting its lines, since they go to a file.
pub fn whole<T>(write: impl FnOnce() -> T) -> T {
    let before = WHOLE.replace(true);
    let result = write();
    WHOLE.set(before);
    result
}

/// The width of standard output, in columns; `None` if lines are not cut.
pub fn width() -> Option<usize> {
    if WHOLE.get() {
        return None;
    }
    // Some shells export the terminal's COLUMNS to every program, even in a pipe.
    if !io::stdout().is_terminal() {
        return None;
    }
    let asked = std::env::var("COLUMNS").ok();
    let asked = asked.and_then(|columns| columns.trim().parse().ok());
    let terminal = || {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(usize::from(width.0))
    };
    let usable = |width: &usize| *width > 0;
    let width = asked.filter(usable).or_else(terminal).filter(usable)?;
    Some(width.max(NARROWEST))
}

/// Prints one line to standard output, without colours where they are off (no terminal, NO_COLOR, TERM=dumb). A
/// closed pipe is an error, on which `main` ends quietly.
pub fn line(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches(' '))?;
    out.flush()?;
    Ok(())
}

/// Prints lines as [`line()`] does, many at a time, until a signal has set `interrupted`.
pub fn lines(lines: &[String], interrupted: &AtomicBool) -> Result<()> {
    /// Lines per write(2).
    const BLOCK: usize = 256;
    let mut out = anstream::stdout().lock();
    for block in lines.chunks(BLOCK) {
        if interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        let lines = block.iter().map(|line| line.trim_end_matches(' '));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

/// Standard output, if it is a pipe or a socket, whose reader may leave: see
/// [`Signals::wait_while_read`](crate::wait::Signals::wait_while_read).
pub fn pipe() -> Option<File> {
    let file = File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    let kind = file.metadata().ok()?.file_type();
    (kind.is_fifo() || kind.is_socket()).then_some(file)
}

/// Prints a note about the run itself on standard error; a closed standard error is no error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "latency-tracker: {text}");
}

/// Prints one value as one line of JSON.
pub fn json(value: &impl serde::Serialize) -> Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Whether an error only means that the reader closed the pipe.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|e| e.downcast_ref::<io::Error>());
    io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// The meaning of a colour.
#[derive(Debug, Clone, Copy)]
pub enum Colour {
    /// Good.
    Green,
    /// Needs attention.
    Yellow,
    /// Wrong, or late.
    Red,
    /// Headings.
    Bold,
}

/// Returns `text` in a colour, which [`line()`] drops where colours are off.
pub fn paint(colour: Colour, text: &str) -> String {
    let style = match colour {
        Colour::Green => AnsiColor::Green.on_default(),
        Colour::Yellow => AnsiColor::Yellow.on_default(),
        Colour::Red => AnsiColor::Red.on_default(),
        Colour::Bold => Style::new().bold(),
    };
    format!("{style}{text}{style:#}")
}

/// Cuts `text` to `width` characters; `~` stands for the missing part.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('~');
    cut
}

/// `text`, cut to the width of standard output.
pub fn fit_line(text: &str) -> String {
    width().map_or_else(|| text.to_string(), |width| fit(text, width))
}

/// Returns the line for one function of a stack, to print below the line to which the stack belongs.
pub fn frame(function: &str) -> String {
    fit_line(&format!("    {}", printable(function)))
}

/// Makes text safe to print: a task may have any name, which must not control the terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Breaks `text` into lines of at most [`HELP_WIDTH`], indented by `indent`.
pub fn wrap(text: &str, indent: usize) -> Vec<String> {
    wrap_to(text, indent, HELP_WIDTH)
}

/// Breaks `text` between words into lines of at most `width`, indented by `indent`. A word that is too long for a
/// line is cut, and gets a separate line.
pub fn wrap_to(text: &str, indent: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(fit(&format!("{:indent$}{word}", ""), width)),
        }
    }
    lines
}

/// Returns a number with its noun: `1 request`, `3 requests`.
pub fn plural(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

/// The share of a time in `whole`: `92 % of the delay (11.90ms)`.
pub fn share(time: u64, whole: u64, what: &str) -> String {
    let percent = u128::from(time) * 100 / u128::from(whole.max(1));
    format!("{percent} % of the {what} ({})", Nanos(time))
}

/// Number of lost starts, with the reasons: `1,234 (pool full)`, `5 (2 pool full, 3 key crowded)`.
pub fn lost(stats: &Stats) -> String {
    let lost = thousands(stats.lost());
    let mut reasons = stats.losses().to_vec();
    reasons.retain(|(count, _)| *count > 0);
    match reasons[..] {
        [] => format!("{lost} (pool full)"),
        [(_, reason)] => format!("{lost} ({reason})"),
        _ => {
            let each = reasons.iter();
            let each = each.map(|(count, reason)| format!("{} {reason}", thousands(*count)));
            format!("{lost} ({})", each.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A number with its thousands separated: 1,234,567.
pub fn thousands(n: u64) -> String {
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

/// Returns a number of bytes with its unit: 512 KiB, 1.5 MiB.
pub fn bytes(n: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, scale)| n >= *scale) {
        Some((unit, scale)) if n.is_multiple_of(*scale) => format!("{} {unit}", n / scale),
        Some((unit, scale)) => format!("{:.1} {unit}", n as f64 / *scale as f64),
        None => format!("{n} B"),
    }
}

/// Returns the lines of a table whose columns are as wide as their widest cell. A column whose heading starts
/// with `>` is aligned to the right and never cut.
///
/// Where the width is limited, text columns are narrowed, the last one first, but never below [`NARROWEST_COLUMN`] or
/// the heading. If that is not enough, lines stay too long: a missing column would be worse than a wrapped line.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    table_within(head, rows, width())
}

const NARROWEST_COLUMN: usize = 10;
const GAP: usize = 2;

fn table_within(head: &[&str], rows: &[Vec<String>], limit: Option<usize>) -> Vec<String> {
    let names: Vec<String> = head
        .iter()
        .map(|h| h.trim_start_matches('>').to_string())
        .collect();
    let mut widths: Vec<usize> = (0..names.len())
        .map(|i| {
            let cells = rows.iter().filter_map(|r| r.get(i)).chain(names.get(i));
            cells.map(|c| c.chars().count()).max().unwrap_or(0)
        })
        .collect();
    if let Some(limit) = limit {
        let total = widths.iter().sum::<usize>() + GAP * names.len().saturating_sub(1);
        let mut over = total.saturating_sub(limit);
        for i in (0..names.len())
            .rev()
            .filter(|i| !head[*i].starts_with('>'))
        {
            let least = names[i].chars().count().max(NARROWEST_COLUMN);
            let give = over.min(widths[i].saturating_sub(least));
            widths[i] -= give;
            over -= give;
        }
    }
    let draw = |row: &Vec<String>| {
        let mut text = String::new();
        for (i, cell) in row.iter().enumerate().take(widths.len()) {
            let w = widths[i];
            if head[i].starts_with('>') {
                text.push_str(&format!("{cell:>w$}  "));
            } else {
                text.push_str(&format!("{:<w$}  ", fit(cell, w)));
            }
        }
        text.trim_end().to_string()
    };
    std::iter::once(&names).chain(rows).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_say_why() {
        let lost = |text| lost(&Stats::parse(text).unwrap());
        assert_eq!(lost("attempts 3"), "0 (pool full)");
        assert_eq!(lost("full 1234\ncrowded 0"), "1,234 (pool full)");
        assert_eq!(lost("full 0\ncrowded 3"), "3 (key crowded)");
        assert_eq!(
            lost("full 1000\ncrowded 2000"),
            "3,000 (1,000 pool full, 2,000 key crowded)"
        );
        // The pool is not to blame for what fprobe or the number of softirqs loses.
        assert_eq!(lost("full 0\nmissed 1234"), "1,234 (missed by fprobe)");
        assert_eq!(lost("full 0\nunserved 5"), "5 (too many softirqs)");
        assert_eq!(
            lost("full 2\ncrowded 0\nmissed 8"),
            "10 (2 pool full, 8 missed by fprobe)"
        );
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(bytes(4 << 20), "4 MiB");
        assert_eq!(bytes(1536), "1.5 KiB");
    }

    #[test]
    fn a_function_of_a_stack_is_indented_and_cannot_control_the_terminal() {
        assert_eq!(frame("bio_await+0x79"), "    bio_await+0x79");
        assert_eq!(printable("a\u{1b}[31m"), "a?[31m");
    }

    #[test]
    fn words_wrap_and_one_too_long_is_cut() {
        let lines = wrap_to(&format!("a b {} c", "x".repeat(50)), 2, 20);
        assert_eq!(
            lines,
            [
                "  a b".to_string(),
                format!("  {}~", "x".repeat(17)),
                "  c".into()
            ]
        );
    }

    #[test]
    fn tables_are_aligned_and_whole_where_nothing_limits_them() {
        let rows = [
            vec!["a".into(), "1".into(), "x".repeat(100)],
            vec!["bbb".into(), "22".into(), "y".into()],
        ];
        let lines = table_within(&["NAME", ">N", "WHAT"], &rows, None);
        assert_eq!(lines[0], "NAME   N  WHAT");
        assert_eq!(lines[1], format!("a      1  {}", "x".repeat(100)));
        assert_eq!(lines[2], "bbb   22  y");
    }

    #[test]
    fn in_a_narrow_table_text_gives_way_and_no_number_is_missing() {
        let rows = [vec![
            "n".repeat(31),
            "123456789".into(),
            "w".repeat(90),
            "17".into(),
        ]];
        let head = ["NAME", ">STARTED", "WHAT", ">FULL"];
        for limit in [100, 80, 60, 44] {
            let lines = table_within(&head, &rows, Some(limit));
            assert!(lines[1].ends_with("  17"), "{lines:?}");
            assert!(lines[1].contains(" 123456789 "), "{lines:?}");
            assert!(
                lines.iter().all(|l| l.chars().count() <= limit),
                "{lines:?}"
            );
        }
        // Too narrow for the columns that cannot shrink: lines are too long, but complete.
        let lines = table_within(&head, &rows, Some(30));
        assert!(lines[1].ends_with("  17"), "{lines:?}");
    }
}
