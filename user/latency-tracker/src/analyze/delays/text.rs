// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables whose last column is a long text, wrapped before column 80 even in a pipe.

use lt_common::out;

/// Minimum width of the last column; deeper indentation is cut off.
const NARROWEST: usize = 30;

/// A line of a table: right-aligned cells, and a text with its indentation.
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    pub(super) indent: usize,
    pub(super) text: String,
}

/// Formats a table with these headings. The last heading is for the text.
pub(super) fn table(head: &[&str], rows: &[Row]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column));
        let cells = cells.map(|cell| cell.chars().count());
        cells
            .chain(head.get(column).map(|name| name.len()))
            .max()
            .unwrap_or(0)
    };
    let (name, columns) = head
        .split_last()
        .map_or(("", &[][..]), |(name, rest)| (*name, rest));
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let draw = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(cells) {
            line += &format!("{cell:>width$}  ");
        }
        line
    };
    let left: usize = widths.iter().map(|width| width + 2).sum();
    let deepest = out::HELP_WIDTH.saturating_sub(left + NARROWEST);
    let mut lines = vec![draw(&mut columns.iter().copied()) + name];
    for row in rows {
        let start = left + row.indent.min(deepest);
        let mut text = out::wrap(&row.text, start).into_iter();
        let first = text.next().unwrap_or_default();
        let cells = draw(&mut row.cells.iter().map(String::as_str));
        let first: String = first.chars().skip(cells.chars().count()).collect();
        lines.push(cells + &first);
        lines.extend(text);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_wrap_below_their_column() {
        let row = |cell: &str, indent, text: &str| Row {
            cells: vec![cell.into()],
            indent,
            text: text.into(),
        };
        let long = "word ".repeat(20);
        let lines = table(&["N", "WHAT"], &[row("10", 0, "short"), row("2", 2, &long)]);
        assert_eq!(lines[..2], [" N  WHAT", "10  short"]);
        assert!(lines[2].starts_with(" 2    word word"), "{lines:?}");
        assert!(lines[3].starts_with("      word"), "{lines:?}");
        assert!(lines.iter().all(|line| line.len() < 80));
        // A deep indentation still leaves room for the text.
        let deep = table(&["N", "WHAT"], &[row("1", 500, &long)]);
        assert!(
            deep.iter().all(|line| line.len() < 80) && deep[1].ends_with("word"),
            "{deep:?}"
        );
    }
}
