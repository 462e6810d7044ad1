// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Comma-separated values, quoted as in RFC 4180. New columns are appended, so that existing columns keep their places.

use lt_model::ThreadId;
use lt_model::why::{Cause, Piece};

use super::show::{Shown, known};
use super::words::class;

/// A step of a path, a state, or a wait.
pub(super) struct Time {
    pub(super) kind: &'static str,
    /// Start and end, ns.
    pub(super) range: (u64, u64),
    /// Number of threads in the chain that waits for this thread; 0 for the analyzed thread.
    pub(super) depth: usize,
    pub(super) thread: ThreadId,
    pub(super) cpu: Option<u32>,
    pub(super) class: &'static str,
    pub(super) cause: Cause,
    pub(super) text: String,
    /// The thread that ended a wait.
    pub(super) woken_by: Option<ThreadId>,
}

impl Time {
    /// Returns a line with the names of the columns, and then a line for each of these times.
    pub(super) fn lines(words: &Shown<'_>, times: impl IntoIterator<Item = Self>) -> Vec<String> {
        let head = "kind,begin_ns,end_ns,duration_ns,depth,tid,comm,cpu,class,known,text,woken_by";
        let lines = times.into_iter().map(|time| time.line(words));
        std::iter::once(head.into()).chain(lines).collect()
    }

    fn line(&self, words: &Shown<'_>) -> String {
        let (begin, end) = self.range;
        let thread = words.model.thread(self.thread);
        let comm = thread.and_then(|thread| thread.name_at(words.range.1));
        line(&[
            self.kind.into(),
            begin.to_string(),
            end.to_string(),
            (end - begin).to_string(),
            self.depth.to_string(),
            thread.map_or(0, |thread| thread.tid).to_string(),
            comm.map_or_else(String::new, |comm| words.text(comm)),
            self.cpu.map_or_else(String::new, |cpu| cpu.to_string()),
            self.class.into(),
            known(self.cause).into(),
            self.text.clone(),
            self.woken_by.map_or_else(String::new, |by| words.name(by)),
        ])
    }
}

impl Shown<'_> {
    /// Returns the steps of the path as lines, below the names of the columns.
    pub(super) fn csv(&self) -> Vec<String> {
        let step = |piece: &Piece| Time {
            kind: "step",
            range: (piece.begin, piece.end),
            depth: piece.depth,
            thread: piece.thread,
            cpu: piece.cpu,
            class: class(piece.cause.class()),
            cause: piece.cause,
            text: self.step(piece),
            woken_by: None,
        };
        Time::lines(self, self.pieces.iter().map(step))
    }
}

/// Joins the fields of a line.
pub(super) fn line(fields: &[String]) -> String {
    let fields: Vec<_> = fields.iter().map(|field| quoted(field)).collect();
    fields.join(",")
}

/// Quotes a field if it contains a comma, a quote or the end of a line, or if it ends with a space: the output drops
/// spaces at the end of a line.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) || text.ends_with(' ') {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_separators_are_quoted() {
        for (text, expected) in [
            ("read", "read"),
            ("", ""),
            ("a b", "a b"),
            ("a,b", "\"a,b\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("a\nb", "\"a\nb\""),
            ("end ", "\"end \""),
        ] {
            assert_eq!(quoted(text), expected);
        }
        assert_eq!(line(&["a,b".into(), "c".into()]), "\"a,b\",c");
    }
}
