// SPDX-License-Identifier: GPL-2.0 OR MIT

//! System calls: all, or only `futex`, `futex_wait` and `futex_waitv`.
//!
//! The key is the thread, which makes one call at a time. Calls that do not return (`exit`, `exit_group`, and the last
//! call of a killed thread) are not measured. A new thread returns from its parent's call, which does not count as a
//! call of the new thread.

use foldhash::{HashMap, HashSet};

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Extra, File, Kind, Object};
use super::step::{Seen, Step};
use super::table::{Range, Table};
use crate::event::What;
use crate::files::FileEvent;
use crate::names::Name;
use crate::sleep::SwitchedOut;

#[derive(Debug, Clone, Copy)]
struct Open {
    call: Name,
    /// The group of the call; `None` if the call is not wanted.
    object: Option<Object>,
    /// Whether the call works on one file.
    is_of_file: bool,
    since: Mark,
}

#[derive(Debug)]
pub(super) struct Calls {
    table: Table,
    open: HashMap<i32, Open>,
    /// Threads that have not returned from the call that created them.
    born: HashSet<i32>,
}

/// The name of an operation `FUTEX_*`; the flags for private futexes and for the clock are ignored.
fn operation(op: u32) -> &'static str {
    const OPERATIONS: [&str; 14] = [
        "wait",
        "wake",
        "fd",
        "requeue",
        "cmp_requeue",
        "wake_op",
        "lock_pi",
        "unlock_pi",
        "trylock_pi",
        "wait_bitset",
        "wake_bitset",
        "wait_requeue_pi",
        "cmp_requeue_pi",
        "lock_pi2",
    ];
    const FLAGS: u32 = 128 | 256;
    let known = OPERATIONS.get((op & !FLAGS) as usize);
    known.copied().unwrap_or("unknown")
}

/// The operation of a call on a futex, from its name alone; `None` for other system calls.
fn operation_of(call: &[u8]) -> Option<&'static str> {
    match call {
        b"futex" => Some("unknown"),
        b"futex_wait" => Some("wait"),
        b"futex_waitv" => Some("waitv"),
        _ => None,
    }
}

impl Calls {
    fn new(kind: Kind, range: Range, by: Option<By>) -> Self {
        Self {
            table: Table::new(kind, range, by.unwrap_or(By::Object)),
            open: HashMap::default(),
            born: HashSet::default(),
        }
    }

    pub(super) fn all(range: Range, by: Option<By>) -> Self {
        Self::new(Kind::Call, range, by)
    }

    pub(super) fn of_futex(range: Range, by: Option<By>) -> Self {
        Self::new(Kind::Futex, range, by)
    }

    fn start(
        &mut self,
        ground: &mut Ground,
        seen: &Seen<'_>,
        name: &[u8],
        futex: Option<(u32, u64)>,
    ) {
        let Some(tid) = ground.who(seen).filter(|tid| *tid != 0) else {
            return;
        };
        let call = ground.names.number(name);
        let object = match (self.table.kind, futex) {
            (Kind::Futex, Some((op, address))) => Some(Object::Futex(operation(op), address)),
            (Kind::Futex, None) => operation_of(name).map(|op| Object::Futex(op, 0)),
            _ => Some(Object::Call(call)),
        };
        self.born.remove(&tid);
        let since = ground.mark(seen.time);
        let is_of_file = match &seen.file {
            Some(FileEvent::Call { access, .. }) => access.is_of_file(),
            _ => false,
        };
        let open = Open {
            call,
            object,
            is_of_file,
            since,
        };
        if let Some(earlier) = self.open.insert(tid, open)
            && earlier.object.is_some()
        {
            let who = Some(ground.named(tid));
            self.table.miss(seen.time, who, ground.why());
        }
    }

    fn end(
        &mut self,
        ground: &mut Ground,
        seen: &Seen<'_>,
        name: Option<&[u8]>,
        result: Option<i64>,
    ) {
        let is_wanted = self.table.kind != Kind::Futex || name.and_then(operation_of).is_some();
        let why = ground.why();
        let Some(tid) = ground.who(seen).filter(|tid| *tid != 0) else {
            if is_wanted {
                self.table.miss(seen.time, None, why);
            }
            return;
        };
        let is_born = self.born.remove(&tid);
        let who = Some(ground.named(tid));
        let Some(open) = self.open.remove(&tid) else {
            if is_wanted && !is_born {
                self.table.miss(seen.time, who, why);
            }
            return;
        };
        let is_same = name.is_none_or(|name| ground.names.text(open.call).as_bytes() == name);
        let Some(object) = open.object.filter(|_| is_same) else {
            if is_wanted || open.object.is_some() {
                self.table.miss(seen.time, who, ground.why());
            }
            return;
        };
        let times = (open.since.time, seen.time);
        let mut case = ground.case(times, seen.cpu, Some(tid), Some(object));
        let file = ground.file.map_or(File::Unknown, File::Named);
        case.file = open.is_of_file.then_some(file);
        if ground.spans(open.since) {
            return self.table.miss_case(&case, ground.why());
        }
        self.table.measure(&case);
        // The kernel's errors; any other value may be a length or an address.
        let is_inside = self.table.is_inside(&case);
        if is_inside && result.is_some_and(|result| (-4095..0).contains(&result)) {
            self.table.note(&case, Extra::Errors);
        }
    }

    pub(super) fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    pub(super) fn into_table(self) -> Table {
        self.table
    }
}

impl Machine for Calls {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        match seen.step {
            Step::Known(What::Call { name }) => self.start(ground, seen, name, None),
            Step::Known(What::Futex { op, address }) => {
                self.start(ground, seen, b"futex", Some((op, address)));
            }
            Step::Return { call, result } => self.end(ground, seen, call, result),
            Step::Known(What::Fork { child, .. }) => {
                self.open.remove(&child);
                self.born.insert(child);
            }
            // The call ends with the new number.
            Step::Known(What::Exec { tid, old }) => {
                if let Some(open) = self.open.remove(&old) {
                    self.open.insert(tid, open);
                }
            }
            Step::Known(What::Exit) => {
                if let Some(tid) = ground.who(seen) {
                    self.open.remove(&tid);
                }
            }
            Step::Known(What::Switch {
                prev,
                out: SwitchedOut::Dead,
                ..
            }) => {
                self.open.remove(&prev);
                self.born.remove(&prev);
            }
            _ => {}
        }
    }

    fn finish(&mut self, ground: &mut Ground, _time: u64) {
        for (tid, open) in std::mem::take(&mut self.open) {
            let why = ground.why_since(open.since);
            if open.object.is_some() {
                self.table
                    .miss_open(open.since.time, Some((tid, None)), why);
            }
        }
        if ground.absent.is_some() {
            self.table.give_up();
        }
    }

    fn growing(&mut self) -> Vec<&mut Table> {
        vec![&mut self.table]
    }

    fn tables(self: Box<Self>) -> Vec<Table> {
        vec![self.into_table()]
    }
}
