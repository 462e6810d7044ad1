// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `--on-alert ACTION`, in the grammar of rtla's `--on-threshold`:
//!
//! ```text
//! snapshot[,session=NAME]     lttng snapshot record
//! shell,command=COMMAND       sh -c COMMAND; everything after `command=` belongs to COMMAND
//! signal,num=N,pid=PID        kill(2); pid=parent is the process that started us
//! continue                    do not end; without it, the first alert ends the run
//! ```
//!
//! Actions run in order; a failed action ends the run. Actions after `continue` are
//! ignored.

use std::str::FromStr;

use anyhow::{Context, Result};
use lt_common::exec::Exec;
use lt_proc::Alert;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};

/// An action on an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// `lttng snapshot record`, of this session; `None`: of the current one.
    Snapshot(Option<String>),
    /// A shell command.
    Shell(String),
    /// A signal to a process.
    Signal(Signal, i32),
    /// Do not end at this alert.
    Continue,
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once(',').unwrap_or((text, ""));
        let unknown = |word: &str, want: &str| Err(format!("{word:?}: expected {want}"));
        match word {
            "snapshot" => match rest.split_once('=') {
                None if rest.is_empty() => Ok(Action::Snapshot(None)),
                Some(("session", name)) if !name.is_empty() => {
                    Ok(Action::Snapshot(Some(name.into())))
                }
                _ => unknown(rest, "session=NAME"),
            },
            "shell" => match rest.split_once('=') {
                Some(("command", command)) if !command.is_empty() => {
                    Ok(Action::Shell(command.into()))
                }
                _ => unknown(rest, "command=COMMAND"),
            },
            "signal" => parse_signal(rest),
            "continue" if rest.is_empty() => Ok(Action::Continue),
            _ => unknown(
                text,
                "snapshot, shell,command=..., signal,num=...,pid=... or continue",
            ),
        }
    }
}

fn parse_signal(text: &str) -> Result<Action, String> {
    let (mut signal, mut pid) = (None, None);
    for word in text.split(',') {
        let bad = |want: &str| format!("{word:?}: expected {want}");
        match word.split_once('=') {
            Some(("num", n)) => {
                let named = || n.trim_start_matches("SIG");
                let number = n.parse::<i32>().ok().and_then(|n| Signal::try_from(n).ok());
                let found = number.or_else(|| format!("SIG{}", named()).parse().ok());
                signal = Some(found.ok_or_else(|| bad("num=10 or num=USR1"))?);
            }
            Some(("pid", p)) => {
                let want = "pid=1234, or pid=parent if the parent is in this PID namespace";
                let p = match p {
                    // The parent is looked up now, not at the alert: once it has ended, our parent is init.
                    "parent" => Some(getppid().as_raw()),
                    number => number.parse().ok(),
                };
                pid = Some(p.filter(|p| *p > 0).ok_or_else(|| bad(want))?);
            }
            _ => return Err(bad("num=SIGNAL,pid=PID")),
        }
    }
    match (signal, pid) {
        (Some(signal), Some(pid)) => Ok(Action::Signal(signal, pid)),
        _ => Err(format!("{text:?}: expected num=SIGNAL,pid=PID")),
    }
}

/// Runs `actions` for `alert`. Returns whether to continue.
pub(crate) fn run(actions: &[Action], alert: &Alert) -> Result<bool> {
    for action in actions {
        match action {
            Action::Snapshot(session) => {
                let mut args = vec!["snapshot".to_string(), "record".to_string()];
                args.extend(session.iter().map(|s| format!("--session={s}")));
                let hint = "no snapshot; `latency-tracker record` sets up a session by itself";
                Exec::new("lttng", args).output().context(hint)?;
            }
            Action::Shell(command) => {
                let printed = Exec::new("sh", ["-c", command])
                    .env("LT_ALERT", alert.to_string())
                    .env("LT_INSTANCE", &alert.instance)
                    .env("LT_DELAY", alert.delay.to_string())
                    .output()?;
                if !printed.trim_end().is_empty() {
                    lt_common::out::line(printed.trim_end())?;
                }
            }
            Action::Signal(signal, pid) => {
                kill(Pid::from_raw(*pid), *signal)
                    .with_context(|| format!("cannot send {signal} to process {pid}"))?;
            }
            Action::Continue => return Ok(true),
        }
    }
    // Without actions there is no reason to stop.
    Ok(actions.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_have_the_grammar_of_rtla() {
        for (text, action) in [
            ("snapshot", Action::Snapshot(None)),
            ("snapshot,session=a", Action::Snapshot(Some("a".into()))),
            (
                "shell,command=echo a,b=c",
                Action::Shell("echo a,b=c".into()),
            ),
            ("signal,num=10,pid=1", Action::Signal(Signal::SIGUSR1, 1)),
            (
                "signal,pid=parent,num=SIGUSR1",
                Action::Signal(Signal::SIGUSR1, getppid().as_raw()),
            ),
            (
                "signal,num=TERM,pid=1234",
                Action::Signal(Signal::SIGTERM, 1234),
            ),
            ("continue", Action::Continue),
        ] {
            assert_eq!(text.parse(), Ok(action), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("explode", "\"explode\""),
            ("shell", "\"\""),
            ("shell,cmd=x", "\"cmd=x\""),
            ("signal,num=999,pid=1", "\"num=999\""),
            ("signal,num=1", "\"num=1\""),
            ("signal,num=1,pid=-1", "\"pid=-1\""),
            ("signal,num=1,pid=0", "\"pid=0\""),
            ("continue,x", "\"continue,x\""),
        ] {
            let error = text.parse::<Action>().unwrap_err();
            assert!(error.starts_with(word), "{text}: {error}");
        }
    }

    #[test]
    fn a_command_sees_the_alert_and_the_actions_decide_whether_to_continue() {
        let line = "seq=1 time=2 instance=a tracker=block reason=threshold delay=5 threshold=1 cpu=0 \
                    pid=1 tid=1 comm=\"x\"";
        let alert = Alert::parse(line).unwrap();
        let shell = Action::Shell("test \"$LT_DELAY\" = 5 && test \"$LT_INSTANCE\" = a".into());
        assert!(!run(std::slice::from_ref(&shell), &alert).unwrap());
        assert!(run(&[shell, Action::Continue], &alert).unwrap());
        assert!(run(&[], &alert).unwrap());
        assert!(run(&[Action::Shell("exit 1".into())], &alert).is_err());
    }
}
