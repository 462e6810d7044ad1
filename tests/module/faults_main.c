// SPDX-License-Identifier: GPL-2.0
/*
 * lt_faults: has system calls find no memory.
 *
 * A task that writes "NTH COUNT" to the parameter `arm` has its allocations
 * from the nth on fail, COUNT of them. Writing "0 0" ends that; then, reading
 * gives how many failed. For one task at a time.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include "faults.h"

static unsigned int failed;

static int lt_faults_set(const char *text, const struct kernel_param *param)
{
	unsigned int nth, count;

	failed = lt_faults_disarm();
	if (sscanf(text, "%u %u", &nth, &count) != 2)
		return -EINVAL;
	if (count)
		lt_faults_arm(nth, count);
	return 0;
}

static int lt_faults_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%u\n", failed);
}

static const struct kernel_param_ops lt_faults_ops = {
	.set = lt_faults_set,
	.get = lt_faults_get,
};

module_param_cb(arm, &lt_faults_ops, NULL, 0600);
MODULE_PARM_DESC(arm, "NTH COUNT: which allocations of the writer fail");

static int __init lt_faults_init(void)
{
	return lt_faults_start();
}

static void __exit lt_faults_exit(void)
{
	lt_faults_stop();
}

module_init(lt_faults_init);
module_exit(lt_faults_exit);
MODULE_DESCRIPTION("Allocations that fail");
MODULE_LICENSE("GPL");
