// SPDX-License-Identifier: GPL-2.0
/*
 * soak: uses and counts all idle time of a processor. With one processor whose clock
 * counts instructions, the remaining instructions are exactly the cost of other work.
 *
 * usage: soak FILE
 *
 * FILE always holds the number of rounds of soak's loop so far, as an unsigned number
 * of 64 bits in the machine's byte order.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/types.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sched_param none = {};
	__u64 *rounds, round = 0;
	int fd;

	if (argc != 2)
		errx(1, "usage: soak FILE");
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*rounds)))
		err(1, "%s", argv[1]);
	rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (rounds == MAP_FAILED)
		err(1, "%s", argv[1]);
	if (sched_setscheduler(0, SCHED_IDLE, &none))
		err(1, "SCHED_IDLE");
	for (;;)
		__atomic_store_n(rounds, ++round, __ATOMIC_RELAXED);
}
