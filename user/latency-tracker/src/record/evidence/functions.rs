// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The addresses of kernel functions that prove a cause. A trace has only the address of the function that a timer, a work
//! item or another CPU calls.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use lt_proc::evidence::Function;

/// Functions of limits (quotas, deadlines, throttled I/O). All but `inactive_task_timer`, which only accounts for a
/// deadline task that sleeps, release work that the limit held back.
const OF_LIMITS: [&str; 10] = [
    "__cfsb_csd_unthrottle",
    "blk_throtl_dispatch_work_fn",
    "blkiolatency_timer_fn",
    "dl_task_timer",
    "inactive_task_timer",
    "iocg_waitq_timer_fn",
    "sched_cfs_period_timer",
    "sched_cfs_slack_timer",
    "sched_rt_period_timer",
    "throtl_pending_timer_fn",
];
/// Functions of timers that send or deliver packets.
const OF_PACKETS: [&str; 6] = [
    "napi_watchdog",
    "qdisc_watchdog",
    "tcp_compressed_ack_kick",
    "tcp_delack_timer",
    "tcp_pace_kick",
    "tcp_write_timer",
];
/// Functions of timers that a program or a driver set for itself, and functions that start or do other work, such as
/// the flusher's.
const OF_OTHERS: [&str; 10] = [
    "alarmtimer_fired",
    "delayed_work_timer_fn",
    "hrtimer_wakeup",
    "io_link_timeout_fn",
    "io_timeout_fn",
    "it_real_fn",
    "posix_timer_fn",
    "process_timeout",
    "timerfd_tmrproc",
    "wb_workfn",
];

/// The reason why no addresses are known.
#[derive(Debug)]
pub(super) enum Unknown {
    Unreadable(io::Error),
    /// All addresses are 0 (hidden).
    Hidden,
}

/// Finds the functions listed above that this kernel has.
pub(super) fn read(root: &Path) -> Result<Vec<Function>, Unknown> {
    let file = File::open(root.join("proc/kallsyms")).map_err(Unknown::Unreadable)?;
    find(BufReader::new(file))
}

/// Finds the listed functions in lines such as `ffffffff81130a20 t dl_task_timer`.
fn find(mut symbols: impl BufRead) -> Result<Vec<Function>, Unknown> {
    let wanted: Vec<&str> = [&OF_LIMITS[..], &OF_PACKETS, &OF_OTHERS].concat();
    let mut found = Vec::new();
    let mut plain: HashMap<&str, usize> = HashMap::new();
    let (mut line, mut is_hidden) = (Vec::new(), true);
    while symbols
        .read_until(b'\n', &mut line)
        .map_err(Unknown::Unreadable)?
        > 0
    {
        let symbol = std::str::from_utf8(&line).ok().and_then(symbol);
        if let Some((address, symbol)) = symbol {
            is_hidden &= address == 0;
            let name = entry_of(symbol).and_then(|name| wanted.iter().find(|w| **w == name));
            if let (Some(&name), 1..) = (name, address) {
                if symbol == name {
                    *plain.entry(name).or_default() += 1;
                }
                found.push((name, address));
            }
        }
        line.clear();
    }
    if is_hidden {
        return Err(Unknown::Hidden);
    }
    // Two functions of one name in different files are ambiguous.
    found.retain(|(name, _)| plain.get(name).is_none_or(|n| *n < 2));
    let mut functions: Vec<Function> = found
        .into_iter()
        .map(|(name, address)| Function {
            name: name.to_string(),
            address,
        })
        .collect();
    functions.sort_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
    Ok(functions)
}

/// Address and name of a symbol of the kernel itself. A module's function does not count, even with the same name.
fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let name = words.nth(1)?;
    words.next().is_none().then_some((address, name))
}

/// The name of the function that starts at a symbol. A specialised copy counts as its original. A split-off part does
/// not count: it starts in the middle of a function.
fn entry_of(symbol: &str) -> Option<&str> {
    let mut words = symbol.split('.');
    let name = words.next()?;
    words
        .all(|word| !matches!(word, "cold" | "part"))
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(String, u64)> {
        let functions = find(text.as_bytes()).unwrap();
        functions.into_iter().map(|f| (f.name, f.address)).collect()
    }

    #[test]
    fn functions_are_found_by_where_they_begin() {
        let text = "ffffffff81000000 T _stext\n\
                    ffffffff81000010 t dl_task_timer.cold\n\
                    ffffffff81000020 t dl_task_timer\n\
                    ffffffff81000030 t __pfx_process_timeout\n\
                    ffffffff81000040 t process_timeout.isra.0\n\
                    ffffffff81000050 t process_timeout.constprop.0.isra.0\n\
                    ffffffff81000060 t wb_workfn.part.0\n\
                    ffffffff81000070 t hrtimer_wakeup_extra\n\
                    ffffffffc0000000 t napi_watchdog\t[other]\n";
        let expected = [
            ("dl_task_timer", 0xffff_ffff_8100_0020),
            ("process_timeout", 0xffff_ffff_8100_0040),
            ("process_timeout", 0xffff_ffff_8100_0050),
        ];
        assert_eq!(named(text), expected.map(|(name, at)| (name.into(), at)));
    }

    #[test]
    fn a_name_shared_by_two_functions_proves_nothing() {
        assert!(named("10 t it_real_fn\n20 t it_real_fn\n30 t it_real_fn.isra.0\n").is_empty());
    }

    #[test]
    fn hidden_addresses_are_no_functions() {
        let hidden = find(&b"0000000000000000 t dl_task_timer\n"[..]);
        assert!(matches!(hidden, Err(Unknown::Hidden)), "{hidden:?}");
        assert!(matches!(find(&b""[..]), Err(Unknown::Hidden)));
    }
}
