// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `watch`: alerts as they come, for a person or, with `--json`, for a program.

use std::time::Instant;

use anyhow::{Context, Result};
use lt_proc::{Alert, Nanos, ProcRoot, StreamLine};
use serde::Serialize;

use crate::Outcome;
use crate::action;
use crate::cli::WatchArgs;
use crate::out::{self, Colour, WIDTH};
use crate::wait::{Lines, Signals, Wake};

/// What `--json` prints when the ring overtook us.
#[derive(Serialize)]
struct Lost {
    lost: u64,
}

pub(crate) fn run(root: &ProcRoot, args: &WatchArgs) -> Result<Outcome> {
    if let Some(name) = &args.name {
        root.instance(name)?;
    }
    let signals = Signals::catch()?;
    let file = root.open_stream(args.name.as_deref(), "alerts")?;
    let end = args.duration.map(|d| Instant::now() + d.into());
    let mut lines = Lines::default();
    let mut seen = 0;
    if !args.json {
        out::line(&out::paint(Colour::Bold, &heading(args.timestamp)))?;
    }
    'watching: while args.count.is_none_or(|count| seen < count) {
        if signals.wait(Some(&file), end)? != Wake::Ready {
            break;
        }
        let chunk = lines.read(&file).context("cannot read the alerts")?;
        for line in &chunk.lines {
            match StreamLine::parse(line)? {
                StreamLine::Lost(lost) => {
                    if args.json {
                        out::json(&Lost { lost })?;
                    }
                    let more = "the ring overtook us; start the instance with a larger ring=";
                    out::note(&format!("lost={lost} alerts: {more}"));
                }
                StreamLine::Alert(alert) => {
                    seen += 1;
                    if args.json {
                        out::json(&alert)?;
                    } else {
                        out::line(&row(&alert, args.timestamp))?;
                        for function in alert.stack() {
                            out::line(&out::frame(&function))?;
                        }
                        let waker = alert.waker_stack();
                        if args.stacks && !waker.is_empty() {
                            out::line("  woken from:")?;
                            for function in waker {
                                out::line(&out::frame(&function))?;
                            }
                        }
                    }
                    if !action::run(&args.on_alert, &alert)?
                        || args.count.is_some_and(|n| seen >= n)
                    {
                        break 'watching;
                    }
                }
            }
        }
        if chunk.end {
            out::note("the instance is gone");
            break;
        }
    }
    Ok(if seen > 0 {
        Outcome::Alert
    } else {
        Outcome::Fine
    })
}

fn heading(timestamp: bool) -> String {
    let time = if timestamp { "TIME     " } else { "" };
    format!(
        "{time}{:<12} {:>9} {:<15} {:>7} WHAT",
        "INSTANCE", "DELAY", "COMM", "TID"
    )
}

fn row(alert: &Alert, timestamp: bool) -> String {
    let time = if timestamp {
        format!("{} ", super::clock())
    } else {
        String::new()
    };
    let reason = match alert.reason {
        lt_proc::Reason::Threshold => String::new(),
        ref other => format!("{other}: "),
    };
    let name = out::fit(&alert.instance, 12);
    let delay = out::paint(Colour::Red, &format!("{:>9}", Nanos(alert.delay)));
    let comm = out::fit(&out::printable(&alert.comm.text()), 15);
    let fixed = time.len() + 12 + 1 + 9 + 1 + 15 + 1 + 7 + 1;
    let what = out::fit(
        &out::printable(&format!("{reason}{}", alert.subject())),
        WIDTH - fixed,
    );
    format!(
        "{time}{name:<12} {delay} {comm:<15} {:>7} {what}",
        alert.tid
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_narrow_and_under_their_headings() {
        let line = "seq=17 time=1234567890123 instance=a_name_longer_than_that tracker=block reason=timeout \
            delay=10412345 threshold=10000000 cpu=1 pid=812 tid=1234567 comm=\"a\\x1b[31m_long_name\" dev=8:0 \
            disk=\"nvme0n1\" op=\"WS\" sector=123456789012 bytes=4096 queue=0 device=1 requeues=0";
        let alert = Alert::parse(line).unwrap();
        for timestamp in [false, true] {
            let row = row(&alert, timestamp);
            assert!(row.chars().count() < 80, "{row}");
            let column = heading(timestamp).find("WHAT").unwrap();
            assert!(row[column..].starts_with("timeout: nvme0n1"), "{row}");
            assert!(!row.contains('\u{1b}'));
        }
    }
}
