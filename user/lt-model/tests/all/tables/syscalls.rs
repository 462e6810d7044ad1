// SPDX-License-Identifier: GPL-2.0 OR MIT

//! System calls.

use super::*;

fn call(time: u64, cpu: u32, name: &'static [u8]) -> Seen<'static> {
    of(at(time, cpu, What::Call { name }))
}

fn end(time: u64, cpu: u32, call: &'static [u8], result: i64) -> Seen<'static> {
    let step = Step::Return {
        call: Some(call),
        result: Some(result),
    };
    seen(time, cpu, step)
}

#[test]
fn a_call_is_measured_wherever_its_thread_runs_and_errors_are_counted() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        of(switch(0, 1, 0, R, 8)),
        call(10, 0, b"read"),
        call(11, 1, b"read"),
        of(switch(12, 0, 7, S, 0)),
        end(15, 1, b"read", -11),
        of(switch(20, 1, 8, S, 7)),
        end(30, 1, b"read", 100),
        // The highest address that is not an error.
        call(40, 1, b"mmap"),
        end(41, 1, b"mmap", -4096),
    ];
    let table = &tables(Analysis::Syscalls, &all)[0];
    assert_eq!(took(table), [(10, 20), (11, 4), (40, 1)]);
    assert_eq!(table.whole.extra(Extra::Errors), 1);
    assert_eq!((table.rows.len(), table.missed), (2, missed(0, 0)));
}

#[test]
fn calls_that_do_not_return_and_returns_without_a_call_are_not_measured() {
    let fork = What::Fork {
        child: 9,
        name: b"",
    };
    let all = [
        of(switch(0, 0, 0, R, 7)),
        // This call started before the trace.
        end(1, 0, b"read", 0),
        call(2, 0, b"clone"),
        of(at(3, 0, fork)),
        end(4, 0, b"clone", 9),
        of(switch(5, 0, 7, S, 9)),
        end(6, 0, b"clone", 0),
        call(7, 0, b"exit_group"),
        of(at(8, 0, What::Exit)),
        of(switch(9, 0, 9, lt_model::SwitchedOut::Dead, 7)),
        // This call has not returned when the trace ends.
        call(10, 0, b"poll"),
    ];
    let table = &tables(Analysis::Syscalls, &all)[0];
    assert_eq!((took(table), table.missed), (vec![(2, 2)], missed(0, 2)));
}

#[test]
fn an_exec_may_end_in_a_thread_with_another_number() {
    let all = [
        of(switch(0, 0, 0, R, 9)),
        call(10, 0, b"execve"),
        of(at(20, 0, What::Exec { tid: 7, old: 9 })),
        of(switch(22, 0, 7, S, 8)),
        of(switch(24, 0, 8, S, 7)),
        end(30, 0, b"execve", 0),
    ];
    let found = tables_of(Analysis::Syscalls, Range::all(5), None, &all);
    let table = &found.tables[0];
    assert_eq!((took(table), table.missed), (vec![(10, 20)], missed(0, 0)));
    assert_eq!(found.task(table.worst[0].thread.unwrap()).0, 7);
}

/// 9 is switched out with the number of its main thread, 7, before the event of the exec.
#[test]
fn an_exec_that_sleeps_with_its_new_number_is_no_gap() {
    let of_calls = |name: &'static [u8], process, then: &[Seen<'static>]| {
        let nine = Seen {
            process,
            ..of(switch(0, 0, 0, R, 9))
        };
        let begin = [
            nine,
            of(switch(0, 1, 0, R, 8)),
            call(5, 1, b"read"),
            call(10, 0, name),
            of(switch(15, 0, 7, S, 0)),
        ];
        let ends = [end(25, 1, b"read", 1), end(30, 0, name, 0)];
        let all = [&begin[..], then, &ends].concat();
        let table = tables(Analysis::Syscalls, &all).remove(0);
        (took(&table), table.missed)
    };
    let proved = [
        of(switch(18, 0, 0, R, 7)),
        of(at(20, 0, What::Exec { tid: 7, old: 9 })),
    ];
    let whole = (vec![(5, 20), (10, 20)], missed(0, 0));
    assert_eq!(of_calls(b"execve", None, &proved), whole);
    assert_eq!(of_calls(b"execve", Some((9, 7)), &proved), whole);
    // In another call, or if 7 is not the main thread, events are missing.
    let gap = (vec![], missed(2, 0));
    assert_eq!(of_calls(b"write", None, &proved), gap);
    assert_eq!(of_calls(b"execve", Some((9, 5)), &proved), gap);
    // Thread 9 itself runs again, so it has not become 7. The gap is counted now.
    let again = [of(switch(18, 0, 0, R, 9))];
    assert_eq!(of_calls(b"execve", None, &again), gap);
    // Without the event of the exec, only this call is not measured.
    let unproved = [of(switch(18, 0, 0, R, 7))];
    assert_eq!(
        of_calls(b"execve", None, &unproved),
        (vec![(5, 20)], missed(0, 2))
    );
}

#[test]
fn no_call_spans_a_gap() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        call(10, 0, b"read"),
        lost(12, 1, 14),
        end(20, 0, b"read", 0),
        // The end of one call and the start of the next are lost, and the loss is not reported.
        call(30, 0, b"read"),
        end(40, 0, b"write", 0),
    ];
    let table = &tables(Analysis::Syscalls, &all)[0];
    assert_eq!((took(table), table.missed), (vec![], missed(2, 0)));
}

#[test]
fn the_thread_may_be_a_field_of_the_event() {
    let all = [call(10, 0, b"read"), end(15, 3, b"read", 0)].map(|seen| Seen {
        tid: Some(12),
        ..seen
    });
    let found = tables_of(Analysis::Syscalls, Range::all(5), Some(By::Thread), &all);
    assert_eq!(took(&found.tables[0]), [(10, 5)]);
    assert_eq!(found.task(found.tables[0].worst[0].thread.unwrap()).0, 12);
}

#[test]
fn a_stack_is_a_thread_and_its_call() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        call(10, 0, b"read"),
        end(15, 0, b"read", 0),
        call(20, 0, b"write"),
        end(27, 0, b"write", 0),
        call(30, 0, b"read"),
        end(33, 0, b"read", 0),
    ];
    let found = tables_of(Analysis::Syscalls, Range::all(5), Some(By::Stack), &all);
    let row = |((_, key), row): (&(u64, Key), &Row)| match key {
        Key::Stack(Some(thread), Some(Object::Call(call))) => (
            found.task(*thread).0,
            found.text(*call).to_string(),
            row.sums.sum,
        ),
        other => panic!("{other:?}"),
    };
    let mut rows: Vec<_> = found.tables[0].rows.iter().map(row).collect();
    rows.sort();
    let expected = [("read", 8), ("write", 7)];
    assert_eq!(rows, expected.map(|(call, sum)| (7, call.to_string(), sum)));
}

fn on(seen: Seen<'static>, call: &'static [u8], access: Access<'static>) -> Seen<'static> {
    Seen {
        file: Some(FileEvent::Call { call, access }),
        ..seen
    }
}

fn returns(seen: Seen<'static>, call: &'static [u8], result: i64) -> Seen<'static> {
    let (call, result) = (Some(call), Some(result));
    Seen {
        file: Some(FileEvent::Return { call, result }),
        ..seen
    }
}

#[test]
fn calls_are_grouped_by_the_file_that_they_work_on() {
    let opens = Access::Open {
        path: FilePath {
            text: b"/a",
            directory: None,
        },
        closes: None,
    };
    let all = [
        of(switch(0, 0, 0, R, 7)),
        on(call(10, 0, b"openat"), b"openat", opens),
        returns(end(15, 0, b"openat", 3), b"openat", 3),
        on(call(20, 0, b"read"), b"read", Access::On(3)),
        returns(end(27, 0, b"read", 1), b"read", 1),
        on(call(30, 0, b"read"), b"read", Access::On(4)),
        returns(end(31, 0, b"read", 1), b"read", 1),
        on(call(40, 0, b"poll"), b"poll", Access::Nothing),
        returns(end(43, 0, b"poll", 1), b"poll", 1),
        lost(50, 1, 51),
        on(call(60, 0, b"read"), b"read", Access::On(3)),
        returns(end(69, 0, b"read", 1), b"read", 1),
    ];
    let found = tables_of(Analysis::Syscalls, Range::all(5), Some(By::File), &all);
    let row = |((_, key), row): (&(u64, Key), &Row)| {
        let file = match key {
            Key::File(Some(File::Named(name))) => found.file(*name),
            Key::File(Some(File::Unknown)) => "unknown",
            Key::File(None) => "none",
            other => panic!("{other:?}"),
        };
        (file.to_string(), row.sums.count, row.sums.sum)
    };
    let mut rows: Vec<_> = found.tables[0].rows.iter().map(row).collect();
    rows.sort();
    let expected = [("/a", 2, 12), ("none", 1, 3), ("unknown", 2, 10)];
    assert_eq!(
        rows,
        expected.map(|(file, count, sum)| (file.to_string(), count, sum))
    );
}
