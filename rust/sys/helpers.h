/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the Rust side calls in C: inline functions and macros of the kernel
 * made callable, and the few structures that both sides share.
 *
 * bindgen reads this file (see bindings.h); the C files under rust/ implement
 * it, helpers.c most of it. Who may read, write and mark is decided in
 * lt_may_open() and lt_may_mark(); all other policy is in Rust.
 */
#ifndef _LATENCY_TRACKER_HELPERS_H
#define _LATENCY_TRACKER_HELPERS_H

#include <linux/hrtimer.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <trace/events/latency_tracker_alert.h>

/* Since 7.3, linux/hrtimer.h no longer has the clock bases. */
#if __has_include(<linux/hrtimer_bases.h>)
#include <linux/hrtimer_bases.h>
#endif

struct file;
struct inode;
struct kthread_work;
struct kthread_worker;
struct module;
struct poll_table_struct;
struct pool_workqueue;
struct proc_dir_entry;
struct pt_regs;
struct request;
struct sk_buff;
struct sock;
struct task_struct;
struct timer_list;
struct tracepoint;
struct work_struct;

/* CPU and nodes */
void lt_preempt_disable(void);
void lt_preempt_enable(void);
unsigned long lt_irq_save(void);
void lt_irq_restore(unsigned long flags);
unsigned int lt_cpu(void);
bool lt_in_task(void);
unsigned int lt_nr_cpus(void);
bool lt_cpu_possible(unsigned int cpu);
bool lt_cpu_offline(unsigned int cpu);
unsigned int lt_nr_nodes(void);
unsigned int lt_cpu_to_node(unsigned int cpu);
bool lt_node_has_memory(unsigned int node);
unsigned int lt_node_distance(unsigned int from, unsigned int to);

/* Per-CPU memory, zeroed. Returns a cookie for lt_percpu_on(). */
void *lt_percpu_alloc(size_t size, size_t align);
void lt_percpu_free(void *base);
void *lt_percpu_on(void *base, unsigned int cpu);

/* Whether this many bytes are less than half of the available memory. */
bool lt_memory_available(size_t bytes);

/* A task: start time in ns of CLOCK_MONOTONIC, 16-byte name. */
struct lt_task {
	u32 pid;	/* of the thread group */
	u32 tid;
	u64 start_time;
	u64 comm[2];
};

/* The current task. */
void lt_current(struct lt_task *out);

/* 0 in a task, 1 in a softirq, 2 in a hard interrupt, 3 in an NMI. */
u32 lt_context(void);
/*
 * The masks that lt_context() and task.rs apply to the preemption counter; on
 * PREEMPT_RT, LT_SOFTIRQ_OFFSET applies to the task's softirq_disable_cnt.
 */
enum {
	LT_NMI_MASK = NMI_MASK,
	LT_HARDIRQ_MASK = HARDIRQ_MASK,
	LT_SOFTIRQ_OFFSET = SOFTIRQ_OFFSET,
};

u32 lt_task_cpu(const struct task_struct *task);
bool lt_task_waking_locked(struct task_struct *task);
bool lt_task_throttled(const struct task_struct *task);
bool lt_task_throttles(const struct task_struct *task);
u32 lt_task_uid(const struct task_struct *task);

/* Whether a task is in the cgroup of version 2 with this id, or below it. */
bool lt_task_in_cgroup(struct task_struct *task, u64 id);
int lt_cgroup_lookup(const char *path, u64 *id);
/* The number of a thread's cgroup of version 2; 0 if there is no such thread. */
u64 lt_cgroup_of(u32 tid);

/* Other tasks, and their stacks */
#define LT_STACK_MAX 32
#define LT_SYMBOL_MAX 768

/*
 * Self-tests, see assumptions.rs. They return true unless they find a
 * contradiction, except lt_assume_hrtimer(), which returns the number of
 * clocks, out of four, for which see() returned true. `queued` and `locked` are
 * the values that the self-tests expect. They may sleep.
 *
 * lt_assume_asleep() calls see() with kthreadd, holding that task's pi_lock, if
 * the task is off the CPU and in a sleeping state. If see() returns false, this
 * is repeated after 1 ms or more, up to 20 times in all.
 */
bool lt_assume_asleep(bool (*see)(struct task_struct *task));
bool lt_assume_throttle_work(bool queued);
bool lt_assume_waking_lock(bool locked);
u32 lt_assume_hrtimer(bool (*see)(struct hrtimer *timer, u32 clock, u64 due,
				  u64 latest, u64 function));

/* Finds a task by its id in the initial namespace: a reference, or NULL. */
struct task_struct *lt_task_find(u32 tid);

/*
 * Keeps a task from being released, so that its ids remain its own: takes the
 * lock of its signal handlers inside an RCU read-side section. Interrupts are
 * off until lt_task_unkeep(), except on PREEMPT_RT. False, with nothing taken,
 * if the task has been released.
 */
bool lt_task_keep(struct task_struct *task, unsigned long *flags);
void lt_task_unkeep(struct task_struct *task, unsigned long flags);
/* The parent of a task that is kept; valid until lt_task_unkeep(). */
struct task_struct *lt_task_parent(struct task_struct *task);
/* Whether a task has been released, and no longer has ids. */
bool lt_task_is_released(const struct task_struct *task);

/*
 * Saves at most size addresses: none for the caller; none, or stale ones, for
 * another task that is running.
 */
u32 lt_task_stack(struct task_struct *task, u64 *entries, u32 size);
/* The caller's own stack, without the functions of this module. */
u32 lt_stack_here(u64 *entries, u32 size);
/*
 * The stack of a task that is off the CPU, by its id in the initial namespace;
 * the caller's own stack for the id of the current task, and for 0. Any context.
 */
u32 lt_stack_of(u32 tid, u64 *entries, u32 size);

/* Where a stack in user space ends. */
enum lt_user_end {
	/*
	 * No stack: in an interrupt, in a task without user-space memory or
	 * during its execve(), or while another walk is in progress.
	 */
	LT_USER_NONE,
	/* At the outermost function: its frame pointer or return address is 0. */
	LT_USER_OUTERMOST,
	/*
	 * At a frame pointer that is not aligned, is below the stack pointer,
	 * or does not increase.
	 */
	LT_USER_BROKEN,
	/* At an address that cannot be read without a page fault. */
	LT_USER_UNREADABLE,
	/* At the limit of size entries. */
	LT_USER_DEPTH,
	/* At the first entry: the frame layout of the program is not known. */
	LT_USER_UNSUPPORTED,
	/* No stack: a kernel thread, or a PF_USER_WORKER of a process. */
	LT_USER_KERNEL,
};

#define LT_USER_STACK_MAX 16

/*
 * Saves at most size addresses of the current task's stack in user space: the
 * next instruction, then return addresses. Any context, with preemption off.
 */
enum lt_user_end lt_user_stack(u64 *entries, u32 size, u32 *len);
/* The name of an address as in /proc/PID/stack; returns its length, or 0. */
u32 lt_symbol(char *out, size_t size, u64 address);
/* The name of the function at this address, no offset; returns its length. */
u32 lt_function(char *out, size_t size, u64 address);
/* A pointer as %p prints it: a pseudonym. Returns its length. */
u32 lt_hashed(char *out, size_t size, u64 pointer);

/* A wait queue that may be woken from any context, through irq_work. */
struct lt_waker;
typedef void (*lt_waker_fn)(struct lt_waker *waker, void *owner);

struct lt_waker *lt_waker_new(lt_waker_fn on_irq_work, lt_waker_fn on_timer,
			      void *owner);
void lt_waker_free(struct lt_waker *waker);
void lt_waker_queue(struct lt_waker *waker);
void lt_waker_arm(struct lt_waker *waker, u64 ns);
void lt_waker_wake(struct lt_waker *waker);
void lt_waker_sync(struct lt_waker *waker);
int lt_waker_wait(struct lt_waker *waker, bool (*ready)(void *arg), void *arg);
void lt_waker_poll(struct lt_waker *waker, struct file *file,
		   struct poll_table_struct *table);
/* Number of waker callbacks that are running, on all CPUs. */
extern atomic_t lt_callbacks;
/*
 * Whether a waker callback is running in the current task. With preemption off.
 */
bool lt_is_waking(void);

/* Work in a kernel thread, repeated when engine/schedule.rs decides. */
struct lt_periodic;
typedef void (*lt_periodic_fn)(struct lt_periodic *periodic, void *owner);

/*
 * To be called before the first struct lt_periodic is made, and after the last
 * is freed. May sleep.
 */
int lt_periodic_init(void);
void lt_periodic_exit(void);

/*
 * do_work() and take_over() are called by workers, look() in hard interrupts.
 * The schedule must be stopped before lt_periodic_free().
 */
struct lt_periodic *lt_periodic_new(lt_periodic_fn do_work,
				    lt_periodic_fn take_over,
				    lt_periodic_fn look, bool watched,
				    void *owner);
void lt_periodic_free(struct lt_periodic *periodic);
void lt_periodic_kick(struct lt_periodic *periodic);
unsigned long lt_periodic_lock(struct lt_periodic *periodic);
void lt_periodic_unlock(struct lt_periodic *periodic, unsigned long flags);

/*
 * To be called under the lock. The first timer queues the work; the second, the
 * watch, is always on this CPU, and calls look().
 */
void lt_periodic_start_timer(struct lt_periodic *periodic, u64 at);
void lt_periodic_start_watch(struct lt_periodic *periodic, u64 at);
/*
 * Queues a work item on `cpu`, which must be online, to call take_over() there;
 * cancels it first if it is already queued. While the item is running, it is
 * queued behind that run instead, on the CPU of that run.
 */
void lt_periodic_ask(struct lt_periodic *periodic, unsigned int cpu);
bool lt_periodic_is_asked(struct lt_periodic *periodic);
void lt_periodic_cancel(struct lt_periodic *periodic);
/* Whether a CPU is online and may be disturbed. With preemption off. */
bool lt_may_watch(unsigned int cpu);

void lt_cond_resched(void);

/*
 * The work that maintains the memory of pools: lt_queue_memory_work() queues it
 * from any context, and it is queued when a CPU has gone offline.
 */
int lt_memory_work_start(struct lt_periodic *periodic);
void lt_memory_work_stop(void);
void lt_queue_memory_work(void);

/* A reference that keeps this module loaded. */
void lt_module_get(void);
void lt_module_put(void);
const char *lt_module_name(struct module *module);

/*
 * The counter of nested callbacks of other modules on this CPU, in this
 * context. With preemption off.
 */
u8 *lt_callback_depth(void);

/*
 * Calls a function for each module that goes away: its exit function has
 * returned, or its loading has failed.
 */
struct lt_module_watch;
typedef void (*lt_module_fn)(void *owner, struct module *module);

struct lt_module_watch *lt_module_watch_new(lt_module_fn fn, void *owner);
void lt_module_watch_free(struct lt_module_watch *watch);

/* The data that a /proc entry was made with. */
void *lt_pde_data(const struct inode *inode);

/*
 * Whether the current task may open a file of ours that takes no marks of work:
 * writing requires CAP_SYS_ADMIN, reading CAP_PERFMON, CAP_SYS_ADMIN or the
 * group of the entry. With lockdown=confidentiality, no task may.
 */
bool lt_may_open(const struct inode *inode, const struct file *file);
/*
 * Whether the current task may mark work in a file: requires CAP_PERFMON,
 * CAP_SYS_ADMIN or the group of the entry.
 */
bool lt_may_mark(const struct inode *inode);

/*
 * stream_open() for a file with an lseek() of its own: there is no file
 * position, whose lock would make two readers wait for each other, and
 * lseek() reaches our function instead of failing with -ESPIPE.
 */
int lt_stream_open(struct inode *inode, struct file *file);

/* Whether the current task has CAP_PERFMON or CAP_SYS_ADMIN. */
bool lt_is_trusted(void);

/* Lets a group of the initial user namespace read an entry. */
void lt_proc_set_gid(struct proc_dir_entry *entry, u32 gid);

/* Tracepoints, by name */

/* Returns a tracepoint of the kernel proper, or NULL. */
struct tracepoint *lt_tracepoint_find(const char *name);
/*
 * Returns a tracepoint of the kernel proper, or else of a module. Sets *module
 * to that module, with a reference, or to NULL. Returns an ERR_PTR on failure:
 * -ENOENT if there is none, -EBUSY if its module is not live, -EEXIST if
 * several modules have one of this name, -EPERM for one of ours. May sleep.
 */
struct tracepoint *lt_tracepoint_get(const char *name, struct module **module);
/* Releases the reference of lt_tracepoint_get(). */
void lt_tracepoint_put(struct module *module);
/*
 * Whether a tracepoint has the arguments that our probes take; true if no probe
 * of ours is for it.
 */
bool lt_tracepoint_fits(const char *name);
void lt_tracepoint_sync(void);

/* System calls of the current task, at sys_enter and sys_exit */
long lt_syscall_number(struct pt_regs *regs);
void lt_syscall_arguments(struct pt_regs *regs, u64 out[3]);
bool lt_syscall_is_compat(void);

/* Stores the NUL-terminated name of an interrupt action in 32 zeroed bytes. */
void lt_irq_action_name(const void *action, u64 out[4]);

/*
 * Offsets of two fields in the clock base of a high-resolution timer: the time
 * of the base's clock minus CLOCK_MONOTONIC, and the id of that clock. The
 * kernel crate has had neither since 7.3.
 */
enum {
	LT_CLOCK_BASE_OFFSET = offsetof(struct hrtimer_clock_base, offset),
	LT_CLOCK_BASE_CLOCK = offsetof(struct hrtimer_clock_base, clockid),
};

/* Clocks that may jump against CLOCK_MONOTONIC: real time, boot time, TAI. */
#define LT_CLOCKS 3

void lt_clock_offsets(u64 out[LT_CLOCKS]);

/* A timer of the timer wheel whose function is about to be called. */
struct lt_timer {
	u64 due;	/* the requested time, of CLOCK_MONOTONIC */
	u64 latest;	/* the time to which the wheel rounded it */
	u64 function;
};

/*
 * Describes a timer of the wheel, on a base whose clock is `baseclk`. `due` is
 * the start of the requested jiffy; `latest` is the start of the jiffy to which
 * the wheel rounded it. Each is wrong by at most a tick. Returns whether the
 * timer may be arbitrarily late while its CPU is idle.
 */
bool lt_wheel_timer(const struct timer_list *timer, unsigned long baseclk,
		    struct lt_timer *out);

/*
 * Whether a queued entry is a function call: the same queue also holds wakings
 * and irq_works.
 */
bool lt_csd_is_call(const call_single_data_t *csd);

/* Whether a task that is not running is in a system call. */
bool lt_task_in_syscall(struct task_struct *task);

/* Tasks that are not running: waiting.c */

/* The last system call of a task. */
struct lt_syscall {
	s64 number;	/* below 0 for none */
	s64 result;	/* -ENOSYS until the call has a result */
	u64 arguments[3];
	bool compat;
};

/*
 * Returns the task with the lowest id in the initial namespace that is at least
 * *tid, with a reference, and sets *tid to that id; or returns NULL.
 */
struct task_struct *lt_task_next(u32 *tid);
/* Takes the lock that every waking by another task takes; interrupts off. */
unsigned long lt_task_lock(struct task_struct *task);
void lt_task_unlock(struct task_struct *task, unsigned long flags);
/*
 * The call of a sleeping task, with the lock of lt_task_lock() held; false for
 * a thread that never runs in user space. x86-64 only: false elsewhere.
 */
bool lt_task_syscall(struct task_struct *task, struct lt_syscall *out);
/* The address of the mutex that a sleeping task waits for; 0 for none, or on PREEMPT_RT. */
u64 lt_task_mutex(const struct task_struct *task);

/* Block requests */
struct lt_block_request {
	u32 dev;	/* MKDEV encoding, 0 without a disk */
	u32 flags;	/* cmd_flags */
	u64 sector;	/* 512-byte units, as the tracepoints show it */
	u32 bytes;
};

void lt_block_request(struct request *rq, struct lt_block_request *out);
u32 lt_block_dev(struct request *rq);
bool lt_block_last_bytes(struct request *rq, u32 bytes);
void lt_block_disk_name(struct request *rq, u64 out[4]);
bool lt_block_is_flush(struct request *rq);
int lt_block_lookup(const char *path, u32 *dev);
int lt_block_look(u32 dev);
void lt_block_rwbs(char out[16], u32 flags);

/* Packets: net.c */
#define LT_IPPROTO_ICMP 1
#define LT_IPPROTO_TCP 6
#define LT_IPPROTO_UDP 17
#define LT_IPPROTO_ICMPV6 58
#define LT_IPPROTO_SCTP 132

struct lt_packet {
	u64 dev[2];	/* name, padded with NUL */
	u32 ifindex;	/* in its network namespace */
	u32 netns;	/* its inode number */
	u32 len;	/* without the header of the link */
	u16 protocol;	/* ETH_P_... */
	u8 transport;	/* IPPROTO_... in the IP header, 0 without one */
};

void lt_packet(const struct sk_buff *skb, struct lt_packet *out);
/* The name of a drop reason, or else its number; returns the length. */
u32 lt_drop_reason(char *out, size_t size, u32 reason);

/* Sockets that are accepted: accept.c */
struct lt_socket {
	u64 id;		/* its address; 0 for no socket */
	u64 local[2];	/* in network order; IPv4 in the first 4 bytes */
	u64 remote[2];
	u16 local_port;	/* host order */
	u16 remote_port;
	u16 family;
};

/*
 * The socket of a file of the current task. Returns the file, or NULL: the
 * socket is not closed before lt_socket_put().
 */
struct file *lt_socket_get(int fd, struct lt_socket *out);
void lt_socket_put(struct file *file);
u64 lt_socket_of_inode(u64 inode);
/* An address with its port; returns the length. */
u32 lt_socket_address(char *out, size_t size, u16 family, const u64 address[2],
		      u16 port);

/* Work items: workqueue.c */
/* Finds where the names of workqueues are, if the kernel has BTF. May sleep. */
void lt_wq_find_names(void);
void lt_wq_name_of(const struct pool_workqueue *pwq, u64 out[4]);
u64 lt_work_function(const struct work_struct *work);
/* Whether the current task executes a work item; false in an interrupt. */
bool lt_work_is_current(const struct work_struct *work);
/* Whether a valid work item waits for a worker. */
bool lt_work_is_listed(const struct work_struct *work);
/* Whether a work item waits for a worker; both addresses may be stale. */
bool lt_work_is_queued(u64 work, u64 function);

/* Work items of kthread workers: deferred.c */
u64 lt_kthread_work_function(const struct kthread_work *work);
/*
 * Whether the current task, or in an interrupt, the interrupted one, is the
 * thread of a worker and executes a work item. The worker's lock is held.
 */
bool lt_kthread_work_is_current(const struct kthread_worker *worker,
				const struct kthread_work *work);
/* Whether a work item waits for its worker; both addresses may be stale. */
bool lt_kthread_work_is_queued(u64 work, u64 function);

/* Our own tracepoints */

/* The trackers that have a tracepoint of their own, alert_NAME. */
enum lt_traced {
	LT_TRACED_NOT,
#define LT_TRACED(tracker) LT_TRACED_##tracker,
#include "declared_list.h"
#undef LT_TRACED
};

void lt_trace_alert(enum lt_traced traced, const struct lt_alert *alert);
bool lt_trace_alert_enabled(enum lt_traced traced);
/* LT_TRACED_NOT if the tracker of this name has no tracepoint of its own. */
enum lt_traced lt_traced_of(const char *tracker);

#endif /* _LATENCY_TRACKER_HELPERS_H */
