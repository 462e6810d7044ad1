// SPDX-License-Identifier: GPL-2.0

//! The class of each system call, and the handlers of its entry and exit.
//!
//! A thread is in one call at a time, so the thread id is the key. Calls of 32-bit programs on a
//! 64-bit kernel have other numbers, and are not tracked. A call without a class costs one table
//! lookup.

use super::{is_owner, report, tasks, Detail, Probes, Tracked, WORDS};
use crate::{
    engine::{platform::Platform, profile::Class, Late, Open},
    record,
    sys::{
        platform::Kernel,
        syscall::{Observer, Registers},
        task::TaskRef, //
    },
};
use core::cell::Cell;
use kernel::bindings;

/// The calls of each class.
const CLASSES: [(Class, &[u32]); 6] = [
    (
        Class::Read,
        &[
            bindings::__NR_read,
            bindings::__NR_pread64,
            bindings::__NR_readv,
            bindings::__NR_preadv,
            bindings::__NR_preadv2,
            bindings::__NR_recvfrom,
            bindings::__NR_recvmsg,
            bindings::__NR_recvmmsg,
        ],
    ),
    (
        Class::Write,
        &[
            bindings::__NR_write,
            bindings::__NR_pwrite64,
            bindings::__NR_writev,
            bindings::__NR_pwritev,
            bindings::__NR_pwritev2,
            bindings::__NR_sendto,
            bindings::__NR_sendmsg,
            bindings::__NR_sendmmsg,
        ],
    ),
    (
        Class::ReadWrite,
        &[
            bindings::__NR_sendfile,
            bindings::__NR_splice,
            bindings::__NR_tee,
            bindings::__NR_vmsplice,
            bindings::__NR_copy_file_range,
        ],
    ),
    (
        Class::Sync,
        &[
            bindings::__NR_sync,
            bindings::__NR_syncfs,
            bindings::__NR_fsync,
            bindings::__NR_fdatasync,
            bindings::__NR_sync_file_range,
            bindings::__NR_msync,
        ],
    ),
    (
        Class::Open,
        &[
            // Newer architectures lack open() and creat().
            #[cfg(target_arch = "x86_64")]
            bindings::__NR_open,
            #[cfg(target_arch = "x86_64")]
            bindings::__NR_creat,
            bindings::__NR_openat,
            bindings::__NR_openat2,
            bindings::__NR_open_by_handle_at,
            bindings::__NR_connect,
            bindings::__NR_accept,
            bindings::__NR_accept4,
        ],
    ),
    (
        Class::Close,
        &[
            bindings::__NR_close,
            bindings::__NR_close_range,
            bindings::__NR_shutdown,
        ],
    ),
];

/// A number greater than all numbers above.
const NUMBERS: usize = 512;

/// The class of each number.
static TABLE: [Option<Class>; NUMBERS] = {
    let mut table = [None; NUMBERS];
    let mut at = 0;
    while at < CLASSES.len() {
        let (class, numbers) = CLASSES[at];
        let mut i = 0;
        while i < numbers.len() {
            assert!(table[numbers[i] as usize].is_none());
            table[numbers[i] as usize] = Some(class);
            i += 1;
        }
        at += 1;
    }
    table
};

/// Returns the class and the number of a call, if it has a class.
#[inline(always)]
fn classify(registers: &Registers<'_>, number: i64) -> Option<(Class, u32)> {
    // A negative number is beyond the table.
    let class = (*TABLE.get(number as usize)?)?;
    (!registers.is_compat()).then_some((class, number as u32))
}

/// Returns the key of a task's call. No call that has a class changes the thread id.
#[inline(always)]
fn key(task: &TaskRef<'_>) -> [u64; 1] {
    [u64::from(task.tid())]
}

impl Observer for Probes {
    const TASKS: bool = false;

    #[inline(always)]
    fn entered(&self, registers: &Registers<'_>, number: i64) {
        if let Some((class, number)) = classify(registers, number) {
            self.call_begins(class, number);
        }
    }

    #[inline(always)]
    fn left(&self, registers: &Registers<'_>, _: i64) {
        if let Some((class, _)) = classify(registers, registers.number()) {
            self.call_ends(class);
        }
    }
}

impl Probes {
    /// Handles the entry of a call with a class.
    #[inline(never)]
    fn call_begins(&self, class: Class, number: u32) {
        let guard = Kernel::guard();
        let engine = self.core.engine();
        TaskRef::with_current(|task| {
            if !is_owner(&self.core, &guard, &task) {
                engine.filtered(&guard);
                return;
            }
            if !self.core.is_enabled() {
                engine.off(&guard);
                return;
            }
            let data = record::data::<WORDS>(tasks::owner(&task), &Detail::Call(class, number));
            engine.event_in_unique(&guard, &key(&task), Kernel::now(), &data);
        });
    }

    /// Handles the exit of a call with a class.
    #[inline(never)]
    fn call_ends(&self, class: Class) {
        let guard = Kernel::guard();
        let engine = self.core.engine();
        TaskRef::with_current(|task| {
            let end = Cell::new(0);
            let ended = engine.event_out_if_known(
                &guard,
                &key(&task),
                || {
                    end.set(Kernel::now());
                    end.get()
                },
                |event: &Open<'_, 1, WORDS>| {
                    // A negative delay is not counted in the profile.
                    if let Some(delay) = end.get().checked_sub(event.start()) {
                        self.own.count(&guard, class, delay);
                    }
                    true
                },
                |late: &Late<1, WORDS>| {
                    let (owner, detail) = (record::owner(&late.data), record::known(&late.data));
                    report::<_, _, _, Tracked>(&self.core, &guard, late, owner, detail);
                },
            );
            // The call would be tracked if it started now. So the instance was off at its start,
            // the filter has changed since, or the pool was full.
            if ended.is_none() && is_owner(&self.core, &guard, &task) {
                engine.unmatched(&guard);
            }
        });
    }
}
