// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sums operations by stack.
//!
//! ```text
//!   alert -> operation, once it has ended -> group of its stack, by the names of the functions
//! ```
//!
//! An operation that has not ended is kept until its end comes, or until all alerts have been read. So memory grows with
//! the number of stacks and of operations in flight, not with the number of alerts.

use std::collections::{BTreeMap, HashMap};

use lt_proc::{Alert, Delays, Labels, Pending, Reason, UserFrame};
use serde::Serialize;

use super::args::By;
use super::operation::{Open, Operation, is_entry, name};
use super::user::User;

/// Maximum number of functions of a waker's stack, whatever `stack` is.
const WAKER_DEPTH: usize = 16;

/// Delays, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) total: u64,
    pub(crate) longest: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, delay: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(delay);
        self.longest = self.longest.max(delay);
    }

    fn add_all(&mut self, delays: &Delays) {
        let total = u64::try_from(delays.sum).unwrap_or(u64::MAX);
        self.count += delays.count;
        self.total = self.total.saturating_add(total);
        self.longest = self.longest.max(delays.max);
    }
}

/// Shown in place of a function for all stacks that have no sums of their own.
const OTHER: &str = "[other]";

/// The operations of one stack.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Where the tasks were, the innermost function first; empty if not recorded, or not asked for.
    pub(super) stack: Vec<String>,
    pub(super) waker_stack: Vec<String>,
    /// Where the tasks were in user space; `None` if not recorded, or not asked for.
    pub(super) user: Option<User>,
    pub(super) sum: Sum,
    /// Sums by the name of the late task and the name of the waker. The waker's name is empty unless the sums are by
    /// waker. The kernel's sums have no tasks.
    pub(super) tasks: BTreeMap<(String, String), Sum>,
    /// Whether outer functions of `stack` may be missing: it has the maximum length and does not end where the kernel
    /// is entered, or the kernel marked it as cut off.
    pub(super) is_cut: bool,
    /// Whether outer functions of `waker_stack` may be missing.
    pub(super) is_waker_cut: bool,
}

impl Group {
    /// Whether no stack in the kernel is recorded.
    pub(super) fn is_without(&self) -> bool {
        self.stack.is_empty() && self.waker_stack.is_empty()
    }

    /// Whether no stack is recorded, neither in the kernel nor in user space.
    pub(super) fn is_bare(&self) -> bool {
        self.is_without() && self.functions().is_empty()
    }

    /// Whether a stack in the kernel is cut off.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_cut || self.is_waker_cut
    }

    /// The functions of the program, the innermost first; none if not recorded.
    pub(super) fn functions(&self) -> &[UserFrame] {
        self.user.as_ref().map_or(&[][..], User::functions)
    }

    /// Whether outer functions of the program may be missing.
    pub(super) fn is_user_cut(&self) -> bool {
        matches!(self.user, Some(User::Stack { is_cut: true, .. }))
    }

    /// Whether a function of the program has no name.
    pub(super) fn is_unnamed(&self) -> bool {
        self.functions().iter().any(|one| one.name.is_none())
    }

    /// Whether these are the operations of all stacks that have no sums of their own.
    pub(super) fn is_other(&self) -> bool {
        self.stack == [OTHER]
    }

    /// Adds an operation with the same functions.
    fn add(&mut self, operation: Operation, by: By) {
        join(&mut self.stack, operation.stack);
        join(&mut self.waker_stack, operation.waker_stack);
        match (&mut self.user, operation.user) {
            (Some(user), Some(other)) => user.join(&other),
            (user, other) => *user = other,
        }
        let waker = match by {
            By::Kernel => String::new(),
            By::Waker | By::Both => operation.waker,
        };
        let tasks = self.tasks.entry((operation.comm, waker)).or_default();
        tasks.add(operation.delay);
        self.sum.add(operation.delay);
    }
}

/// Keeps the offset of each function only if all operations share it.
fn join(frames: &mut Vec<String>, others: Vec<String>) {
    if frames.is_empty() {
        *frames = others;
        return;
    }
    for (frame, other) in frames.iter_mut().zip(others) {
        if *frame != other {
            *frame = name(frame);
        }
    }
}

/// The names of the functions of a task, of its waker, and of its program.
type Key = (Vec<String>, Vec<String>, Option<User>);

/// Sums of the alerts so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    by: By,
    open: Open,
    groups: HashMap<Key, Group>,
    all: Sum,
    /// Sum of the delays that are in the histogram of the instance, ns.
    ended: u64,
    moved: u64,
    at_least: u64,
    limits: Limits,
    /// The number of the first alert of each instance.
    first: BTreeMap<String, u64>,
}

/// Lowest and highest limits that the operations exceeded, ns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) thresholds: Option<(u64, u64)>,
    pub(super) timeouts: Option<(u64, u64)>,
}

impl Limits {
    /// Adds the limit of an alert: the timeout for an alert of a timeout, otherwise the threshold.
    fn add(&mut self, alert: &Alert) {
        let range = match alert.reason {
            Reason::Timeout => &mut self.timeouts,
            _ => &mut self.thresholds,
        };
        let (low, high) = range.unwrap_or((u64::MAX, 0));
        *range = Some((low.min(alert.threshold), high.max(alert.threshold)));
    }
}

/// The result.
#[derive(Debug)]
pub(super) struct Sums {
    pub(super) by: By,
    /// Whether the sums cover all operations, late or not, as counted by the kernel.
    pub(super) is_exact: bool,
    /// The longest total first. The groups without a stack, and the group `[other]`, come last.
    pub(super) groups: Vec<Group>,
    pub(super) all: Sum,
    /// Sum of the delays that are also in the histogram of the instance.
    pub(super) ended: u64,
    /// Operations that had more than one stack.
    pub(super) moved: u64,
    /// Operations that had not ended when they were last seen.
    pub(super) unfinished: u64,
    /// Operations that began before their instance.
    pub(super) at_least: u64,
    pub(super) limits: Limits,
    /// The number of the first alert of each instance.
    pub(super) first: BTreeMap<String, u64>,
    /// Operations over the threshold that are in flight, and not in the sums.
    pub(super) in_flight: Vec<Group>,
}

impl Tally {
    pub(super) fn new(by: By) -> Self {
        Self {
            by,
            ..Self::default()
        }
    }

    pub(super) fn see(&mut self, alert: &Alert) {
        self.limits.add(alert);
        self.first
            .entry(alert.instance.clone())
            .or_insert(alert.seq);
        if let Some(operation) = self.open.see(alert, ()) {
            if !operation.is_at_least {
                self.ended = self.ended.saturating_add(operation.delay);
            }
            self.add(operation);
        }
    }

    fn add(&mut self, mut operation: Operation) {
        match self.by {
            By::Kernel => operation.waker_stack.clear(),
            By::Waker => {
                operation.stack.clear();
                operation.user = None;
            }
            By::Both => {}
        }
        self.all.add(operation.delay);
        self.moved += u64::from(operation.is_moved && self.by != By::Waker);
        self.at_least += u64::from(operation.is_at_least);
        let names = |frames: &[String]| frames.iter().map(|frame| name(frame)).collect();
        let key = (
            names(&operation.stack),
            names(&operation.waker_stack),
            operation.user.as_ref().map(User::key),
        );
        let group = self.groups.entry(key).or_default();
        group.add(operation, self.by);
    }

    /// Ends the sums of one instance, or of a file. `depth` is the maximum number of functions of a stack; if it is not
    /// known, the length of the longest stack is used. `pending` are the operations in flight at the end; of these,
    /// operations older than `threshold` are late.
    pub(super) fn finish(
        mut self,
        depth: Option<usize>,
        pending: &[Pending],
        threshold: u64,
    ) -> Sums {
        let mut in_flight = Self::new(By::Kernel);
        let mut by_thread: HashMap<u64, Vec<Operation>> = HashMap::new();
        for (tid, operation) in std::mem::take(&mut self.open).rest() {
            by_thread.entry(tid).or_default().push(operation);
        }
        let before = self.all.count;
        for one in pending.iter().filter(|one| one.age() > threshold) {
            let operation = Operation::pending(one);
            let tid = one.fields.number("tid").unwrap_or(0);
            let start = one.fields.number("start").unwrap_or(0);
            let open = by_thread.entry(tid).or_default();
            // If an alert of this operation is already known, both are one operation.
            match Operation::take_from(open, start, None) {
                Some(known) => self.add(known.then(operation)),
                None => in_flight.add(operation),
            }
        }
        by_thread
            .into_values()
            .flatten()
            .for_each(|operation| self.add(operation));
        Sums {
            by: self.by,
            is_exact: false,
            unfinished: self.all.count - before,
            groups: sorted(self.groups, depth),
            all: self.all,
            ended: self.ended,
            moved: self.moved,
            at_least: self.at_least,
            limits: self.limits,
            first: self.first,
            in_flight: sorted(in_flight.groups, depth),
        }
    }
}

fn sorted(groups: HashMap<Key, Group>, depth: Option<usize>) -> Vec<Group> {
    let mut groups: Vec<Group> = groups.into_values().collect();
    let most = |frames: fn(&Group) -> &Vec<String>| {
        let longest = groups.iter().map(|group| frames(group).len()).max();
        depth.or(longest).unwrap_or(0)
    };
    let (depth, waker_depth) = (
        most(|group| &group.stack),
        most(|group| &group.waker_stack).min(WAKER_DEPTH),
    );
    let is_cut = |frames: &[String], depth: usize| {
        frames.len() >= depth && frames.last().is_some_and(|last| !is_entry(last))
    };
    for group in &mut groups {
        group.is_cut = is_cut(&group.stack, depth);
        group.is_waker_cut = is_cut(&group.waker_stack, waker_depth);
    }
    sort(&mut groups);
    groups
}

fn sort(groups: &mut [Group]) {
    groups.sort_by(|a, b| {
        let has_stack = |group: &Group| !group.is_bare() && !group.is_other();
        let rank = |group: &Group| (has_stack(group), group.sum.total, group.sum.count);
        let names = |group: &Group| {
            let (stack, waker) = (group.stack.clone(), group.waker_stack.clone());
            (stack, waker, group.user.clone())
        };
        rank(b).cmp(&rank(a)).then_with(|| names(a).cmp(&names(b)))
    });
}

impl Sums {
    /// Replaces the sums of late operations with the kernel's sums of all operations.
    pub(super) fn replace(&mut self, labels: &Labels) {
        let mut groups: HashMap<(Vec<String>, bool), Group> = HashMap::new();
        self.all = Sum::default();
        let other = (vec![OTHER.to_string()], false, &labels.other);
        let stacks = labels.labels.iter();
        let stacks = stacks.map(|one| (one.label.stack(), one.label.is_cut_off(), &one.delays));
        for (stack, is_cut, delays) in stacks.chain([other]) {
            if delays.count == 0 {
                continue;
            }
            let names = stack.iter().map(|frame| name(frame)).collect();
            let group = groups.entry((names, is_cut)).or_default();
            join(&mut group.stack, stack);
            group.is_cut = is_cut;
            group.sum.add_all(delays);
            self.all.add_all(delays);
        }
        self.groups = groups.into_values().collect();
        sort(&mut self.groups);
        self.is_exact = true;
    }
}
