// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `record`: the daemon that saves what the kernel did just before something was late.
//!
//! ```text
//!   set up: LTTng flight recorder -> estimate -> arm delay -> instance (if asked for)
//!   loop:   NAME/wakeup (poll, real-time) -> policy -> post-trigger -> snapshot
//!           -> DIR/0001/{trace/, alert.json, explanation.txt}
//!   ends:   signal, --duration, --max-captures, disk budget, instance gone, error
//! ```
//!
//! Each part set up is a value whose drop takes it down, in reverse order, on every way out. A run
//! that is killed leaves a note for the next one (see [`leftovers`]).

mod args;
pub(crate) mod capture;
mod estimate;
mod instance;
mod leftovers;
mod policy;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use lt_proc::{Alert, Nanos, ProcRoot, StreamLine};

pub(crate) use self::args::RecordArgs;
use self::capture::{Captures, Partial, Record, size_of};
use self::estimate::Estimate;
use self::instance::Armed;
use self::leftovers::Note;
use self::policy::{History, Skip};
use crate::Outcome;
use crate::explain::explain;
use crate::lttng::{self, Daemon, Session};
use crate::out::{self, bytes, note};
use crate::wait::{Lines, Signals, Wake};

/// How long the recorder runs before it is measured.
const SAMPLE: Duration = Duration::from_secs(1);

/// Alerts of one wake-up that are explained; alert.json has them all.
const EXPLAINED: usize = 3;

pub(crate) fn run(root: &ProcRoot, args: &RecordArgs) -> Result<Outcome> {
    let signals = Signals::catch()?;
    crate::instance::load_module(root)?;
    leftovers::clean(root);
    instance::check(root, args)?;
    let captures = Captures::open(&args.output)?;
    let events = args.events(&instance::tracker(root, args)?);

    // From here on the order of these values is the order of tidying up, backwards.
    let mut left = Note::new();
    let daemon = Daemon::ensure()?;
    left.update(|owned| owned.daemon = daemon.started());
    if !args.events.is_empty() {
        lttng::check_events(&args.events)?;
    }
    let name = lttng::session_name(&args.name, std::process::id());
    left.update(|owned| owned.session = Some(name.clone()));
    note("setting up the flight recorder and measuring for a second");
    let session = Session::start(&name, captures.path(), args.buffers(), &events)?;
    let begun = Instant::now();
    if !signals.sleep(SAMPLE)? {
        return Ok(Outcome::Fine);
    }
    let sample = captures.snapshot(&session)?;
    let estimate = Estimate::measure(&sample.path.join("trace"), args.buffers(), begun.elapsed())?;
    drop(sample);
    out::line(&estimate.to_string())?;
    if args.arm_delay.0 > 0 && !signals.sleep(args.arm_delay.into())? {
        return Ok(Outcome::Fine);
    }
    let armed = Armed::new(root, args, &mut left)?;
    real_time();
    out::line(&format!("instance: {}", armed.line()))?;
    out::line(&format!(
        "armed; captures go to {} (Ctrl-C ends)",
        captures.path().display()
    ))?;
    let recorder = Recorder {
        root,
        args,
        signals: &signals,
        session: &session,
        captures: &captures,
        tracker: armed.tracker(),
    };
    recorder.wait_for_alerts()
}

/// As soon as possible after the alert, or the ring has moved on. A lack of permission is not fatal.
fn real_time() {
    for result in [crate::rt::raise(), crate::rt::lock_memory()] {
        if let Err(error) = result {
            note(&format!(
                "{error:#}: on a busy machine a snapshot may come late"
            ));
        }
    }
}

struct Recorder<'a> {
    root: &'a ProcRoot,
    args: &'a RecordArgs,
    signals: &'a Signals,
    session: &'a Session,
    captures: &'a Captures,
    tracker: &'a str,
}

/// What one wake-up brought.
#[derive(Default)]
struct Woken {
    alerts: Vec<Alert>,
    lost: u64,
}

impl Recorder<'_> {
    fn wait_for_alerts(&self) -> Result<Outcome> {
        let policy = self.args.policy();
        let end = self.args.duration.map(|d| Instant::now() + d.into());
        let mut history = History::default();
        let mut outcome = Outcome::Fine;
        while !history.complete(&policy) {
            let file = self.root.open_stream(Some(&self.args.name), "wakeup")?;
            if self.signals.wait(Some(&file), end)? != Wake::Ready {
                break;
            }
            let woken_at = Instant::now();
            let woken = read_wakeup(&file)?;
            if woken.alerts.is_empty() {
                if self.root.instance(&self.args.name).is_err() {
                    note(&format!(
                        "instance {} was removed meanwhile",
                        self.args.name
                    ));
                    break;
                }
                continue;
            }
            outcome = Outcome::Alert;
            match history.decide(&policy, woken_at) {
                Err(skip) => {
                    history.skipped += 1;
                    self.say_skipped(&woken, skip)?;
                }
                Ok(()) => match self.capture(&woken, woken_at, &history)? {
                    Ok(()) => history.captured(Instant::now()),
                    Err(skip) => {
                        self.say_skipped(&woken, skip)?;
                        let hint = "make room, raise --disk-budget or use --rotate";
                        note(&format!(
                            "the disk budget is used up, so the run ends; {hint}"
                        ));
                        break;
                    }
                },
            }
        }
        // After the last capture it has just been said.
        if !history.complete(&policy) {
            out::line("\nended; in all")?;
            out::line(&self.state(history.taken, history.skipped)?)?;
        }
        Ok(outcome)
    }

    /// Snapshot, alert.json, explanation.txt; `Err` inside when there is no room.
    fn capture(
        &self,
        woken: &Woken,
        woken_at: Instant,
        history: &History,
    ) -> Result<Result<(), Skip>> {
        if self.args.post_trigger.0 > 0 {
            // A signal cuts the wait short, not the capture; the next wait sees another one.
            let _ = self.signals.sleep(self.args.post_trigger.into())?;
        }
        let partial = self.captures.snapshot(self.session)?;
        let took = woken_at.elapsed();
        if !self.make_room(size_of(&partial.path))? {
            return Ok(Err(Skip::Budget));
        }
        let number = self.captures.next_number()?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let record = Record {
            capture: number,
            taken: now.as_secs(),
            instance: &self.args.name,
            tracker: self.tracker,
            snapshot_took: took.as_nanos() as u64,
            lost: woken.lost,
            skipped: history.skipped,
            alerts: &woken.alerts,
        };
        partial.write(
            "alert.json",
            &(serde_json::to_string_pretty(&record)? + "\n"),
        )?;
        let alerts = count(woken.alerts.len());
        out::line(&format!(
            "\ncapture {number:04}: {alerts}, saved within {}",
            Nanos(record.snapshot_took)
        ))?;
        if !self.args.no_explain {
            out::line(&self.explanation(&partial, woken)?)?;
        }
        let path = self.captures.keep(partial, number)?;
        out::line(&format!("saved as {}", path.display()))?;
        out::line(&self.state(history.taken + 1, history.skipped)?)?;
        Ok(Ok(()))
    }

    /// Explains the slowest alerts; a trace that cannot be read is said, not fatal.
    fn explanation(&self, partial: &Partial, woken: &Woken) -> Result<String> {
        let mut slowest = woken.alerts.clone();
        slowest.sort_by_key(|a| std::cmp::Reverse(a.delay));
        slowest.truncate(EXPLAINED);
        let trace = partial.path.join("trace");
        // A thread of its own runs at ordinary priority: reading a trace takes a while.
        let explained =
            std::thread::scope(|scope| scope.spawn(|| explain(&trace, &slowest)).join());
        let text = match explained {
            Ok(Ok(texts)) => {
                let more = woken.alerts.len() - slowest.len();
                let rest = if more > 0 {
                    format!("\n{more} more in alert.json.\n")
                } else {
                    String::new()
                };
                texts.join("\n") + &rest
            }
            Ok(Err(error)) => format!("No explanation: {error:#}\n"),
            Err(_) => "No explanation: the reader of the trace failed.\n".to_string(),
        };
        partial.write("explanation.txt", &text)?;
        Ok(text)
    }

    /// Whether a capture of `size` bytes fits, after removing old ones if that was asked for.
    fn make_room(&self, size: u64) -> Result<bool> {
        while self.captures.size()? + size > self.args.disk_budget.0 {
            if !self.args.rotate {
                return Ok(false);
            }
            let Some(oldest) = self.captures.remove_oldest()? else {
                return Ok(false);
            };
            note(&format!(
                "removed {} to stay within the disk budget",
                oldest.display()
            ));
        }
        Ok(true)
    }

    fn say_skipped(&self, woken: &Woken, why: Skip) -> Result<()> {
        let Some(slowest) = woken.alerts.iter().max_by_key(|a| a.delay) else {
            return Ok(());
        };
        let text = format!(
            "no capture ({why}): {}, at most {}: {}",
            count(woken.alerts.len()),
            Nanos(slowest.delay),
            slowest.subject()
        );
        out::line(&out::fit_line(&text))
    }

    fn state(&self, taken: usize, skipped: usize) -> Result<String> {
        let size = bytes(
            self.captures
                .size()
                .context("cannot measure the captures")?,
        );
        let stats = self.root.stats(&self.args.name).unwrap_or_default();
        let n = |key| out::thousands(stats.count(key));
        Ok(format!(
            "captures {taken}  skipped {skipped}  disk {size} of {}\nevents {}  alerts {}  lost: alerts {}  events {}",
            bytes(self.args.disk_budget.0),
            n("started"),
            n("alerts"),
            n("alerts_lost"),
            out::lost(&stats),
        ))
    }
}

fn count(alerts: usize) -> String {
    if alerts == 1 {
        "1 alert".to_string()
    } else {
        format!("{alerts} alerts")
    }
}

/// All that the file has to say now.
fn read_wakeup(file: &std::fs::File) -> Result<Woken> {
    let mut lines = Lines::default();
    let mut woken = Woken::default();
    loop {
        let chunk = lines.read(file).context("cannot read wakeup")?;
        for line in &chunk.lines {
            match StreamLine::parse(line)? {
                StreamLine::Alert(alert) => woken.alerts.push(*alert),
                StreamLine::Lost(n) => {
                    woken.lost += n;
                    note(&format!(
                        "lost={n} alerts: the instance needs a larger ring= (set at creation)"
                    ));
                }
            }
        }
        if chunk.end || chunk.lines.is_empty() {
            return Ok(woken);
        }
    }
}
