// SPDX-License-Identifier: GPL-2.0

//! Keeps the stacks of loom's threads for the next run.
//!
//! Each thread of each run of a model is a coroutine with its own stack (crate generator). The
//! stack is mapped, gets a guard page, and is unmapped when the run ends. Together with the page
//! faults, this took half of the time of a few million runs. Neither loom nor generator can keep
//! stacks. So this program defines `mmap`, `mprotect` and `munmap`, which the linker prefers to the
//! functions of the C library. They behave like these functions, but keep a stack, with its guard
//! page, for the next stack of that size instead of unmapping it. That stack is then not zeroed.
//!
//! The C library does not use these functions for its own memory and threads: it has internal names
//! for these calls.

use crate::machine::run;
use libc::{c_int, c_long, c_void, off_t, size_t};
use std::{
    ptr,
    sync::{Mutex, MutexGuard},
};

/// A mapping that was made as a stack.
struct Stack {
    start: usize,
    length: usize,
    /// Size of the guard at its start.
    guard: usize,
    /// Whether it is free.
    free: bool,
    /// Whether it has been reused.
    again: bool,
}

static STACKS: Mutex<Vec<Stack>> = Mutex::new(Vec::new());

fn stacks() -> MutexGuard<'static, Vec<Stack>> {
    STACKS.lock().unwrap()
}

// SAFETY: It replaces the C library's function of that name, and behaves like it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    let is_stack = address.is_null() && flags & libc::MAP_STACK != 0;
    let mut stacks = stacks();
    if is_stack {
        let fits = |stack: &&mut Stack| stack.free && stack.length == length;
        if let Some(stack) = stacks.iter_mut().find(fits) {
            stack.free = false;
            stack.again = true;
            return ptr::with_exposed_provenance_mut(stack.start);
        }
    }
    let call = libc::SYS_mmap;
    // Each is passed in a register, of which the kernel reads all bits.
    let [protection, flags, file] = [protection, flags, file].map(c_long::from);
    // SAFETY: The caller guarantees the preconditions of the system call.
    let start = unsafe { libc::syscall(call, address, length, protection, flags, file, offset) };
    let start = start as usize;
    let mapped = ptr::with_exposed_provenance_mut(start);
    if is_stack && mapped != libc::MAP_FAILED {
        stacks.push(Stack {
            start,
            length,
            guard: 0,
            free: false,
            again: false,
        });
    }
    mapped
}

// SAFETY: It replaces the C library's function of that name, and behaves like it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(address: *mut c_void, length: size_t, protection: c_int) -> c_int {
    let mut stacks = stacks();
    let starts = |stack: &&mut Stack| stack.start == address.addr();
    let stack = stacks.iter_mut().find(starts);
    let guard = if protection == libc::PROT_NONE {
        length
    } else {
        0
    };
    if guard != 0 && stack.as_ref().is_some_and(|stack| stack.guard == guard) {
        return 0;
    }
    let protection = c_long::from(protection);
    // SAFETY: The caller guarantees the preconditions of the system call.
    let result = unsafe { libc::syscall(libc::SYS_mprotect, address, length, protection) };
    if let (0, Some(stack)) = (result, stack) {
        stack.guard = guard;
    }
    result as c_int
}

// SAFETY: It replaces the C library's function of that name. A stack that it does not unmap is only
// given out again, as a new mapping.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    let mut stacks = stacks();
    let same = |stack: &&mut Stack| stack.start == address.addr() && stack.length == length;
    if let Some(stack) = stacks.iter_mut().find(same) {
        stack.free = true;
        return 0;
    }
    // SAFETY: The caller guarantees the preconditions of the system call.
    unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int }
}

/// Checks that the crate generator still maps its stacks with these functions.
#[test]
fn the_next_run_gets_the_stacks_of_the_last() {
    for _ in 0..2 {
        let body = || loom::thread::spawn(|| ()).join().unwrap();
        run(None, body).unwrap();
    }
    let kept = stacks().iter().filter(|stack| stack.again).count();
    assert!(kept >= 2, "{kept} stacks were used again");
}
