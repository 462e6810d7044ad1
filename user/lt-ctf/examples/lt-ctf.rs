// SPDX-License-Identifier: GPL-2.0 OR MIT

//! For tests and benchmarks: prints a trace as babeltrace2 does, or measures how fast it is read.
//!
//! usage: lt-ctf text|count|fields TRACE
//!
//!   text    prints every event, as `babeltrace2 --clock-cycles --no-delta --color=never --names=payload,context`,
//!           and losses on standard error
//!   count   decodes and counts every event
//!   fields  as count, and also reads the value of every field

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use lt_ctf::{Event, Item, Missing, Reader, Value, text};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let [_, what, trace] = arguments.as_slice() else {
        eprintln!("usage: lt-ctf text|count|fields TRACE");
        return ExitCode::from(2);
    };
    let done = match what.to_str() {
        Some("text") => print(Path::new(trace)),
        Some("count") => count(Path::new(trace), |_| 0),
        Some("fields") => count(Path::new(trace), sum),
        _ => Err(format!("{}: expected text, count or fields", what.display()).into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lt-ctf: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<(), Box<dyn std::error::Error>>;

fn print(trace: &Path) -> Done {
    let mut reader = Reader::open(trace)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut line = Vec::new();
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(event) => {
                line.clear();
                text::line(&event, &mut line);
                out.write_all(&line)?;
            }
            Item::Lost(lost) => {
                let what = match lost.what {
                    Missing::Events => format!("{} events", lost.count),
                    Missing::Packets => format!("{} packets", lost.count),
                    Missing::Rest => "the rest of a packet".into(),
                };
                eprintln!(
                    "lost {what} of stream {} between {} and {}",
                    lost.stream, lost.cycles.0, lost.cycles.1
                );
            }
        }
    }
    out.flush()?;
    Ok(())
}

fn count(trace: &Path, of: impl Fn(&Event<'_>) -> u64) -> Done {
    let begin = Instant::now();
    let mut reader = Reader::open(trace)?;
    let open = begin.elapsed().as_secs_f64();
    let (mut events, mut lost, mut all) = (0u64, 0u64, 0u64);
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(event) => {
                events += 1;
                all = all.wrapping_add(event.cycles()).wrapping_add(of(&event));
            }
            Item::Lost(what) => lost += what.count,
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "events {events} lost {lost} streams {} sum {all:016x} open {open:.6} seconds {seconds:.6}",
        reader.streams()
    );
    Ok(())
}

/// Returns a sum over all fields, so that the compiler cannot drop the reading of any.
fn sum(event: &Event<'_>) -> u64 {
    let mut sum = 0u64;
    event.values(|_, value| {
        sum = sum.wrapping_add(match value {
            Some(Value::Unsigned(value)) => value,
            Some(Value::Signed(value)) => value as u64,
            Some(Value::Bytes(bytes)) => bytes.len() as u64,
            Some(Value::Float(_)) | None => 0,
        });
    });
    sum
}
