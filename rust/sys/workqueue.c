// SPDX-License-Identifier: GPL-2.0
/*
 * Work items and their queues, made callable from Rust; see workqueue.rs.
 *
 * The name of a workqueue is in structures that only kernel/workqueue.c
 * defines. BTF, the kernel's description of its types, shows where; on a kernel
 * without BTF, workqueues have no names here.
 */
#include <linux/btf.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "helpers.h"

/* WQ_NAME_LEN of kernel/workqueue.c. */
#define LT_WQ_NAME 32

/* Offsets of the workqueue in a pool_workqueue, and of the name in a workqueue. */
static u32 lt_pwq_wq;
static u32 lt_wq_name;
/* Whether both offsets are known. */
static bool lt_wq_has_names;

#if IS_ENABLED(CONFIG_DEBUG_INFO_BTF) && IS_ENABLED(CONFIG_BPF_SYSCALL)
static DEFINE_MUTEX(lt_wq_lock);
static bool lt_wq_sought;

/*
 * Whether a member points to a workqueue. A pool_workqueue has only one such
 * member.
 */
static bool lt_wq_is_wq(const struct btf *btf,
			const struct btf_type *type, u32 wq)
{
	return btf_type_is_ptr(type) && type->type == wq;
}

/*
 * Whether a member is the name: the only array of this many bytes in a
 * workqueue.
 */
static bool lt_wq_is_name(const struct btf *btf,
			  const struct btf_type *type, u32 wq)
{
	const struct btf_type *element;

	if (!btf_type_is_array(type) || btf_array(type)->nelems != LT_WQ_NAME)
		return false;
	element = btf_type_by_id(btf, btf_array(type)->type);
	return element && btf_type_is_int(element) && element->size == 1;
}

static bool lt_wq_member(const struct btf *btf, u32 id, u32 wq,
			 bool (*is_it)(const struct btf *btf,
			 const struct btf_type *type,
			 u32 wq), u32 *offset)
{
	const struct btf_type *type = btf_type_by_id(btf, id);
	const struct btf_member *member = btf_type_member(type);
	int i;

	for (i = 0; i < btf_type_vlen(type); i++, member++) {
		if (is_it(btf, btf_type_by_id(btf, member->type), wq)) {
			*offset = __btf_member_bit_offset(type, member) / 8;
			return true;
		}
	}
	return false;
}

/*
 * Searches only once: a search takes a reference that a module cannot drop, as
 * btf_put() is not exported. The reference is to the kernel's own BTF, where
 * these types are found before any module is searched. That BTF is never freed:
 * each load of this module leaks two counts of a refcount_t, and no memory.
 */
void lt_wq_find_names(void)
{
	struct btf *btf;
	s32 wq, pwq;

	mutex_lock(&lt_wq_lock);
	if (!lt_wq_sought) {
		lt_wq_sought = true;
		wq = bpf_find_btf_id("workqueue_struct", BTF_KIND_STRUCT, &btf);
		pwq = bpf_find_btf_id("pool_workqueue", BTF_KIND_STRUCT, &btf);
		if (wq > 0 && pwq > 0 &&
		    lt_wq_member(btf, pwq, wq, lt_wq_is_wq, &lt_pwq_wq) &&
		    lt_wq_member(btf, wq, wq, lt_wq_is_name, &lt_wq_name))
			/* Release: a reader then also sees the offsets. */
			smp_store_release(&lt_wq_has_names, true);
	}
	mutex_unlock(&lt_wq_lock);
}
#else
void lt_wq_find_names(void)
{
}
#endif

notrace void lt_wq_name_of(const struct pool_workqueue *pwq, u64 out[4])
{
	const void *wq;

	BUILD_BUG_ON(LT_WQ_NAME != 4 * sizeof(*out));
	memset(out, 0, LT_WQ_NAME);
	/* Acquire: pairs with lt_wq_find_names(). */
	if (!smp_load_acquire(&lt_wq_has_names))
		return;
	wq = *(const void *const *)((const void *)pwq + lt_pwq_wq);
	memcpy(out, wq + lt_wq_name, LT_WQ_NAME);
}

notrace u64 lt_work_function(const struct work_struct *work)
{
	return (unsigned long)READ_ONCE(work->func);
}

notrace bool lt_work_is_current(const struct work_struct *work)
{
	return current_work() == work;
}

/* Whether a work item with this data is on a list: neither taken yet, nor on a timer. */
static notrace bool lt_work_data_is_listed(long data)
{
	const long listed = BIT(WORK_STRUCT_PENDING_BIT) |
			    BIT(WORK_STRUCT_PWQ_BIT);

	return (data & listed) == listed;
}

/* Whether a work item is on a list. */
notrace bool lt_work_is_listed(const struct work_struct *work)
{
	/* A delayed_work and its work_struct have the same address. */
	BUILD_BUG_ON(offsetof(struct delayed_work, work) != 0);
	return lt_work_data_is_listed(atomic_long_read(&work->data));
}

/*
 * The work item may be gone, and its memory reused: the only assumption is that
 * reading the address has no side effect. One case cannot be ruled out: the
 * address was vmalloc()ed or a module's, and the registers of a device are now
 * mapped there, some of which change when they are read. Work items are usually
 * in kmalloc()ed or static memory, neither of which becomes such a mapping,
 * unless a module with static work items is unloaded.
 */
notrace bool lt_work_is_queued(u64 address, u64 function)
{
	const struct work_struct *work = (void *)(unsigned long)address;
	work_func_t func;
	long data;

	if (copy_from_kernel_nofault(&data, &work->data, sizeof(data)) ||
	    copy_from_kernel_nofault(&func, &work->func, sizeof(func)))
		return false;
	return (unsigned long)func == function && lt_work_data_is_listed(data);
}
