// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What each thread does at the moment, and has done.

use std::collections::HashMap;

use crate::context::{Context, WakerId};
use crate::names::Name;
use crate::thread::{Interval, State, Thread, ThreadId};

/// A thread at the moment.
#[derive(Debug)]
pub(super) struct Task {
    /// What it does, and since when.
    pub(super) state: State,
    since: u64,
    /// The processor on which it runs, ran last, or is to run.
    pub(super) cpu: Option<u32>,
    /// The system call that it is in.
    pub(super) call: Option<Name>,
    /// Somebody woke it while it ran, for that processor.
    pub(super) pending: Option<(Option<WakerId>, Option<u32>)>,
    /// Softirqs that it was in when it was switched out.
    pub(super) held: Vec<Context>,
    /// Who made it.
    maker: Option<WakerId>,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) threads: Vec<Thread>,
    now: Vec<Task>,
    by_tid: HashMap<i32, ThreadId>,
    /// Where the last thread of a number ended.
    ended: HashMap<i32, u64>,
    /// Where the events begin, and so all that is not born later.
    pub(super) start: u64,
    /// What ends here or before is not kept.
    pub(super) keep: u64,
}

impl Tasks {
    /// The thread of that number; the idle one is none.
    pub(super) fn find(&mut self, tid: i32) -> Option<ThreadId> {
        if tid <= 0 {
            return None;
        }
        match self.by_tid.get(&tid) {
            Some(thread) => Some(*thread),
            None => {
                let since = self.ended.get(&tid).copied().unwrap_or(self.start);
                Some(self.add(tid, since, State::Unknown, false))
            }
        }
    }

    fn add(&mut self, tid: i32, since: u64, state: State, born: bool) -> ThreadId {
        // There is no memory for 2^32 of them.
        let id = ThreadId(self.threads.len() as u32);
        self.threads.push(Thread {
            tid,
            name: None,
            born,
            dead: false,
            intervals: Vec::new(),
        });
        self.now.push(Task {
            state,
            since,
            cpu: None,
            call: None,
            pending: None,
            held: Vec::new(),
            maker: None,
        });
        self.by_tid.insert(tid, id);
        id
    }

    /// One that was found.
    pub(super) fn of(&mut self, thread: ThreadId) -> &mut Task {
        &mut self.now[thread.0 as usize]
    }

    /// It does something else from now on.
    pub(super) fn go(&mut self, thread: ThreadId, time: u64, state: State) {
        if self.now[thread.0 as usize].state != state {
            self.close(thread, time, None);
            self.now[thread.0 as usize].state = state;
        }
    }

    /// It was blocked, and waits for a processor.
    pub(super) fn woken(
        &mut self,
        thread: ThreadId,
        time: u64,
        waker: Option<WakerId>,
        target: Option<u32>,
    ) {
        self.close(thread, time, waker);
        let task = self.of(thread);
        task.state = State::Waiting;
        task.cpu = target.or(task.cpu);
    }

    /// A thread that the present one has made. If there is one of that number, its end was not seen.
    pub(super) fn born(&mut self, tid: i32, time: u64, maker: Option<WakerId>) -> Option<ThreadId> {
        if tid <= 0 {
            return None;
        }
        if let Some(old) = self.by_tid.get(&tid).copied() {
            self.end(old, time);
        }
        let thread = self.add(tid, time, State::Waiting, true);
        self.of(thread).maker = maker;
        Some(thread)
    }

    /// What it does is not known any more.
    pub(super) fn forget(&mut self, thread: Option<ThreadId>, since: u64) {
        let Some(thread) = thread else {
            return;
        };
        let task = self.of(thread);
        task.pending = None;
        task.held.clear();
        task.call = None;
        self.go(thread, since, State::Unknown);
    }

    /// It is no more; another thread may have its number.
    pub(super) fn end(&mut self, thread: ThreadId, time: u64) {
        self.close(thread, time, None);
        if let Some(dead) = self.threads.get_mut(thread.0 as usize) {
            dead.dead = true;
            if self.by_tid.get(&dead.tid) == Some(&thread) {
                self.by_tid.remove(&dead.tid);
                self.ended.insert(dead.tid, time);
            }
        }
    }

    pub(super) fn finish(&mut self, end: u64) {
        for i in 0..self.threads.len() {
            if !self.threads[i].dead {
                self.close(ThreadId(i as u32), end, None);
            }
        }
    }

    fn close(&mut self, thread: ThreadId, time: u64, waker: Option<WakerId>) {
        let task = &mut self.now[thread.0 as usize];
        let thread = &mut self.threads[thread.0 as usize];
        // A processor may still take a dead one for its own, when events are missing.
        if time <= task.since || thread.dead {
            return;
        }
        let waker = waker.or(task.maker.take());
        let since = std::mem::replace(&mut task.since, time);
        if time <= self.keep {
            return;
        }
        match thread.intervals.last_mut() {
            // What came between took no time.
            Some(last)
                if last.waker.is_none() && (last.state, last.cpu) == (task.state, task.cpu) =>
            {
                last.end = time;
                last.waker = waker;
            }
            _ => thread.intervals.push(Interval {
                begin: since,
                end: time,
                state: task.state,
                cpu: task.cpu,
                waker,
            }),
        }
    }
}
