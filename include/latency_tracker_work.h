/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * latency_tracker_work.h: tell latency-tracker which work a program does, from
 * when to when, by a cookie. For programs, in C and C++; nothing to link.
 *
 *	struct latency_tracker_work work;
 *
 *	latency_tracker_work_open(&work, NULL);
 *	...
 *	latency_tracker_work_begin(&work, "order 4711", 10);
 *	... here, in another thread, or in another process:
 *	latency_tracker_work_done(&work, "order 4711", 10);
 *
 * Instances of the tracker tree with end=work follow it, from the interrupt or
 * the timer that has woken the task that begins it; without any, a mark is
 * refused (-ENODEV) and costs a system call. A cookie has 1 to 64 bytes of any
 * kind, except that a newline at its end does not count.
 * Documentation/trackers/tree.md says more.
 *
 * All functions return 0 or a negative errno. A mark is one write(2): any number
 * of threads may share a struct latency_tracker_work.
 */
#ifndef LATENCY_TRACKER_WORK_H
#define LATENCY_TRACKER_WORK_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LATENCY_TRACKER_WORK_DIR	"/proc/latency_tracker"
/* The longest cookie, in bytes. */
#define LATENCY_TRACKER_COOKIE_MAX	64

/* Where work is marked. */
struct latency_tracker_work {
	int begin;
	int done;
};

/* Closes it; further marks are refused. */
static inline void latency_tracker_work_close(struct latency_tracker_work *work)
{
	if (work->begin >= 0)
		close(work->begin);
	if (work->done >= 0 && work->done != work->begin)
		close(work->done);
	work->begin = -1;
	work->done = -1;
}

/*
 * For one instance, or for all that wait for work if it is NULL. -ENOENT if the
 * module is not loaded, or the instance does not exist or wait for work;
 * -EACCES or -EPERM for users who may not mark work. If it fails, marks are
 * refused.
 */
static inline int latency_tracker_work_open(struct latency_tracker_work *work,
					    const char *instance)
{
	const int flags = O_WRONLY | O_CLOEXEC;
	char path[128];
	int error, len;

	work->begin = -1;
	work->done = -1;
	if (instance) {
		len = snprintf(path, sizeof(path),
			       LATENCY_TRACKER_WORK_DIR "/%s/work", instance);
		if (len < 0 || (size_t)len >= sizeof(path))
			return -ENAMETOOLONG;
		work->begin = open(path, flags);
		work->done = work->begin;
	} else {
		work->begin = open(LATENCY_TRACKER_WORK_DIR "/work_begin",
				   flags);
		if (work->begin >= 0)
			work->done = open(LATENCY_TRACKER_WORK_DIR "/work_done",
					  flags);
	}
	if (work->begin >= 0 && work->done >= 0)
		return 0;
	error = -errno;
	latency_tracker_work_close(work);
	return error;
}

/* For the functions below: a mark, in the file of an instance with a word. */
static inline int
latency_tracker_work_mark(const struct latency_tracker_work *work, int fd,
			  const char *word, const void *cookie, size_t len)
{
	char line[sizeof("begin ") - 1 + LATENCY_TRACKER_COOKIE_MAX];
	size_t head = work->begin == work->done ? strlen(word) : 0;

	if (fd < 0)
		return -ENODEV;
	if (len == 0 || len > LATENCY_TRACKER_COOKIE_MAX)
		return -EINVAL;
	memcpy(line, word, head);
	memcpy(line + head, cookie, len);
	return write(fd, line, head + len) < 0 ? -errno : 0;
}

/* Work begins. -ENODEV if no instance waits, -ENOSPC if one has no more room. */
static inline int
latency_tracker_work_begin(const struct latency_tracker_work *work,
			   const void *cookie, size_t len)
{
	return latency_tracker_work_mark(work, work->begin, "begin ", cookie,
					 len);
}

/* It is done. No error if it is not known. */
static inline int
latency_tracker_work_done(const struct latency_tracker_work *work,
			  const void *cookie, size_t len)
{
	return latency_tracker_work_mark(work, work->done, "done ", cookie,
					 len);
}

#endif /* LATENCY_TRACKER_WORK_H */
