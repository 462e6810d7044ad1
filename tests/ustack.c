// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A program whose stack is known exactly, for tests/vm/ustack.sh. It is linked
 * without a C library, so that all its functions are compiled with the same
 * options, and the chain of frame pointers ends with 0 in the outermost frame.
 *
 * usage: NAME MODE MS    outer() calls middle(), which calls inner(), which calls
 *                        nanosleep() for MS milliseconds; MODE is one of
 *
 *   exit     then the program exits
 *   stay     then it waits for a signal, as in all other modes
 *   deep     41 nested calls of deep() lead to inner() instead
 *
 * and, for x86-64 only (for i386 they are as `stay`),
 *
 *   read     inner() reads 4 KiB from standard input instead, bypassing the page
 *            cache (exit status 8 if that fails)
 *   cycle, below, odd, kernel, absent
 *            during nanosleep(), the frame pointer leads to a frame that links to
 *            itself; is below the stack pointer; is not aligned; is a kernel
 *            address; is in a page that was never touched (exit status 9 if that
 *            page cannot be mapped)
 */

#if defined(__x86_64__)

__asm__(".globl _start\n.type _start, @function\n_start: xor %ebp, %ebp\n"
	"mov %rsp, %rdi\nand $-16, %rsp\ncall first\n.size _start, . - _start\n");

enum { READ = 0, NANOSLEEP = 35, PAUSE = 34, EXIT = 60, MMAP = 9, FCNTL = 72 };

static inline long call(long number, long a, long b)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret) : "a"(number), "D"(a), "S"(b)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long call3(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret) : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

static char buffer[4096] __attribute__((aligned(4096)));

static inline __attribute__((always_inline)) void read_disk(void)
{
	/* F_SETFL, O_DIRECT */
	if (call3(FCNTL, 0, 4, 0x4000) ||
	    call3(READ, 0, (long)buffer, sizeof(buffer)) != (long)sizeof(buffer))
		call(EXIT, 8, 0);
}

static long map_page(unsigned long where)
{
	/* MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE */
	register long flags __asm__("r10") = 0x100022;
	register long fd __asm__("r8") = -1;
	register long offset __asm__("r9") = 0;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(MMAP), "D"(where), "S"(4096), "d"(3), "r"(flags), "r"(fd),
			   "r"(offset)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long call_with(unsigned long fp, long number, long a, long b)
{
	long ret;

	__asm__ volatile("mov %%rbp, %%r12\nmov %[fp], %%rbp\nsyscall\nmov %%r12, %%rbp"
			 : "=a"(ret) : "a"(number), "D"(a), "S"(b), [fp] "r"(fp)
			 : "rcx", "r11", "r12", "memory");
	return ret;
}

#define KERNEL 0xffffffff81000000

#elif defined(__i386__)

__asm__(".globl _start\n.type _start, @function\n_start: xor %ebp, %ebp\n"
	"mov %esp, %eax\nand $-16, %esp\nsub $12, %esp\npush %eax\ncall first\n"
	".size _start, . - _start\n");

enum { NANOSLEEP = 162, PAUSE = 29, EXIT = 1 };

static inline long call(long number, long a, long b)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b) : "memory");
	return ret;
}

#else
#error this architecture is not supported
#endif

#define CALLED __attribute__((noinline, noclone))

struct time {
	long seconds, ns;
};

static int is(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static inline __attribute__((always_inline)) void late(const char *mode, long ms)
{
	struct time time = { ms / 1000, ms % 1000 * 1000000 };

	(void)mode;
#ifdef __x86_64__
	unsigned long frame[2] = { (unsigned long)frame, 0x401000 };
	unsigned long at = (unsigned long)frame, page = 0x7ffffffe0000;

	__asm__ volatile("" : : "r"(frame) : "memory");
	if (is(mode, "read")) {
		read_disk();
		return;
	}
	if (is(mode, "cycle") || is(mode, "odd") || is(mode, "below") || is(mode, "kernel") ||
	    is(mode, "absent")) {
		if (is(mode, "odd"))
			at++;
		if (is(mode, "below"))
			at = (at - 65536) & ~15ul;
		if (is(mode, "kernel"))
			at = KERNEL;
		if (is(mode, "absent")) {
			at = page + 64;
			if (map_page(page) != (long)page)
				call(EXIT, 9, 0);
		}
		call_with(at, NANOSLEEP, (long)&time, 0);
		return;
	}
#endif
	call(NANOSLEEP, (long)&time, 0);
}

CALLED void inner(const char *mode, long ms)
{
	late(mode, ms);
	__asm__ volatile("" ::: "memory");
}

CALLED void middle(const char *mode, long ms)
{
	inner(mode, ms);
	__asm__ volatile("" ::: "memory");
}

CALLED void outer(const char *mode, long ms)
{
	middle(mode, ms);
	__asm__ volatile("" ::: "memory");
}

CALLED void deep(int more, long ms)
{
	if (more)
		deep(more - 1, ms);
	else
		inner("deep", ms);
	__asm__ volatile("" ::: "memory");
}

__attribute__((used)) void first(long *stack)
{
	char **words = (char **)(stack + 1);
	const char *mode = words[1], *digit = words[2];
	long ms = 0;

	while (*digit)
		ms = 10 * ms + *digit++ - '0';
	if (is(mode, "deep"))
		deep(40, ms);
	else
		outer(mode, ms);
	if (!is(mode, "exit"))
		call(PAUSE, 0, 0);
	call(EXIT, 0, 0);
}
