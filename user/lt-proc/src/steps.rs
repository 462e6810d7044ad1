// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `NAME/steps` of the tracker `tree`: how long each kind of step of wake chains took.
//!
//! ```text
//! step count mean p99 max
//! waking 1024 8123 14335 93123
//! ```
//!
//! Times are in ns, each until the next step: for `waking`, from the wakeup to running.

use serde::Serialize;

use crate::ParseError;

/// A kind of step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepTime {
    /// The kind, as in the wake chains of alerts: `irq`, `raise`, `waking`, ...
    pub step: String,
    /// Number of such steps.
    pub count: u64,
    /// Mean time, ns.
    pub mean: u64,
    /// 99th percentile, ns: an upper bound, at most a quarter above the true value.
    pub p99: u64,
    /// Longest time, ns.
    pub max: u64,
}

const HEAD: &str = "step count mean p99 max";

impl StepTime {
    /// Parses the file.
    ///
    /// # Errors
    /// Names the line and the word.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ParseError> {
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, HEAD)) => {}
            other => {
                let word = other.map_or("", |(_, line)| line);
                return Err(ParseError::new(word, format!("{HEAD:?}")));
            }
        }
        let parse = |(at, line)| Self::parse(line).map_err(|error| error.at_line(at + 1));
        lines.map(parse).collect()
    }

    fn parse(line: &str) -> Result<Self, ParseError> {
        let mut words = line.split(' ');
        let step = words.next().unwrap_or_default().to_string();
        let mut number = |what: &str| {
            let word = words.next().unwrap_or_default();
            word.parse()
                .map_err(|_| ParseError::new(word, format!("a number: {what}")))
        };
        let time = Self {
            step,
            count: number("the count")?,
            mean: number("the mean, ns")?,
            p99: number("p99, ns")?,
            max: number("the maximum, ns")?,
        };
        match words.next() {
            Some(word) => Err(ParseError::new(word, "the end of the line")),
            None => Ok(time),
        }
    }

    /// Returns the total time of all such steps, ns.
    #[must_use]
    pub fn total(&self) -> u128 {
        u128::from(self.count) * u128::from(self.mean)
    }

    /// Returns a phrase for what happens during such a step.
    #[must_use]
    pub fn meanwhile(&self) -> String {
        let words = match self.step.as_str() {
            "irq" => "in the handler of an interrupt",
            "vector" => "in a local interrupt",
            "timer" => "before a timer's interrupt was taken",
            "expire" => "in a timer's function",
            "raise" => "before a softirq was called",
            "softirq" => "in a softirq",
            "waking" => "woken, and waiting for a CPU",
            "switch" => "while a thread ran",
            "preempted" => "while another task had preempted the task",
            "throttled" => "throttled by a quota or a deadline's runtime",
            "lock" => "waiting for a spinlock",
            "sleep" => "sleeping in state D",
            "reads" => "sleeping in state D, after reads of its own",
            "begin" => "in work that programs have marked",
            "wheel" => "before the timer wheel's interrupt was taken",
            "queue" => "a work item that waits for a worker",
            "work" => "in a work item",
            "call" => "before a function was called on another CPU",
            "called" => "in a function for another CPU",
            other => return format!("after {other}"),
        };
        words.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "step count mean p99 max\nirq 3 10 15 20\nwaking 1024 8123 14335 93123\n";

    #[test]
    fn it_reads_what_the_kernel_writes() {
        let all = StepTime::parse_all(TEXT).unwrap();
        let last = StepTime {
            step: "waking".into(),
            count: 1024,
            mean: 8123,
            p99: 14335,
            max: 93123,
        };
        assert_eq!((all.len(), &all[1]), (2, &last));
        assert_eq!(last.total(), 1024 * 8123);
        assert_eq!(StepTime::parse_all("step count mean p99 max\n"), Ok(vec![]));
    }

    #[test]
    fn a_fault_is_named_with_its_line() {
        for (text, line, word) in [
            ("", 1, ""),
            ("step count\n", 1, "step count"),
            ("step count mean p99 max\nirq 1 2 3\n", 2, ""),
            (
                "step count mean p99 max\nirq 1 2 3 4\nraise 1 x 3 4\n",
                3,
                "x",
            ),
            ("step count mean p99 max\nirq 1 2 3 4 5\n", 2, "5"),
        ] {
            let error = StepTime::parse_all(text).unwrap_err();
            assert_eq!((error.line, error.word.as_str()), (line, word), "{text:?}");
        }
    }
}
