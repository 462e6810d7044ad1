/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list for tracepoints.h: tracepoints, and the types of their arguments.
 * Each file that includes it defines its own LT_TRACEPOINT(). Tracepoints that
 * a tracker declares (rust/trackers/declare.rs) are in declared_list.h.
 */

/* block.rs */
LT_TRACEPOINT(block_io_start, struct request *);
LT_TRACEPOINT(block_rq_insert, struct request *);
LT_TRACEPOINT(block_rq_issue, struct request *);
LT_TRACEPOINT(block_rq_requeue, struct request *);
LT_TRACEPOINT(block_rq_merge, struct request *);
LT_TRACEPOINT(block_rq_complete, struct request *, blk_status_t, unsigned int);
LT_TRACEPOINT(block_io_done, struct request *);

/* sched.rs, causes.rs, syscall.rs */
LT_TRACEPOINT(sched_switch, bool, struct task_struct *, struct task_struct *,
	      unsigned int);
LT_TRACEPOINT(sched_waking, struct task_struct *);
LT_TRACEPOINT(sched_wakeup_new, struct task_struct *);
LT_TRACEPOINT(sched_migrate_task, struct task_struct *, int);
LT_TRACEPOINT(sched_process_exit, struct task_struct *, bool);
LT_TRACEPOINT(sched_process_free, struct task_struct *);
LT_TRACEPOINT(sched_process_exec, struct task_struct *, pid_t,
	      struct linux_binprm *);

/* sched.rs */
LT_TRACEPOINT(sched_exit_tp, bool);

/* descendants.rs */
LT_TRACEPOINT(sched_process_fork, struct task_struct *, struct task_struct *);

/* syscall.rs */
LT_TRACEPOINT(sys_enter, struct pt_regs *, long);
LT_TRACEPOINT(sys_exit, struct pt_regs *, long);

/* irq.rs */
LT_TRACEPOINT(irq_handler_entry, int, struct irqaction *);
LT_TRACEPOINT(irq_handler_exit, int, struct irqaction *, int);

/* causes.rs */
LT_TRACEPOINT(softirq_raise, unsigned int);
LT_TRACEPOINT(hrtimer_expire_entry, struct hrtimer *, s64);
LT_TRACEPOINT(hrtimer_expire_exit, struct hrtimer *);
LT_TRACEPOINT(nmi_handler, void *, s64, int);
#ifdef CONFIG_X86_LOCAL_APIC
LT_TRACEPOINT(local_timer_entry, int);
LT_TRACEPOINT(local_timer_exit, int);
LT_TRACEPOINT(x86_platform_ipi_entry, int);
LT_TRACEPOINT(x86_platform_ipi_exit, int);
#ifdef CONFIG_IRQ_WORK
LT_TRACEPOINT(irq_work_entry, int);
LT_TRACEPOINT(irq_work_exit, int);
#endif
#ifdef CONFIG_SMP
LT_TRACEPOINT(call_function_entry, int);
LT_TRACEPOINT(call_function_exit, int);
LT_TRACEPOINT(call_function_single_entry, int);
LT_TRACEPOINT(call_function_single_exit, int);
#endif
#ifdef CONFIG_X86_THERMAL_VECTOR
LT_TRACEPOINT(thermal_apic_entry, int);
LT_TRACEPOINT(thermal_apic_exit, int);
#endif
#endif

/* deferred.rs */
LT_TRACEPOINT(timer_expire_entry, struct timer_list *, unsigned long);
LT_TRACEPOINT(timer_expire_exit, struct timer_list *);
#ifdef CONFIG_SMP
LT_TRACEPOINT(csd_queue_cpu, unsigned int, unsigned long, smp_call_func_t,
	      call_single_data_t *);
LT_TRACEPOINT(csd_function_entry, smp_call_func_t, call_single_data_t *);
LT_TRACEPOINT(csd_function_exit, smp_call_func_t, call_single_data_t *);
#endif

/* workqueue.rs */
LT_TRACEPOINT(workqueue_queue_work, int, struct pool_workqueue *,
	      struct work_struct *);
LT_TRACEPOINT(workqueue_execute_start, struct work_struct *);
LT_TRACEPOINT(workqueue_execute_end, struct work_struct *, work_func_t);

/* kthread_work.rs */
LT_TRACEPOINT(sched_kthread_work_queue_work, struct kthread_worker *,
	      struct kthread_work *);
LT_TRACEPOINT(sched_kthread_work_execute_start, struct kthread_work *);
LT_TRACEPOINT(sched_kthread_work_execute_end, struct kthread_work *,
	      kthread_work_func_t);

/* net.rs */
LT_TRACEPOINT(kfree_skb, struct sk_buff *, void *, enum skb_drop_reason,
	      const struct sock *);
LT_TRACEPOINT(netif_receive_skb, struct sk_buff *);
LT_TRACEPOINT(napi_gro_receive_entry, const struct sk_buff *);
LT_TRACEPOINT(consume_skb, struct sk_buff *, void *);
LT_TRACEPOINT(skb_copy_datagram_iovec, const struct sk_buff *, int);

/* accept.rs */
LT_TRACEPOINT(sock_send_length, struct sock *, int, int);

#include "declared_list.h"
