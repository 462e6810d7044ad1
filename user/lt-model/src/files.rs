// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which file a system call worked on, from the descriptors of each thread.
//!
//! ```text
//! dump of the kernel's state   thread 7 has table 0xff00, where 3 is /var/log/a
//! openat("/etc/b"), returns 4  4 = /etc/b
//! dup2(4, 3)                   3 = /etc/b
//! read(3)                      a read of /etc/b
//! exec                         keeps what exec does not close
//! ```
//!
//! No name is better than a wrong one. These rules keep a name from being wrong:
//!
//! - *A number stands for one file until it is closed*, or replaced by `dup2` or `dup3`. These calls are recorded,
//!   since all calls are. If a descriptor is created in a way that is not followed, such as by `recvmsg`, its number
//!   was closed before. Its file is then not known, but it never has the name of another file.
//! - *io_uring closes and opens descriptors without a system call.* The descriptors of a process that uses it are not
//!   known.
//! - *Threads share descriptors*, see `tables.rs`. The flags of `clone3` are not recorded. A thread created by `clone3`
//!   is taken to share the table of its process: no known program creates threads with tables of their own. A process
//!   created by `clone3` may share the table or have a copy. Until that process calls exec or exits, no name is added
//!   to the table.
//! - *Another thread may change a descriptor during a call.* The call is then on an unknown file, and a descriptor that
//!   it returns is not known, either.
//! - *An exec may change the number of its thread* to the number of the process, whose other threads have ended. The
//!   thread continues with the new number. If it is switched out between the change and the event of the exec, events
//!   seem to be missing, and all descriptors are forgotten.
//! - *In a gap anything may have happened.* All descriptors are forgotten.
//!
//! The name of a file is the path with which the program opened it, perhaps relative to the working directory. For a
//! descriptor from a dump, it is what the kernel shows in `/proc/PID/fd`. The name of a file without a path is its
//! kind: `socket`, `pipe`, `eventfd`. Files may have been renamed since. If the file is not known, the descriptor is
//! kept, which the call itself shows.

mod calls;
mod tables;

use foldhash::HashMap;

pub(crate) use self::calls::Calls;
use self::tables::{Descriptor, Tables};
use crate::names::{Name, Names};

/// Default limit on the memory for names and descriptors, in bytes.
const BUDGET: usize = 128 << 20;

/// Flags of `clone`, `unshare` and `close_range`.
const CLONE_FILES: u64 = 0x400;
const CLOSE_RANGE_UNSHARE: u64 = 2;

/// The name of a file, see [`crate::Model::file_name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileName(Name);

impl FileName {
    /// The text of the name, from `names`.
    pub(crate) fn text(self, names: &Names) -> &str {
        names.text(self.0)
    }
}

/// The file of a system call, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallFile {
    /// The file has this name.
    Named(FileName),
    /// The file is not known; the call has this descriptor.
    Descriptor(i32),
}

/// A [`CallFile`] in four bytes: the number of a name or, with the highest bit, a descriptor.
#[derive(Debug, Clone, Copy)]
struct Packed(u32);

impl Packed {
    const DESCRIPTOR: u32 = 1 << 31;

    /// `None` for a negative descriptor, and for a name whose number is 2^31 or more: memory has no room for that many
    /// names.
    fn of(file: CallFile) -> Option<Self> {
        let (number, kind) = match file {
            CallFile::Named(FileName(Name(number))) => (number, 0),
            CallFile::Descriptor(number) => (u32::try_from(number).ok()?, Self::DESCRIPTOR),
        };
        (number < Self::DESCRIPTOR).then_some(Self(number | kind))
    }

    fn file(self) -> CallFile {
        let number = self.0 & !Self::DESCRIPTOR;
        match self.0 & Self::DESCRIPTOR {
            0 => CallFile::Named(FileName(Name(number))),
            _ => CallFile::Descriptor(number as i32),
        }
    }
}

impl CallFile {
    /// The name of the file, if known.
    #[must_use]
    pub fn name(self) -> Option<FileName> {
        match self {
            Self::Named(name) => Some(name),
            Self::Descriptor(_) => None,
        }
    }

    /// The descriptor, if the file is not known.
    #[must_use]
    pub fn descriptor(self) -> Option<i32> {
        match self {
            Self::Named(_) => None,
            Self::Descriptor(fd) => Some(fd),
        }
    }
}

/// What a system call does with files, from its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access<'a> {
    /// The call works on no file, or on several.
    Nothing,
    /// The call works on this descriptor.
    On(i32),
    /// The call works on this descriptor, and may change whether exec closes it.
    Flag(i32),
    /// The call works on the file with this path.
    Path(FilePath<'a>),
    /// The call opens the file with this path.
    Open {
        /// The path.
        path: FilePath<'a>,
        /// Whether exec closes the descriptor, if recorded.
        closes: Option<bool>,
    },
    /// The call creates a descriptor of this kind, such as `socket`.
    Create(&'static str),
    /// The call creates a descriptor for the file of another descriptor.
    Dup {
        /// The other descriptor.
        from: i32,
        /// The number of the new descriptor, if the call chooses it. If that number is open, it is closed first.
        to: Option<i32>,
        /// Whether exec closes the new descriptor.
        closes: bool,
    },
    /// The call closes this descriptor.
    Close(i32),
    /// `close_range`
    CloseRange {
        /// The lowest number.
        first: i32,
        /// The highest number.
        last: i32,
        /// The flags.
        flags: u64,
    },
    /// The call creates a thread, with these flags (`CLONE_*`) if they are recorded.
    Clone(Option<u64>),
    /// `unshare`, with these flags.
    Unshare(u64),
    /// The call executes the program with this path.
    Exec(FilePath<'a>),
    /// The call uses an io_uring.
    Ring,
    /// The call may change any descriptor of any thread.
    Anything,
}

impl Access<'_> {
    /// Whether the call works on one file.
    pub(crate) fn is_of_file(&self) -> bool {
        matches!(
            self,
            Self::On(_)
                | Self::Flag(_)
                | Self::Path(_)
                | Self::Open { .. }
                | Self::Create(_)
                | Self::Dup { .. }
                | Self::Close(_)
                | Self::Exec(_)
        )
    }

    /// The descriptor whose file the call works on, if the call names one.
    fn descriptor(&self) -> Option<i32> {
        match *self {
            Self::On(fd) | Self::Flag(fd) | Self::Close(fd) | Self::Dup { from: fd, .. } => {
                Some(fd)
            }
            _ => None,
        }
    }
}

/// A path that a program gave; empty if it is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePath<'a> {
    /// The path.
    pub text: &'a [u8],
    /// The descriptor of the directory to which it is relative; `None` for the working directory.
    pub directory: Option<i32>,
}

/// An event that shows which file a system call works on. All system calls and the creation of all threads are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEvent<'a> {
    /// A system call begins.
    Call {
        /// Its name.
        call: &'a [u8],
        /// What it does.
        access: Access<'a>,
    },
    /// A system call ends.
    Return {
        /// Its name, if the event has it.
        call: Option<&'a [u8]>,
        /// The return value, if recorded.
        result: Option<i64>,
    },
    /// `sched_process_fork`: the current thread creates another.
    Fork {
        /// The new thread.
        child: i32,
        /// Whether it belongs to the process of the current thread, if recorded.
        is_thread: Option<bool>,
    },
    /// `sched_process_exec`: the current thread executes another program.
    Exec {
        /// Its number from now on.
        tid: i32,
        /// Its number before.
        old: i32,
    },
    /// A thread and its table of descriptors, from a dump of the kernel's state.
    Table {
        /// The thread.
        tid: i32,
        /// The address of the table, or another number that identifies it.
        table: u64,
    },
    /// A descriptor of a table, from a dump of the kernel's state.
    Descriptor {
        /// The table.
        table: u64,
        /// The number.
        fd: i32,
        /// The path, or a kind such as `socket:[812]`.
        path: &'a [u8],
        /// Whether exec closes it, if recorded.
        closes: Option<bool>,
    },
}

/// What the end of a call shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    /// The result is a descriptor of the call's file. Whether exec closes it, if recorded.
    Opens(Option<bool>),
    Closes,
    /// The call closed the numbers from the first to the last, and may have given the thread a table of its own.
    ClosesRange(i32, i32, bool),
    Unshares,
    Clones(Option<u64>),
    Execs,
    /// The call may have changed any descriptor.
    Forgets,
}

/// A call in flight.
#[derive(Debug, Clone, Copy)]
struct Call {
    call: Name,
    begin: u64,
    /// The number of the event that began it.
    step: u64,
    /// The descriptor that it works on, or the descriptor of the directory to which its path is relative.
    fd: Option<i32>,
    /// The descriptor that it works on.
    works_on: Option<i32>,
    file: Option<FileName>,
    then: Then,
}

impl Call {
    /// The file, or else the descriptor that the call works on.
    fn file_or_descriptor(&self, file: Option<FileName>) -> Option<CallFile> {
        let descriptor = self.works_on.map(CallFile::Descriptor);
        file.map(CallFile::Named).or(descriptor)
    }
}

/// The files of all threads.
#[derive(Debug, Default)]
pub(crate) struct Files {
    tables: Tables,
    /// The calls in flight, by thread.
    calls: HashMap<i32, Call>,
    /// The largest size of `calls` so far.
    most_calls: usize,
    names: Names,
    /// The number of the current event.
    step: u64,
    /// Nothing is known until this time.
    dark_until: u64,
    /// Maximum size, bytes.
    limit: Option<usize>,
}

impl Files {
    /// Limits the memory for names and descriptors, in bytes. Names and descriptors beyond the limit are not known.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    /// Upper bound of the memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let calls = tables::room(self.most_calls, size_of::<(i32, Call)>());
        self.names.bytes() + self.tables.bytes() + calls
    }

    /// Maximum memory for names, and for descriptors, in bytes: half of the limit each.
    fn half(&self) -> usize {
        self.limit.unwrap_or(BUDGET) / 2
    }

    /// The names of the files.
    pub(crate) fn into_names(self) -> Names {
        self.names
    }

    /// Follows an event of thread `tid` (`None`: not known). At the end of a call whose file or descriptor is known,
    /// returns the time at which the call began, and the file or descriptor.
    pub(crate) fn see(
        &mut self,
        time: u64,
        tid: Option<i32>,
        event: &FileEvent<'_>,
    ) -> Option<(u64, CallFile)> {
        if time < self.dark_until {
            return None;
        }
        if std::mem::take(&mut self.dark_until) > 0 {
            self.forget();
        }
        self.step += 1;
        let mut done = None;
        match *event {
            FileEvent::Call { call, access } => self.begins(time, tid, call, access),
            FileEvent::Return { call, result } => {
                done = tid.and_then(|tid| self.ends(tid, call, result));
            }
            FileEvent::Fork { child, is_thread } => self.forks(tid, child, is_thread),
            FileEvent::Exec { tid: new, old } if tid == Some(old) || tid == Some(new) => {
                self.execs(new, old);
            }
            // Later calls of this thread cannot be distinguished from calls of other threads.
            FileEvent::Exec { tid: new, old } => {
                self.exit(old);
                self.exit(new);
            }
            FileEvent::Table { tid, table } if table != 0 => self.tables.dump(tid, table),
            FileEvent::Table { .. } => {}
            FileEvent::Descriptor {
                table,
                fd,
                path,
                closes,
            } => {
                let kind = kind_of(path);
                let of = Descriptor {
                    file: self.name(kind),
                    closes,
                    changed: self.step,
                };
                let is_ring = kind == b"io_uring";
                self.tables.dump_descriptor(table, fd, of, is_ring);
            }
        }
        if self.tables.bytes() > self.half() {
            self.forget();
        }
        done
    }

    /// Records that a thread has ended.
    pub(crate) fn exit(&mut self, tid: i32) {
        self.calls.remove(&tid);
        self.tables.leave(tid);
    }

    /// Records that events are missing up to `until`.
    pub(crate) fn lost(&mut self, until: u64) {
        self.forget();
        self.dark_until = self.dark_until.max(until);
    }

    /// Forgets all descriptors, and the files of all calls in flight.
    fn forget(&mut self) {
        self.tables.forget();
        self.calls.clear();
    }

    /// The calls in flight whose file or descriptor is known: the thread, the time at which it began, and the file or
    /// descriptor.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = (i32, u64, CallFile)> {
        let known = move |(tid, call): (&i32, &Call)| {
            let file = call.file_or_descriptor(self.file_of(*tid, call))?;
            Some((*tid, call.begin, file))
        };
        self.calls.iter().filter_map(known)
    }

    /// The file of a call, unless another thread may have changed its descriptor since the call began.
    fn file_of(&self, tid: i32, call: &Call) -> Option<FileName> {
        let has_changed = |fd| self.tables.has_changed(tid, fd, call.step);
        call.file.filter(|_| !call.fd.is_some_and(has_changed))
    }

    fn begins(&mut self, time: u64, tid: Option<i32>, call: &[u8], access: Access<'_>) {
        let (step, works_on) = (self.step, access.descriptor());
        let (fd, file, then) = match access {
            // The call, for example close(-1), is kept, so that its end does not seem to lack a start.
            Access::Nothing if changes_table(call) => (None, None, Then::Nothing),
            Access::Nothing => {
                if let Some(tid) = tid {
                    self.calls.remove(&tid);
                }
                return;
            }
            Access::Anything => {
                self.forget();
                (None, None, Then::Forgets)
            }
            Access::Ring => {
                self.tables.has_ring(tid);
                (None, None, Then::Nothing)
            }
            Access::On(fd) => (Some(fd), self.file(tid, fd), Then::Nothing),
            Access::Flag(fd) => {
                let of = Descriptor {
                    file: self.file(tid, fd),
                    closes: None,
                    changed: step,
                };
                // Threads that have another table here may in fact share this one: the descriptor becomes unknown
                // there, since its flag may have changed.
                self.tables.close(tid, fd, step);
                if let Some(tid) = tid {
                    self.tables.open(tid, fd, of);
                }
                (Some(fd), of.file, Then::Nothing)
            }
            Access::Path(path) => (path.directory, self.path(tid, path), Then::Nothing),
            Access::Open { path, closes } => {
                let file = self.path(tid, path);
                (path.directory, file, Then::Opens(closes))
            }
            Access::Create(kind) => (None, self.name(kind.as_bytes()), Then::Opens(None)),
            Access::Dup { from, to, closes } => {
                let file = self.file(tid, from);
                if let Some(to) = to {
                    self.tables.close(tid, to, step);
                }
                // A descriptor that replaces itself keeps its flag.
                let closes = (to != Some(from)).then_some(closes);
                (Some(from), file, Then::Opens(closes))
            }
            Access::Close(fd) => {
                let file = self.file(tid, fd);
                self.tables.close(tid, fd, step);
                (Some(fd), file, Then::Closes)
            }
            Access::CloseRange { first, last, flags } => {
                self.tables.close_range(tid, &(first..=last), step);
                let unshares = flags & CLOSE_RANGE_UNSHARE != 0;
                (None, None, Then::ClosesRange(first, last, unshares))
            }
            Access::Clone(flags) => (None, None, Then::Clones(flags)),
            Access::Unshare(flags) if flags & CLONE_FILES != 0 => (None, None, Then::Unshares),
            Access::Unshare(_) => (None, None, Then::Nothing),
            Access::Exec(path) => (path.directory, self.path(tid, path), Then::Execs),
        };
        let call = Call {
            call: self.names.number(call),
            begin: time,
            step,
            fd,
            works_on,
            file,
            then,
        };
        if let Some(tid) = tid {
            self.calls.insert(tid, call);
            self.most_calls = self.most_calls.max(self.calls.len());
        }
    }

    fn ends(
        &mut self,
        tid: i32,
        name: Option<&[u8]>,
        result: Option<i64>,
    ) -> Option<(u64, CallFile)> {
        // The start may not be recorded: a thread often waits in io_uring_enter.
        if name.is_some_and(|name| name.starts_with(b"io_uring_")) {
            self.tables.has_ring(Some(tid));
        }
        let Some(call) = self.calls.remove(&tid) else {
            // The start was not recorded, or exec has changed the number of the thread since.
            if name.is_some_and(changes_table) {
                self.forget();
            }
            if name == Some(UNNAMED) {
                // It may be io_uring_enter.
                self.tables.has_ring(Some(tid));
            }
            return None;
        };
        if name.is_some_and(|name| self.names.text(call.call).as_bytes() != name) {
            // Events are missing, although no loss was reported.
            self.forget();
            return None;
        }
        let file = self.file_of(tid, &call);
        let result = result.and_then(|result| i32::try_from(result).ok());
        match (call.then, result) {
            (Then::Opens(closes), Some(fd)) if fd >= 0 => {
                let is_new = !self.tables.has_changed(tid, fd, call.step);
                let of = Descriptor {
                    file: file.filter(|_| is_new),
                    closes,
                    changed: self.step,
                };
                self.tables.open(tid, fd, of);
            }
            (Then::Closes, _) => {
                // A dump during the call may have shown the descriptor.
                if let Some(fd) = call.fd {
                    self.tables.close(Some(tid), fd, self.step);
                }
            }
            (Then::ClosesRange(first, last, unshares), result) => {
                if unshares && result == Some(0) {
                    self.tables.copy(tid, tid, call.step, |_| true);
                }
                let range = first..=last;
                self.tables.close_range(Some(tid), &range, self.step);
            }
            (Then::Unshares, Some(0)) => self.tables.copy(tid, tid, call.step, |_| true),
            // No event has shown this exec.
            (Then::Execs, Some(0)) | (Then::Forgets, _) => self.forget(),
            _ => {}
        }
        Some((call.begin, call.file_or_descriptor(file)?))
    }

    fn forks(&mut self, parent: Option<i32>, child: i32, is_thread: Option<bool>) {
        // The number may have been another thread's, whose end is not recorded.
        self.exit(child);
        let Some(parent) = parent else {
            return;
        };
        let (flags, since) = match self.calls.get(&parent) {
            Some(Call {
                then: Then::Clones(flags),
                step,
                ..
            }) => (*flags, *step),
            _ => (None, self.step),
        };
        match flags.map(|flags| flags & CLONE_FILES) {
            Some(0) => self.tables.copy(parent, child, since, |_| true),
            flags => {
                let certain = flags.is_some() || is_thread == Some(true);
                self.tables.share(parent, child, certain);
            }
        }
    }

    fn execs(&mut self, tid: i32, old: i32) {
        let call = self.calls.remove(&old);
        let since = call.map_or(self.step, |call| call.step);
        let keeps = |of: &Descriptor| of.closes == Some(false);
        if tid != old {
            // The number belonged to the main thread, which has ended.
            self.exit(tid);
        }
        self.tables.copy(old, tid, since, keeps);
        if tid != old {
            self.exit(old);
        }
        if let Some(call) = call {
            let then = Then::Nothing;
            self.calls.insert(tid, Call { then, ..call });
        }
    }

    /// The file behind a descriptor of a thread, if both are known.
    fn file(&self, tid: Option<i32>, fd: i32) -> Option<FileName> {
        self.tables.file(tid?, fd)
    }

    fn name(&mut self, name: &[u8]) -> Option<FileName> {
        let known = self.names.find(name);
        match known {
            None if name.is_empty() || self.names.bytes() > self.half() => None,
            None => Some(FileName(self.names.number(name))),
            Some(known) => Some(FileName(known)),
        }
    }

    fn path(&mut self, tid: Option<i32>, path: FilePath<'_>) -> Option<FileName> {
        // LTTng fills what it cannot read with this character.
        if path.text.is_empty() || path.text.ends_with(b"#") {
            return None;
        }
        let directory = path.directory.filter(|_| !path.text.starts_with(b"/"));
        let Some(directory) = directory else {
            return self.name(path.text);
        };
        let directory = self.file(tid, directory)?;
        let directory = self.names.text(directory.0).trim_end_matches('/');
        let whole = [directory.as_bytes(), b"/", path.text].concat();
        self.name(&whole)
    }

    /// The text of a name.
    pub(crate) fn text(&self, name: FileName) -> &str {
        name.text(&self.names)
    }
}

/// The name that LTTng gives to calls that are newer than its list of calls.
const UNNAMED: &[u8] = b"unknown";

/// Whether a system call with this name may close descriptors, or give the thread a table of its own.
fn changes_table(call: &[u8]) -> bool {
    let changers = [&b"close"[..], b"dup", b"exec", b"unshare", UNNAMED];
    changers.iter().any(|changer| call.starts_with(changer))
}

/// The path of a file as the kernel shows it, or its kind, without the number: `socket` for `socket:[812]`, `eventfd`
/// for `anon_inode:[eventfd]`.
fn kind_of(path: &[u8]) -> &[u8] {
    if path.starts_with(b"/") {
        return path;
    }
    if let Some(kind) = path.strip_prefix(b"anon_inode:") {
        let kind = kind.strip_prefix(b"[").unwrap_or(kind);
        return kind.strip_suffix(b"]").unwrap_or(kind);
    }
    let number = path.windows(2).position(|pair| pair == b":[");
    number.map_or(path, |at| path.get(..at).unwrap_or(path))
}
