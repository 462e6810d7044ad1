// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The files that system calls work on, from lists of events with known results.

use lt_model::{
    Access, Builder, CallFile, Event, FileEvent, FilePath, Model, SwitchedOut, What, why,
};
use proptest::prelude::*;

use crate::anything::{At, events};
use crate::made::{S, at, switch, waking};

/// `CLONE_FILES`
const FILES: u64 = 0x400;

/// Events 1 ns apart. At first, thread 7 runs on CPU 0, and thread 8 on CPU 1.
struct Script {
    builder: Builder,
    now: u64,
    running: [i32; 2],
    /// The thread, the start and the end of each call of `read`.
    reads: Vec<(i32, u64, u64)>,
}

fn path(text: &str, directory: Option<i32>) -> FilePath<'_> {
    let text = text.as_bytes();
    FilePath { text, directory }
}

fn open(text: &str) -> Access<'_> {
    Access::Open {
        path: path(text, None),
        closes: Some(false),
    }
}

impl Script {
    fn with(mut builder: Builder) -> Self {
        builder.has_all_calls();
        builder.feed(&switch(0, 0, 0, S, 7));
        builder.feed(&switch(0, 1, 0, S, 8));
        Self {
            builder,
            now: 0,
            running: [7, 8],
            reads: Vec::new(),
        }
    }

    fn new() -> Self {
        Self::with(Builder::new())
    }

    fn sees(&mut self, cpu: u32, event: &FileEvent<'_>) {
        self.now += 1;
        self.builder.feed_file(self.now, cpu, event);
    }

    fn runs(&mut self, cpu: u32, next: i32, out: SwitchedOut) {
        self.now += 1;
        let running = &mut self.running[cpu as usize];
        let prev = std::mem::replace(running, next);
        self.builder.feed(&switch(self.now, cpu, prev, out, next));
    }

    fn feeds(&mut self, cpu: u32, what: What<'static>) {
        self.now += 1;
        self.builder.feed(&at(self.now, cpu, what));
    }

    fn loses(&mut self, cpu: u32) {
        let until = self.now + 1;
        self.feeds(cpu, What::Lost { until });
    }

    fn begins(&mut self, cpu: u32, name: &'static str, access: Access<'_>) {
        let call = name.as_bytes();
        let begins = at(self.now + 1, cpu, What::Call { name: call });
        self.builder.feed(&begins);
        self.sees(cpu, &FileEvent::Call { call, access });
    }

    fn ends(&mut self, cpu: u32, name: &'static str, result: i64) {
        let (call, result) = (Some(name.as_bytes()), Some(result));
        self.builder.feed(&at(self.now + 1, cpu, What::Return));
        self.sees(cpu, &FileEvent::Return { call, result });
    }

    fn calls(&mut self, cpu: u32, name: &'static str, access: Access<'_>, result: i64) {
        self.begins(cpu, name, access);
        self.ends(cpu, name, result);
    }

    fn opens(&mut self, cpu: u32, text: &str, fd: i64) {
        self.calls(cpu, "openat", open(text), fd);
    }

    fn closes(&mut self, cpu: u32, fd: i32) {
        self.calls(cpu, "close", Access::Close(fd), 0);
    }

    fn reads(&mut self, cpu: u32, fds: &[i32]) {
        for fd in fds {
            self.begins(cpu, "read", Access::On(*fd));
            let begin = self.now;
            self.ends(cpu, "read", 1);
            self.reads
                .push((self.running[cpu as usize], begin, self.now));
        }
    }

    /// The thread creates another in its process, or another process.
    fn clones(&mut self, cpu: u32, flags: Option<u64>, child: i32, is_thread: bool) {
        self.begins(cpu, "clone", Access::Clone(flags));
        let is_thread = Some(is_thread);
        self.sees(cpu, &FileEvent::Fork { child, is_thread });
        self.ends(cpu, "clone", child.into());
    }

    /// A thread executes a program, and gets the number `tid`.
    fn executes(&mut self, cpu: u32, tid: i32, old: i32) {
        let executes = at(self.now + 1, cpu, What::Exec { tid, old });
        self.builder.feed(&executes);
        self.sees(cpu, &FileEvent::Exec { tid, old });
        self.running[cpu as usize] = tid;
    }

    fn dumps(&mut self, tid: i32, table: u64) {
        self.sees(0, &FileEvent::Table { tid, table });
    }

    fn dumps_descriptor(&mut self, table: u64, fd: i32, path: &str) {
        let (path, closes) = (path.as_bytes(), Some(false));
        let event = FileEvent::Descriptor {
            table,
            fd,
            path,
            closes,
        };
        self.sees(0, &event);
    }

    /// The files of all reads; `-` if not known.
    fn files(self) -> String {
        self.shown(|_| "-".into())
    }

    /// The files of all reads; if not known, what `or` makes of the descriptor.
    fn shown(self, or: impl Fn(Option<i32>) -> String) -> String {
        let model = self.builder.finish();
        let file = |(tid, begin, end): (i32, u64, u64)| {
            let mut threads = model.by_tid(tid);
            let file = threads.find_map(|thread| model.file(thread, begin, end));
            let name = file.and_then(CallFile::name);
            let descriptor = file.and_then(CallFile::descriptor);
            name.map_or_else(|| or(descriptor), |name| model.file_name(name).to_string())
        };
        let files: Vec<_> = self.reads.into_iter().map(file).collect();
        files.join(" ")
    }
}

#[test]
fn a_descriptor_stands_for_a_file_until_it_is_closed_or_replaced() {
    let mut s = Script::new();
    s.reads(0, &[3]);
    s.opens(0, "/a", 3);
    s.opens(0, "/none", -2);
    s.calls(0, "socket", Access::Create("socket"), 4);
    s.reads(0, &[3, 4]);
    let dup = |from, to| Access::Dup {
        from,
        to,
        closes: false,
    };
    s.calls(0, "dup2", dup(3, Some(4)), 4);
    s.calls(0, "fcntl", dup(4, None), 10);
    s.closes(0, 3);
    s.reads(0, &[3, 4, 10]);
    s.calls(0, "dup2", dup(4, Some(4)), 4);
    // The file of 9 is not known.
    s.calls(0, "dup2", dup(9, Some(10)), 10);
    s.reads(0, &[4, 10]);
    let range = Access::CloseRange {
        first: 3,
        last: i32::MAX,
        flags: 0,
    };
    s.calls(0, "close_range", range, 0);
    s.reads(0, &[4]);
    assert_eq!(s.files(), "- /a socket - /a /a /a - -");
}

#[test]
fn a_path_is_relative_to_a_known_directory_and_readable() {
    let mut s = Script::new();
    s.opens(0, "/d/", 3);
    let open = |text, directory| Access::Open {
        path: path(text, directory),
        closes: None,
    };
    s.calls(0, "openat", open("b", Some(3)), 4);
    s.calls(0, "openat", open("b", Some(9)), 5);
    s.calls(0, "openat", open("b", None), 6);
    s.calls(0, "openat", open("/c", Some(9)), 7);
    // LTTng could not read the path, or its end.
    s.calls(0, "openat", open("", None), 8);
    s.calls(0, "openat", open("/d##", None), 9);
    s.reads(0, &[4, 5, 6, 7, 8, 9]);
    assert_eq!(s.files(), "/d/b - b /c - -");
}

#[test]
fn a_new_process_has_a_copy_and_exec_keeps_a_part_of_it() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    for (fd, closes) in [(4, Some(true)), (5, None)] {
        let path = path("/b", None);
        s.calls(0, "openat", Access::Open { path, closes }, fd);
    }
    s.opens(0, "/c", 6);
    // The program may have set the close-on-exec flag of descriptor 6.
    s.calls(0, "ioctl", Access::Flag(6), 0);
    s.clones(0, Some(0), 9, false);
    s.runs(1, 9, S);
    s.reads(1, &[3, 4, 5, 6]);
    s.opens(1, "/d", 7);
    s.begins(1, "execve", Access::Exec(path("/bin/e", None)));
    s.sees(1, &FileEvent::Exec { tid: 9, old: 9 });
    s.ends(1, "execve", 0);
    s.reads(1, &[3, 4, 5, 6, 7]);
    // Each process has its own descriptors.
    s.closes(1, 3);
    s.reads(0, &[3, 4, 7]);
    assert_eq!(s.files(), "/a /b /b /c /a - - - /d /a /b -");
}

#[test]
fn an_exec_without_its_event_makes_everything_unknown() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.calls(0, "execve", Access::Exec(path("/bin/e", None)), -2);
    s.reads(0, &[3]);
    s.calls(0, "execve", Access::Exec(path("/bin/e", None)), 0);
    s.reads(0, &[3]);
    assert_eq!(s.files(), "/a -");
}

/// The thread gets the number of the main thread, and sleeps before the call ends.
#[test]
fn an_exec_by_a_thread_other_than_the_main_one_keeps_what_it_does_not_close() {
    let mut s = Script::new();
    s.opens(1, "/other", 6);
    s.opens(0, "/a", 3);
    let closed = Access::Open {
        path: path("/b", None),
        closes: Some(true),
    };
    s.calls(0, "openat", closed, 4);
    s.clones(0, Some(FILES), 9, true);
    s.runs(1, 9, S);
    s.reads(1, &[3, 4]);
    s.begins(1, "execve", Access::Exec(path("/bin/e", None)));
    s.runs(1, 0, S);
    s.runs(0, 8, SwitchedOut::Dead);
    s.runs(1, 9, S);
    s.executes(1, 7, 9);
    s.runs(1, 0, S);
    s.runs(1, 7, S);
    s.ends(1, "execve", 0);
    s.reads(1, &[3, 4]);
    s.opens(1, "/c", 5);
    s.reads(1, &[5]);
    s.reads(0, &[6]);
    assert_eq!(s.files(), "/a /b /a - /c /other");
}

#[test]
fn threads_share_their_descriptors() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.clones(0, Some(FILES), 9, true);
    // The flags of clone3 are not recorded.
    s.clones(0, None, 10, true);
    s.runs(1, 9, S);
    s.opens(1, "/b", 4);
    s.runs(1, 10, S);
    s.reads(1, &[3, 4]);
    s.closes(1, 3);
    s.reads(0, &[3, 4]);
    s.calls(1, "unshare", Access::Unshare(FILES), 0);
    s.closes(1, 4);
    s.reads(0, &[4]);
    assert_eq!(s.files(), "/a /b - /b /b");
}

#[test]
fn a_process_that_may_share_descriptors_adds_no_name() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.clones(0, None, 9, false);
    s.opens(0, "/b", 4);
    s.reads(0, &[3, 4]);
    s.runs(1, 9, S);
    s.reads(1, &[3, 4]);
    s.closes(1, 3);
    s.reads(0, &[3]);
    s.sees(1, &FileEvent::Exec { tid: 9, old: 9 });
    s.opens(0, "/c", 5);
    s.reads(0, &[4, 5]);
    assert_eq!(s.files(), "/a - /a - - - /c");
}

#[test]
fn a_dump_shows_what_was_open_before_and_who_shares_it() {
    let mut s = Script::new();
    s.opens(0, "/early", 5);
    s.dumps(7, 0x10);
    s.dumps(8, 0x10);
    for (fd, path) in [
        (3, "/a"),
        (4, "socket:[812]"),
        (5, "anon_inode:[eventfd]"),
        (6, "anon_inode:inotify"),
    ] {
        s.dumps_descriptor(0x10, fd, path);
    }
    s.reads(1, &[3, 4, 5, 6]);
    s.closes(1, 3);
    s.reads(0, &[3, 4]);
    assert_eq!(s.files(), "/a socket eventfd inotify - socket");
}

#[test]
fn a_dump_of_a_process_that_may_have_a_copy_is_not_of_the_table_of_its_creator() {
    let mut s = Script::new();
    s.dumps(7, 0x10);
    s.clones(0, None, 9, false);
    s.dumps(9, 0x20);
    s.runs(1, 9, S);
    s.sees(1, &FileEvent::Exec { tid: 9, old: 9 });
    s.dumps_descriptor(0x20, 3, "/b");
    s.reads(0, &[3]);
    assert_eq!(s.files(), "-");
}

#[test]
fn threads_with_different_tables_in_a_dump_share_none() {
    let mut s = Script::new();
    s.dumps(7, 0x10);
    // The flags of clone3 are not recorded.
    s.clones(0, None, 9, true);
    s.dumps(9, 0x20);
    s.dumps_descriptor(0x10, 3, "/a");
    s.dumps_descriptor(0x20, 3, "/b");
    s.reads(0, &[3]);
    s.runs(1, 9, S);
    s.reads(1, &[3]);
    assert_eq!(s.files(), "/a /b");
}

#[test]
fn a_close_whose_start_is_not_recorded_makes_everything_unknown() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.ends(1, "write", 1);
    s.reads(0, &[3]);
    s.ends(1, "close", 0);
    s.reads(0, &[3]);
    assert_eq!(s.files(), "/a -");
}

#[test]
fn an_unnamed_call_whose_start_is_not_recorded_may_be_io_uring() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.reads(0, &[3]);
    s.ends(1, "unknown", 0);
    s.reads(0, &[3]);
    // From here on, 7 shares its descriptors with no other thread.
    s.sees(0, &FileEvent::Exec { tid: 7, old: 7 });
    s.opens(0, "/c", 4);
    s.opens(1, "/d", 4);
    s.reads(0, &[4]);
    s.reads(1, &[4]);
    s.calls(0, "unknown", Access::Nothing, 0);
    s.reads(0, &[4]);
    assert_eq!(s.files(), "/a - /c - /c");
}

#[test]
fn an_unshare_whose_start_is_not_recorded_makes_everything_unknown() {
    let mut s = Script::new();
    s.dumps(7, 0x10);
    s.dumps(8, 0x10);
    // From here on, 8 may have a table of its own.
    s.ends(1, "unshare", 0);
    s.opens(0, "/a", 3);
    s.reads(1, &[3]);
    s.calls(1, "unshare", Access::Unshare(0), 0);
    s.reads(0, &[3]);
    assert_eq!(s.files(), "- /a");
}

#[test]
fn a_close_of_no_descriptor_changes_nothing() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    for call in ["close", "dup", "dup2", "close_range"] {
        s.calls(0, call, Access::Nothing, -9);
    }
    s.reads(0, &[3]);
    assert_eq!(s.files(), "/a");
}

#[test]
fn an_unknown_thread_may_share_any_table_whose_creation_is_not_recorded() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.opens(0, "/b", 4);
    s.clones(0, Some(0), 9, false);
    s.closes(1, 3);
    s.reads(0, &[3, 4]);
    s.runs(1, 9, S);
    s.reads(1, &[3, 4]);
    assert_eq!(s.files(), "- /b /a /b");
}

#[test]
fn after_missing_events_only_new_descriptors_are_known() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.loses(1);
    s.reads(0, &[3]);
    s.opens(0, "/b", 4);
    s.reads(0, &[4]);
    // The end of one call and the start of the next are missing, and no loss is reported.
    s.begins(0, "openat", open("/c"));
    s.ends(0, "write", 5);
    s.reads(0, &[4, 5]);
    // A switch is missing.
    s.opens(0, "/d", 6);
    s.running[0] = 9;
    s.runs(0, 7, S);
    s.reads(0, &[6]);
    assert_eq!(s.files(), "- /b - - -");
}

#[test]
fn what_another_thread_changes_during_a_call_is_not_known() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.opens(0, "/b", 4);
    s.clones(0, Some(FILES), 9, true);
    s.runs(1, 9, S);
    s.begins(0, "read", Access::On(3));
    let begin = s.now;
    s.closes(1, 3);
    s.ends(0, "read", 1);
    s.reads.push((7, begin, s.now));
    // No event shows whether the new file or an earlier file was closed.
    s.begins(0, "openat", open("/c"));
    s.closes(1, 3);
    s.ends(0, "openat", 3);
    s.reads(0, &[3, 4]);
    assert_eq!(s.files(), "- - /b");
}

#[test]
fn io_uring_and_calls_that_change_anything_leave_nothing_known() {
    let mut s = Script::new();
    s.opens(0, "/a", 3);
    s.clones(0, Some(0), 9, false);
    s.calls(0, "io_uring_setup", Access::Ring, 4);
    s.opens(0, "/b", 5);
    s.reads(0, &[3, 5]);
    // This thread may belong to the same process.
    s.opens(1, "/c", 5);
    s.reads(1, &[5]);
    s.runs(1, 9, S);
    s.reads(1, &[3]);
    s.calls(0, "ioctl", Access::Anything, 0);
    s.reads(1, &[3]);
    assert_eq!(s.files(), "- - - /a -");
}

#[test]
fn the_end_of_a_call_shows_an_io_uring() {
    let mut s = Script::new();
    s.opens(1, "/a", 3);
    s.reads(1, &[3]);
    s.ends(1, "io_uring_enter", 1);
    s.reads(1, &[3]);
    assert_eq!(s.files(), "/a -");
}

/// A kernel thread may perform the operations of the ring, without a system call.
#[test]
fn after_missing_events_an_io_uring_still_leaves_nothing_known() {
    for is_known in [false, true] {
        let mut s = Script::new();
        if is_known {
            s.sees(0, &FileEvent::Exec { tid: 7, old: 7 });
        }
        s.calls(0, "io_uring_setup", Access::Ring, 4);
        s.loses(1);
        s.opens(0, "/a", 5);
        s.reads(0, &[5]);
        assert_eq!(s.files(), "-", "{is_known}");
    }
}

#[test]
fn a_call_that_has_not_ended_has_its_file_up_to_the_end_or_a_gap() {
    for loses in [false, true] {
        let mut s = Script::new();
        s.opens(0, "/a", 3);
        s.begins(0, "read", Access::On(3));
        let begin = s.now;
        s.runs(0, 9, S);
        if loses {
            s.loses(1);
        }
        s.reads.push((7, begin, s.now));
        assert_eq!(s.files(), "/a", "{loses}");
    }
}

#[test]
fn files_are_known_only_where_all_calls_are_recorded() {
    let mut builder = Builder::new();
    builder.has_files(4, 10);
    let mut s = Script::with(builder);
    s.opens(0, "/a", 3);
    s.reads(0, &[3]);
    s.opens(0, "/b", 4);
    s.reads(0, &[4]);
    s.begins(0, "read", Access::On(4));
    let begin = s.now;
    s.reads(1, &[4]);
    s.ends(0, "read", 1);
    s.reads.extend([(7, begin, 10), (7, begin, s.now)]);
    s.opens(0, "/c", 5);
    s.reads(0, &[5]);
    assert_eq!(s.files(), "- /b - /b - -");
}

#[test]
fn names_have_a_limited_size() {
    let mut builder = Builder::new();
    builder.limit(8 << 20);
    let mut s = Script::with(builder);
    for n in 0..10_000 {
        s.opens(0, &format!("/file-{n}"), 3);
        if n == 0 || n == 9999 {
            s.reads(0, &[3]);
        }
        s.closes(0, 3);
    }
    assert!(s.builder.bytes() < 3 << 20, "{}", s.builder.bytes());
    assert_eq!(s.files(), "/file-0 -");
}

#[test]
fn a_call_on_an_unknown_file_has_its_descriptor() {
    let mut s = Script::new();
    s.reads(0, &[3]);
    s.opens(0, "/a", 3);
    s.reads(0, &[3]);
    // The number is the call's own argument, even if another thread closes the descriptor meanwhile.
    s.begins(0, "read", Access::On(3));
    let begin = s.now;
    s.closes(1, 3);
    s.ends(0, "read", 1);
    s.reads.push((s.running[0], begin, s.now));
    // The file is not behind the descriptor of its directory.
    s.begins(0, "fstatat", Access::Path(path("b", Some(3))));
    let begin = s.now;
    s.ends(0, "fstatat", 0);
    s.reads.push((s.running[0], begin, s.now));
    assert_eq!(descriptors(s), "3 /a 3 -");
}

/// On CPU 1, 7 ends, but on CPU 0, 7 goes on: events are missing.
#[test]
fn a_call_of_a_thread_that_has_ended_makes_no_thread() {
    let mut builder = Builder::new();
    builder.has_all_calls();
    let call = b"read";
    for event in [
        switch(0, 0, 0, S, 7),
        switch(1, 1, 7, SwitchedOut::Dead, 8),
        at(6, 0, What::Call { name: call }),
    ] {
        builder.feed(&event);
    }
    let access = Access::On(3);
    builder.feed_file(6, 0, &FileEvent::Call { call, access });
    assert_eq!(builder.finish().by_tid(7).count(), 1);
}

/// The descriptors of all reads.
fn descriptors(s: Script) -> String {
    s.shown(|fd| fd.map_or("-".into(), |fd| fd.to_string()))
}

#[test]
fn a_thread_is_explained_without_the_files_of_others_while_it_is_awake() {
    for (only, expected) in [(None, "3 3 3 3 3 3"), (Some(7), "- 3 3 3 - -")] {
        let mut builder = Builder::new();
        if let Some(tid) = only {
            builder.explains_only(tid);
        }
        let mut s = Script::with(builder);
        s.reads(1, &[3]);
        s.reads(0, &[3]);
        s.runs(0, 0, S);
        s.reads(1, &[3]);
        s.begins(1, "read", Access::On(3));
        let begin = s.now;
        s.runs(0, 7, S);
        s.ends(1, "read", 1);
        s.reads.push((8, begin, s.now));
        s.reads(1, &[3]);
        s.runs(0, 0, SwitchedOut::Dead);
        s.reads(1, &[3]);
        assert_eq!(descriptors(s), expected);
    }
}

#[test]
fn a_thread_is_explained_with_the_files_of_its_creator_and_of_the_owner_of_its_lock() {
    let mut builder = Builder::new();
    builder.explains_only(9);
    let mut s = Script::with(builder);
    let (child, name) = (9, &b""[..]);
    s.reads(1, &[3]);
    s.feeds(1, What::Fork { child, name });
    s.runs(0, 9, S);
    s.reads(1, &[3]);
    // 9 spins until 8 hands over the lock.
    let futex = |op| What::Futex { op, address: 16 };
    s.feeds(0, futex(6));
    s.reads(1, &[3]);
    s.feeds(1, futex(7));
    s.now += 1;
    s.builder.feed(&waking(s.now, 1, 9));
    s.feeds(1, What::Return);
    s.feeds(0, What::Return);
    s.reads(1, &[3]);
    assert!(!s.builder.has_several(9));
    assert_eq!(descriptors(s), "3 - 3 -");
}

#[test]
fn a_number_that_is_used_again_belongs_to_several_threads() {
    let mut s = Script::new();
    let (child, name) = (9, &b""[..]);
    for is_again in [false, true] {
        s.feeds(1, What::Fork { child, name });
        assert_eq!(s.builder.has_several(9), is_again);
    }
}

/// Any events, with calls that each work on a descriptor of their own. `only` is the only thread that is explained.
fn with_calls(events: &[At], only: Option<i32>) -> Builder {
    let mut builder = Builder::new();
    builder.has_all_calls();
    if let Some(tid) = only {
        builder.explains_only(tid);
    }
    for (fd, (time, cpu, what)) in (0..).zip(events) {
        let (time, cpu, what) = (*time, *cpu, *what);
        builder.feed(&Event { time, cpu, what });
        let (access, call) = (Access::On(fd), &b"read"[..]);
        let event = match what {
            What::Call { .. } | What::Futex { .. } => FileEvent::Call { call, access },
            What::Return => FileEvent::Return {
                call: None,
                result: None,
            },
            _ => continue,
        };
        builder.feed_file(time, cpu, &event);
    }
    builder
}

proptest! {
    #[test]
    fn the_explanation_of_a_thread_has_all_its_files(
        events in events(), from in 0..60u64, took in 1..60u64, tid in 1..6i32
    ) {
        let [whole, part] = [None, Some(tid)].map(|only| with_calls(&events, only));
        let is_one = !part.has_several(tid);
        let (whole, part, to) = (whole.finish(), part.finish(), from + took);
        for id in whole.by_tid(tid).filter(|_| is_one) {
            let files = |model: &Model| {
                let path = why::path(model, id, from, to);
                let file = |p: &why::Piece| (*p, model.file(p.thread, p.begin, p.end));
                path.iter().map(file).collect::<Vec<_>>()
            };
            prop_assert_eq!(files(&part), files(&whole));
            let segments = why::delays(&whole, id, from, to);
            for wait in segments.iter().flat_map(|of| &of.waits) {
                if let Some(by) = wait.by {
                    let states = |model| why::states(model, by, wait.begin, wait.end);
                    prop_assert_eq!(states(&part), states(&whole));
                }
            }
            prop_assert_eq!(why::delays(&part, id, from, to), segments);
        }
    }
}

#[test]
fn without_all_calls_nothing_is_known() {
    let mut builder = Builder::new();
    builder.feed(&switch(0, 0, 0, S, 7));
    let call = |call, access| FileEvent::Call { call, access };
    let end = |call, result| FileEvent::Return {
        call: Some(call),
        result: Some(result),
    };
    for (time, event) in (1..).zip([
        call(&b"openat"[..], open("/a")),
        end(b"openat", 3),
        call(b"read", Access::On(3)),
        end(b"read", 1),
    ]) {
        builder.feed_file(time, 0, &event);
    }
    let model = builder.finish();
    let thread = model.by_tid(7).next().unwrap();
    assert_eq!(model.file(thread, 3, 4), None);
}
