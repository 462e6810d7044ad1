// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Short texts about a model, for comparisons.

use lt_model::{Context, Handler, Model, Raiser, Sleep, State, ThreadId, Waker};

/// The states of a thread: `0..4 running, 4..6 blocked by 7, 6..7 waiting`.
pub fn told(model: &Model, tid: i32) -> String {
    let threads: Vec<_> = model.by_tid(tid).map(|id| of(model, id)).collect();
    threads.join(" | ")
}

fn of(model: &Model, id: ThreadId) -> String {
    let thread = model.thread(id).unwrap();
    let one = |i: lt_model::Interval| {
        let by = i
            .waker
            .map(|w| format!(" by {}", who(model, &model.waker(w).unwrap())));
        let what = state(model, i.state);
        format!("{}..{} {what}{}", i.begin, i.end, by.unwrap_or_default())
    };
    let all: Vec<_> = thread.intervals.iter().map(one).collect();
    let made = thread
        .maker
        .map(|w| format!("made by {}: ", who(model, &model.waker(w).unwrap())));
    made.unwrap_or_default() + &all.join(", ")
}

fn state(model: &Model, state: State) -> String {
    match state {
        State::Unknown(_) => "unknown".into(),
        State::Running(None) => "running".into(),
        State::Running(Some(call)) => format!("in {}", model.names.text(call)),
        State::Interrupted(c) => format!("under {}", context(model, c)),
        State::Preempted => "preempted".into(),
        State::Waiting => "waiting".into(),
        State::Blocked(Sleep::Interruptible, None) => "blocked".into(),
        State::Blocked(Sleep::Interruptible, Some(call)) => {
            format!("blocked in {}", model.names.text(call))
        }
        State::Blocked(sleep, _) => format!("blocked {sleep:?}"),
    }
}

fn who(model: &Model, waker: &Waker) -> String {
    match (waker.by(), waker.context) {
        (Some(id), _) => model.thread(id).unwrap().tid.to_string(),
        (None, Some(c)) => context(model, c),
        (None, None) => "an unknown waker".into(),
    }
}

fn context(model: &Model, context: Context) -> String {
    match context {
        Context::Irq { number, name } => format!("irq {number} {}", model.names.text(name)),
        Context::Softirq { vector, by, .. } => match by {
            Raiser::Device(Handler(number, name)) => {
                format!(
                    "{} of irq {number} {}",
                    vector.name(),
                    model.names.text(name)
                )
            }
            Raiser::Ipi(name) => format!("{} of ipi {}", vector.name(), model.names.text(name)),
            Raiser::Unrecorded => vector.name().into(),
            by => format!("{} of {by:?}", vector.name()),
        },
        Context::Timer => "timer".into(),
        Context::Ipi(name) => format!("ipi {}", model.names.text(name)),
        Context::Disk(disk) => format!("disk {disk}"),
        Context::Unseen => "unseen".into(),
    }
}
