// SPDX-License-Identifier: GPL-2.0
/*
 * lt_faults: makes system calls run out of memory.
 *
 * If a task writes "NTH COUNT" to /proc/lt_faults, COUNT of its allocations fail, from
 * the nth on. "0 0" ends that; reading then returns how many failed. Neither allocates
 * memory. Only one task at a time can use it.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>

#include "faults.h"

static unsigned int failed;

static ssize_t lt_faults_write(struct file *file, const char __user *from,
			       size_t len, loff_t *pos)
{
	unsigned int nth, count;
	char text[32];

	failed = lt_faults_disarm();
	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = '\0';
	if (sscanf(text, "%u %u", &nth, &count) != 2)
		return -EINVAL;
	if (count)
		lt_faults_arm(nth, count);
	return len;
}

static ssize_t lt_faults_read(struct file *file, char __user *to, size_t len,
			      loff_t *pos)
{
	char text[16];
	int used = scnprintf(text, sizeof(text), "%u\n", failed);

	return simple_read_from_buffer(to, len, pos, text, used);
}

static const struct proc_ops lt_faults_ops = {
	.proc_read = lt_faults_read,
	.proc_write = lt_faults_write,
	.proc_lseek = default_llseek,
};

static int __init lt_faults_init(void)
{
	int err = lt_faults_start();

	if (err)
		return err;
	if (proc_create("lt_faults", 0600, NULL, &lt_faults_ops))
		return 0;
	lt_faults_stop();
	return -ENOMEM;
}

static void __exit lt_faults_exit(void)
{
	remove_proc_entry("lt_faults", NULL);
	lt_faults_stop();
}

module_init(lt_faults_init);
module_exit(lt_faults_exit);
MODULE_DESCRIPTION("Allocations that fail");
MODULE_LICENSE("GPL");
