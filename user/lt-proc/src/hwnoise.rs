// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hwnoise`: writing `LENGTH THRESHOLD` runs a loop with interrupts off on this CPU; reading
//! returns its result.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

use crate::{ParseError, ProcError, ProcRoot};

/// The longest slice, ns.
pub const LONGEST_SLICE: u64 = 1_000_000;

const FILE: &str = "hwnoise";

/// Result of a slice: gaps between consecutive readings of the clock, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slice {
    /// Number of gaps.
    pub loops: u64,
    /// The shortest gap.
    pub min: u64,
    /// The longest gap.
    pub max: u64,
    /// Sum of all gaps.
    pub sum: u64,
    /// Sum of the squares of all gaps.
    pub squares: u128,
    /// Number of gaps of the threshold or longer.
    pub peaks: u64,
    /// The first few of these gaps: the start of each, `CLOCK_MONOTONIC` ns, and its length.
    pub kept: Vec<(u64, u64)>,
    /// Bins, as in histograms: the shortest gap of the bin, and the number of gaps.
    pub bins: Vec<(u64, u64)>,
}

impl Slice {
    /// Parses a result. Keys of a newer module are left out.
    ///
    /// # Errors
    /// Names the line, and the word that is not a number or is missing.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut slice = Self::default();
        for (i, line) in text.lines().enumerate() {
            slice.line(line).map_err(|error| error.at_line(i + 1))?;
        }
        match slice.loops {
            0 => Err(ParseError::new("", "loops")),
            _ => Ok(slice),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), ParseError> {
        let mut words = line.split_whitespace();
        let key = words.next().unwrap_or("");
        let field = match key {
            "loops" => &mut self.loops,
            "min" => &mut self.min,
            "max" => &mut self.max,
            "sum" => &mut self.sum,
            "peaks" => &mut self.peaks,
            "squares" => {
                self.squares = number(words.next())?;
                return Ok(());
            }
            "peak" => {
                self.kept
                    .push((number(words.next())?, number(words.next())?));
                return Ok(());
            }
            "bin" => {
                self.bins
                    .push((number(words.next())?, number(words.next())?));
                return Ok(());
            }
            _ => return Ok(()),
        };
        *field = number(words.next())?;
        Ok(())
    }
}

fn number<T: std::str::FromStr>(word: Option<&str>) -> Result<T, ParseError> {
    let word = word.unwrap_or("");
    word.parse().map_err(|_| ParseError::new(word, "a number"))
}

/// The open file. Several can be open at a time; each measures on the CPU of its caller.
#[derive(Debug)]
pub struct Hwnoise {
    file: File,
    text: String,
}

impl Hwnoise {
    /// Opens the file.
    ///
    /// # Errors
    /// When the module is not loaded or has no such file, or this user may not use it.
    pub fn open(root: &ProcRoot) -> Result<Self, ProcError> {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .open(root.path().join(FILE));
        let file = opened.map_err(|error| root.explain(FILE.as_ref(), error))?;
        Ok(Self {
            file,
            text: String::with_capacity(1 << 14),
        })
    }

    /// Measures for `length` ns, at most [`LONGEST_SLICE`], with interrupts off.
    ///
    /// # Errors
    /// `EIO` if the module was unloaded, and other errors of the file; `InvalidData` for an unparsable result.
    pub fn slice(&mut self, length: u64, threshold: u64) -> io::Result<Slice> {
        let question = format!("{length} {threshold}\n");
        self.file.write_all(question.as_bytes())?;
        self.text.clear();
        self.file.read_to_string(&mut self.text)?;
        Slice::parse(&self.text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_and_its_error_is_named() {
        let text = "loops 4\nmin 10\nmax 40\nsum 100\nsquares 3400\nlater 9\npeaks 1\npeak 77 40\nbin 10 2\nbin 40 2\n";
        let slice = Slice::parse(text).unwrap();
        assert_eq!(
            (slice.loops, slice.min, slice.max, slice.sum),
            (4, 10, 40, 100)
        );
        assert_eq!((slice.squares, slice.peaks), (3400, 1));
        assert_eq!(
            (slice.kept, slice.bins),
            (vec![(77, 40)], vec![(10, 2), (40, 2)])
        );
        for (text, line, word) in [
            ("", 1, ""),
            ("min 5\n", 1, ""),
            ("loops 1\nmin x\n", 2, "x"),
            ("loops 1\npeak 5\n", 2, ""),
            ("loops -1\n", 1, "-1"),
        ] {
            let error = Slice::parse(text).unwrap_err();
            assert_eq!((error.line, error.word.as_str()), (line, word), "{text:?}");
        }
    }

    #[test]
    fn a_module_without_the_file_is_not_a_missing_module() {
        let dir = std::env::temp_dir().join(format!("lt-proc-hwnoise-{}", std::process::id()));
        let root = ProcRoot::new(&dir);
        assert!(matches!(Hwnoise::open(&root), Err(ProcError::NotLoaded(_))));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("control"), "").unwrap();
        assert!(matches!(Hwnoise::open(&root), Err(ProcError::Io { .. })));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
