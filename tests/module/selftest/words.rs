// SPDX-License-Identifier: GPL-2.0

//! The operations on atomic words and on per-CPU values have the right results, change nothing
//! else, and lose nothing that another CPU does. They are assembly on some architectures (rust/sys:
//! atomic.rs, memory.rs, platform.rs).

use crate::{
    common::{check, on_cpus, Verdict},
    engine::platform::Platform,
    sys::{
        atomic::{clear_byte, Acquire, Atomic, Full, Relaxed, Release},
        memory::PerCpu,
        platform::Kernel,
    },
};
use kernel::prelude::*;

/// Number of rounds of the tests with two CPUs.
const ROUNDS: u64 = 100_000;

/// Checks the exchanges with an ordering, on a word between two others.
macro_rules! check_exchanges {
    ($type:ty, $order:ident) => {{
        const ONES: $type = <$type>::MAX;
        let words: [Atomic<$type>; 3] = [Atomic::new(ONES), Atomic::new(5), Atomic::new(ONES)];
        let [before, word, after] = &words;
        check!("xchg", word.xchg(7, $order) == 5);
        check!("cmpxchg of 5", word.cmpxchg(5, 1, $order) == Err(7));
        check!("cmpxchg", word.cmpxchg(7, ONES, $order) == Ok(7));
        check!("fetch_add", word.fetch_add(3, $order) == ONES);
        check!("fetch_sub", word.fetch_sub(4, $order) == 2);
        check!("the last value", word.load(Relaxed) == ONES - 1);
        check!("the word before", before.load(Relaxed) == ONES);
        check!("the word after", after.load(Relaxed) == ONES);
    }};
}

/// Checks loads and stores, on a word between two others.
macro_rules! check_accesses {
    ($type:ty) => {{
        const ONES: $type = <$type>::MAX;
        let words: [Atomic<$type>; 3] = [Atomic::new(ONES), Atomic::new(5), Atomic::new(ONES)];
        let [before, word, after] = &words;
        check!("load", word.load(Relaxed) == 5 && word.load(Acquire) == 5);
        word.store(ONES - 1, Relaxed);
        check!("store", word.load(Acquire) == ONES - 1);
        word.store(3, Release);
        check!("store, release", word.load(Relaxed) == 3);
        word.add(ONES, Relaxed);
        check!("add", word.load(Relaxed) == 2);
        check!("the word before", before.load(Relaxed) == ONES);
        check!("the word after", after.load(Relaxed) == ONES);
    }};
}

/// Each operation has the right result, with each ordering and size, and changes only its word;
/// `clear_byte` changes only its byte.
pub(crate) fn an_operation_changes_one_word() -> Result<Verdict> {
    const TAGS: u64 = 0x8182_8384_8586_8788;
    check_accesses!(u32);
    check_exchanges!(u32, Relaxed);
    check_exchanges!(u32, Acquire);
    check_exchanges!(u32, Release);
    check_exchanges!(u32, Full);
    check_accesses!(u64);
    check_exchanges!(u64, Relaxed);
    check_exchanges!(u64, Acquire);
    check_exchanges!(u64, Release);
    check_exchanges!(u64, Full);
    for byte in 0..8 {
        let mask = 0xff_u64 << (byte * 8);
        let word: Atomic<u64> = Atomic::new(TAGS);
        clear_byte(&word, byte, (TAGS & mask) >> (byte * 8));
        check!("clear_byte", word.load(Relaxed) == TAGS & !mask);
    }
    Ok(Ok(()))
}

/// Two CPUs exchange the same words, and neither undoes what the other one does. Each also sets and
/// clears a byte of its own in a shared word, as the table does with its tags.
pub(crate) fn no_exchange_is_lost() -> Result<Verdict> {
    let (narrow, wide) = (Atomic::<u32>::new(0), Atomic::<u64>::new(0));
    let (slot, tags) = (Atomic::<u64>::new(0), Atomic::<u64>::new(0));
    let (given, taken) = (Atomic::<u64>::new(0), Atomic::<u64>::new(0));
    let wrong = Atomic::<u64>::new(0);
    // Relaxed: each check is about one word. Acquire, for the tags: as in the table.
    on_cpus(2, |cpu| {
        let shift = cpu * 8;
        let (mut gave, mut took, mut missed) = (0_u64, 0_u64, 0_u64);
        for n in 0..ROUNDS {
            narrow.fetch_add(1, Relaxed);
            wide.fetch_add(3, Relaxed);
            wide.fetch_sub(1, Relaxed);
            let token = n * 2 + cpu + 1;
            gave += token;
            took += slot.xchg(token, Relaxed);
            let tag = (n & 0x7f) | 0x80;
            let mut now = tags.load(Relaxed);
            while let Err(found) = tags.cmpxchg(now, now | tag << shift, Acquire) {
                now = found;
            }
            missed += u64::from((tags.load(Relaxed) >> shift) & 0xff != tag);
            clear_byte(&tags, cpu as u32, tag);
            missed += u64::from((tags.load(Relaxed) >> shift) & 0xff != 0);
        }
        given.add(gave, Relaxed);
        taken.add(took, Relaxed);
        wrong.add(missed, Relaxed);
    })?;
    check!(
        "an addition of 32 bits",
        u64::from(narrow.load(Relaxed)) == ROUNDS * 2
    );
    check!("an addition of 64 bits", wide.load(Relaxed) == ROUNDS * 4);
    let taken = taken.load(Relaxed) + slot.load(Relaxed);
    check!("a word that was exchanged", taken == given.load(Relaxed));
    check!("a byte of a word", wrong.load(Relaxed) == 0);
    check!("a byte was left", tags.load(Relaxed) == 0);
    Ok(Ok(()))
}

/// Under a guard, the number and the values belong to this CPU, and [`Platform::add_local`]
/// counts exactly.
pub(crate) fn each_cpu_has_its_own_values() -> Result<Verdict> {
    let values = PerCpu::try_new::<Kernel>(|cpu| Ok((cpu as u64, Atomic::<u64>::new(0))))?;
    let wrong = Atomic::<u64>::new(0);
    on_cpus(2, |cpu| {
        let mut missed = 0_u64;
        for _ in 0..ROUNDS {
            let guard = Kernel::guard();
            let (owner, counter) = values.this::<Kernel>(&guard);
            missed += u64::from(Kernel::cpu(&guard) as u64 != cpu || *owner != cpu);
            Kernel::add_local(&guard, counter, 3);
        }
        wrong.add(missed, Relaxed);
    })?;
    check!("the number of another CPU", wrong.load(Relaxed) == 0);
    for (owner, counter) in values.iter() {
        let expected = if *owner < 2 { ROUNDS * 3 } else { 0 };
        check!("a count", counter.load(Relaxed) == expected);
    }
    Ok(Ok(()))
}
