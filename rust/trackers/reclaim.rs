// SPDX-License-Identifier: GPL-2.0

//! `reclaim`: how long tasks reclaim or compact memory themselves.
//!
//! ```text
//!   allocation --> none is free --> direct reclaim, or compaction --> tried again
//!                                  |<----------- delay ---------->|
//!
//!   kind         begin                              end
//!   direct       mm_vmscan_direct_reclaim_begin     mm_vmscan_direct_reclaim_end
//!   memcg        mm_vmscan_memcg_reclaim_begin      mm_vmscan_memcg_reclaim_end
//!   compaction   mm_compaction_begin                mm_compaction_end       one zone
//! ```
//!
//! mm_compaction_begin lacks the order of the allocation, and mm_compaction_end lacks the number of
//! moved pages. Tracepoints in between have them: mm_compaction_finished, first hit right after the
//! start, has the order; mm_compaction_migratepages has the pages.
//!
//! A task does one operation of each kind at a time, so the key is the task and the kind. A reclaim
//! during a compaction would be a separate event.
//!
//! # Contexts
//!
//! The tracepoints are hit by tasks that may sleep; locks of file systems may be held. The probes
//! run with preemption off.

use super::declare::*;

const KINDS: [&str; 3] = ["direct", "memcg", "compaction"];
const DIRECT: u8 = 0;
const MEMCG: u8 = 1;
const COMPACTION: u8 = 2;

const WANTED: [&str; 4] = ["all", "direct", "memcg", "compaction"];

tracker! {
    reclaim: "memory reclaim and compaction by tasks, from start to end (key: the task and the kind)";
    key: 1;
    threshold: 10_000_000;
    tasks: true;
    stack: true;
    params {
        kind: ParamKind::Word(&WANTED) => 0, "only this kind";
    }
    keeps: detail;
    alert {
        /// The operation: direct, reclaim because memory is short; memcg, reclaim for the limit of
        /// a memory cgroup, or for a write to memory.reclaim; compaction of a zone.
        kind: u8 at 0 in KINDS,
        /// The order of the allocation; 0 with memcg, -1 for a compaction without an allocation.
        order: i32 at 0:8,
        /// Number of pages reclaimed, or moved by a compaction, so far.
        pages: u64 at 1,
    }
    probes vmscan {
        mm_vmscan_direct_reclaim_end(pages: [unsigned long], memcg: [struct mem_cgroup *])
            => done(DIRECT, pages);
        mm_vmscan_direct_reclaim_begin(gfp: [gfp_t], order: [int], memcg: [struct mem_cgroup *])
            => begun(DIRECT, order);
        #[cfg(CONFIG_MEMCG)]
        mm_vmscan_memcg_reclaim_end(pages: [unsigned long], memcg: [struct mem_cgroup *])
            => done(MEMCG, pages);
        #[cfg(CONFIG_MEMCG)]
        mm_vmscan_memcg_reclaim_begin(gfp: [gfp_t], order: [int], memcg: [struct mem_cgroup *])
            => begun(MEMCG, order);
    }
    probes compaction {
        #[cfg(CONFIG_COMPACTION)]
        mm_compaction_end(cc: [struct compact_control *], first: [unsigned long],
            last: [unsigned long], sync: [bool], status: [int]) => done(COMPACTION, 0);
        #[cfg(CONFIG_COMPACTION)]
        mm_compaction_migratepages(tried: [unsigned int], moved: [unsigned int]) => moved(moved);
        #[cfg(CONFIG_COMPACTION)]
        mm_compaction_finished(zone: [struct zone *], order: [int], result: [int])
            => is_for(order);
        #[cfg(CONFIG_COMPACTION)]
        mm_compaction_begin(cc: [struct compact_control *], first: [unsigned long],
            last: [unsigned long], sync: [bool]) => begun(COMPACTION, u64::MAX);
    }
    impl {
        const NO_USER_STACK: &str = NOT_RECORDED;

        // `pages` is complete only at the end.
        const LABELS: labels::Rules = labels::Rules::WITH_STACK.without(&["pages"]);
    }
}

/// Returns the key of the current task's operation of this kind.
fn key(kind: u8) -> [u64; 1] {
    TaskRef::with_current(|task| [u64::from(task.tid()) << 8 | u64::from(kind)])
}

impl Probes {
    fn begun(&self, guard: &Guard, kind: u8, order: u64) {
        let wanted = self.core.value(PARAM_KIND);
        if wanted != 0 && wanted != u64::from(kind) + 1 {
            self.core.engine().filtered(guard);
            return;
        }
        let owner = TaskRef::with_current(|task| self.caller(guard, &task));
        let Some(owner) = owner else { return };
        let known = Detail {
            kind,
            order: order as i32,
            pages: 0,
        };
        self.begin(guard, &key(kind), owner, &known);
    }

    fn is_for(&self, guard: &Guard, order: u64) {
        self.change(guard, &key(COMPACTION), |known| known.order = order as i32);
    }

    fn moved(&self, guard: &Guard, pages: u64) {
        self.change(guard, &key(COMPACTION), |known| known.pages += pages);
    }

    fn done(&self, guard: &Guard, kind: u8, pages: u64) {
        self.end(guard, &key(kind), |known| known.pages += pages);
    }
}
