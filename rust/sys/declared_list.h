/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by scripts/trackers from rust/trackers: change it there.
 * The trackers, their tracepoints with the types of the arguments, and the
 * headers that declare these; each part for a file that defines its macro.
 */
#ifdef LT_TRACED
LT_TRACED(block)
LT_TRACED(wakeup)
LT_TRACED(runqueue)
LT_TRACED(offcpu)
LT_TRACED(func)
LT_TRACED(irq)
LT_TRACED(softirq)
LT_TRACED(syscall)
LT_TRACED(workqueue)
LT_TRACED(net)
LT_TRACED(accept)
LT_TRACED(reclaim)
LT_TRACED(lock)
LT_TRACED(tree)
#endif

#if defined(LT_STRUCTS) || defined(LT_HEADERS)
struct compact_control;
struct mem_cgroup;
struct zone;
#endif

#ifdef LT_HEADERS
#include <trace/events/compaction.h>
#include <trace/events/irq.h>
#include <trace/events/lock.h>
#include <trace/events/vmscan.h>
#endif

#if defined(LT_TRACEPOINT) && !defined(__BINDGEN__)
LT_TRACEPOINT(contention_begin, void *, unsigned int);
LT_TRACEPOINT(contention_end, void *, int);
#ifdef CONFIG_COMPACTION
LT_TRACEPOINT(mm_compaction_begin, struct compact_control *, unsigned long, unsigned long, bool);
#endif
#ifdef CONFIG_COMPACTION
LT_TRACEPOINT(mm_compaction_end, struct compact_control *, unsigned long, unsigned long, bool, int);
#endif
#ifdef CONFIG_COMPACTION
LT_TRACEPOINT(mm_compaction_finished, struct zone *, int, int);
#endif
#ifdef CONFIG_COMPACTION
LT_TRACEPOINT(mm_compaction_migratepages, unsigned int, unsigned int);
#endif
LT_TRACEPOINT(mm_vmscan_direct_reclaim_begin, gfp_t, int, struct mem_cgroup *);
LT_TRACEPOINT(mm_vmscan_direct_reclaim_end, unsigned long, struct mem_cgroup *);
#ifdef CONFIG_MEMCG
LT_TRACEPOINT(mm_vmscan_memcg_reclaim_begin, gfp_t, int, struct mem_cgroup *);
#endif
#ifdef CONFIG_MEMCG
LT_TRACEPOINT(mm_vmscan_memcg_reclaim_end, unsigned long, struct mem_cgroup *);
#endif
LT_TRACEPOINT(softirq_entry, unsigned int);
LT_TRACEPOINT(softirq_exit, unsigned int);
#elif defined(LT_TRACEPOINT)
/* For Rust, a pointer to a structure is a void *. */
LT_TRACEPOINT(contention_begin, void *, unsigned int);
LT_TRACEPOINT(contention_end, void *, int);
#ifdef CONFIG_COMPACTION
LT_TRACEPOINT(mm_compaction_begin, void *, unsigned long, unsigned long, bool);
#endif
#ifdef CONFIG_COMPACTION
LT_TRACEPOINT(mm_compaction_end, void *, unsigned long, unsigned long, bool, int);
#endif
#ifdef CONFIG_COMPACTION
LT_TRACEPOINT(mm_compaction_finished, void *, int, int);
#endif
#ifdef CONFIG_COMPACTION
LT_TRACEPOINT(mm_compaction_migratepages, unsigned int, unsigned int);
#endif
LT_TRACEPOINT(mm_vmscan_direct_reclaim_begin, gfp_t, int, void *);
LT_TRACEPOINT(mm_vmscan_direct_reclaim_end, unsigned long, void *);
#ifdef CONFIG_MEMCG
LT_TRACEPOINT(mm_vmscan_memcg_reclaim_begin, gfp_t, int, void *);
#endif
#ifdef CONFIG_MEMCG
LT_TRACEPOINT(mm_vmscan_memcg_reclaim_end, unsigned long, void *);
#endif
LT_TRACEPOINT(softirq_entry, unsigned int);
LT_TRACEPOINT(softirq_exit, unsigned int);
#endif
