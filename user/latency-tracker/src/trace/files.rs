// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Decodes the events that show which file a system call works on: the arguments and results of system calls, and dumps
//! of the kernel's state.

use lt_ctf::{Class, FieldIndex, Part, Reader};
use lt_model::{Access, FileEvent, FilePath};

use super::kinds::{self, Kind};
use super::several;

/// How to decode events of one class.
pub(super) enum Decoder {
    Call(String, Arguments),
    Return(Option<String>, Option<FieldIndex>),
    Fork(FieldIndex, Option<FieldIndex>),
    Exec(FieldIndex, FieldIndex),
    Table(FieldIndex, FieldIndex),
    Descriptor {
        table: FieldIndex,
        fd: FieldIndex,
        path: FieldIndex,
        flags: Option<FieldIndex>,
    },
}

/// The fields of a path: the text, and the descriptor of the directory.
#[derive(Clone, Copy)]
pub(super) struct Text(FieldIndex, Option<FieldIndex>);

/// What a system call does with files, and the fields that show it.
pub(super) enum Arguments {
    Nothing,
    On(FieldIndex),
    /// Waits for the descriptors in an array of this length.
    Poll(FieldIndex, FieldIndex),
    /// Waits for the descriptors in these bit sets that are less than a number.
    Select([FieldIndex; 3], FieldIndex),
    /// Maps a file, unless the flags say that the mapping is anonymous.
    Map(FieldIndex, FieldIndex),
    Path(Text),
    Open(Text, Option<FieldIndex>),
    Create(&'static str),
    Dup {
        from: FieldIndex,
        to: Option<FieldIndex>,
        flags: Option<FieldIndex>,
    },
    Fcntl(FieldIndex, FieldIndex),
    Ioctl(FieldIndex, FieldIndex),
    Close(FieldIndex),
    CloseRange([FieldIndex; 3]),
    Clone(Option<FieldIndex>),
    /// Creates a process with its own descriptors.
    Fork,
    Unshare(FieldIndex),
    Exec(Text),
    Ring,
    /// A call without a name, and its number.
    Unknown(Option<FieldIndex>),
    Anything,
}

fn is_fork(class: &Class) -> bool {
    let name = kinds::split(&class.name).map(|(_, name)| name);
    name == Some("sched_process_fork")
}

/// Whether a trace shows which files system calls work on. A call that is not recorded may change the file behind a
/// descriptor, and a thread whose creation is not recorded may share descriptors.
pub(super) fn are_shown(reader: &Reader) -> bool {
    let kernels = several::kernels(reader);
    several::in_all(reader, &kernels, &is_fork) && several::has_all_calls(reader, &kernels)
}

/// The time in which all CPUs show which files system calls work on. In a snapshot, a CPU's stream of
/// system calls may start later than its stream of forks, if they are in different channels.
pub(super) fn shown(reader: &Reader, kernels: &[bool]) -> (u64, u64) {
    let is_call = |class: &Class| kinds::kind(class).is_some_and(|kind| kind.is_call());
    let dark = several::dark(reader, kernels, &[&is_call, &is_fork]);
    let starts = dark.iter().filter(|(from, ..)| *from == 0);
    let ends = dark.iter().filter(|(.., until)| *until == u64::MAX);
    let begin = starts.map(|(.., until)| *until).max();
    let end = ends.map(|(from, ..)| *from).min();
    (begin.unwrap_or(0), end.unwrap_or(u64::MAX))
}

/// The decoders of all classes of a trace; empty if the trace does not show which files system calls work on.
pub(super) fn decoders(reader: &Reader) -> Vec<Option<Decoder>> {
    match are_shown(reader) {
        true => reader.classes().map(Decoder::of).collect(),
        false => Vec::new(),
    }
}

/// The name of the call that this event ends; `Some(None)` for an event that ends any call.
pub(super) fn returns(class: &Class) -> Option<Option<String>> {
    let (system, name) = kinds::split(&class.name)?;
    if name == "exit_syscall" {
        return Some(None);
    }
    let ends: &[_] = match system {
        None => &["syscall_exit_", "compat_syscall_exit_"],
        Some("syscalls") => &["sys_exit_"],
        Some(_) => &[],
    };
    let call = ends.iter().find_map(|end| name.strip_prefix(end));
    call.map(|call| Some(call.to_string()))
}

impl Decoder {
    fn of(class: &Class) -> Option<Self> {
        let field = |name| class.field(name);
        if let Some(call) = returns(class) {
            return Some(Self::Return(call, field("ret")));
        }
        match kinds::kind(class) {
            Some(Kind::Call(call)) => {
                let arguments = arguments(class, &call);
                // A call without the expected fields may do anything.
                return Some(Self::Call(call, arguments.unwrap_or(Arguments::Anything)));
            }
            Some(Kind::Futex(..)) => {
                return Some(Self::Call("futex".into(), Arguments::Nothing));
            }
            _ => {}
        }
        let (_, name) = kinds::split(&class.name)?;
        Some(match name {
            // perf records only the number of the thread.
            "sched_process_fork" => {
                let child = field("child_tid").or_else(|| field("child_pid"))?;
                Self::Fork(child, field("child_tid").and_then(|_| field("child_pid")))
            }
            "sched_process_exec" => Self::Exec(
                field("tid").or_else(|| field("pid"))?,
                field("old_tid").or_else(|| field("old_pid"))?,
            ),
            // Before LTTng 2.11, the tables had the number of their process.
            "lttng_statedump_process_state" => Self::Table(
                field("tid")?,
                field("file_table_address").or_else(|| field("pid"))?,
            ),
            "lttng_statedump_file_descriptor" => Self::Descriptor {
                table: field("file_table_address").or_else(|| field("pid"))?,
                fd: field("fd")?,
                path: field("filename")?,
                flags: field("flags"),
            },
            _ => return None,
        })
    }

    /// Decodes the event.
    pub(super) fn event<'a>(&'a self, event: &lt_ctf::Event<'a>) -> Option<FileEvent<'a>> {
        let number = |field| i32::try_from(event.signed(field)?).ok();
        Some(match self {
            Self::Call(call, arguments) => FileEvent::Call {
                call: call.as_bytes(),
                access: arguments.access(event).unwrap_or(Access::Nothing),
            },
            Self::Return(call, result) => FileEvent::Return {
                call: call.as_ref().map(String::as_bytes),
                result: result.and_then(|result| event.signed(result)),
            },
            Self::Fork(child, process) => {
                let child = number(*child)?;
                let process = process.and_then(number);
                FileEvent::Fork {
                    child,
                    is_thread: process.map(|process| process != child),
                }
            }
            Self::Exec(tid, old) => FileEvent::Exec {
                tid: number(*tid)?,
                old: number(*old)?,
            },
            Self::Table(tid, table) => FileEvent::Table {
                tid: number(*tid)?,
                table: event.unsigned(*table)?,
            },
            Self::Descriptor {
                table,
                fd,
                path,
                flags,
            } => FileEvent::Descriptor {
                table: event.unsigned(*table)?,
                fd: number(*fd)?,
                path: event.bytes(*path)?,
                closes: flags.and_then(|flags| closes(event, flags)),
            },
        })
    }
}

/// What a system call with this name does with files; `None` if a field is missing.
fn arguments(class: &Class, call: &str) -> Option<Arguments> {
    let field = |name| class.field(name);
    let text = || {
        let names = ["filename", "pathname", "path"];
        let path = names.into_iter().find_map(field)?;
        let directory = match call {
            "execveat" => field("fd"),
            // If this call has an `fd`, the path is not relative to that descriptor: see inotify_add_watch.
            _ => field("dfd"),
        };
        Some(Text(path, directory))
    };
    Some(match call {
        "open" | "openat" | "openat2" | "creat" => Arguments::Open(text()?, field("flags")),
        "socket" | "accept" | "accept4" => Arguments::Create("socket"),
        "epoll_create" | "epoll_create1" => Arguments::Create("eventpoll"),
        "eventfd" | "eventfd2" => Arguments::Create("eventfd"),
        "inotify_init" | "inotify_init1" => Arguments::Create("inotify"),
        "timerfd_create" => Arguments::Create("timerfd"),
        "dup" => Arguments::Dup {
            from: field("fildes")?,
            to: None,
            flags: None,
        },
        "dup2" | "dup3" => Arguments::Dup {
            from: field("oldfd")?,
            to: Some(field("newfd")?),
            flags: field("flags"),
        },
        "fcntl" | "fcntl64" => Arguments::Fcntl(field("fd")?, field("cmd")?),
        "ioctl" => Arguments::Ioctl(field("fd")?, field("cmd")?),
        "close" => Arguments::Close(field("fd")?),
        "close_range" => Arguments::CloseRange([field("fd")?, field("max_fd")?, field("flags")?]),
        "clone" => Arguments::Clone(field("flags").or_else(|| field("clone_flags"))),
        // The flags are in memory.
        "clone3" => Arguments::Clone(None),
        "fork" | "vfork" => Arguments::Fork,
        "unshare" => Arguments::Unshare(field("unshare_flags").or_else(|| field("flags"))?),
        "execve" | "execveat" => Arguments::Exec(text()?),
        "io_uring_setup" | "io_uring_enter" | "io_uring_register" => Arguments::Ring,
        "epoll_ctl" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => {
            Arguments::On(field("epfd")?)
        }
        // perf records only addresses.
        "poll" | "ppoll" | "ppoll_time32" => {
            let fields = field("fds").zip(field("nfds"));
            fields.map_or(Arguments::Nothing, |(fds, n)| Arguments::Poll(fds, n))
        }
        "select" | "pselect6" | "pselect6_time32" => {
            let sets = ["readfds", "writefds", "exceptfds"].map(field);
            match (sets, field("n")) {
                ([Some(read), Some(write), Some(except)], Some(number)) => {
                    Arguments::Select([read, write, except], number)
                }
                _ => Arguments::Nothing,
            }
        }
        "mmap" | "mmap2" | "mmap_pgoff" => {
            let fields = field("fd").zip(field("flags"));
            fields.map_or(Arguments::Nothing, |(fd, flags)| Arguments::Map(fd, flags))
        }
        // `targetfd` is a descriptor of another process.
        "pidfd_getfd" => Arguments::Nothing,
        // LTTng does not know the names of calls that are newer than itself.
        "unknown" => Arguments::Unknown(field("id")),
        _ => match (text(), field("fd")) {
            (Some(text), _) => Arguments::Path(text),
            (None, Some(fd)) => Arguments::On(fd),
            (None, None) => Arguments::Nothing,
        },
    })
}

/// A descriptor. Some trace formats have it as an unsigned number.
fn descriptor(event: &lt_ctf::Event<'_>, field: FieldIndex) -> Option<i32> {
    let number = event.signed(field)?;
    let unsigned = || u32::try_from(number).ok().map(u32::cast_signed);
    i32::try_from(number).ok().or_else(unsigned)
}

/// The descriptor for which `poll` waits, if `length` is one; `visit` reports the array.
fn polled<'a>(length: u64, visit: impl FnOnce(&mut dyn FnMut(Part<'a>)) -> bool) -> Option<i32> {
    if length != 1 {
        return None;
    }
    let (mut is_fd, mut found) = (false, None);
    let is_whole = visit(&mut |part| match part {
        Part::Member(name) => is_fd = name == "fd",
        Part::Signed(fd, ..) if is_fd => found = i32::try_from(fd).ok(),
        _ => {}
    });
    // The kernel ignores a negative number.
    found.filter(|fd| is_whole && *fd >= 0)
}

/// The descriptor for which `select` waits, if it is the only one below `number`; `visit` reports a set, by its index.
fn selected<'a>(
    number: i64,
    visit: impl Fn(usize, &mut dyn FnMut(Part<'a>)) -> bool,
) -> Option<i32> {
    /// Maximum number of descriptors in a set. The kernel itself has no such limit.
    const MOST: usize = 1024;
    if number > MOST as i64 {
        return None;
    }
    let mut all = [0; MOST / 8];
    for set in 0..3 {
        let mut bytes = all.iter_mut();
        let is_whole = visit(set, &mut |part| {
            if let Part::Unsigned(bits, ..) = part
                && let Some(byte) = bytes.next()
            {
                *byte |= bits;
            }
        });
        if !is_whole {
            return None;
        }
    }
    let is_set = |fd: &i64| {
        let byte = all.get(*fd as usize / 8);
        byte.is_some_and(|byte| (byte >> (fd % 8)) & 1 == 1)
    };
    let mut found = (0..number).filter(is_set);
    let only = found.next().filter(|_| found.next().is_none())?;
    i32::try_from(only).ok()
}

/// Whether exec closes the descriptor, from flags.
fn closes(event: &lt_ctf::Event<'_>, flags: FieldIndex) -> Option<bool> {
    const O_CLOEXEC: i64 = 0o2_000_000;
    Some(event.signed(flags)? & O_CLOEXEC != 0)
}

impl Text {
    fn path<'a>(self, event: &lt_ctf::Event<'a>) -> FilePath<'a> {
        const AT_FDCWD: i32 = -100;
        let directory = self.1.and_then(|field| descriptor(event, field));
        FilePath {
            text: event.bytes(self.0).unwrap_or_default(),
            directory: directory.filter(|fd| *fd != AT_FDCWD),
        }
    }
}

impl Arguments {
    /// What the call does with files; `None` if it does nothing, since an argument is not a descriptor.
    fn access<'a>(&self, event: &lt_ctf::Event<'a>) -> Option<Access<'a>> {
        const MAP_ANONYMOUS: i64 = 0x20;
        let fd = |field| descriptor(event, field).filter(|fd| *fd >= 0);
        Some(match self {
            Self::Nothing => Access::Nothing,
            Self::On(of) => Access::On(fd(*of)?),
            Self::Poll(fds, length) => {
                let length = event.unsigned(*length)?;
                Access::On(polled(length, |told| event.visit(*fds, told))?)
            }
            Self::Select(sets, number) => {
                let number = event.signed(*number)?;
                let found = selected(number, |set, told| match sets.get(set) {
                    Some(set) => event.visit(*set, told),
                    None => false,
                });
                Access::On(found?)
            }
            Self::Map(of, flags) => match event.signed(*flags)? & MAP_ANONYMOUS {
                0 => Access::On(fd(*of)?),
                _ => Access::Nothing,
            },
            Self::Path(text) => Access::Path(text.path(event)),
            Self::Open(text, flags) => Access::Open {
                path: text.path(event),
                closes: flags.and_then(|flags| closes(event, flags)),
            },
            Self::Create(kind) => Access::Create(kind),
            Self::Dup { from, to, flags } => Access::Dup {
                from: fd(*from)?,
                to: match to {
                    Some(to) => Some(fd(*to)?),
                    None => None,
                },
                closes: flags.and_then(|flags| closes(event, flags)) == Some(true),
            },
            Self::Fcntl(of, command) => fcntl(fd(*of)?, event.unsigned(*command)),
            Self::Ioctl(of, command) => ioctl(fd(*of)?, event.unsigned(*command)),
            Self::Close(of) => Access::Close(fd(*of)?),
            Self::CloseRange([first, last, flags]) => Access::CloseRange {
                first: fd(*first)?,
                last: fd(*last).unwrap_or(i32::MAX),
                flags: event.unsigned(*flags).unwrap_or(u64::MAX),
            },
            Self::Clone(flags) => Access::Clone(flags.and_then(|flags| event.unsigned(flags))),
            Self::Fork => Access::Clone(Some(0)),
            Self::Unshare(flags) => Access::Unshare(event.unsigned(*flags)?),
            Self::Exec(text) => Access::Exec(text.path(event)),
            Self::Ring => Access::Ring,
            Self::Unknown(number) => unknown(number.and_then(|number| event.unsigned(number))),
            Self::Anything => Access::Anything,
        })
    }
}

fn fcntl(fd: i32, command: Option<u64>) -> Access<'static> {
    const F_DUPFD: u64 = 0;
    const F_SETFD: u64 = 2;
    const F_DUPFD_CLOEXEC: u64 = 1030;
    match command {
        Some(command @ (F_DUPFD | F_DUPFD_CLOEXEC)) => Access::Dup {
            from: fd,
            to: None,
            closes: command == F_DUPFD_CLOEXEC,
        },
        Some(F_SETFD) | None => Access::Flag(fd),
        Some(_) => Access::On(fd),
    }
}

fn ioctl(fd: i32, command: Option<u64>) -> Access<'static> {
    const FIONCLEX: u64 = 0x5450;
    const FIOCLEX: u64 = 0x5451;
    /// The type and the number of a command. The upper bits have the size of its argument, which differs in 32-bit
    /// programs.
    const COMMAND: u64 = 0xffff;
    /// Sets a descriptor of another process.
    const SECCOMP_IOCTL_NOTIF_ADDFD: u64 = 0x2103;
    /// Closes a descriptor.
    const AUTOFS_DEV_IOCTL_CLOSEMOUNT: u64 = 0x9375;
    /// May close descriptors that came with a transaction.
    const BINDER_WRITE_READ: u64 = 0x6201;
    match command.map(|command| command & COMMAND) {
        Some(FIOCLEX | FIONCLEX) | None => Access::Flag(fd),
        Some(SECCOMP_IOCTL_NOTIF_ADDFD | AUTOFS_DEV_IOCTL_CLOSEMOUNT | BINDER_WRITE_READ) => {
            Access::Anything
        }
        Some(_) => Access::On(fd),
    }
}

/// A call without a name, by its number. Most architectures give a new call the same number. On the other
/// architectures, the number is larger, and may stand for any call.
fn unknown(number: Option<u64>) -> Access<'static> {
    match number {
        // io_uring_setup, io_uring_enter and io_uring_register
        Some(425..428) => Access::Ring,
        // Of the other calls before listns, only 436, close_range, closes descriptors.
        Some(number) if number < 470 && number != 436 => Access::Nothing,
        _ => Access::Anything,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lt_ctf::Item;

    use crate::trace::feed::tests::traces;

    use super::*;

    /// Two channels, each with one packet of each CPU.
    #[test]
    fn files_are_shown_where_every_stream_has_begun_and_none_has_ended() {
        const METADATA: &str = "/* CTF 1.8 */\n\
            typealias integer { size = 64; } := u64;\n\
            typealias integer { size = 32; } := u32;\n\
            trace { byte_order = le; packet.header := struct { u32 stream_id; }; };\n\
            env { tracer_name = \"lttng-modules\"; };\n\
            clock { name = c; };\n\
            stream { id = 0; packet.context := struct { u64 timestamp_begin; u64 timestamp_end; u32 cpu_id; }; };\n\
            stream { id = 1; packet.context := struct { u64 timestamp_begin; u64 timestamp_end; u32 cpu_id; }; };\n\
            event { name = sched_process_fork; id = 0; stream_id = 0; };\n\
            event { name = syscall_entry_read; id = 0; stream_id = 1; };\n";
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("metadata"), METADATA).unwrap();
        for (channel, cpu, begin, end) in [
            (0u32, 0u32, 10u64, 100u64),
            (0, 1, 20, 90),
            (1, 0, 30, 100),
            (1, 1, 50, 95),
        ] {
            let mut packet = channel.to_le_bytes().to_vec();
            packet.extend(begin.to_le_bytes());
            packet.extend(end.to_le_bytes());
            packet.extend(cpu.to_le_bytes());
            fs::write(dir.path().join(format!("{channel}_{cpu}")), packet).unwrap();
        }
        let reader = Reader::open(dir.path()).unwrap();
        assert_eq!(shown(&reader, &several::kernels(&reader)), (50, 90));
    }

    #[test]
    fn poll_and_select_are_on_a_file_if_they_wait_for_one_descriptor() {
        const METADATA: &str = "/* CTF 1.8 */\n\
            typealias integer { size = 64; } := u64;\n\
            typealias integer { size = 32; } := u32;\n\
            typealias integer { size = 32; signed = true; } := i32;\n\
            typealias integer { size = 8; } := u8;\n\
            trace { byte_order = le; };\n\
            clock { name = c; };\n\
            stream {\n\
                packet.context := struct { u64 timestamp_begin; u64 timestamp_end; u32 cpu_id; };\n\
                event.header := struct { u32 id; u64 timestamp; };\n\
            };\n\
            event { name = syscall_entry_poll; id = 0; fields := struct {\n\
                u32 nfds; u32 fds_length; struct { i32 fd; u32 events; } fds[fds_length];\n\
            }; };\n\
            event { name = syscall_entry_select; id = 1; fields := struct {\n\
                i32 n; u8 r; u8 readfds[r]; u8 w; u8 writefds[w]; u8 e; u8 exceptfds[e];\n\
            }; };\n";
        let mut stream = [10u64, 100].map(u64::to_le_bytes).concat();
        stream.extend(0u32.to_le_bytes());
        let mut event = |id: u32, body: &[u8]| {
            stream.extend(id.to_le_bytes());
            stream.extend(20u64.to_le_bytes());
            stream.extend(body);
        };
        for fds in [&[5][..], &[5, 6], &[-1], &[]] {
            let mut body = [fds.len() as u32; 2].map(u32::to_le_bytes).concat();
            for fd in fds {
                body.extend(i32::to_le_bytes(*fd));
                body.extend(1u32.to_le_bytes());
            }
            event(0, &body);
        }
        // Descriptor 9 twice; 0 and 9; 0, since 9 is not below 9; none; 0 in a set that is too large.
        let sets: [(i32, [&[u8]; 3]); 5] = [
            (10, [&[0, 2], &[0, 2], &[]]),
            (10, [&[1, 0], &[0, 2], &[]]),
            (9, [&[1, 2], &[], &[]]),
            (0, [&[], &[], &[]]),
            (2000, [&[1], &[], &[]]),
        ];
        for (number, sets) in sets {
            let mut body = number.to_le_bytes().to_vec();
            for set in sets {
                body.push(set.len() as u8);
                body.extend(set);
            }
            event(1, &body);
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("metadata"), METADATA).unwrap();
        fs::write(dir.path().join("stream_0"), stream).unwrap();
        let mut reader = Reader::open(dir.path()).unwrap();
        let mut found = Vec::new();
        while let Some(item) = reader.next().unwrap() {
            let Item::Event(event) = item else { continue };
            let decoder = Decoder::of(event.class()).unwrap();
            found.push(match decoder.event(&event) {
                Some(FileEvent::Call {
                    access: Access::On(fd),
                    ..
                }) => Some(fd),
                _ => None,
            });
        }
        let of_poll = [Some(5), None, None, None];
        let of_select = [Some(9), None, Some(0), None, None];
        assert_eq!(found, [&of_poll[..], &of_select].concat());
    }

    #[test]
    fn a_path_is_relative_to_the_descriptor_of_a_directory_only() {
        let dir = traces();
        let reader = Reader::open(&dir.path().join("all")).unwrap();
        let of = |call: &str| {
            let name = format!("syscall_entry_{call}");
            let class = reader.classes().find(|class| class.name == name);
            arguments(class.unwrap(), call).unwrap()
        };
        assert!(matches!(of("openat"), Arguments::Open(Text(_, Some(_)), _)));
        assert!(matches!(of("execveat"), Arguments::Exec(Text(_, Some(_)))));
        let watch = of("inotify_add_watch");
        assert!(matches!(watch, Arguments::Path(Text(_, None))));
        assert!(matches!(of("mmap"), Arguments::Map(..)));
        assert!(matches!(of("poll"), Arguments::Poll(..)));
        assert!(matches!(of("ppoll"), Arguments::Poll(..)));
        assert!(matches!(of("select"), Arguments::Select(..)));
        assert!(matches!(of("pselect6"), Arguments::Select(..)));
        assert!(matches!(of("unknown"), Arguments::Unknown(Some(_))));
    }

    #[test]
    fn commands_and_unnamed_calls_that_change_other_descriptors_are_known() {
        for (command, access) in [
            (0x5401, Access::On(3)),
            (0x5451, Access::Flag(3)),
            (0x4018_2103, Access::Anything),
            (0xc018_9375, Access::Anything),
            (0xc030_6201, Access::Anything),
        ] {
            assert_eq!(ioctl(3, Some(command)), access, "{command:#x}");
        }
        for (number, access) in [
            (0, Access::Nothing),
            (426, Access::Ring),
            (435, Access::Nothing),
            (436, Access::Anything),
            (469, Access::Nothing),
            (470, Access::Anything),
        ] {
            assert_eq!(unknown(Some(number)), access, "{number}");
        }
        assert_eq!(unknown(None), Access::Anything);
    }
}
