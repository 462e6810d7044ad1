// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Writes a report as one self-contained HTML page, without network access or other files.
//!
//! ```text
//! Page { views } --escaped--> page.html, with page.css, the files *.js, the texts, and the views as JSON
//!
//! view: a text, facts, notes | a picture | lanes of bars, and arrows between lanes | tables
//!
//! Page { views } --timeline.rs--> the lanes as a picture (SVG)
//! ```
//!
//! The page is safe even with hostile names. Texts are escaped, and the script only creates text nodes. The
//! Content-Security-Policy forbids all requests, and all scripts and styles except the page's own, which a nonce marks.
//! The nonce is a hash of the data, so the data cannot contain it.
//!
//! Times are ns since the start of the view, because JavaScript's numbers are exact only up to 2^53.

pub(crate) mod merge;
mod timeline;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anyhow::Result;
use lt_common::out;
use serde::{Serialize, Serializer};

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
/// The script; all files are inside one function.
const SCRIPT: &str = concat!(
    include_str!("html/words.js"),
    include_str!("html/draw.js"),
    include_str!("html/use.js"),
    include_str!("html/table.js"),
    include_str!("html/view.js"),
);

/// The kind of a bar. The style has a colour for each, and the legend a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A thread of interest runs.
    Running,
    /// An interrupt runs on the CPU.
    Interrupted,
    /// Runnable without a CPU.
    Runnable,
    /// Waits.
    Blocked,
    /// Not recorded.
    Unknown,
    /// Another thread runs.
    Other,
    /// An idle CPU.
    Idle,
    /// Several short bars in one.
    Merged,
    /// The alert.
    Alert,
}

impl Kind {
    /// All kinds, in the order of their numbers: the name in the style, and the label.
    const ALL: [(&str, &str); 9] = [
        ("running", "runs"),
        ("interrupted", "interrupted"),
        ("runnable", "runnable, waits for a CPU"),
        ("blocked", "waits"),
        ("unknown", "not recorded"),
        ("other", "runs another thread"),
        ("idle", "idle"),
        ("merged", "several short states"),
        ("alert", "alert"),
    ];
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u8(*self as u8)
    }
}

/// A page.
#[derive(Serialize)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// The label of the view selector, if there are several views.
    pub(crate) choice: &'static str,
    /// Parts that the whole page leaves out.
    pub(crate) left_out: Vec<String>,
    pub(crate) views: Vec<View>,
}

/// A view. The page shows one view at a time.
#[derive(Serialize, Default)]
pub(crate) struct View {
    pub(crate) name: String,
    /// The explanation, or the report, as text.
    #[serde(skip)]
    pub(crate) text: String,
    /// A picture below the text, as SVG.
    #[serde(skip)]
    pub(crate) picture: String,
    /// The largest part of the delay, in one sentence or a few.
    pub(crate) verdict: Option<String>,
    /// Names with values, about the alert or the range.
    pub(crate) facts: Vec<(String, String)>,
    /// Limitations of the explanation, such as lost events.
    pub(crate) notes: Vec<String>,
    /// Parts that the view leaves out.
    pub(crate) left_out: Vec<String>,
    /// The start on the trace's clock, in ns.
    #[serde(serialize_with = "as_text")]
    pub(crate) origin: u64,
    /// The length of the view.
    pub(crate) length: u64,
    /// Start and end of the delay.
    pub(crate) focus: (u64, u64),
    pub(crate) groups: Vec<Group>,
    pub(crate) arrows: Vec<Arrow>,
    pub(crate) words: Words,
    pub(crate) tables: Vec<Table>,
}

/// Lanes under one heading.
#[derive(Serialize)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) lanes: Vec<Lane>,
}

/// Bars in time order; they do not overlap.
#[derive(Serialize)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

/// Start, length, kind, text, CPU, and more text.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bar(
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) Kind,
    pub(crate) Word,
    pub(crate) Option<u32>,
    pub(crate) Option<Word>,
);

/// Start and lane, end and lane, and whether the arrow belongs to the path. Lanes count from 0 across groups.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrow(
    pub(crate) u64,
    pub(crate) usize,
    pub(crate) u64,
    pub(crate) usize,
    pub(crate) bool,
);

/// The number of a text.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(usize);

/// Texts, each stored once.
#[derive(Debug, Default)]
pub(crate) struct Words {
    list: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Words {
    pub(crate) fn number(&mut self, text: String) -> Word {
        if let Some(number) = self.numbers.get(&text) {
            return Word(*number);
        }
        let number = self.list.len();
        self.list.push(text.clone());
        self.numbers.insert(text, number);
        Word(number)
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(s)
    }
}

/// A table that the reader can sort.
#[derive(Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// A note about rows that the table leaves out.
    pub(crate) note: Option<String>,
}

/// A column: its heading, and how its cells are written.
#[derive(Serialize)]
pub(crate) struct Column(pub(crate) &'static str, pub(crate) Cells);

/// The cells of a column.
#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cells {
    /// Text; leading spaces are kept.
    Text,
    /// A count.
    Count,
    /// A length in ns.
    Time,
    /// A time since the start of the view, in ns.
    At,
    /// A share in %.
    Percent,
    /// A time of the trace's clock, in ns; as text, because it may exceed 2^53.
    Clock,
    /// A histogram, which a click shows.
    Histogram,
}

/// Cells, and the time range that the time line shows for them.
#[derive(Serialize)]
pub(crate) struct Row(pub(crate) Vec<Cell>, pub(crate) Option<(u64, u64)>);

/// A cell.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Text(String),
    Number(u64),
    Share(f64),
    /// The shortest duration of each bar, ns, and the number of durations.
    Histogram(Vec<(u64, u64)>),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl Cell {
    /// `part` of `whole`, in %.
    pub(crate) fn percent(part: u64, whole: u64) -> Self {
        Self::Share(part as f64 * 100.0 / whole.max(1) as f64)
    }
}

fn as_text<S: Serializer>(number: &u64, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(number)
}

impl Page {
    /// Writes the page, replacing `file`.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let page = self.page()?;
        out::file::replace(file, |out| Ok(out.write_all(page.as_bytes())?))
    }

    /// Draws the lanes into a picture (SVG), replacing `file`.
    pub(crate) fn draw(&self, file: &Path) -> Result<()> {
        let picture = timeline::draw(self);
        out::file::replace(file, |out| Ok(out.write_all(picture.as_bytes())?))
    }

    /// The whole page.
    pub(crate) fn page(&self) -> Result<String> {
        #[derive(Serialize)]
        struct Data<'a> {
            kinds: [(&'static str, &'static str); 9],
            #[serde(flatten)]
            page: &'a Page,
        }
        let data = serde_json::to_string(&Data {
            kinds: Kind::ALL,
            page: self,
        })?;
        let data = in_script(&data);
        let article = |view: &View| {
            let (name, text) = (escaped(&view.name), escaped(&view.text));
            let svg = match view.picture.as_str() {
                "" => String::new(),
                svg => format!("<div class=\"wide\" tabindex=\"0\">{svg}</div>"),
            };
            format!("<article><h3>{name}</h3><pre tabindex=\"0\">{text}</pre>{svg}</article>\n")
        };
        let texts: String = self.views.iter().map(article).collect();
        let nonce = nonce(&data, &texts);
        let value = |name: &str| match name {
            "title" => escaped(&self.title),
            "nonce" => nonce.clone(),
            "style" => STYLE.into(),
            "script" => SCRIPT.into(),
            "data" => data.clone(),
            "texts" => texts.clone(),
            "version" => env!("CARGO_PKG_VERSION").into(),
            other => format!("{{{{{other}}}}}"),
        };
        let mut parts = TEMPLATE.split("{{");
        let mut page = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
            page += &value(name);
            page += rest;
        }
        Ok(page)
    }
}

/// A number that no name in the data can contain, since it depends on all of the data.
fn nonce(data: &str, texts: &str) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, data, texts).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(1), half(2))
}

/// Makes text safe in HTML, even in an attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            c => safe.push(c),
        }
    }
    safe
}

/// Makes JSON safe within a script, so that no tag can start or end in it. In JSON, these characters occur in strings
/// only.
fn in_script(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => safe += "\\u003c",
            '>' => safe += "\\u003e",
            '&' => safe += "\\u0026",
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
pub(crate) mod tests;
