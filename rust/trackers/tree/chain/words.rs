// SPDX-License-Identifier: GPL-2.0

//! Changes a chain in place: appends steps and their attachments, and makes room for them.

use super::{
    fold, of_tag, place_of_name, row::Row, tag_of, Counts, Kind, Look, Origin, Rivals, Spent, Step,
    ACTION, COUNTS, FIRST_STEP, LAST, LONGEST, MORE, NAME, NAME_BYTES, PLACE, PLACES,
};

/// The totals noted when a wait began.
#[derive(Clone, Copy)]
pub(crate) struct Noted {
    cpu: u32,
    spent: Spent,
    /// Whether the task has waited for another CPU before.
    was_queued: bool,
}

/// The bit of `was_queued` in the last word of a [`Kind::Wait`].
const WAS_QUEUED: u64 = 1 << 63;

/// Memory that holds a chain.
pub(crate) trait Words: Look {
    fn set(&mut self, at: usize, word: u64);

    #[inline(always)]
    fn set_counts(&mut self, counts: Counts) {
        self.set(COUNTS, counts.0);
    }

    /// Starts a chain without steps at `start`. A chain that begins with a device interrupt needs
    /// the name of the interrupt's action, too.
    #[inline(always)]
    fn begin(&mut self, start: u64, origin: Origin) {
        self.begin_counted(start, 0, Counts::of(origin, 0));
    }

    /// Starts a chain of these steps, each given with the time when it was taken. The chain starts
    /// at the first step. A step with a time before the previous step's takes no time, as in
    /// [`Words::push`].
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

    /// Starts a chain with three parts: the step `first`; the steps of another chain, which began
    /// at `begin`, except those taken before `first`; and the step `last`.
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
        // Usually the whole chain is copied: no step was left out, or taken before `first`.
        let is_whole = counts.more() == 0 && chain.get(MORE) == 0 && begin >= first.0;
        // Adds the gap to the time of the first copied step, and checks that the sum does not reach
        // the bits above the time. (Only a gap of centuries could wrap around and leave those bits
        // unchanged.)
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

    /// Starts a chain around any other chain. No argument is a pair, which would be passed in
    /// memory.
    #[cold]
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "a pair is passed in memory")]
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

    /// Returns the places of a chain that begins at `start`.
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

    /// Makes room for this many places after the last step; all of them must be filled.
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

    /// Sets the words of a chain other than its steps; the last step was taken at `last`.
    #[inline(always)]
    fn begin_counted(&mut self, last: u64, more: u64, counts: Counts) {
        self.set(LAST, last);
        self.set(MORE, more);
        self.set(PLACE, 0);
        self.set_counts(counts);
    }

    /// Sets the name of the action of the interrupt at the origin; the bytes after its end are
    /// arbitrary.
    fn set_action(&mut self, name: [u64; NAME]) {
        for (at, word) in name.into_iter().enumerate() {
            self.set(ACTION + at, word);
        }
    }

    /// Appends a step, taken at `now`. If `now` is before the last step, the time of the new step
    /// is 0.
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
        self.push_named_and(now, step, name, |_| ());
    }

    /// Appends a step with the name of its task, and changes the counts by `change`. See
    /// [`Words::push_named`].
    #[inline(always)]
    fn push_named_and(
        &mut self,
        now: u64,
        step: Step,
        name: [u64; 2],
        change: impl FnOnce(&mut Counts),
    ) {
        let (at, mut counts) = self.room(2);
        self.put(at, now, step);
        self.put_words(at + 1, place_of_name(name));
        counts.add_places(2);
        change(&mut counts);
        self.set_counts(counts);
    }

    /// Appends a step with a cookie of at most [`COOKIE_MAX`](super::COOKIE_MAX) bytes. See
    /// [`Words::push`].
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

    /// Notes the totals of the CPU that the task waits for from the last step on.
    #[inline(always)]
    fn push_wait(&mut self, cpu: u32, spent: Spent) {
        let (at, _) = self.room(1);
        self.attach(at, spent.to_words(Kind::Wait, cpu));
    }

    /// Appends a step of a task that gets the CPU, whose totals are `spent` now. If the totals were
    /// noted when the wait began, the step gets the CPU's activity during the wait. `rivals`
    /// returns the tasks, interrupts and softirqs that had the CPU, given the start of the wait and
    /// the noted totals.
    ///
    /// Out of line: a switch without `interference=1` should not pay for its registers.
    #[inline(never)]
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
        // If another CPU was noted, a move was missed: the task has waited for several CPUs.
        let noted = self.take_wait().filter(|noted| noted.cpu == step.cpu);
        let parts = noted.and_then(|noted| noted.spent.until(spent, wait));
        // The rivals of a task that was moved while it waited are not known: it waited for other
        // CPUs, too.
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

    /// Makes room for a step with this many places, and for the rivals of its wait after it. No
    /// step is left out for rivals. A chain keeps the rivals of one wait only, the longest; if
    /// there is still no room for the new rivals, the last of them are dropped.
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

    /// Drops the rivals; returns the number of places then in use.
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

    /// Makes a waiting task wait for the CPU `to` from now on, using the totals of both CPUs.
    /// `was_queued`: the task has waited for the other CPU, and is not just being woken.
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

    /// Removes and returns the note about the wait that the chain ends with.
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

    /// Stores the words of an attachment to the last step, in the first free place.
    #[inline(always)]
    fn attach(&mut self, at: usize, words: [u64; 2]) {
        self.put_words(at, words);
        let mut counts = self.counts();
        counts.set_places(at + 1);
        self.set_counts(counts);
    }

    /// Stores the words of a place, without counting it.
    #[inline(always)]
    fn put_words(&mut self, at: usize, [low, high]: [u64; 2]) {
        self.set(FIRST_STEP + 2 * at, low);
        self.set(FIRST_STEP + 2 * at + 1, high);
    }

    /// Stores a name, or a part of one, in the first free place.
    #[inline(always)]
    fn put_name(&mut self, at: usize, name: [u64; 2]) {
        self.attach(at, place_of_name(name));
    }

    /// Stores a step in the first free place, without counting it.
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

    /// Returns the first of at least `places` free places, and the counts.
    #[inline(always)]
    fn room(&mut self, places: usize) -> (usize, Counts) {
        let counts = self.counts();
        match counts.free_place(places) {
            Some(at) => (at, counts),
            None => {
                let at = self.leave_out(counts.places(), places);
                // There is room now; the bound is repeated for the compiler.
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
            // The rivals prevent folding, too.
            used = fold::fold(self, self.counts().places(), places);
        }
        if used + places <= PLACES {
            return used;
        }
        self.leave_out_from(self.boundary(used), used, used + places - PLACES)
    }

    /// Leaves out at least this many places, from the place `from` on; returns the first free one.
    fn leave_out_from(&mut self, from: usize, used: usize, places: usize) -> usize {
        let (mut to, mut time, mut steps) = (from, self.get(MORE), 0);
        let is_first = self.counts().more() == 0;
        // Only whole steps are left out, so no name stays without its step.
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

    /// Sets the time of [`Look::before_more`].
    fn set_before_more(&mut self, time: u64) {
        let tag = self.get(FIRST_STEP) & !LONGEST;
        self.set(FIRST_STEP, tag | time.min(LONGEST));
    }

    /// Copies all words of a chain that are in use.
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
    /// later: earlier ones are not on the chain from an origin at that time.
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
                    // Copies all rivals of the wait, or none. A chain keeps the rivals of one wait.
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
                let times = u64::from(fold::of_preempted(subject).times);
                let mut counts = self.counts();
                counts.set_preempted(counts.preempted() + times);
                self.set_counts(counts);
            }
        }
        if used <= boundary {
            self.append_more(now, chain, since, from <= used);
        }
    }

    /// Copies the rivals from these places of `chain`, if there is room.
    fn append_rivals(&mut self, chain: &impl Look, from: usize, end: usize) {
        let Some(at) = self.counts().free_place(end - from) else {
            return;
        };
        for nth in 0..end - from {
            let words = [0, 1].map(|word| chain.get(FIRST_STEP + 2 * (from + nth) + word));
            self.attach(at + nth, words);
        }
    }

    /// Takes over the sums of the steps that `chain` has left out, at `now`, if `wanted`; returns
    /// the time after those steps.
    fn append_more(&mut self, now: u64, chain: &impl Look, since: u64, wanted: bool) -> u64 {
        let (time, steps) = (chain.get(MORE), chain.counts().more());
        let after = now.wrapping_add(time);
        if wanted && now >= since && (time > 0 || steps > 0) {
            let used = self.counts().places();
            let from = self.boundary(used);
            let gap = now.saturating_sub(self.last());
            if steps > 0 && from < used {
                // The steps left out here begin with the first step after the boundary.
                self.leave_out_from(from, used, used - from);
            } else if steps > 0 && self.counts().more() == 0 {
                self.set_before_more(chain.before_more().saturating_add(gap));
            }
            let time = time.wrapping_add(gap);
            self.set(MORE, self.get(MORE).wrapping_add(time));
            self.set(LAST, self.get(LAST).wrapping_add(time));
            let mut counts = self.counts();
            counts.add_more(steps);
            counts.set_preempted(counts.preempted() + fold::left_out(chain));
            self.set_counts(counts);
        }
        after
    }
}
