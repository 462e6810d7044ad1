// SPDX-License-Identifier: GPL-2.0
/*
 * bench-sched: attaches the programs of sched.bpf.c or chain.bpf.c, and prints `ready`.
 * At the end of its input, it prints the numbers of delays that they measured and lost.
 * The programs of chain.bpf.c get the ids of the threads that run softirqs.
 *
 * usage: bench-sched PROGRAMS.BPF.O
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Number of threads that run softirqs on a CPU, and size of struct thread, as in chain.bpf.c. */
#define THREADS 2
#define THREAD 24

/* Returns the sum of a per-CPU array's values. */
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

/* Returns the address of a thread's id in a CPU's value of the map. */
static __u32 *id_of(char *values, size_t size, int cpu, int thread)
{
	return (__u32 *)(values + cpu * size + thread * THREAD);
}

/* Stores the id of a thread if, by its name, it runs softirqs. */
static void store(char *values, size_t size, const char *name, int tid)
{
	static const char *const format[THREADS] = { "ksoftirqd/%d", "ktimers/%d" };
	int cpu;

	for (int at = 0; at < THREADS; at++)
		if (sscanf(name, format[at], &cpu) == 1 && cpu >= 0 &&
		    cpu < libbpf_num_possible_cpus())
			*id_of(values, size, cpu, at) = tid;
}

/* Passes the ids of the threads that run softirqs to programs that need them. */
static void pass_threads(struct bpf_object *object)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, "cpus");
	int cpus = libbpf_num_possible_cpus();
	const __u32 key = 0;
	char name[32], *values;
	glob_t found;
	size_t size;

	if (!map)
		return;
	size = (bpf_map__value_size(map) + 7) & ~7u;
	values = calloc(cpus > 0 ? cpus : 1, size);
	if (cpus < 1 || !values || glob("/proc/[0-9]*/comm", 0, NULL, &found))
		errx(1, "cannot find the threads that run softirqs");
	/* Marks all threads as missing: stock kernels have no ktimers. */
	for (int cpu = 0; cpu < cpus; cpu++)
		for (int at = 0; at < THREADS; at++)
			*id_of(values, size, cpu, at) = ~0u;
	for (size_t at = 0; at < found.gl_pathc; at++) {
		FILE *file = fopen(found.gl_pathv[at], "r");

		if (file && fgets(name, sizeof(name), file))
			store(values, size, name, atoi(found.gl_pathv[at] + strlen("/proc/")));
		if (file)
			fclose(file);
	}
	if (bpf_map_update_elem(bpf_map__fd(map), &key, values, 0))
		err(1, "cannot store the threads that run softirqs");
	globfree(&found);
	free(values);
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
		err(1, "cannot load the programs");
	pass_threads(object);
	bpf_object__for_each_program(program, object) {
		if (!bpf_program__attach(program))
			err(1, "cannot attach %s", bpf_program__name(program));
	}
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &input, 1) > 0)
		;
	printf("delays %llu\nlost %llu\n", (unsigned long long)sum_of(object, "histogram"),
	       (unsigned long long)sum_of(object, "lost"));
	return 0;
}
