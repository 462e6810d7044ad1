// SPDX-License-Identifier: GPL-2.0 OR MIT

use super::*;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// An alert of a thread, at a time, with more fields.
fn alert((pid, comm): (u32, &str), time: u64, more: &str) -> Alert {
    let line = format!(
        "seq=1 time={time} instance=i tracker=syscall reason=threshold delay=5 threshold=1 cpu=0 \
         pid={pid} tid={pid} comm=\"{comm}\" call=read {more}"
    );
    Alert::parse(&line).unwrap()
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    Duration::from(now).as_nanos() as u64
}

/// The name of the first thread of this process.
fn comm() -> String {
    let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
    comm.trim_end().to_string()
}

#[inline(never)]
fn a_function_that_is_called() -> usize {
    std::hint::black_box(7)
}

fn shown(alert: &Alert) -> String {
    lines(alert, 2).join("\n")
}

fn stack(addresses: &str, end: &str) -> String {
    format!("ustack={addresses} ustack_end={end}")
}

#[test]
fn functions_of_a_process_have_their_names() {
    let address = a_function_that_is_called as fn() -> usize as usize as u64 + 1;
    let more = stack(&format!("{address:#x},0x10"), "broken");
    let mut alert = alert((std::process::id(), &comm()), now(), &more);
    let mut names = Names::default();
    names.find(&mut alert);
    let found = alert.ustack_names.clone().unwrap();
    let [first, second] = &found.frames[..] else {
        panic!("{found:?}");
    };
    let name = first.name.as_deref().unwrap();
    assert!(name.contains("a_function_that_is_called"), "{name}");
    assert_eq!(first.offset, Some(1));
    let exe = std::env::current_exe().unwrap();
    assert_eq!(first.file.as_deref(), exe.to_str());
    assert_eq!((&second.name, &second.file), (&None, &None));
    assert_eq!(second.address, "0x10");
    assert!(found.note.unwrap().contains("without a name"));
    // A later alert of the same process, as if it had exited: its files are known, but no names.
    let mut later = alert.clone();
    later.ustack_names = None;
    let gone = names.without(&later, &[address], process::GONE);
    assert_eq!(gone.frames[0].name, None);
    assert_eq!(gone.frames[0].file, first.file);
    assert!(gone.note.unwrap().contains("has exited"));
}

#[test]
fn only_a_return_address_belongs_to_the_instruction_before_it() {
    let first = a_function_that_is_called as fn() -> usize as usize as u64;
    let more = stack(&format!("{first:#x},{:#x}", first + 1), "broken");
    let mut alert = alert((std::process::id(), &comm()), now(), &more);
    Names::default().find(&mut alert);
    // The innermost address is the next instruction: here, a page fault at the start of a function.
    for (frame, offset) in alert.ustack_names.unwrap().frames.iter().zip([0, 1]) {
        let name = frame.name.as_deref().unwrap();
        assert!(name.contains("a_function_that_is_called"), "{name}");
        assert_eq!(frame.offset, Some(offset));
    }
}

#[test]
fn a_process_that_has_exited_or_changed_gets_no_names() {
    let more = stack("0x401136,0x401180,0x401190", "outermost");
    let note = |mut alert: Alert| {
        Names::default().find(&mut alert);
        let names = alert.ustack_names.clone().unwrap();
        assert!(names.frames.iter().all(|frame| frame.name.is_none()));
        let text = shown(&alert);
        assert!(text.contains("\n    0x401136\n    0x401180"), "{text}");
        names.note.unwrap()
    };
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    assert_eq!(note(alert((pid, "true"), now(), &more)), process::GONE);
    // The PID belongs to a process that started after the operation.
    let me = (std::process::id(), &*comm());
    assert_eq!(note(alert(me, 6, &more)), process::GONE);
    // The thread runs something else.
    let other = note(alert((me.0, "other"), now(), &more));
    assert!(other.contains("may run another program"), "{other}");
}

#[test]
fn a_call_that_replaced_the_program_has_no_stack() {
    let me = (std::process::id(), &*comm());
    let start = stack("0x401136", "outermost");
    let of = |call: &str| {
        let mut alert = alert(me, now(), &format!("{start} {call}"));
        Names::default().find(&mut alert);
        shown(&alert)
    };
    let said = of("ret=0");
    assert!(said.contains("0x401136"), "{said}");
    let line = format!(
        "seq=1 time={} instance=i tracker=syscall reason=threshold delay=5 threshold=1 cpu=0 pid={} tid={} \
         comm=\"{}\" call=execve ret=0 {start}",
        now(),
        me.0,
        me.0,
        me.1
    );
    let mut replaced = Alert::parse(&line).unwrap();
    Names::default().find(&mut replaced);
    assert_eq!(replaced.ustack_names, None);
    let said = shown(&replaced);
    assert!(
        said.contains("not recorded, since this call replaced the program"),
        "{said}"
    );
}

#[test]
fn what_is_not_recorded_is_reported() {
    let me = (1, "x");
    let of = |more: &str| shown(&alert(me, 9, more));
    assert_eq!(of(""), "");
    assert!(
        of("ustack=hidden")
            .starts_with("  in user space: a stack that only a reader with CAP_PERFMON")
    );
    assert!(of("ustack=elsewhere").contains("not recorded, since the task itself"));
    assert!(of("ustack=kernel").contains("none, since the task works for the kernel"));
    assert!(of("ustack=none").contains("no stack of the task"));
    // The names were not looked up, as for an alert from a trace.
    let plain = of(&stack("0x401136,0x401180,0x401190", "outermost"));
    assert!(
        plain.starts_with("  in user space:\n    0x401136\n    0x401180\n    0x401190\n"),
        "{plain}"
    );
    assert!(
        plain.contains("(no names: they were not looked up"),
        "{plain}"
    );
    for (end, said) in [
        ("broken", "chain of frame pointers breaks"),
        ("unreadable", "were not in memory"),
        ("depth", "are not recorded"),
        ("unsupported", "32-bit programs"),
    ] {
        let text = of(&stack("0x1,0x2,0x3", end)).replace("\n    ", " ");
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_program_without_frame_pointers_is_named_as_such() {
    let with = |names: &[&str], end: &str| {
        let addresses: Vec<String> = (0..names.len()).map(|n| format!("{:#x}", n + 1)).collect();
        let mut alert = alert((1, "x"), 9, &stack(&addresses.join(","), end));
        let frame = |(name, address): (&&str, &String)| UserFrame {
            address: address.clone(),
            name: Some(name.to_string()),
            offset: Some(3),
            file: Some("/bin/x".into()),
            file_offset: Some(0x1003),
        };
        let frames = names.iter().zip(&addresses).map(frame).collect();
        alert.ustack_names = Some(UserNames { frames, note: None });
        shown(&alert)
    };
    let few = with(&["inner"], "outermost");
    assert!(few.contains("    inner+0x3 [/bin/x]\n"), "{few}");
    let note = "\n    (the program probably has no frame pointers: rebuild it with\n    -fno-omit-frame-pointer)";
    assert!(few.ends_with(note), "{few}");
    assert!(with(&["read", "frob"], "broken").contains("-fno-omit-frame-pointer"));
    // These chains are complete.
    for whole in [&["inner", "_start"][..], &["inner", "middle", "outer"]] {
        assert!(!with(whole, "outermost").contains('('), "{whole:?}");
    }
    assert!(with(&["a", "b", "c"], "broken").contains("breaks"));
}

#[test]
fn mappings_and_starts_are_read() {
    let maps = "00400000-00401000 r--p 00000000 08:01 77    /usr/bin/late one\n\
                00401000-00402000 r-xp 00001000 08:01 77    /usr/bin/late one\n\
                7ffd0000-7ffd2000 r-xp 00000000 00:00 0    [vdso]\n\
                7fff0000-7fff2000 r-xp 00000000 00:00 0 \n\
                frog\n";
    let all = process::mappings(maps);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0].file, "/usr/bin/late one");
    assert!(all[0].has(0x40_1000) && !all[0].has(0x40_2000) && !all[0].has(0x40_0fff));
    assert_eq!(all[0].offset_of(0x40_1136), 0x1136);
    assert_eq!(all[1].file, "[vdso]");
    let rest = (4..40).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(process::start_in(&format!("17 (a) b) S {rest}")), Some(22));
    assert_eq!(process::start_in("17 (a) S 1 2"), None);
}
