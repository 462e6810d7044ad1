// SPDX-License-Identifier: GPL-2.0
/*
 * bench-sched: attaches the programs of sched.bpf.c or chain.bpf.c, prints `ready`,
 * and at the end of its input what they have counted, and lost.
 *
 * usage: bench-sched PROGRAMS.BPF.O
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The sum of the values of an array of each CPU. */
static __u64 sum_of(struct bpf_object *object, const char *name)
{
	int fd = bpf_object__find_map_fd_by_name(object, name);
	int cpus = libbpf_num_possible_cpus();
	__u64 *values = calloc(cpus > 0 ? cpus : 1, sizeof(*values)), sum = 0;

	if (fd < 0 || cpus < 1 || !values)
		errx(1, "no map %s", name);
	for (__u32 slot = 0; !bpf_map_lookup_elem(fd, &slot, values); slot++)
		for (int cpu = 0; cpu < cpus; cpu++)
			sum += values[cpu];
	free(values);
	return sum;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct bpf_program *program;
	char input;

	if (argc != 2)
		errx(1, "usage: bench-sched PROGRAMS.BPF.O");
	object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		err(1, "%s", argv[1]);
	if (bpf_object__load(object))
		err(1, "the kernel does not take the programs");
	bpf_object__for_each_program(program, object) {
		if (!bpf_program__attach(program))
			err(1, "%s cannot be attached", bpf_program__name(program));
	}
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &input, 1) > 0)
		;
	printf("delays %llu\nlost %llu\n", (unsigned long long)sum_of(object, "histogram"),
	       (unsigned long long)sum_of(object, "lost"));
	return 0;
}
