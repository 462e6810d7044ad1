// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A path in one sentence: the cause that took the most time, and up to two others if this cause is less than half.
//! Another sentence follows if a thread waited for a busy disk.

use std::collections::{HashMap, HashSet};

use lt_common::out;
use lt_model::why::{
    Cause, Leaf, Piece, Quota, busy, handled, looks_like_a_quota, served, used, woken_by,
};
use lt_model::{Before, Events, Model, Use};

use super::show::{Group, Shown, Thread, together};
use super::words::{addition, disk_name, held, name_at, unrecorded, used_by};
use lt_proc::Nanos;

/// Maximum number of other causes that a sentence names, if the largest cause is less than half of the time.
const OTHERS: usize = 2;
/// Another cause is named only if it is at least 1/`LARGE` of the time.
const LARGE: u64 = 5;

/// Maximum number of threads that are named because a disk served their requests.
const NAMED: usize = 4;

impl Shown<'_> {
    /// [`Self::verdict_at`] without times of day.
    pub(crate) fn verdict(&self) -> Option<String> {
        self.verdict_at(&|_| None)
    }

    /// `98 % of the delay (604.0ms): victim/525 waited for server/526, which waited for a timer.` If no cause is half
    /// of the time, up to `OTHERS` more are named: `42 % of the delay (420.0ms): ...; 31 %: ...` A sentence follows for
    /// each of these causes that is a wait for a free request of a busy disk. `clock` returns the time of day of a time
    /// of the trace, if that is known.
    pub(crate) fn verdict_at(&self, clock: &dyn Fn(u64) -> Option<String>) -> Option<String> {
        let took = self.range.1 - self.range.0;
        let named = self.named();
        let (most, others) = named.split_first()?;
        let share = out::share(most.time, took, self.facts.whole);
        let mut sentence = share + &self.clause(most);
        for of in others {
            let percent = of.time * 100 / took.max(1);
            sentence += &format!("; {percent} %{}", self.clause(of));
        }
        let busy = named.iter().filter_map(|of| self.busy_since(of, clock));
        let sentences: Vec<_> = std::iter::once(sentence + ".").chain(busy).collect();
        Some(sentences.join(" "))
    }

    /// The causes that the sentence names, the largest first.
    fn named(&self) -> Vec<Group> {
        let took = self.range.1 - self.range.0;
        let mut all = self.groups(false);
        let is_half = |most: &Group| most.time >= took.div_ceil(2);
        let others = match all.first().is_none_or(is_half) {
            true => 0,
            false => OTHERS,
        };
        let large = all.iter().skip(1).take(others);
        let large = large.filter(|of| of.time >= took.div_ceil(LARGE)).count();
        all.truncate(1 + large);
        all
    }

    /// The threads whose requests a disk served during the waits that the sentence names, each once, except threads
    /// that have ended in the trace.
    pub(crate) fn served_threads(&self) -> Vec<Thread> {
        let mut threads = Vec::new();
        for of in self.named() {
            let served = served(self.model, self.pieces_of(&of)).and_then(|(_, served)| served);
            let by = served.iter().flat_map(|served| &served.by);
            for id in by.filter_map(|by| by.thread) {
                if !threads.contains(&id) {
                    threads.push(id);
                }
            }
        }
        let has_ended = |id| {
            self.model
                .thread(id)
                .is_none_or(|thread| thread.ended.is_some())
        };
        let threads = threads.into_iter().filter(|id| !has_ended(*id));
        threads.map(|id| self.thread_json(id)).collect()
    }

    /// The clause that follows the share of a cause.
    fn clause(&self, of: &Group) -> String {
        if let Cause::Unknown(why) = of.cause {
            let (who, why) = (of.who(self.model, self.range.1), unrecorded(why));
            return format!(" is not recorded for {who}: {why}");
        }
        let more = addition(self.model, of.cause).map(|more| format!("; {more}"));
        let (who, did) = (self.who(of), self.did(of));
        let served = self.served_meanwhile(of).unwrap_or_default();
        let woken = self.woken_by_another_disk(of).unwrap_or_default();
        let late = self.late_handler(of).unwrap_or_default();
        let interrupts = self.perhaps_interrupts(of).unwrap_or_default();
        let owner = self.perhaps_owner(of).unwrap_or_default();
        format!(
            ": {who}{did}{}{served}{woken}{late}{interrupts}{owner}",
            more.unwrap_or_default()
        )
    }

    /// The pieces of the path that belong to this group.
    fn pieces_of<'a>(&'a self, of: &'a Group) -> impl Iterator<Item = &'a Piece> + Clone {
        let threads: HashSet<_> = of.threads.iter().collect();
        let is_of = move |p: &&Piece| p.cause == of.cause && threads.contains(&p.thread);
        self.pieces.iter().filter(is_of)
    }

    /// An addition for a thread that waited for a free request of a disk: the requests that the disk served meanwhile.
    fn served_meanwhile(&self, of: &Group) -> Option<String> {
        let (disk, served) = served(self.model, self.pieces_of(of))?;
        let disk = disk_name(self.model, disk);
        let Some(served) = served else {
            return Some(format!(
                "; which requests {disk} served meanwhile is not recorded"
            ));
        };
        let threads = served.by.iter().filter_map(|by| by.thread);
        let threads: Vec<_> = threads.map(|id| self.thread_json(id)).collect();
        let who = first_of(&threads);
        let unknown = served.by.iter().find(|by| by.thread.is_none());
        let unknown = unknown.map_or(0, |by| by.requests);
        let requests = |n: u64| match n {
            1 => "1 request".to_string(),
            n => format!("{} requests", out::thousands(n)),
        };
        let what = match (served.requests - unknown, unknown) {
            (0, 0) if served.is_least => {
                return Some(format!(
                    "; whether {disk} served a request meanwhile is not recorded"
                ));
            }
            (0, 0) => "no request".into(),
            (0, unknown) => format!("{} whose submitter is not recorded", requests(unknown)),
            (known, 0) => format!("{} of {who}", requests(known)),
            (known, unknown) => format!(
                "{} of {who}, and {} whose submitter is not recorded",
                requests(known),
                out::thousands(unknown)
            ),
        };
        let least = if served.is_least { "at least " } else { "" };
        let time = match served.time {
            0 if served.is_least => ", for a time that is not recorded".into(),
            0 => String::new(),
            time => format!(", for {least}{} of the wait", Nanos(time)),
        };
        Some(format!("; meanwhile {disk} served {what}{time}"))
    }

    /// An addition for a thread that waited for a free request of a disk: the other disks whose completions woke it.
    fn woken_by_another_disk(&self, of: &Group) -> Option<String> {
        let disks = woken_by(self.model, self.pieces_of(of)).into_iter();
        let disks: Vec<_> = disks
            .map(|disk| format!("a completion of {}", disk_name(self.model, disk)))
            .collect();
        let waits = match self.pieces_of(of).count() {
            1 => "the wait",
            _ => "some of the waits",
        };
        (!disks.is_empty()).then(|| format!("; {} ended {waits}", disks.join(" and ")))
    }

    /// A sentence for a thread that waited for a free request of a disk: since when the disk had been busy.
    fn busy_since(&self, of: &Group, clock: &dyn Fn(u64) -> Option<String>) -> Option<String> {
        let (disk, busy) = busy(self.model, self.pieces_of(of))?;
        let disk = disk_name(self.model, disk);
        let time = Nanos(busy.until - busy.since);
        let least = match busy.before {
            Before::Idle(_) => "",
            Before::Missing | Before::Unrecorded => "at least ",
        };
        let since = match (busy.before, clock(busy.since)) {
            (Before::Unrecorded, _) => ", since the start of the recording or earlier".into(),
            (Before::Missing, Some(clock)) => format!(", since {clock} or earlier"),
            (Before::Idle(_), Some(clock)) => format!(", since {clock}"),
            (_, None) => String::new(),
        };
        let pause = match busy.pause {
            0 => "without a pause".into(),
            pause => format!("with no pause longer than {}", Nanos(pause)),
        };
        let idle = match busy.before {
            Before::Idle(Some(idle)) => {
                format!("; before that, it had been idle for {}", Nanos(idle))
            }
            _ => String::new(),
        };
        Some(format!(
            "By the end of the wait, {disk} had been busy for {least}{time}{since}, {pause}{idle}."
        ))
    }

    /// An addition for a thread that ran in a `futex` call that locks with priority inheritance.
    fn perhaps_owner(&self, of: &Group) -> Option<&'static str> {
        let Cause::Running(call) = of.cause else {
            return None;
        };
        let calls = ["futex(FUTEX_LOCK_PI)", "futex(FUTEX_LOCK_PI2)"];
        let is_locking = match call {
            Some(call) => calls.contains(&self.model.names.text(call)),
            None => {
                let mut pieces = self.pieces_of(of);
                pieces.any(|p| self.model.is_locking(p.thread, p.begin))
            }
        };
        is_locking.then_some(
            "; this call spins while the owner of the lock runs, and the owner is not recorded",
        )
    }

    /// An addition for a softirq thread that ran, if interrupts are not recorded.
    fn perhaps_interrupts(&self, of: &Group) -> Option<&'static str> {
        let is_one = matches!(of.cause, Cause::Running(_)) && !self.model.has(Events::Handlers);
        let name = name_at(
            self.model,
            *of.threads.first().filter(|_| is_one)?,
            self.range.1,
        );
        let kinds = ["ksoftirqd/", "ktimers/"];
        kinds.iter().any(|kind| name.starts_with(kind)).then_some(
            ", or was interrupted: interrupts are not recorded (enable irq_handler_entry and irq_handler_exit)",
        )
    }

    /// An addition if a timer or a disk may have been late because the thread that ran the timer, or completed the
    /// request, had waited for a CPU.
    fn late_handler(&self, of: &Group) -> Option<String> {
        let (did, due) = match of.cause {
            Cause::For(
                Leaf::Timer | Leaf::PerhapsTimer { .. } | Leaf::PerhapsHigh(_) | Leaf::Dirty(_),
                _,
            ) => ("ran the timer", "the timer was due"),
            Cause::For(
                Leaf::Disk(Some(_)) | Leaf::Special(..) | Leaf::Completion(_) | Leaf::Others(..),
                _,
            ) => ("completed the request", "the disk had finished the request"),
            _ => return None,
        };
        let handled = |p: &Piece| handled(self.model, p.thread, p.end);
        let waits: Vec<_> = self.pieces_of(of).flat_map(handled).collect();
        let longest = had(self.model, waits.iter());
        let longest = longest.into_iter().max_by_key(|had| had.time)?;
        let handler = waits.iter().find(|wait| wait.cpu == Some(longest.cpu))?;
        (longest.time >= of.time.div_ceil(LARGE)).then(|| {
            format!(
                "; {}, which {did}, had waited {} for {}; when {due} is not recorded",
                self.name(handler.thread),
                Nanos(longest.time),
                longest.words(self.model, self.range.1, longest.time, false)
            )
        })
    }

    /// The subject of the sentence: the thread itself, or the threads that it waited for.
    fn who(&self, of: &Group) -> String {
        let itself = self.name(self.thread);
        match (&of.threads[..], of.threads.contains(&self.thread)) {
            ([_], true) => format!("{itself} "),
            // The group includes other threads with the name of this one.
            (_, true) => format!("{} ", of.who(self.model, self.range.1)),
            (_, false) => format!(
                "{itself} waited for {}, which ",
                of.who(self.model, self.range.1)
            ),
        }
    }

    /// The predicate of the sentence.
    fn did(&self, most: &Group) -> String {
        let model = self.model;
        let of_it = self.pieces_of(most);
        let file = self.file_of(of_it.clone());
        let call = |call| self.within(call, file);
        let looks_limited = of_it
            .clone()
            .any(|p| looks_like_a_quota(model, p.thread, p.end));
        // Each CPU with its longest use, summed over these pieces. CPUs with only short waits are omitted.
        let mut had = had(model, of_it.clone());
        had.retain(|had| had.time >= most.time / 8);
        // An idle CPU does not show the reason: a limit may keep its threads from running, or it is slow to leave
        // idle.
        let is_idle = |had: &&Had| had.used == Use::Idle;
        // The counters are for the cgroups of the late thread.
        let of_itself = most.threads.contains(&self.thread);
        let counted = match self.facts.held {
            _ if !of_itself => Quota::Open,
            Some(((begin, end), cgroup))
                if of_it.clone().any(|p| {
                    let is_of = p.cause == Cause::Preempted && p.thread == self.thread;
                    is_of && p.begin < end && begin < p.end
                }) =>
            {
                Quota::Shown(cgroup)
            }
            _ => self.facts.quota,
        };
        let why_idle = match (counted, looks_limited) {
            (Quota::Excluded, _) => {
                "the CPU was slow to leave idle, or a limit that is not recorded applied (SCHED_DEADLINE; not cpu.max, as its counters show)".into()
            }
            (Quota::Shown(_) | Quota::Proved(_), _) => self.facts.idle_by_quota(counted),
            (Quota::Open, true) => {
                "perhaps cpu.max, one of whose timers expired at the end; its counters (nr_throttled) are not recorded".into()
            }
            (Quota::Open, false) => {
                "the CPU was slow to leave idle, or a limit that is not recorded applied (cpu.max, SCHED_DEADLINE)".into()
            }
        };
        let times = had
            .iter()
            .filter(is_idle)
            .map(|had| format!("CPU {} was idle for {}", had.cpu, Nanos(had.used_time)));
        let times = times.collect::<Vec<_>>().join(", and ");
        let several = had.len() > 1;
        let only_idle = had
            .iter()
            .all(|had| is_idle(&had) && had.is_most_of(had.of(most.time, several)));
        let idle = (!had.is_empty() && only_idle)
            .then(|| format!("was runnable; {times} before the thread ran: {why_idle}"));
        let partly =
            (idle.is_none() && !times.is_empty()).then(|| format!("; {times}: {why_idle}"));
        let partly = partly.unwrap_or_default();
        let cpus: Vec<_> = had
            .iter()
            .map(|had| had.words(model, self.range.1, most.time, several))
            .collect();
        let processor = match &cpus[..] {
            [] => "a CPU that is not recorded (enable sched_migrate_task)".into(),
            cpus => cpus.join(", and for "),
        };
        // The clause about an idle CPU already names the quota.
        let is_said = !partly.is_empty();
        let quota = self.facts.quota_meanwhile(counted).filter(|_| !is_said);
        let quota = quota.unwrap_or_default();
        match most.cause {
            Cause::Running(c) => format!("ran{}", call(c)),
            Cause::Interrupted(leaf) => format!("was interrupted: {}", self.leaf(leaf)),
            Cause::Preempted => match idle {
                Some(idle) => idle,
                None => format!(
                    "was switched out while runnable, and waited for {processor}{partly}{quota}"
                ),
            },
            Cause::Waiting => match idle {
                Some(idle) => idle,
                None => format!("had been woken, and waited for {processor}{partly}{quota}"),
            },
            Cause::For(leaf, c) => {
                let polls = polls(of_it.filter(|p| p.thread != self.thread));
                format!("waited{} for {}{polls}", call(c), self.leaf(leaf))
            }
            Cause::Blocked(c) => format!("waited{}; the waker is not recorded", call(c)),
            Cause::Held(disk, place, c) => {
                format!(
                    "waited{} for a request {}",
                    call(c),
                    held(model, disk, place)
                )
            }
            Cause::LeavesIdle => left_idle(of_it),
            Cause::Limited(limit) => self.facts.limit(limit),
            Cause::Idle => "was idle; the source of its next work is not recorded".into(),
            Cause::Transit => "was about to be woken".into(),
            Cause::Unknown(why) => format!("is not recorded: {}", unrecorded(why)),
        }
    }
}

/// An addition for a thread that slept several times until a timer expired, during one wait of another thread.
fn polls<'p>(pieces: impl Iterator<Item = &'p Piece>) -> String {
    /// A smaller number may be a single sleep that was interrupted.
    const SEVERAL: u64 = 3;
    let mut times: HashMap<_, u64> = HashMap::new();
    for piece in pieces.filter(|p| matches!(p.cause, Cause::For(Leaf::Timer, _))) {
        *times.entry((piece.thread, piece.inside)).or_default() += 1;
    }
    let most = times.into_values().max().filter(|times| *times >= SEVERAL);
    most.map_or_else(String::new, |times| {
        format!(" ({times} times: this thread polls, or works in steps; what it waits for is not recorded)")
    })
}

/// Describes the time that CPUs took to leave idle.
fn left_idle<'p>(pieces: impl Iterator<Item = &'p Piece>) -> String {
    let all: Vec<_> = pieces.collect();
    let time = Nanos(all.iter().map(|piece| piece.end - piece.begin).sum());
    let mut cpus: Vec<_> = all.iter().filter_map(|piece| piece.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    match (&cpus[..], all.len()) {
        ([cpu], 1) => format!("was runnable; CPU {cpu} took {time} to leave idle"),
        ([cpu], times) => {
            format!("was runnable; CPU {cpu} took {time} in total to leave idle ({times} times)")
        }
        (_, times) => {
            format!("was runnable; its CPUs took {time} in total to leave idle ({times} times)")
        }
    }
}

/// A CPU for which threads waited.
struct Had {
    cpu: u32,
    /// Total time that threads waited for this CPU, ns.
    time: u64,
    /// The longest use of the CPU during these waits, and the time of that use.
    used: Use,
    used_time: u64,
}

impl Had {
    /// The time that the sentence attributes to the use of this CPU: `all`, or the waits for this CPU if the sentence
    /// names several CPUs.
    fn of(&self, all: u64, several: bool) -> u64 {
        match several {
            true => self.time,
            false => all,
        }
    }

    /// Whether the use is at least half of `time`.
    fn is_most_of(&self, time: u64) -> bool {
        self.used_time >= time.div_ceil(2)
    }

    /// `CPU 1, which ran hog/9`; with the time of that use if other uses took more than half of the time; with the time
    /// of the wait if there are several CPUs.
    fn words(&self, model: &Model, time: u64, all: u64, several: bool) -> String {
        let who = used_by(model, self.used, time);
        let cpu = self.cpu;
        let mut words = match self.used {
            Use::Unknown => format!("CPU {cpu}, whose activity is not recorded"),
            Use::Idle => format!("CPU {cpu}, which was idle"),
            Use::Context(_) => format!("CPU {cpu}, which worked for {who}"),
            Use::Thread(_) => format!("CPU {cpu}, which ran {who}"),
        };
        let of = self.of(all, several);
        if !self.is_most_of(of) {
            let longest = match self.used {
                Use::Unknown => "",
                _ => ", its longest use",
            };
            words += &format!(" for {} of {}{longest}", Nanos(self.used_time), Nanos(of));
        } else if several {
            words += &format!(" ({})", Nanos(self.time));
        }
        words
    }
}

/// The CPUs for which threads waited in these pieces, in the order of the first waits.
fn had<'p>(model: &Model, pieces: impl Iterator<Item = &'p Piece>) -> Vec<Had> {
    let mut cpus: Vec<(u32, u64)> = Vec::new();
    let mut sums: Vec<((u32, Use), u64)> = Vec::new();
    for piece in pieces.filter(|p| matches!(p.cause, Cause::Waiting | Cause::Preempted)) {
        let Some(cpu) = piece.cpu else { continue };
        let took = piece.end - piece.begin;
        match cpus.iter_mut().find(|(of, _)| *of == cpu) {
            Some((_, sum)) => *sum += took,
            None => cpus.push((cpu, took)),
        }
        for (by, time) in used(model, cpu, piece.begin, piece.end) {
            match sums.iter_mut().find(|(who, _)| *who == (cpu, by)) {
                Some((_, sum)) => *sum += time,
                None => sums.push(((cpu, by), time)),
            }
        }
    }
    let of_cpu = |(cpu, time): (u32, u64)| {
        // On equal times, the first one wins.
        let all = sums.iter().rev().filter(|((of, _), _)| *of == cpu);
        let most = all.max_by_key(|(_, time)| *time);
        let most = most.map(|((_, used), time)| (*used, *time));
        let (used, used_time) = most.unwrap_or((Use::Unknown, time));
        Had {
            cpu,
            time,
            used,
            used_time,
        }
    };
    cpus.into_iter().map(of_cpu).collect()
}

/// Names the first of these threads, and counts the others: `archiver (20, 21, 22), hog/8 and 2 other threads`.
fn first_of(threads: &[Thread]) -> String {
    let (named, others) = threads.split_at(threads.len().min(NAMED));
    let named = together(named);
    match others.len() {
        0 => named,
        more => format!("{named} and {}", out::plural(more, "other thread")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::{
        fold::Part,
        made::{self, R, S, at, model, waking},
        words::Facts,
    };
    use lt_model::{Disk, Event, Stage, SwitchedOut, What, why};

    /// `late/7` waits for three workers, 4 ns each, and for `hog/8`, 7 ns.
    #[test]
    fn threads_of_one_name_are_one_cause() {
        let named = |tid| match tid {
            0 => &b""[..],
            7 => b"late",
            8 => b"hog",
            _ => b"worker",
        };
        let switch = |time, prev, out: SwitchedOut, next| {
            let what = What::Switch {
                prev,
                prev_name: named(prev),
                out,
                next,
                next_name: named(next),
                prev_prio: None,
                next_prio: None,
            };
            at(time, 0, what)
        };
        let mut events = vec![switch(1, 0, R, 7)];
        let mut time = 2;
        for (tid, takes) in [(20, 5), (8, 8), (21, 5), (22, 5)] {
            events.push(switch(time, 7, S, tid));
            time += takes;
            events.push(waking(time - 1, 0, 7));
            events.push(switch(time, tid, S, 7));
            time += 1;
        }
        events.push(switch(time, 7, S, 0));
        let model = model(&events);
        let thread = model.by_tid(7).next().unwrap();
        let range = (1, time);
        let pieces = why::path(&model, thread, range.0, range.1);
        let shown = Shown {
            model: &model,
            thread,
            range,
            pieces: &pieces,
            facts: &Facts::NONE,
        };
        let said = shown.verdict().unwrap();
        assert_eq!(
            said,
            "42 % of the time (12ns): late/7 waited for worker (3 threads), which ran; 25 %: late/7 waited for hog/8, which ran."
        );
        // Matches the table.
        let lines = shown.lines(Part::Longest(9), 9);
        let row = |line: &String| line.starts_with("12ns") && line.contains("worker (3 threads)");
        assert!(lines.iter().any(row), "{lines:?}");
    }

    #[test]
    fn numbers_of_threads_with_one_name_follow_the_name() {
        let thread = |tid, comm: Option<&str>| Thread {
            tid,
            comm: comm.map(str::to_string),
        };
        let threads = [
            thread(193, Some("archiver")),
            thread(8, Some("hog")),
            thread(9, None),
            thread(195, Some("archiver")),
            thread(10, None),
            thread(196, Some("archiver")),
            thread(11, Some("a\u{1b}[2J")),
        ];
        let all = "archiver (193, 195, 196), hog/8, 9, 10, a?[2J/11";
        assert_eq!(together(&threads), all);
        assert_eq!(together(&threads[..3]), "archiver/193, hog/8, 9");
        let named = "archiver (193, 195), hog/8, 9";
        assert_eq!(first_of(&threads[..4]), named);
        let one_more = format!("{named} and 1 other thread");
        assert_eq!(first_of(&threads[..5]), one_more);
        assert_eq!(first_of(&threads), format!("{named} and 3 other threads"));
    }

    /// Two disks share a tag, which a request of disk 8:0 has. From 10 ms to 800 ms, thread 7 waits for this tag, for a
    /// request of disk 8:16.
    #[test]
    fn the_disk_that_frees_a_tag_is_named_if_it_is_another_one() {
        let (first, second) = (Disk(8 << 20), Disk(8 << 20 | 16));
        let request = made::request;
        let said = |in_flight: Option<Event<'static>>| {
            let mut events = vec![
                made::switch(0, 0, 0, R, 8),
                request(1, Stage::Issued, second, 1024),
                made::completed(2, second, Some((1024, 8))),
                request(3, Stage::Queued, first, 64),
                request(4, Stage::Allocated, first, 64),
                request(5, Stage::Issued, first, 64),
                made::switch(6, 0, 8, S, 7),
                request(8, Stage::Queued, second, 256),
            ];
            events.extend(in_flight);
            events.extend([
                made::switch(10, 0, 7, S, 0),
                at(800, 0, What::Timer { function: None }),
                made::completed(800, first, Some((64, 8))),
                waking(800, 0, 7),
                at(801, 0, What::TimerEnd),
                made::switch(810, 0, 0, R, 7),
                request(811, Stage::Allocated, second, 256),
                request(812, Stage::Issued, second, 256),
                made::switch(900, 0, 7, S, 0),
            ]);
            for event in &mut events {
                event.time *= 1_000_000;
            }
            let model = model(&events);
            let thread = model.by_tid(7).next().unwrap();
            let range = (10_000_000, 810_000_000);
            let pieces = why::path(&model, thread, range.0, range.1);
            let shown = Shown {
                model: &model,
                thread,
                range,
                pieces: &pieces,
                facts: &Facts::NONE,
            };
            shown.verdict().unwrap()
        };
        let held = "98 % of the time (790.0ms): late/7 waited for a request held back before disk 8:16: no free request; \
                    the reason is a lack of tags, writeback throttling, io.cost or io.latency";
        let woken = "a completion of disk 8:0 ended the wait.";
        assert_eq!(
            said(None),
            format!("{held}; meanwhile disk 8:16 served no request; {woken}")
        );
        // The completion of another request is not recorded.
        let unknown = "whether disk 8:16 served a request meanwhile is not recorded";
        // Another CPU issues it: a request that the thread issues itself would be a reason for doubt.
        let mut other = request(9, Stage::Issued, second, 2048);
        other.cpu = 1;
        assert_eq!(said(Some(other)), format!("{held}; {unknown}; {woken}"));
    }

    /// As on PREEMPT_RT, `ktimers/1` runs the timer of thread 7, and `hog/8` occupies the CPU of `ktimers/1`.
    #[test]
    fn the_thread_that_runs_a_timer_is_named_if_it_had_waited_for_its_cpu() {
        let function = None;
        let said = |woken: u64, in_softirq: bool| {
            let (tid, name, target) = (5, &b"ktimers/1"[..], 1);
            let vector = 8;
            let mut events = vec![
                at(0, 1, What::There { tid, name }),
                made::switch(0, 0, 0, R, 7),
                made::switch(1, 1, 0, R, 5),
                made::switch(2, 1, 5, S, 8),
                made::switch(10, 0, 7, S, 0),
                at(woken, 1, What::Waking { tid, name, target }),
                made::switch(900, 1, 8, R, 5),
            ];
            if in_softirq {
                events.push(at(901, 1, What::Softirq { vector }));
            }
            events.extend([
                at(902, 1, What::Timer { function }),
                waking(903, 1, 7),
                at(904, 1, What::TimerEnd),
                made::switch(910, 0, 0, R, 7),
            ]);
            let model = model(&events);
            let thread = model.by_tid(7).next().unwrap();
            let range = (10, 910);
            let pieces = why::path(&model, thread, range.0, range.1);
            let shown = Shown {
                model: &model,
                thread,
                range,
                pieces: &pieces,
                facts: &Facts::NONE,
            };
            shown.verdict().unwrap()
        };
        let timer = "99 % of the time (893ns): late/7 waited for a timer";
        let handler = "ktimers/1/5, which ran the timer, had waited 600ns for CPU 1, which ran hog/8; when the timer was due is not recorded.";
        assert_eq!(said(300, true), format!("{timer}; {handler}"));
        // A short time, or the interrupt of another timer on top of that thread.
        for other in [said(850, true), said(300, false)] {
            assert_eq!(other, format!("{timer}."));
        }
    }
}
