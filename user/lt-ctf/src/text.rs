// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Prints an event as babeltrace2 does, so that the two can be compared byte by byte: `babeltrace2
//! --clock-cycles --no-delta --color=never --names=payload,context`.

use crate::{Event, Part, Scope, Show};

/// Arguments with which babeltrace2 prints the same text; the path of the trace follows.
pub const ARGS: [&str; 5] = [
    "convert",
    "--clock-cycles",
    "--no-delta",
    "--color=never",
    "--names=payload,context",
];

/// Appends `event` and a newline. Returns false if a field of the event itself could not be printed in full.
pub fn line(event: &Event<'_>, out: &mut Vec<u8>) -> bool {
    let mut whole = true;
    out.extend_from_slice(format!("[{:020}] ", event.cycles()).as_bytes());
    let mut said = false;
    for (key, open, close) in [
        ("hostname", "", ""),
        ("procname", "", ""),
        ("vpid", "(", ")"),
    ] {
        if let Some(value) = event.schema().environment(key) {
            for text in [if said { ":" } else { "" }, open, value, close] {
                out.extend_from_slice(text.as_bytes());
            }
            said = true;
        }
    }
    if said {
        out.push(b' ');
    }
    out.extend_from_slice(if event.name().is_empty() {
        b"<unknown>"
    } else {
        event.name().as_bytes()
    });
    out.extend_from_slice(b": ");
    let mut scopes = 0;
    let mut comma = |out: &mut Vec<u8>| {
        if std::mem::replace(&mut scopes, 1) > 0 {
            out.extend_from_slice(b", ");
        }
    };
    let mut packet = Vec::new();
    if event.visit_packet(&mut Printer::new(&mut packet).told()) {
        comma(out);
        out.append(&mut packet);
    }
    for scope in [Scope::Common, Scope::Specific, Scope::Payload] {
        if !event.class().has(scope) {
            continue;
        }
        comma(out);
        out.push(b'{');
        let mut first = true;
        for (index, field) in event.class().fields() {
            if field.scope != scope {
                continue;
            }
            out.extend_from_slice(if first { b" " } else { b", " });
            first = false;
            out.extend_from_slice(field.name.as_bytes());
            out.extend_from_slice(b" = ");
            whole &= event.visit(index, &mut Printer::new(out).told());
        }
        out.extend_from_slice(b" }");
    }
    out.push(b'\n');
    whole
}

/// A bracket around a part that is still open.
enum Open {
    Struct(u64),
    Array(u64),
    Variant,
    Optional(bool),
}

struct Printer<'o> {
    out: &'o mut Vec<u8>,
    open: Vec<Open>,
}

impl<'o> Printer<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            open: Vec::new(),
        }
    }

    fn told<'a>(mut self) -> impl FnMut(Part<'a>) + use<'a, 'o> {
        move |part| self.part(part)
    }

    fn put(&mut self, text: impl AsRef<[u8]>) {
        self.out.extend_from_slice(text.as_ref());
    }

    fn part(&mut self, part: Part<'_>) {
        if let (Some(Open::Array(n)), false) = (self.open.last_mut(), matches!(part, Part::End)) {
            let index = *n;
            *n += 1;
            let before = if index == 0 { " " } else { ", " };
            self.put(format!("{before}[{index}] = "));
        }
        match part {
            Part::Member(name) => {
                let mut first = false;
                if let Some(Open::Struct(n)) = self.open.last_mut() {
                    first = *n == 0;
                    *n += 1;
                }
                self.put(if first { " " } else { ", " });
                self.put(name);
                self.put(" = ");
            }
            Part::Unsigned(value, show, names) => self.number(i128::from(value), show, names),
            Part::Signed(value, show, names) => self.number(i128::from(value), show, names),
            Part::Bool(value) => self.put(if value { "true" } else { "false" }),
            Part::Bits(value, _) => self.put(format!("0x{value:X}")),
            Part::Single(value) => self.put(general(f64::from(value))),
            Part::Double(value) => self.put(general(value)),
            Part::Text(text) => self.text(&text),
            Part::Blob(bytes) => {
                self.put("{");
                for byte in bytes {
                    self.put(format!(" {byte:02x}"));
                }
                self.put(" }");
            }
            Part::Struct => {
                self.put("{");
                self.open.push(Open::Struct(0));
            }
            Part::Array(_) => {
                self.put("[");
                self.open.push(Open::Array(0));
            }
            Part::Variant(_) => {
                self.put("{ ");
                self.open.push(Open::Variant);
            }
            Part::Optional(there) => {
                self.put(if there { "{ " } else { "<none>" });
                self.open.push(Open::Optional(there));
            }
            Part::End => match self.open.pop() {
                Some(Open::Array(_)) => self.put(" ]"),
                Some(Open::Optional(false)) | None => {}
                Some(_) => self.put(" }"),
            },
        }
    }

    fn number(&mut self, value: i128, show: Show, names: crate::Names<'_>) {
        if names.is_empty() {
            return self.bare(value, show);
        }
        self.put("( ");
        let found: Vec<_> = names.of(value).collect();
        match found.as_slice() {
            [] => self.put("<unknown>"),
            [name] => self.text(name.as_bytes()),
            [first, others @ ..] => {
                self.put("{ ");
                self.text(first.as_bytes());
                for name in others {
                    self.put(", ");
                    self.text(name.as_bytes());
                }
                self.put(" }");
            }
        }
        self.put(" : container = ");
        self.bare(value, show);
        self.put(" )");
    }

    fn bare(&mut self, value: i128, show: Show) {
        // In a base other than 10, a negative number is printed as its bits, extended to a whole digit.
        let bits = |digit: u32| {
            let len = show.bits.next_multiple_of(digit).min(64);
            value as u64 & crate::bits::mask(len)
        };
        match show.base {
            16 => self.put(format!("0x{:X}", bits(4))),
            8 => self.put(format!("0{:o}", bits(3))),
            2 => self.put(format!(
                "0b{:0width$b}",
                bits(1),
                width = show.bits as usize
            )),
            _ => self.put(value.to_string()),
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.put("\"");
        for byte in text {
            match byte {
                b'\\' | b'\'' | b'"' | b'?' => self.put([b'\\', *byte]),
                7 => self.put("\\a"),
                8 => self.put("\\b"),
                9 => self.put("\\t"),
                10 => self.put("\\n"),
                11 => self.put("\\v"),
                12 => self.put("\\f"),
                13 => self.put("\\r"),
                27 => self.put("\\e"),
                0..32 | 127 => self.put(format!("\\x{byte:02x}")),
                _ => self.put([*byte]),
            }
        }
        self.put("\"");
    }
}

/// Formats as C's `%g`: six digits, in the shorter of the two notations.
fn general(value: f64) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{value:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..6).contains(&exponent) {
        short(&format!(
            "{value:.*}",
            (5 - exponent).unsigned_abs() as usize
        ))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", short(digits), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_are_printed_as_in_c() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-2.0, "-2"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (1234.5678, "1234.57"),
            (999_999.9, "1e+06"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(general(value), text);
        }
    }
}
