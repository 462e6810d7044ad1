// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The states of a thread as a tree: the time of each node includes the nodes below it.
//!
//! ```text
//! all
//!   blocked
//!     in read
//!       /var/log/a
//!         woken by server/526
//!   working
//!     user mode
//! ```

use std::collections::HashMap;
use std::rc::Rc;

use lt_common::out::thousands;
use lt_model::why::{Cause, Stay, Stays};
use lt_model::{Class, Name};
use lt_proc::Nanos;

use super::super::show::Shown;
use super::super::words::{addition, held, remedy, unrecorded};
use super::text::{Row, table};

/// States below a state are shown if they take at least 1/`RARE` of the whole time.
const RARE: u64 = 1000;
/// Maximum number of states that are shown below a state.
const MOST: usize = 12;

/// A state, with the states that it is divided into. There may be as many states as files.
pub(super) struct Tree {
    pub(super) number: usize,
    pub(super) label: Rc<str>,
    pub(super) time: u64,
    /// Number of stays.
    pub(super) count: usize,
    /// Start and end of the longest stay; the last one, if several are equally long.
    pub(super) longest: (u64, u64),
    /// Start and end of the kept stays that are in no state below.
    stays: Vec<(u64, u64)>,
    pub(super) below: Vec<Tree>,
}

/// The place of each node among the nodes below its upper node, by the number of the upper node and the label. Nodes are
/// numbered in the order in which they are added; the top has the number 0.
type Known = HashMap<(usize, Rc<str>), usize>;

impl Tree {
    /// The tree of these stays, which keeps the start and end of each that takes at least `least`. Its nodes get the
    /// numbers from `next` on.
    pub(super) fn new(words: &Shown<'_>, stays: &Stays, least: u64, next: &mut usize) -> Self {
        let mut tree = Self::empty(0, "all".into());
        let mut known = Known::new();
        // Of each kind, the places that lead to its node.
        let mut kinds: Vec<Box<[usize]>> = Vec::new();
        for (number, stay) in stays.numbered() {
            if number == kinds.len() {
                kinds.push(tree.places(&branch(words, &stay), &mut known));
            }
            if let Some(places) = kinds.get(number) {
                tree.add(places, (stay.begin, stay.end), least);
            }
        }
        tree.finish(next);
        tree
    }

    fn empty(number: usize, label: Rc<str>) -> Self {
        Self {
            number,
            label,
            time: 0,
            count: 0,
            longest: (0, 0),
            stays: Vec::new(),
            below: Vec::new(),
        }
    }

    /// The places, from the top down, of the nodes with these labels. New nodes are added.
    fn places(&mut self, branch: &[String], known: &mut Known) -> Box<[usize]> {
        let mut places = Vec::with_capacity(branch.len());
        let mut node = self;
        for label in branch {
            let label: Rc<str> = label.as_str().into();
            let new = known.len() + 1;
            let entry = known.entry((node.number, Rc::clone(&label)));
            let place = *entry.or_insert(node.below.len());
            if place == node.below.len() {
                // Many nodes have a single node below.
                node.below.reserve_exact(usize::from(place == 0));
                node.below.push(Self::empty(new, label));
            }
            places.push(place);
            node = &mut node.below[place];
        }
        places.into()
    }

    /// Adds a stay to the node to which these places lead, and to all nodes above. The node keeps the start and the end
    /// of a stay that takes at least `least`.
    fn add(&mut self, places: &[usize], (begin, end): (u64, u64), least: u64) {
        self.time += end - begin;
        self.count += 1;
        if end - begin >= self.longest() {
            self.longest = (begin, end);
        }
        match places.split_first() {
            Some((place, rest)) => self.below[*place].add(rest, (begin, end), least),
            None if end - begin >= least => self.stays.push((begin, end)),
            None => {}
        }
    }

    /// Sorts the nodes by time, and numbers them.
    fn finish(&mut self, next: &mut usize) {
        self.number = *next;
        *next += 1;
        self.below.sort_by_key(|node| std::cmp::Reverse(node.time));
        self.below.iter_mut().for_each(|node| node.finish(next));
    }

    /// Calls `see` with each node, from the top, and its depth.
    pub(super) fn each<'t>(&'t self, depth: usize, see: &mut dyn FnMut(&'t Self, usize)) {
        see(self, depth);
        self.below.iter().for_each(|node| node.each(depth + 1, see));
    }

    /// Length of the longest stay, ns.
    fn longest(&self) -> u64 {
        self.longest.1 - self.longest.0
    }

    /// Start and end of the kept stays, the longest first, then in time order.
    fn stays(&self) -> Vec<(u64, u64)> {
        let mut stays = Vec::new();
        self.each(0, &mut |node, _| stays.extend(&node.stays));
        stays.sort_unstable_by_key(|(begin, end)| (std::cmp::Reverse(end - begin), *begin));
        stays
    }

    /// A table of the nodes. Unless `all` is set, rare states are summed up.
    pub(super) fn lines(&self, all: bool) -> Vec<String> {
        let mut rows = Vec::new();
        self.rows(0, self.time, all, &mut rows);
        table(&["NR", "TIME", "%", "COUNT", "LONGEST", "STATE"], &rows)
    }

    fn rows(&self, depth: usize, of: u64, all: bool, rows: &mut Vec<Row>) {
        let row = |number: String, nodes: &[Self], depth: usize, text: String| {
            let time = nodes.iter().map(|node| node.time).sum();
            let count: usize = nodes.iter().map(|node| node.count).sum();
            let longest = nodes.iter().map(Self::longest).max().unwrap_or(0);
            Row {
                cells: vec![
                    number,
                    Nanos(time).to_string(),
                    format!("{:.1}", time as f64 * 100.0 / of.max(1) as f64),
                    thousands(count as u64),
                    Nanos(longest).to_string(),
                ],
                indent: 2 * depth,
                text,
            }
        };
        let number = self.number.to_string();
        rows.push(row(
            number,
            std::slice::from_ref(self),
            depth,
            self.label.to_string(),
        ));
        let frequent = self.below.iter().take_while(|node| node.time >= of / RARE);
        let mut shown = frequent.count().min(MOST);
        // A single rare state takes no more lines than a sum.
        if all || shown + 1 == self.below.len() {
            shown = self.below.len();
        }
        let (shown, rare) = self.below.split_at(shown);
        shown
            .iter()
            .for_each(|node| node.rows(depth + 1, of, all, rows));
        if !rare.is_empty() {
            let text = format!("{} more; --all shows them", rare.len());
            rows.push(row(String::new(), rare, depth + 1, text));
        }
    }

    /// `working 49.80ms (user mode 49.80ms), interrupted 3.00us (runnable, waiting for a CPU 3.00us)`. Further states are
    /// summed up: `and 4 more 2.00us`.
    pub(super) fn sentence(&self) -> String {
        /// Maximum number of nodes named below each node.
        const NAMED: usize = 3;
        let part = |node: &Self| format!("{} {}", node.label, Nanos(node.time));
        let with_below = |node: &Self| {
            let (named, others) = node.below.split_at(node.below.len().min(NAMED));
            let mut below: Vec<_> = named.iter().map(part).collect();
            if !others.is_empty() {
                let time = Nanos(others.iter().map(|node| node.time).sum());
                below.push(format!("and {} more {time}", others.len()));
            }
            format!("{} ({})", part(node), below.join(", "))
        };
        let all: Vec<_> = self.below.iter().map(with_below).collect();
        all.join(", ")
    }
}

/// The longest of the kept stays in each state of these trees. A state is skipped if the only state below it has the
/// same stays.
pub(super) fn longest(trees: &[Tree], top: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut see = |node: &Tree, depth: usize| {
        let is_same = |below: &Tree| below.count == node.count;
        if depth == 0 || node.below.iter().any(is_same) {
            return;
        }
        for (place, (begin, end)) in node.stays().iter().take(top).enumerate() {
            let (number, text) = match place {
                0 => (node.number.to_string(), node.label.to_string()),
                _ => Default::default(),
            };
            rows.push(Row {
                cells: vec![
                    number,
                    begin.to_string(),
                    end.to_string(),
                    Nanos(end - begin).to_string(),
                ],
                indent: 0,
                text,
            });
        }
    };
    for tree in trees {
        tree.each(0, &mut see);
    }
    table(&["NR", "FROM", "TO", "TOOK", "STATE"], &rows)
}

/// The labels of a stay, from the class down.
pub(super) fn branch(words: &Shown<'_>, stay: &Stay) -> Vec<String> {
    let list = |labels: &[&str]| labels.iter().map(|label| label.to_string()).collect();
    let file = stay.file.map(|file| words.file(file));
    match (stay.class(), stay.cause) {
        (Class::Working, Cause::Running(call)) => {
            let place = match call {
                None if stay.outside => "user mode".into(),
                call => within(words, call, stay.outside),
            };
            ["working".into(), place].into_iter().chain(file).collect()
        }
        (_, Cause::Interrupted(leaf)) => list(&["interrupted", "by interrupts", &words.leaf(leaf)]),
        (_, Cause::Preempted) => list(&["interrupted", "runnable, waiting for a CPU"]),
        (_, Cause::Waiting) => list(&["interrupted", "woken, waiting for a CPU"]),
        (_, Cause::LeavesIdle) => list(&["interrupted", "runnable, its CPU leaves idle"]),
        (Class::Interrupted, cause) => list(&["interrupted", &words.what(cause)]),
        (_, Cause::Unknown(why)) => {
            let remedy = remedy(why).map(|remedy| format!("; {remedy}"));
            list(&[
                "not recorded",
                &(unrecorded(why) + &remedy.unwrap_or_default()),
            ])
        }
        (_, cause) => {
            let place = within(words, call_of(cause), stay.outside);
            let end = end(words, cause, stay.by, stay.open);
            let above = ["blocked".into(), place].into_iter().chain(file);
            above.chain([end]).collect()
        }
    }
}

/// The system call of a cause.
pub(super) fn call_of(cause: Cause) -> Option<Name> {
    match cause {
        Cause::For(_, call) | Cause::Held(_, _, call) | Cause::Blocked(call) => call,
        _ => None,
    }
}

/// Returns where a thread was, such as `in read`. Without a call, `outside` is whether the trace shows that the thread
/// was outside system calls.
pub(super) fn within(words: &Shown<'_>, call: Option<Name>, outside: bool) -> String {
    match call {
        Some(call) => format!("in {}", words.text(call)),
        None if outside => "outside system calls".into(),
        None => "in no recorded system call".into(),
    }
}

/// What ended a wait: a thread, or the cause.
pub(super) fn end(
    words: &Shown<'_>,
    cause: Cause,
    by: Option<lt_model::ThreadId>,
    open: bool,
) -> String {
    let more = addition(words.model, cause).map(|more| format!("; {more}"));
    let more = more.unwrap_or_default();
    let not_woken = "not woken before the trace ends";
    match (cause, by) {
        // For example, it is still stopped.
        (Cause::For(leaf, _), _) if open => format!("{}{more}; {not_woken}", words.leaf(leaf)),
        (Cause::For(leaf, _), _) => words.leaf(leaf) + &more,
        (Cause::Held(disk, place, _), _) => {
            format!("a request {}{more}", held(words.model, disk, place))
        }
        (_, Some(by)) => format!("woken by {}", words.name(by)),
        (_, None) if open => not_woken.into(),
        (Cause::Idle, None) => "idle; the source of its next work is not recorded".into(),
        (_, None) => "the waker is not recorded".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree of stays, each with its labels; it keeps the start and the end of each that takes at least 10.
    fn tree(stays: &[(&[&str], (u64, u64))]) -> Tree {
        let mut all = Tree::empty(0, "all".into());
        let mut known = Known::new();
        for (labels, stay) in stays {
            let labels: Vec<String> = labels.iter().map(|label| label.to_string()).collect();
            let places = all.places(&labels, &mut known);
            all.add(&places, *stay, 10);
        }
        all
    }

    #[test]
    fn kinds_with_one_label_are_one_state_with_the_last_of_the_longest_stays() {
        let times = [(0, 10), (10, 20), (20, 29), (40, 50)];
        let labels: &[&str] = &["blocked"];
        let all = tree(&times.map(|time| (labels, time)));
        assert_eq!(all.below.len(), 1);
        let node = &all.below[0];
        assert_eq!((node.count, node.time, node.longest), (4, 39, (40, 50)));
        // A stay of 9 is too short.
        assert_eq!(node.stays(), [(0, 10), (10, 20), (40, 50)]);
    }

    #[test]
    fn a_label_stands_for_another_state_below_each_state() {
        let mut all = tree(&[
            (&["working", "in read"], (0, 10)),
            (&["blocked", "in read", "/a"], (10, 30)),
            (&["blocked", "in read", "/b"], (30, 40)),
            (&["working", "in read"], (40, 45)),
        ]);
        all.finish(&mut 0);
        let mut found = Vec::new();
        all.each(0, &mut |node, depth| {
            found.push((node.number, depth, &*node.label, node.time, node.count));
        });
        assert_eq!(
            found,
            [
                (0, 0, "all", 45, 4),
                (1, 1, "blocked", 30, 2),
                (2, 2, "in read", 30, 2),
                (3, 3, "/a", 20, 1),
                (4, 3, "/b", 10, 1),
                (5, 1, "working", 15, 2),
                (6, 2, "in read", 15, 2),
            ]
        );
    }

    #[test]
    fn stays_of_a_call_without_a_known_file_are_listed_beside_the_only_file() {
        let mut all = tree(&[
            (&["working", "in read", "/a"], (0, 10)),
            (&["working", "in read"], (20, 50)),
        ]);
        all.finish(&mut 0);
        assert_eq!((all.count, all.time, all.longest), (2, 40, (20, 50)));
        let lines = longest(&[all], 1);
        assert_eq!(
            lines,
            [
                "NR  FROM  TO  TOOK  STATE",
                " 2    20  50  30ns  in read",
                " 3     0  10  10ns  /a",
            ]
        );
    }
}
