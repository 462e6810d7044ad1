// SPDX-License-Identifier: GPL-2.0

//! Following system calls by their names, and the tasks that make them. (syscall.rs beside it is for
//! whoever needs their begin and end alone.)
//!
//! ```text
//!   user space --sys_enter--> in the kernel -----------------sys_exit--> user space
//!                                |  ^                           ^
//!                    switched out|  |switched in                | a new task's first one has
//!                                v  |                           | no sys_enter
//!                              waiting        sched_process_exit: there is no way back
//! ```
//!
//! C headers: [`include/trace/events/syscalls.h`](srctree/include/trace/events/syscalls.h),
//! [`include/asm-generic/syscall.h`](srctree/include/asm-generic/syscall.h)
//!
//! # Contexts
//!
//! A task, with preemption on, but for being switched in: see sys/sched.rs.

use crate::{
    platform::Platform,
    sys::{
        bindings as helpers,
        platform::{Kernel, PreemptGuard},
        task::TaskRef,
        tracepoint::{self, Attachment, Probe}, //
    },
};
use core::{ffi::CStr, ptr::NonNull};
use kernel::{
    bindings,
    ffi::{c_int, c_long, c_uint, c_void},
    fmt,
    prelude::*,
    sync::Arc, //
};

/// Which numbers a call is one of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Abi {
    /// The kernel's own.
    #[default]
    Native = 0,
    /// Those of 32-bit programs.
    Compat = 1,
    /// Those of 64-bit programs with 32-bit pointers.
    X32 = 2,
}

impl Abi {
    /// Back from its number.
    fn from_number(number: u8) -> Self {
        match number {
            1 => Abi::Compat,
            2 => Abi::X32,
            _ => Abi::Native,
        }
    }

    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Abi::Native => "native",
            Abi::Compat => "compat",
            Abi::X32 => "x32",
        }
    }
}

/// A system call, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Call {
    pub(crate) abi: Abi,
    /// As the program gave it: it may be of no call at all.
    pub(crate) number: i32,
}

/// The names of all calls, each with its [`Call::code`].
pub(crate) static CALLS: [(&str, u16); helpers::LT_CALLS.len()] = helpers::LT_CALLS;

/// The code of what has no name.
pub(crate) const NO_CODE: u16 = 1023;

/// What the numbers of x32 have more than the others.
const X32_BIT: i32 = 0x4000_0000;

impl Call {
    /// A number below [`NO_CODE`] that is the same for calls of the same name, whatever the ABI;
    /// [`NO_CODE`] if it has no name.
    #[inline(always)]
    pub(crate) fn code(self) -> u16 {
        match self.abi {
            // Numbers without a name are not on any list, so it is no matter if they look as if.
            Abi::Native if (0..512).contains(&self.number) => self.number as u16,
            Abi::X32 if (X32_BIT..X32_BIT + 512).contains(&self.number) => {
                (self.number - X32_BIT) as u16
            }
            Abi::Compat => usize::try_from(self.number)
                .ok()
                .and_then(|number| helpers::LT_COMPAT_CALLS.get(number))
                .map_or(NO_CODE, |code| *code),
            _ => NO_CODE,
        }
    }

    /// Its name; `None` if it has none.
    pub(crate) fn name(self) -> Option<&'static str> {
        let code = self.code();
        let mut calls = CALLS.iter();
        calls.find(|call| call.1 == code).map(|(name, _)| *name)
    }

    /// Packs it into 40 bits.
    #[inline(always)]
    pub(crate) fn to_bits(self) -> u64 {
        (self.abi as u64) << 32 | u64::from(self.number as u32)
    }

    /// Back from [`Call::to_bits`]; other bits are ignored.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            abi: Abi::from_number((bits >> 32) as u8),
            number: bits as i32,
        }
    }
}

/// Name, number and ABI, as fields of a line.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, abi) = (self.name().unwrap_or("?"), self.abi.name());
        f.write_fmt(fmt!("call={name} number={} abi={abi}", self.number))
    }
}

/// The code of a name, [`NO_CODE`] if there is none; to be used when compiling.
pub(crate) const fn code_of(name: &str) -> u16 {
    let name = name.as_bytes();
    let mut at = 0;
    while at < helpers::LT_CALLS.len() {
        let (other, code) = helpers::LT_CALLS[at];
        let other = other.as_bytes();
        if name.len() == other.len() {
            let mut byte = 0;
            while byte < name.len() && name[byte] == other[byte] {
                byte += 1;
            }
            if byte == name.len() {
                return code;
            }
        }
        at += 1;
    }
    NO_CODE
}

/// The registers of a task that makes a call.
pub(crate) struct Registers(NonNull<bindings::pt_regs>);

impl Registers {
    /// The first three arguments.
    pub(crate) fn arguments(&self) -> [u64; 3] {
        let mut arguments = [0; 3];
        // SAFETY: The registers are those of the current task, which is making a call.
        unsafe {
            helpers::lt_syscall_arguments(self.0.as_ptr(), arguments.as_mut_ptr());
        }
        arguments
    }
}

/// Follows system calls. All is about the current task, but for being switched in.
pub(crate) trait Follower: Send + Sync + 'static {
    /// It makes a call.
    fn entered(&self, guard: &PreemptGuard, call: Call, registers: &Registers);

    /// It comes back from one.
    fn left(&self, guard: &PreemptGuard, ret: i64);

    /// It executes another program, and its thread id has changed from `old`.
    fn renamed(&self, guard: &PreemptGuard, old: u32);

    /// It exits.
    fn exited(&self, guard: &PreemptGuard);

    /// Whether [`Follower::switched_in`] is called.
    fn wants_switches(&self) -> bool;

    /// A task is switched in, and is not on the CPU yet. The lock of the runqueue is held.
    fn switched_in(&self, guard: &PreemptGuard, task: TaskRef<'_>);
}

/// # Safety
///
/// `data` is a valid `T`, `regs` are the registers of the current task, which is making a call.
unsafe extern "C" fn entered<T: Follower>(
    data: *mut c_void,
    regs: *mut bindings::pt_regs,
    number: c_long,
) {
    // SAFETY: The function's contract; a valid pointer is not NULL.
    let (follower, regs) = unsafe { (&*data.cast::<T>(), NonNull::new_unchecked(regs)) };
    // SAFETY: Reads flags of the current task.
    let is_compat = unsafe { helpers::lt_syscall_is_compat() };
    // The kernel itself looks at 32 bits of it.
    let number = number as i32;
    let abi = match is_compat {
        false => Abi::Native,
        true if number > 0 && number & X32_BIT != 0 => Abi::X32,
        true => Abi::Compat,
    };
    follower.entered(&Kernel::guard(), Call { abi, number }, &Registers(regs));
}

/// # Safety
///
/// `data` is a valid `T`.
unsafe extern "C" fn left<T: Follower>(
    data: *mut c_void,
    _regs: *mut bindings::pt_regs,
    ret: c_long,
) {
    // SAFETY: The function's contract.
    let follower = unsafe { &*data.cast::<T>() };
    follower.left(&Kernel::guard(), ret as i64);
}

/// # Safety
///
/// `data` is a valid `T`, `task` the current task.
unsafe extern "C" fn executed<T: Follower>(
    data: *mut c_void,
    task: *mut bindings::task_struct,
    old: c_int,
    _bprm: *mut c_void,
) {
    // SAFETY: The function's contract.
    let (follower, task) = unsafe { (&*data.cast::<T>(), TaskRef::from_raw(task)) };
    // A thread that is not the first of its process gets the id of that one.
    if task.tid() != old as u32 {
        follower.renamed(&Kernel::guard(), old as u32);
    }
}

/// # Safety
///
/// `data` is a valid `T`.
unsafe extern "C" fn exited<T: Follower>(
    data: *mut c_void,
    _task: *mut bindings::task_struct,
    _group_dead: bool,
) {
    // SAFETY: The function's contract.
    let follower = unsafe { &*data.cast::<T>() };
    follower.exited(&Kernel::guard());
}

/// # Safety
///
/// `data` is a valid `T`, `next` a valid task.
unsafe extern "C" fn switched<T: Follower>(
    data: *mut c_void,
    _preempt: bool,
    _prev: *mut bindings::task_struct,
    next: *mut bindings::task_struct,
    _state: c_uint,
) {
    // SAFETY: The function's contract.
    let (follower, next) = unsafe { (&*data.cast::<T>(), TaskRef::from_raw(next)) };
    // SAFETY: A raw spinlock is held, see "Contexts" in sys/sched.rs.
    let guard = unsafe { PreemptGuard::already() };
    follower.switched_in(&guard, next);
}

/// The probes, the ends first: nothing begins whose end would be missed.
fn probes<T: Follower>() -> [Probe<'static, T>; 5] {
    // SAFETY: They have the arguments of these tracepoints, whose tasks are valid, and current but
    // at a switch.
    unsafe {
        [
            Probe::new(c"sys_exit", left::<T> as *mut c_void),
            Probe::new(c"sched_process_exec", executed::<T> as *mut c_void),
            Probe::new(c"sched_process_exit", exited::<T> as *mut c_void),
            Probe::new(SWITCH, switched::<T> as *mut c_void),
            Probe::new(c"sys_enter", entered::<T> as *mut c_void),
        ]
    }
}

/// Only for who wants it.
const SWITCH: &CStr = c"sched_switch";

/// The first tracepoint that this kernel lacks, if any.
pub(crate) fn missing<T: Follower>() -> Option<&'static CStr> {
    tracepoint::missing(probes::<T>())
}

/// Attaches a follower. `ENOSYS` if the kernel lacks a tracepoint; nothing is left behind. Sleeps.
pub(crate) fn attach<T: Follower>(follower: Arc<T>) -> Result<Attachment<T>> {
    let wants_switches = follower.wants_switches();
    let probes = probes().into_iter();
    let wanted = |probe: &Probe<'_, T>| wants_switches || probe.tracepoint() != SWITCH;
    Attachment::new(follower, probes.filter(wanted))
}
