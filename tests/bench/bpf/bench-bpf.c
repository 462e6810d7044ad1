// SPDX-License-Identifier: GPL-2.0
/*
 * bench-bpf: loads the programs of pair.bpf.o (or storage.bpf.o) and then lt_bench,
 * or lt_structures, which calls them by the file descriptors that it gets as
 * parameters. Afterwards bench-bpf prints how many delays the programs measured.
 *
 * usage: bench-bpf PAIR.BPF.O LT_BENCH.KO ENTRIES [PARAMETER=VALUE...]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int program_fd(struct bpf_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (!program)
		errx(1, "no program %s", name);
	return bpf_program__fd(program);
}

static int map_fd(struct bpf_object *object, const char *name)
{
	int fd = bpf_object__find_map_fd_by_name(object, name);

	if (fd < 0)
		errx(1, "no map %s", name);
	return fd;
}

/* Returns how many delays are in the histograms of all CPUs. */
static __u64 delays(int fd)
{
	int cpus = libbpf_num_possible_cpus();
	__u64 *values, sum = 0;

	if (cpus <= 0)
		return 0;
	values = calloc(cpus, sizeof(*values));
	if (!values)
		err(1, "no memory");
	for (__u32 slot = 0; !bpf_map_lookup_elem(fd, &slot, values); slot++)
		for (int cpu = 0; cpu < cpus; cpu++)
			sum += values[cpu];
	free(values);
	return sum;
}

int main(int argc, char **argv)
{
	char params[512];
	struct bpf_object *object;
	struct bpf_map *starts;
	int module, length;

	if (argc < 4)
		errx(1, "usage: bench-bpf PAIR.BPF.O LT_BENCH.KO ENTRIES [PARAMETER=VALUE...]");
	object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		err(1, "%s", argv[1]);
	starts = bpf_object__find_map_by_name(object, "starts");
	if (!starts)
		errx(1, "no map of starts");
	/* Task storage has no number of entries: ENTRIES is 0. */
	if (strcmp(argv[3], "0") && bpf_map__set_max_entries(starts, strtoul(argv[3], NULL, 10)))
		errx(1, "no map of %s entries", argv[3]);
	if (bpf_object__load(object))
		err(1, "cannot load the programs");

	length = snprintf(params, sizeof(params), "bpf_start=%d bpf_end=%d bpf_empty=%d",
			  program_fd(object, "start"), program_fd(object, "end"),
			  program_fd(object, "empty"));
	for (int i = 4; i < argc && length < (int)sizeof(params); i++)
		length += snprintf(params + length, sizeof(params) - length, " %s", argv[i]);
	if (length >= (int)sizeof(params))
		errx(1, "too many parameters");
	module = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (module < 0)
		err(1, "%s", argv[2]);
	if (syscall(SYS_finit_module, module, params, 0))
		err(1, "%s does not load", argv[2]);

	printf("delays %llu\n", (unsigned long long)delays(map_fd(object, "histogram")));
	bpf_object__close(object);
	return 0;
}
