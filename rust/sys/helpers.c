// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions and macros of the kernel, made callable from Rust. No policy
 * here, except who may use the files in /proc: see helpers.h and rust/sys.
 *
 * Functions that may run in a probe, or on the path of an alert to its readers,
 * are notrace: a tracer that traced them would trace itself. The others can be
 * traced, even by this module (tests/vm/own-functions.sh).
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/blktrace_api.h>
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/compat.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/proc_fs.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/deadline.h>
#include <linux/sched/signal.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/threads.h>
#include <linux/timer.h>
#include <linux/topology.h>
#include <linux/tracepoint.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <asm/syscall.h>
#include <asm/word-at-a-time.h>

#include "helpers.h"

/* CPU and nodes */

/*
 * rust/sys/platform.rs, memory.rs and task.rs access these per-CPU variables by
 * inline instructions, which rust/sys/compat.rs adapts to the version.
 */
#if defined(CONFIG_X86_64) && defined(CONFIG_SMP)
#ifdef CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS
static_assert(__same_type(__preempt_count, unsigned long));
#else
static_assert(__same_type(__preempt_count, int));
#endif
/* The need to reschedule, inverted, is the sign bit of the whole word. */
static_assert((unsigned long)PREEMPT_NEED_RESCHED ==
	      1UL << (8 * sizeof(__preempt_count) - 1));
static_assert(__same_type(cpu_number, int));
static_assert(__same_type(current_task, struct task_struct *));
static_assert(__same_type(this_cpu_off, unsigned long));
#endif

/*
 * rust/sys/arm64.rs accesses the preemption counter in place. Its upper half is
 * the need to reschedule, inverted, and is written separately.
 */
#ifdef CONFIG_ARM64
static_assert(offsetof(struct task_struct, thread_info) == 0);
static_assert(PREEMPT_NEED_RESCHED == 1UL << 32);
static_assert(offsetof(struct thread_info, preempt.count) ==
	      offsetof(struct thread_info, preempt_count));
#endif

notrace void lt_preempt_disable(void)
{
	preempt_disable_notrace();
}

notrace void lt_preempt_enable(void)
{
	preempt_enable_notrace();
}

notrace unsigned long lt_irq_save(void)
{
	unsigned long flags;

	local_irq_save(flags);
	return flags;
}

notrace void lt_irq_restore(unsigned long flags)
{
	local_irq_restore(flags);
}

notrace unsigned int lt_cpu(void)
{
	return raw_smp_processor_id();
}

notrace bool lt_in_task(void)
{
	return in_task();
}

notrace unsigned int lt_nr_cpus(void)
{
	return nr_cpu_ids;
}

notrace bool lt_cpu_possible(unsigned int cpu)
{
	return cpu < nr_cpu_ids && cpu_possible(cpu);
}

bool lt_cpu_offline(unsigned int cpu)
{
	return lt_cpu_possible(cpu) && !cpu_online(cpu);
}

unsigned int lt_nr_nodes(void)
{
	return nr_node_ids;
}

unsigned int lt_cpu_to_node(unsigned int cpu)
{
	int node = cpu_to_node(cpu);

	return node == NUMA_NO_NODE ? 0 : node;
}

bool lt_node_has_memory(unsigned int node)
{
	return node_state(node, N_MEMORY);
}

unsigned int lt_node_distance(unsigned int from, unsigned int to)
{
	return node_distance(from, to);
}

void *lt_percpu_alloc(size_t size, size_t align)
{
	return (__force void *)(unsigned long)__alloc_percpu_gfp(
		size, align, GFP_KERNEL | __GFP_NOWARN);
}

void lt_percpu_free(void *base)
{
	free_percpu((__force void __percpu *)(unsigned long)base);
}

notrace void *lt_percpu_on(void *base, unsigned int cpu)
{
	return per_cpu_ptr((__force void __percpu *)(unsigned long)base, cpu);
}

bool lt_memory_available(size_t bytes)
{
	long pages = si_mem_available();

	return pages > 0 && bytes >> PAGE_SHIFT < pages / 2;
}

notrace void lt_current(struct lt_task *out)
{
	BUILD_BUG_ON(sizeof(out->comm) != TASK_COMM_LEN);
	/*
	 * Owner in rust/alert/record.rs keeps this many bits of an id, and
	 * descendants.rs has a bit for each id.
	 */
	BUILD_BUG_ON(PID_MAX_LIMIT > 1 << 22);
	out->pid = current->tgid;
	out->tid = current->pid;
	out->start_time = current->start_time;
	memcpy(out->comm, current->comm, TASK_COMM_LEN);
}

notrace u32 lt_context(void)
{
	if (in_nmi())
		return 3;
	if (in_hardirq())
		return 2;
	return in_serving_softirq() ? 1 : 0;
}

notrace u32 lt_task_cpu(const struct task_struct *task)
{
	return task_cpu(task);
}

/* Whether pi_lock is held: the lock that every waking by another task takes. */
notrace bool lt_task_waking_locked(struct task_struct *task)
{
	return raw_spin_is_locked(&task->pi_lock);
}

/*
 * Whether a task is throttled, by its cgroup's quota or SCHED_DEADLINE. The
 * lock of its runqueue is held.
 *
 * task->throttled stays set if a throttled task leaves the fair class, as by
 * priority inheritance. The task is then no longer on the list of throttled
 * tasks: dequeue_throttled_task()
 */
notrace bool lt_task_throttled(const struct task_struct *task)
{
#ifdef CONFIG_CFS_BANDWIDTH
	if (READ_ONCE(task->throttled) && !list_empty(&task->throttle_node))
		return true;
#endif
	return dl_prio(task->prio) && task->dl.dl_throttled;
}

/* Whether a used-up quota will stop a task on its return to user space. */
notrace bool lt_task_throttles(const struct task_struct *task)
{
#ifdef CONFIG_CFS_BANDWIDTH
	/* The work points to itself while not queued: init_cfs_throttle_work() */
	return READ_ONCE(task->sched_throttle_work.next) !=
	       &task->sched_throttle_work;
#else
	return false;
#endif
}

notrace u32 lt_task_uid(const struct task_struct *task)
{
	u32 uid;

	rcu_read_lock();
	uid = __kuid_val(__task_cred(task)->uid);
	rcu_read_unlock();
	return uid;
}

#ifdef CONFIG_CGROUPS

notrace bool lt_task_in_cgroup(struct task_struct *task, u64 id)
{
	struct cgroup *cgroup;
	bool found = false;
	int level;

	rcu_read_lock();
	cgroup = task_dfl_cgroup(task);
	for (level = cgroup->level; level >= 0 && !found; level--)
		found = cgroup_id(cgroup->ancestors[level]) == id;
	rcu_read_unlock();
	return found;
}

notrace u64 lt_cgroup_of(u32 tid)
{
	struct task_struct *task = current;
	u64 id = 0;

	rcu_read_lock();
	if (task->pid != tid)
		task = pid_task(find_pid_ns(tid, &init_pid_ns), PIDTYPE_PID);
	if (task)
		id = cgroup_id(task_dfl_cgroup(task));
	rcu_read_unlock();
	return id;
}

int lt_cgroup_lookup(const char *path, u64 *id)
{
	struct cgroup *cgroup = cgroup_get_from_path(path);

	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	*id = cgroup_id(cgroup);
	cgroup_put(cgroup);
	return 0;
}

#else /* !CONFIG_CGROUPS */

notrace bool lt_task_in_cgroup(struct task_struct *task, u64 id)
{
	return false;
}

notrace u64 lt_cgroup_of(u32 tid)
{
	return 0;
}

int lt_cgroup_lookup(const char *path, u64 *id)
{
	return -ENOTSUPP;
}

#endif /* CONFIG_CGROUPS */

/* Other tasks, and their stacks */

struct task_struct *lt_task_find(u32 tid)
{
	struct task_struct *task;

	rcu_read_lock();
	task = get_pid_task(find_pid_ns(tid, &init_pid_ns), PIDTYPE_PID);
	rcu_read_unlock();
	return task;
}

/*
 * As lock_task_sighand(), which is not exported. __exit_signal() takes the lock
 * to detach a task from its ids, which are freed after that.
 */
bool lt_task_keep(struct task_struct *task, unsigned long *flags)
{
	struct sighand_struct *sighand;

	rcu_read_lock();
	for (;;) {
		sighand = rcu_dereference(task->sighand);
		if (!sighand)
			break;
		/* sighand may have been reused, but siglock is still a lock. */
		spin_lock_irqsave(&sighand->siglock, *flags);
		if (sighand == rcu_access_pointer(task->sighand))
			return true;
		spin_unlock_irqrestore(&sighand->siglock, *flags);
	}
	rcu_read_unlock();
	return false;
}

void lt_task_unkeep(struct task_struct *task, unsigned long flags)
{
	unlock_task_sighand(task, &flags);
	rcu_read_unlock();
}

struct task_struct *lt_task_parent(struct task_struct *task)
{
	return rcu_dereference(task->real_parent);
}

bool lt_task_is_released(const struct task_struct *task)
{
	return !READ_ONCE(task->thread_pid);
}

notrace u32 lt_task_stack(struct task_struct *task, u64 *entries, u32 size)
{
	/* With by=stack, one entry too many shows that the stack is deeper. */
	unsigned long addresses[LT_STACK_MAX + 1];
	u32 i, len;

	if (task == current)
		return 0;
	size = min_t(u32, size, ARRAY_SIZE(addresses));
	len = stack_trace_save_tsk(task, addresses, size, 0);
	for (i = 0; i < len; i++)
		entries[i] = addresses[i];
	return len;
}

notrace u32 lt_stack_here(u64 *entries, u32 size)
{
	/* Room for our own functions, too: the innermost, skipped below. */
	unsigned long addresses[LT_STACK_MAX + 16];
	u32 i = 0, len, n = 0;

	len = stack_trace_save(addresses, ARRAY_SIZE(addresses), 0);
	while (i < len && within_module(addresses[i], THIS_MODULE))
		i++;
	while (i < len && n < size)
		entries[n++] = addresses[i++];
	return n;
}

notrace u32 lt_stack_of(u32 tid, u64 *entries, u32 size)
{
	struct task_struct *task;
	u32 len;

	if (!tid || tid == current->pid)
		return lt_stack_here(entries, size);
	rcu_read_lock();
	task = pid_task(find_pid_ns(tid, &init_pid_ns), PIDTYPE_PID);
	len = task ? lt_task_stack(task, entries, size) : 0;
	rcu_read_unlock();
	return len;
}

/* The kernel prints an address without a symbol as a number: no name. */
static u32 lt_symbol_len(const char *out, u32 len)
{
	return len >= 2 && out[0] == '0' && out[1] == 'x' ? 0 : len;
}

u32 lt_symbol(char *out, size_t size, u64 address)
{
	BUILD_BUG_ON(LT_SYMBOL_MAX < KSYM_SYMBOL_LEN);
	u32 len = scnprintf(out, size, "%pB", (void *)(unsigned long)address);

	return lt_symbol_len(out, len);
}

u32 lt_function(char *out, size_t size, u64 address)
{
	u32 len = scnprintf(out, size, "%ps", (void *)(unsigned long)address);

	return lt_symbol_len(out, len);
}

u32 lt_hashed(char *out, size_t size, u64 pointer)
{
	return scnprintf(out, size, "%p", (void *)(unsigned long)pointer);
}

/* Waker */

struct lt_waker {
	struct irq_work work;
	struct timer_list timer;
	wait_queue_head_t queue;
	lt_waker_fn on_irq_work;
	lt_waker_fn on_timer;
	void *owner;
};

/* Kinds of callbacks: for each, lt_waking has the task that it runs in. */
enum lt_waking {
	LT_WAKING_IRQ_WORK,
	LT_WAKING_TIMER,
	LT_WAKINGS,
};

static DEFINE_PER_CPU(struct task_struct *[LT_WAKINGS], lt_waking);

/* Number of running callbacks, on all CPUs. waker.rs tests this first. */
atomic_t lt_callbacks;

/*
 * Both callbacks stay on their CPU, and neither nests in itself. An irq_work
 * may interrupt a timer, and ends before the timer continues: one slot for both
 * is enough, and its former value is restored. On PREEMPT_RT each kind runs in
 * a thread of its own, and either may run while the other is preempted, or
 * waits for a lock of a wait queue: there, each has its own slot.
 */
static notrace void lt_waker_call(struct lt_waker *waker, lt_waker_fn fn,
				  enum lt_waking kind)
{
	struct task_struct **place;
	struct task_struct *outer;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		kind = LT_WAKING_IRQ_WORK;
	place = &(*raw_cpu_ptr(&lt_waking))[kind];
	outer = READ_ONCE(*place);
	WRITE_ONCE(*place, current);
	/* A probe called from here is in this task, so it sees the count. */
	atomic_inc(&lt_callbacks);
	fn(waker, waker->owner);
	atomic_dec(&lt_callbacks);
	WRITE_ONCE(*place, outer);
}

notrace bool lt_is_waking(void)
{
	struct task_struct **places = *raw_cpu_ptr(&lt_waking);

	if (READ_ONCE(places[LT_WAKING_IRQ_WORK]) == current)
		return true;
	return IS_ENABLED(CONFIG_PREEMPT_RT) &&
	       READ_ONCE(places[LT_WAKING_TIMER]) == current;
}

static notrace void lt_waker_irq_work(struct irq_work *work)
{
	struct lt_waker *waker = container_of(work, struct lt_waker, work);

	lt_waker_call(waker, waker->on_irq_work, LT_WAKING_IRQ_WORK);
}

static notrace void lt_waker_timer(struct timer_list *timer)
{
	struct lt_waker *waker = container_of(timer, struct lt_waker, timer);

	lt_waker_call(waker, waker->on_timer, LT_WAKING_TIMER);
}

struct lt_waker *lt_waker_new(lt_waker_fn on_irq_work,
			      lt_waker_fn on_timer, void *owner)
{
	struct lt_waker *waker = kzalloc(sizeof(*waker), GFP_KERNEL);

	if (!waker)
		return NULL;
	init_irq_work(&waker->work, lt_waker_irq_work);
	timer_setup(&waker->timer, lt_waker_timer, 0);
	init_waitqueue_head(&waker->queue);
	waker->on_irq_work = on_irq_work;
	waker->on_timer = on_timer;
	waker->owner = owner;
	return waker;
}

void lt_waker_sync(struct lt_waker *waker)
{
	/*
	 * The work and the timer may start each other: the work arms the timer,
	 * and the timer queues the work if the interval has become longer
	 * meanwhile. So the timer is shut down first: after that it cannot be
	 * armed, and its function is not running. Then nothing queues the work:
	 * no caller in a probe is left, and the last run of the timer is over.
	 * The other order could free the work under irq_work/N on PREEMPT_RT,
	 * where the timer's function and the work each run in a thread: the
	 * function queues the work after irq_work_sync() has seen it idle, and
	 * a real-time task may keep irq_work/N off its CPU indefinitely, so the
	 * work would still be queued when it is freed.
	 */
	timer_shutdown_sync(&waker->timer);
	irq_work_sync(&waker->work);
}

/*
 * No task can start to wait: the files are removed. But earlier waiters may
 * still be on the queue. An epoll instance keeps its entry while the file is
 * open, and an open file outlives its removal from /proc; POLLFREE makes epoll,
 * and any other poller with a callback, remove its entry now. A task in poll()
 * or select() is woken and removes its own entry on its way out.
 */
void lt_waker_free(struct lt_waker *waker)
{
	lt_waker_sync(waker);
	__wake_up(&waker->queue, TASK_NORMAL, 0,
		  poll_to_key(EPOLLHUP | POLLFREE));
	for (;;) {
		bool empty;

		/* Takes the lock: the last waiter may still be unlocking it. */
		spin_lock_irq(&waker->queue.lock);
		empty = list_empty(&waker->queue.head);
		spin_unlock_irq(&waker->queue.lock);
		if (empty)
			break;
		wake_up_all(&waker->queue);
		fsleep(1000);
	}
	/* Pollers that got POLLFREE look at the queue under RCU. */
	synchronize_rcu();
	kfree(waker);
}

notrace void lt_waker_queue(struct lt_waker *waker)
{
	irq_work_queue(&waker->work);
}

notrace void lt_waker_arm(struct lt_waker *waker, u64 ns)
{
	mod_timer(&waker->timer, jiffies + nsecs_to_jiffies(ns) + 1);
}

notrace void lt_waker_wake(struct lt_waker *waker)
{
	wake_up_all(&waker->queue);
}

int lt_waker_wait(struct lt_waker *waker, bool (*ready)(void *arg),
		  void *arg)
{
	return wait_event_interruptible(waker->queue, ready(arg));
}

void lt_waker_poll(struct lt_waker *waker, struct file *file,
		   struct poll_table_struct *table)
{
	poll_wait(file, &waker->queue, table);
}

/* Long work */

void lt_cond_resched(void)
{
	cond_resched();
}

/* procfs */

void *lt_pde_data(const struct inode *inode)
{
	return pde_data(inode);
}

bool lt_may_mark(const struct inode *inode)
{
	return (!gid_eq(inode->i_gid, GLOBAL_ROOT_GID) &&
		in_egroup_p(inode->i_gid)) || perfmon_capable();
}

static bool lt_may_use(const struct inode *inode,
		       const struct file *file)
{
	if (file->f_mode & FMODE_WRITE)
		return capable(CAP_SYS_ADMIN);
	return lt_may_mark(inode);
}

int lt_stream_open(struct inode *inode, struct file *file)
{
	int ret = stream_open(inode, file);

	file->f_mode |= FMODE_LSEEK;
	return ret;
}

/*
 * A kernel that protects its memory from root (lockdown=confidentiality) closes
 * tracefs and perf; the same applies to the content of our files, and to what
 * they let the writer observe. This is checked last, as a refusal is logged.
 */
bool lt_may_open(const struct inode *inode, const struct file *file)
{
	return lt_may_use(inode, file) &&
	       !security_locked_down(LOCKDOWN_TRACEFS);
}

bool lt_is_trusted(void)
{
	return perfmon_capable();
}

void lt_proc_set_gid(struct proc_dir_entry *entry, u32 gid)
{
	kgid_t kgid = make_kgid(&init_user_ns, gid);

	if (gid_valid(kgid))
		proc_set_user(entry, GLOBAL_ROOT_UID, kgid);
}

/* Tracepoints */

struct lt_search {
	const char *name;
	struct tracepoint *found;
};

static void lt_tracepoint_match(struct tracepoint *tp, void *priv)
{
	struct lt_search *search = priv;

	if (!strcmp(tp->name, search->name))
		search->found = tp;
}

struct tracepoint *lt_tracepoint_find(const char *name)
{
	struct lt_search search = { .name = name };

	for_each_kernel_tracepoint(lt_tracepoint_match, &search);
	return search.found;
}

void lt_tracepoint_sync(void)
{
	tracepoint_synchronize_unregister();
	/*
	 * SRCU waits only for the probes. But sections of a probe with
	 * preemption off also count as RCU readers, and callers such as
	 * rust/trackers/offcpu.rs rely on the end of all such sections, in
	 * probes or elsewhere.
	 */
	synchronize_rcu();
}

/* System calls */

notrace long lt_syscall_number(struct pt_regs *regs)
{
	return syscall_get_nr(current, regs);
}

notrace void lt_syscall_arguments(struct pt_regs *regs, u64 out[3])
{
	unsigned long args[6];
	int i;

	syscall_get_arguments(current, regs, args);
	for (i = 0; i < 3; i++)
		out[i] = args[i];
}

notrace bool lt_syscall_is_compat(void)
{
	return in_compat_syscall();
}

/*
 * A worker that the kernel has started inside a process has a copy of the
 * registers of the thread that started it, in a system call, and never returns
 * from that call.
 */
notrace bool lt_task_in_syscall(struct task_struct *task)
{
	return !(task->flags & (PF_KTHREAD | PF_USER_WORKER)) &&
	       syscall_get_nr(task, task_pt_regs(task)) >= 0;
}

/* Interrupts and timers */

/* Read by rust/sys/timer.rs. */
static_assert(__same_type(((struct hrtimer_clock_base *)0)->offset, ktime_t));
static_assert(__same_type(((struct hrtimer_clock_base *)0)->clockid, clockid_t));

/* In the order of IDS in rust/sys/timer.rs. */
void lt_clock_offsets(u64 out[LT_CLOCKS])
{
	static const enum tk_offsets clocks[LT_CLOCKS] = {
		TK_OFFS_REAL,
		TK_OFFS_BOOT,
		TK_OFFS_TAI,
	};
	unsigned int i;

	for (i = 0; i < LT_CLOCKS; i++)
		out[i] = ktime_to_ns(ktime_mono_to_any(0, clocks[i]));
}

/*
 * Copies at most 31 bytes of a string into zeroed words. Called for each
 * interrupt, so it reads whole words on machines where that is safe at the end
 * of a page.
 */
static __always_inline void lt_name_words(const char *name, u64 out[4])
{
#if defined(CONFIG_DCACHE_WORD_ACCESS) && defined(CONFIG_64BIT)
	const struct word_at_a_time constants = WORD_AT_A_TIME_CONSTANTS;
	unsigned long word, end;
	int at;

	for (at = 0; at < 4; at++) {
		word = load_unaligned_zeropad(name + at * sizeof(word));
		if (has_zero(word, &end, &constants)) {
			end = prep_zero_mask(word, end, &constants);
			out[at] = word & zero_bytemask(create_zero_mask(end));
			return;
		}
		out[at] = word;
	}
	((char *)out)[31] = '\0';
#else
	strscpy_pad((char *)out, name, 4 * sizeof(*out));
#endif
}

notrace void lt_irq_action_name(const void *action, u64 out[4])
{
	/* The trackers have the names of softirq vectors in this order. */
	BUILD_BUG_ON(HI_SOFTIRQ != 0 || TIMER_SOFTIRQ != 1 ||
		     NET_TX_SOFTIRQ != 2 || NET_RX_SOFTIRQ != 3 ||
		     BLOCK_SOFTIRQ != 4 || IRQ_POLL_SOFTIRQ != 5 ||
		     TASKLET_SOFTIRQ != 6 || SCHED_SOFTIRQ != 7 ||
		     HRTIMER_SOFTIRQ != 8 || RCU_SOFTIRQ != 9);
	const char *name = ((const struct irqaction *)action)->name;

	lt_name_words(name ?: "", out);
}

#ifdef CONFIG_BLOCK
/* Block requests */

notrace u32 lt_block_dev(struct request *rq)
{
	struct gendisk *disk = READ_ONCE(rq->q->disk);

	return disk ? disk_devt(disk) : 0;
}

notrace void lt_block_request(struct request *rq, struct lt_block_request *out)
{
	out->dev = lt_block_dev(rq);
	out->flags = (__force u32)rq->cmd_flags;
	out->sector = blk_rq_trace_sector(rq);
	out->bytes = blk_rq_bytes(rq);
}

notrace bool lt_block_last_bytes(struct request *rq, u32 bytes)
{
	return bytes >= blk_rq_bytes(rq);
}

notrace void lt_block_disk_name(struct request *rq, u64 out[4])
{
	BUILD_BUG_ON(DISK_NAME_LEN != 4 * sizeof(*out));
	struct gendisk *disk = READ_ONCE(rq->q->disk);

	memset(out, 0, DISK_NAME_LEN);
	if (disk)
		memcpy(out, disk->disk_name, DISK_NAME_LEN);
}

notrace bool lt_block_is_flush(struct request *rq)
{
	return req_op(rq) == REQ_OP_FLUSH;
}

/*
 * Whether the driver of a disk takes bios and does not turn them into requests.
 * The inode belongs to a device, and is referenced.
 */
static bool lt_block_is_bio_based(struct inode *inode)
{
	bool found;

	/*
	 * del_gendisk() takes the inode out of the hash before the queue is
	 * freed by RCU.
	 */
	rcu_read_lock();
	found = !inode_unhashed(inode) && !queue_is_mq(bdev_get_queue(I_BDEV(inode)));
	rcu_read_unlock();
	return found;
}

/*
 * Looks up an existing device without opening it: no driver is searched for,
 * and a disk needs no medium, and does not spin up. -ENXIO if there is no such
 * device, -ENOTBLK for a partition, -ENOTSUPP for a disk without requests.
 */
int lt_block_look(u32 dev)
{
	struct inode *inode = ilookup(blockdev_superblock, dev);
	int err = 0;

	if (!inode)
		return -ENXIO;
	if (bdev_is_partition(I_BDEV(inode)))
		err = -ENOTBLK;
	else if (lt_block_is_bio_based(inode))
		err = -ENOTSUPP;
	iput(inode);
	return err;
}

int lt_block_lookup(const char *path, u32 *dev)
{
	dev_t found;
	int err;

	err = lookup_bdev(path, &found);
	if (!err)
		err = lt_block_look(found);
	if (!err)
		*dev = found;
	return err;
}

void lt_block_rwbs(char out[16], u32 flags)
{
	/*
	 * Not less than RWBS_LEN of trace/events/block.h, which cannot be
	 * included here.
	 */
	memset(out, 0, 16);
	blk_fill_rwbs(out, (__force blk_opf_t)flags);
}

#else /* !CONFIG_BLOCK */

int lt_block_look(u32 dev)
{
	return -ENXIO;
}

int lt_block_lookup(const char *path, u32 *dev)
{
	return -ENOENT;
}

#endif /* CONFIG_BLOCK */
