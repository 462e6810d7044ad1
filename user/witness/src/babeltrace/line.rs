// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One line of babeltrace2's text.

use anyhow::{Result, anyhow};

use super::event::Event;

/// Reads one line. The time since the previous event and the host's name are optional.
pub(crate) fn parse_line(line: &str) -> Result<Event> {
    let bad = |expected| {
        let line: String = line.chars().take(100).collect();
        anyhow!("{line:?}: expected {expected}")
    };
    let (stamp, rest) = line
        .strip_prefix('[')
        .and_then(|l| l.split_once("] "))
        .ok_or_else(|| bad("[time] first, as with --clock-cycles"))?;
    let time = stamp
        .parse()
        .map_err(|_| bad("the time in clock cycles, as with --clock-cycles"))?;
    let (head, scopes) = rest
        .split_once(": {")
        .ok_or_else(|| bad("name: { fields }"))?;
    let name = head.rsplit(' ').next().unwrap_or(head).to_string();
    let mut event = Event {
        time,
        cpu: 0,
        name,
        fields: Vec::new(),
    };
    let mut rest = scopes;
    loop {
        rest = parse_scope(rest, &mut event.fields).ok_or_else(|| bad("key = value, ... }"))?;
        match rest.strip_prefix(", {") {
            Some(next) => rest = next,
            None if rest.trim().is_empty() => break,
            None => return Err(bad("the end of the line after }")),
        }
    }
    let cpu = event
        .unsigned("cpu_id")
        .and_then(|cpu| u32::try_from(cpu).ok());
    event.cpu = cpu.ok_or_else(|| bad("cpu_id among the fields"))?;
    Ok(event)
}

/// Returns babeltrace2's warning that the tracer discarded events or packets, or may have, if `line` has one. The
/// warning may start in the middle of another line, since standard output is buffered.
pub(crate) fn discarded(line: &str) -> Option<&str> {
    let (_, warning) = line.split_once("WARNING: ")?;
    warning.contains("discarded").then_some(warning)
}

/// Reads `key = value, ... }`; returns the text after the brace.
fn parse_scope<'a>(text: &'a str, fields: &mut Vec<(String, String)>) -> Option<&'a str> {
    let mut rest = text.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some(after);
        }
        let (key, after_key) = rest.split_once(" = ")?;
        let (value, after_value) = parse_value(after_key)?;
        fields.push((key.to_string(), value));
        rest = after_value.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
}

/// Reads a string in quotes, a group in brackets (kept as text), or a bare word; returns it and the
/// text that follows.
fn parse_value(text: &str) -> Option<(String, &str)> {
    match text.as_bytes().first()? {
        b'"' => {
            let end = closing_quote(text)?;
            Some((unescape(&text[1..end]), &text[end + 1..]))
        }
        b'(' | b'[' | b'{' => {
            let end = closing_bracket(text)?;
            Some((text[..=end].to_string(), &text[end + 1..]))
        }
        _ => {
            let end = text.find([',', ' ', '}'])?;
            Some((text[..end].to_string(), &text[end..]))
        }
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, b) in text.bytes().enumerate().skip(1) {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(i),
            _ => {}
        }
    }
    None
}

fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut i = 0;
    while i < text.len() {
        match text.as_bytes()[i] {
            b'"' => i += closing_quote(&text[i..])?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
        i += 1;
    }
    None
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_real_line_is_read() {
        let line = "[00000000012262467645] (+000000023489) (none) block_rq_issue: { cpu_id = 1 }, \
            { dev = 266338304, sector = 128056, nr_sector = 8, bytes = 4096, tid = 171, rwbs = 4, comm = \"fio\" }";
        let event = parse_line(line).unwrap();
        assert_eq!((event.time, event.cpu), (12_262_467_645, 1));
        assert_eq!(event.name, "block_rq_issue");
        assert_eq!(event.dev().unwrap().to_string(), "254:0");
        assert_eq!(event.unsigned("sector"), Some(128_056));
        assert_eq!(event.text("comm"), Some("fio"));
    }

    #[test]
    fn enumerations_arrays_and_odd_names_are_read() {
        let line = "[7] host irq_softirq_exit: { cpu_id = 0 }, { vec = 7, name = ( \"SCHED\" : container = 7 ), \
            child_tids = [ [0] = 5, [1] = 6 ], prev_comm = \"a, \\\"b\\\" }, { c = 1\", n = -2 }";
        let event = parse_line(line).unwrap();
        assert_eq!(event.text("name"), Some("( \"SCHED\" : container = 7 )"));
        assert_eq!(event.text("prev_comm"), Some("a, \"b\" }, { c = 1"));
        assert_eq!(event.number("n"), Some(-2));
        assert_eq!(event.text("c"), None);
    }

    #[test]
    fn events_without_fields_are_read() {
        let event = parse_line("[7] (none) timer_x: { cpu_id = 3 }, { }").unwrap();
        assert_eq!((event.cpu, event.fields.len()), (3, 1));
    }

    #[test]
    fn anything_else_is_refused() {
        for line in [
            "",
            "hello",
            "[12.5] h e: { cpu_id = 0 }, { }",
            "[1] h e: { a = 1 }",
            "[1] h e: { cpu_id = 0",
            "[1] h e: { cpu_id = 0 } x",
        ] {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }

    #[test]
    fn each_warning_about_losses_is_seen() {
        for warning in [
            "Tracer discarded 1234 events between [1] and [2] in trace UUID ...",
            "Tracer may have discarded events between [1] and [2] in trace UUID ...",
            "Tracer discarded 1 packet between [1] and [2] in trace UUID ...",
            "Tracer may have discarded packets between [1] and [2] in trace UUID ...",
        ] {
            let line = format!("[1] h e: {{ cpu_WARNING: {warning}");
            assert_eq!(discarded(&line), Some(warning));
        }
        assert_eq!(discarded("[1] h e: { cpu_id = 0 }"), None);
        assert_eq!(discarded("WARNING: the clocks differ"), None);
    }

    proptest! {
        #[test]
        fn no_line_panics(text in ".{0,60}") {
            let _ = parse_line(&format!("[1] h e: {{ cpu_id = 0 }}, {{ {text}"));
            let _ = parse_line(&text);
        }
    }
}
