// SPDX-License-Identifier: GPL-2.0

//! Changes a chain where it is: appends steps and what belongs to them, and makes room for them.

use super::{
    fold, of_tag, place_of_name, row::Row, tag_of, Counts, Kind, Look, Origin, Rivals, Spent, Step,
    ACTION, COUNTS, FIRST_STEP, LAST, LONGEST, MORE, NAME, NAME_BYTES, PLACE, PLACES,
};

/// What was noted when a wait began.
#[derive(Clone, Copy)]
pub(crate) struct Noted {
    cpu: u32,
    spent: Spent,
    /// Whether the task has waited for another CPU before.
    was_queued: bool,
}

/// The bit of that in the last word of a [`Kind::Wait`].
const WAS_QUEUED: u64 = 1 << 63;

/// Memory that holds a chain.
pub(crate) trait Words: Look {
    fn set(&mut self, at: usize, word: u64);

    #[inline(always)]
    fn set_counts(&mut self, counts: Counts) {
        self.set(COUNTS, counts.0);
    }

    /// A chain without steps that begins at `start`. One that begins with an interrupt needs the name
    /// of its action, too.
    #[inline(always)]
    fn begin(&mut self, start: u64, origin: Origin) {
        self.begin_counted(start, 0, Counts::of(origin, 0));
    }

    /// A chain of these steps, each with the time when it was taken: it begins with the first. As with
    /// [`Words::push`], a clock that is behind stands still.
    #[inline(always)]
    fn begin_with<const N: usize>(&mut self, origin: Origin, steps: [(u64, Step); N])
    where
        Self: Sized,
    {
        const { assert!(0 < N && N <= PLACES) };
        let mut row = self.new_row(steps[0].0, origin);
        for (now, step) in steps {
            row.step(now, step);
        }
        row.begin();
    }

    /// A chain of the step `first`, of those of another one, which began at `begin`, that were not taken
    /// before it, and of the step `last`.
    #[inline(always)]
    fn begin_around(
        &mut self,
        origin: Origin,
        first: (u64, Step),
        (begin, chain): (u64, &impl Look),
        last: (u64, Step),
    ) where
        Self: Sized,
    {
        let (counts, tag) = (chain.counts(), chain.get(FIRST_STEP));
        let (used, gap) = (counts.places(), begin.wrapping_sub(first.0));
        // Mostly all of it: nothing was left out, or taken before.
        let is_whole = counts.more() == 0 && chain.get(MORE) == 0 && begin >= first.0;
        // Its first step's time does not reach the bits above it. (It would have to be of centuries to
        // do so and to leave them as they were.)
        let tag_after = tag.wrapping_add(gap);
        let fits = used != 0 && used + 2 <= PLACES && tag ^ tag_after <= LONGEST;
        if !is_whole || !fits {
            return self.begin_around_part(origin, first.0, first.1, begin, chain, last.0, last.1);
        }
        let mut row = self.new_row(first.0, origin);
        row.counts.set_preempted(counts.preempted());
        row.step(first.0, first.1);
        row.place([tag_after, chain.get(FIRST_STEP + 1)]);
        for place in 1..used {
            row.place([0, 1].map(|word| chain.get(FIRST_STEP + 2 * place + word)));
        }
        row.last = chain.last();
        row.step(last.0, last.1);
        row.begin();
    }

    /// Begins a chain around any other one. No argument is a pair, which would be in memory.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments, reason = "see above")]
    fn begin_around_part(
        &mut self,
        origin: Origin,
        since: u64,
        first: Step,
        begin: u64,
        chain: &impl Look,
        now: u64,
        last: Step,
    ) where
        Self: Sized,
    {
        self.begin_with(origin, [(since, first)]);
        self.append(begin, chain, since);
        self.push(now, last);
    }

    /// The places of a chain that begins at `start`.
    #[inline(always)]
    fn new_row(&mut self, start: u64, origin: Origin) -> Row<'_, Self>
    where
        Self: Sized,
    {
        Row {
            chain: self,
            from: 0,
            at: 0,
            last: start,
            more: 0,
            counts: Counts::of(origin, 0),
        }
    }

    /// Makes room for this many places behind the last step; all of them have to be filled.
    #[inline(always)]
    fn row<const N: usize>(&mut self) -> Row<'_, Self>
    where
        Self: Sized,
    {
        let (at, counts) = self.room(N);
        Row {
            last: self.last(),
            chain: self,
            from: at,
            at,
            more: 0,
            counts,
        }
    }

    /// What a chain has besides its steps, of which the last one was at `last`.
    #[inline(always)]
    fn begin_counted(&mut self, last: u64, more: u64, counts: Counts) {
        self.set(LAST, last);
        self.set(MORE, more);
        self.set(PLACE, 0);
        self.set_counts(counts);
    }

    /// The name of the action of the interrupt that it began with, perhaps with more behind its end.
    fn set_action(&mut self, name: [u64; NAME]) {
        for (at, word) in name.into_iter().enumerate() {
            self.set(ACTION + at, word);
        }
    }

    /// Appends a step, taken at `now`. A clock that is behind that of the last step stands still.
    #[inline]
    fn push(&mut self, now: u64, step: Step) {
        self.push_and(now, step, |_| ());
    }

    /// Appends a step, taken at `now`, and changes the counts by `change`. See [`Words::push`].
    #[inline(always)]
    fn push_and(&mut self, now: u64, step: Step, change: impl FnOnce(&mut Counts)) {
        let (at, mut counts) = self.room(1);
        self.put(at, now, step);
        counts.add_places(1);
        change(&mut counts);
        self.set_counts(counts);
    }

    /// Appends a step with the name of its task, of at most [`NAME_BYTES`]. See [`Words::push`].
    fn push_named(&mut self, now: u64, step: Step, name: [u64; 2]) {
        let (at, _) = self.room(2);
        self.put(at, now, step);
        self.put_name(at + 1, name);
    }

    /// Appends a step with a cookie of at most [`COOKIE_MAX`](super::COOKIE_MAX) bytes. See [`Words::push`].
    fn push_cookie(&mut self, now: u64, step: Step, cookie: &[u8]) {
        let parts = cookie.chunks(NAME_BYTES);
        let (at, _) = self.room(1 + parts.len());
        self.put(at, now, step);
        for (nth, part) in parts.enumerate() {
            let mut bytes = [0; 16];
            bytes[..part.len()].copy_from_slice(part);
            let number = u128::from_le_bytes(bytes);
            self.put_name(at + 1 + nth, [number as u64, (number >> 64) as u64]);
        }
    }

    /// Notes what the CPU has done for which the task waits from the last step on.
    #[inline(always)]
    fn push_wait(&mut self, cpu: u32, spent: Spent) {
        let (at, _) = self.room(1);
        self.attach(at, spent.to_words(Kind::Wait, cpu));
    }

    /// Appends a step of a task that gets the CPU, whose totals are `spent` now. If they were noted
    /// when the wait began, the step has what the CPU did meanwhile. `rivals` returns which tasks,
    /// interrupts and softirqs had the CPU, given the start of the wait and what was noted then.
    #[inline(always)]
    fn push_waited(
        &mut self,
        now: u64,
        step: Step,
        name: Option<[u64; 2]>,
        spent: Spent,
        rivals: impl FnOnce(u64, Spent) -> Rivals,
    ) {
        let since = self.last();
        let wait = now.saturating_sub(since);
        // A task that has got to another CPU unnoticed has waited for several.
        let noted = self.take_wait().filter(|noted| noted.cpu == step.cpu);
        let parts = noted.and_then(|noted| noted.spent.until(spent, wait));
        // One that was moved has waited for others, too.
        let mut of_rivals = match (noted, parts) {
            (Some(noted), Some(_)) if !noted.was_queued => rivals(since, noted.spent),
            _ => Rivals::default(),
        };
        let places = 1 + usize::from(parts.is_some()) + usize::from(name.is_some());
        if !of_rivals.is_empty() {
            self.make_room(places, wait, &mut of_rivals);
        }
        let (at, mut counts) = self.room(places);
        self.put(at, now, step);
        counts.set_places(at + 1);
        self.set_counts(counts);
        if let Some(parts) = parts {
            self.attach(at + 1, parts.to_words(Kind::Parts, step.cpu));
        }
        if let Some(name) = name {
            self.put_name(at + places - 1, name);
        }
        if !of_rivals.is_empty() {
            self.attach_rivals(at + places, &of_rivals);
        }
    }

    /// Makes room for a step with this many places, and for the rivals of its wait behind it. Those of a
    /// shorter wait are dropped for that, but no step: the last of the rivals are, if there is no room.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, places: usize, wait: u64, rivals: &mut Rivals) {
        if let Some((from, _)) = self.rivals() {
            let step = (0..from).rev().find(|&at| !self.is_attached(at));
            if step.is_some_and(|at| self.get(FIRST_STEP + 2 * at) & LONGEST >= wait) {
                *rivals = Rivals::default();
                return;
            }
            self.drop_rivals();
        }
        let mut used = self.counts().places();
        if used + places + rivals.places().1 > PLACES {
            used = fold::fold(self, used, places + rivals.places().1);
        }
        while !rivals.is_empty() && used + places + rivals.places().1 > PLACES {
            rivals.drop_last();
        }
    }

    #[cold]
    #[inline(never)]
    fn attach_rivals(&mut self, at: usize, rivals: &Rivals) {
        let (places, used) = rivals.places();
        for (nth, &words) in places.iter().take(used).enumerate() {
            self.attach(at + nth, words);
        }
    }

    /// Drops who had the CPU; returns how many places are in use then.
    fn drop_rivals(&mut self) -> usize {
        let mut counts = self.counts();
        let used = counts.places();
        let Some((from, end)) = self.rivals() else {
            return used;
        };
        for at in 2 * end..2 * used {
            let word = self.get(FIRST_STEP + at);
            self.set(FIRST_STEP + at - 2 * (end - from), word);
        }
        counts.set_places(used - (end - from));
        self.set_counts(counts);
        used - (end - from)
    }

    /// The task waits for the CPU `to` from now on, if it waits: what both have done so far. `was_queued`:
    /// it has waited for the other one, and is not just being woken.
    fn move_wait(&mut self, to: u32, was_queued: bool, spent: impl Fn(u32) -> Option<Spent>) {
        let Some(noted) = self.take_wait() else {
            return;
        };
        if let (Some(old), Some(new)) = (spent(noted.cpu), spent(to)) {
            self.push_wait(to, noted.spent.moved(old, new));
            if was_queued || noted.was_queued {
                let at = FIRST_STEP + 2 * self.counts().places() - 1;
                self.set(at, self.get(at) | WAS_QUEUED);
            }
        }
    }

    /// Takes away what was noted when the wait began that the chain ends with.
    fn take_wait(&mut self) -> Option<Noted> {
        if !self.is_waiting() {
            return None;
        }
        let mut counts = self.counts();
        let last = counts.places() - 1;
        counts.set_places(last);
        self.set_counts(counts);
        let at = FIRST_STEP + 2 * last;
        let (cpu, spent) = Spent::of_words([self.get(at), self.get(at + 1)]);
        Some(Noted {
            cpu,
            spent,
            was_queued: self.get(at + 1) & WAS_QUEUED != 0,
        })
    }

    /// Stores what belongs to the step before at a free place, the first.
    #[inline(always)]
    fn attach(&mut self, at: usize, [low, high]: [u64; 2]) {
        self.set(FIRST_STEP + 2 * at, low);
        self.set(FIRST_STEP + 2 * at + 1, high);
        let mut counts = self.counts();
        counts.set_places(at + 1);
        self.set_counts(counts);
    }

    /// Stores a name, or a part of one, at a free place, the first.
    #[inline(always)]
    fn put_name(&mut self, at: usize, name: [u64; 2]) {
        self.attach(at, place_of_name(name));
    }

    /// Stores a step at a free place, the first, which is not counted yet.
    #[inline(always)]
    fn put(&mut self, at: usize, now: u64, step: Step) {
        let last = self.get(LAST);
        let now = now.max(last);
        let mut time = now - last;
        if time > LONGEST {
            self.set(MORE, self.get(MORE).wrapping_add(time - LONGEST));
            time = LONGEST;
        }
        self.set(LAST, now);
        self.set(FIRST_STEP + 2 * at, tag_of(step.kind, step.cpu, time));
        self.set(FIRST_STEP + 2 * at + 1, step.subject);
    }

    /// The first free place, which has `places` behind it with itself, and the counts.
    #[inline(always)]
    fn room(&mut self, places: usize) -> (usize, Counts) {
        let counts = self.counts();
        match counts.free_place(places) {
            Some(at) => (at, counts),
            None => {
                let at = self.leave_out(counts.places(), places);
                // There is room now: said once more for the compiler.
                (at.min(PLACES.saturating_sub(places)), self.counts())
            }
        }
    }

    /// Leaves out steps until there is room for `places` more.
    #[cold]
    fn leave_out(&mut self, used: usize, places: usize) -> usize {
        let mut used = fold::fold(self, used, places);
        if used + places > PLACES {
            self.drop_rivals();
            // They prevent folding, too.
            used = fold::fold(self, self.counts().places(), places);
        }
        if used + places <= PLACES {
            return used;
        }
        self.leave_out_from(self.boundary(used), used, used + places - PLACES)
    }

    /// Leaves out this many places or more, from the place `from` on; returns the first free one.
    fn leave_out_from(&mut self, from: usize, used: usize, places: usize) -> usize {
        let (mut to, mut time, mut steps) = (from, self.get(MORE), 0);
        let is_first = self.counts().more() == 0;
        // Whole steps: not the name without its task.
        while to < used && (to - from < places || self.is_attached(to)) {
            if !self.is_attached(to) {
                let took = self.get(FIRST_STEP + 2 * to) & LONGEST;
                if is_first && steps == 0 {
                    self.set_before_more(took);
                }
                time = time.wrapping_add(took);
                steps += 1;
            }
            to += 1;
        }
        for at in 2 * to..2 * used {
            let word = self.get(FIRST_STEP + at);
            self.set(FIRST_STEP + at - 2 * (to - from), word);
        }
        let mut counts = self.counts();
        counts.set_places(used - (to - from));
        counts.add_more(steps);
        self.set_counts(counts);
        self.set(MORE, time);
        used - (to - from)
    }

    /// See [`Look::before_more`].
    fn set_before_more(&mut self, time: u64) {
        let tag = self.get(FIRST_STEP) & !LONGEST;
        self.set(FIRST_STEP, tag | time.min(LONGEST));
    }

    /// Copies all of a chain that is in use.
    #[inline(always)]
    fn copy_from(&mut self, from: &impl Look) {
        for at in 0..ACTION {
            self.set(at, from.get(at));
        }
        if from.has_action() {
            for at in ACTION..FIRST_STEP {
                self.set(at, from.get(at));
            }
        }
        for place in 0..from.counts().places() {
            let at = FIRST_STEP + 2 * place;
            self.set(at, from.get(at));
            self.set(at + 1, from.get(at + 1));
        }
    }

    /// Appends the steps of another chain, which began at `start`, that were taken at `since` or
    /// later: those before are not on the chain from an origin at that time.
    fn append(&mut self, start: u64, chain: &impl Look, since: u64) {
        self.append_from(start, chain, since, 0);
    }

    /// Appends the steps of another chain from the place `from` on. See [`Words::append`].
    fn append_from(&mut self, start: u64, chain: &impl Look, since: u64, from: usize) {
        let (counts, mut now) = (chain.counts(), start);
        let used = counts.places();
        let boundary = chain.boundary(used);
        for at in 0..used {
            if at == boundary {
                now = self.append_more(now, chain, since, from <= at);
            }
            let (tag, subject) = (
                chain.get(FIRST_STEP + 2 * at),
                chain.get(FIRST_STEP + 2 * at + 1),
            );
            let Some((kind, cpu, time)) = of_tag(tag) else {
                continue;
            };
            let is_more = at == 0 && counts.more() > 0;
            now += if is_more { 0 } else { time };
            if now < since || at < from {
                continue;
            }
            self.push(now, Step { kind, cpu, subject });
            let rivals = chain.rivals();
            for next in (at + 1..used).take_while(|&next| chain.is_attached(next)) {
                if let Some((from, end)) =
                    rivals.filter(|(from, end)| (*from..*end).contains(&next))
                {
                    // All of them, or none; and only of one wait.
                    if next == from && self.rivals().is_none() {
                        self.append_rivals(chain, from, end);
                    }
                    continue;
                }
                let words = [0, 1].map(|word| chain.get(FIRST_STEP + 2 * next + word));
                let (at, _) = self.room(1);
                self.attach(at, words);
            }
            if kind == Kind::Preempted {
                let mut counts = self.counts();
                counts.add_preempted();
                self.set_counts(counts);
            }
        }
        if used <= boundary {
            self.append_more(now, chain, since, from <= used);
        }
    }

    /// Takes over who had the CPU, from these places of `chain`, if there is room.
    fn append_rivals(&mut self, chain: &impl Look, from: usize, end: usize) {
        let Some(at) = self.counts().free_place(end - from) else {
            return;
        };
        for nth in 0..end - from {
            let words = [0, 1].map(|word| chain.get(FIRST_STEP + 2 * (from + nth) + word));
            self.attach(at + nth, words);
        }
    }

    /// Takes over what `chain` has left out, at `now`, if it is `wanted`; returns the time
    /// afterwards.
    fn append_more(&mut self, now: u64, chain: &impl Look, since: u64, wanted: bool) -> u64 {
        let (time, steps) = (chain.get(MORE), chain.counts().more());
        let after = now.wrapping_add(time);
        if wanted && now >= since && (time > 0 || steps > 0) {
            let used = self.counts().places();
            let from = self.boundary(used);
            let gap = now.saturating_sub(self.last());
            if steps > 0 && from < used {
                // What is left out here begins with the first step behind the boundary.
                self.leave_out_from(from, used, used - from);
            } else if steps > 0 && self.counts().more() == 0 {
                self.set_before_more(chain.before_more().saturating_add(gap));
            }
            let time = time.wrapping_add(gap);
            self.set(MORE, self.get(MORE).wrapping_add(time));
            self.set(LAST, self.get(LAST).wrapping_add(time));
            let mut counts = self.counts();
            counts.add_more(steps);
            self.set_counts(counts);
        }
        after
    }
}
