/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * latency_tracker_work.h: mark the start and the end of a program's work for
 * latency-tracker. A cookie identifies the work. This header is for C and C++
 * programs; there is no library to link.
 *
 *	struct latency_tracker_work work;
 *
 *	latency_tracker_work_open(&work, NULL);
 *	...
 *	latency_tracker_work_begin(&work, "order 4711", 10);
 *	... here, in another thread, or in another process:
 *	latency_tracker_work_done(&work, "order 4711", 10);
 *
 * Instances of the tracker tree with end=work follow the work. The delay begins
 * with the interrupt or timer that woke the task that begins the work, or with the
 * mark if that interrupt or timer is not recorded. If no such instance is enabled,
 * a mark costs one system call, and fails with -ENODEV. A cookie is 1 to 64
 * arbitrary bytes; a newline at its end is ignored.
 * See Documentation/trackers/tree.md.
 *
 * latency_tracker_work_close() returns nothing. All other functions return 0 or a
 * negative errno. A mark is one write(2): any number of threads may share a
 * struct latency_tracker_work.
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
/* The maximum length of a cookie, in bytes. */
#define LATENCY_TRACKER_COOKIE_MAX	64

/* The files to which marks are written. */
struct latency_tracker_work {
	int begin;
	int done;
};

/* Closes the files; later marks fail with -ENODEV. */
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
 * Opens the files for marks of one instance, or, if @instance is NULL, of all
 * instances with end=work. -ENOENT if the module is not loaded, or the instance
 * does not exist or does not have end=work; -EACCES or -EPERM for users who may
 * not mark work. After a failure, marks fail with -ENODEV.
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

/* Writes a mark to @fd. In the file of one instance, @word precedes the cookie. */
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

/*
 * Marks the start of the work. -ENODEV if no instance with end=work is enabled;
 * -EINVAL if the cookie is empty or too long; -ENOSPC if an instance has no room
 * for more work; -EIO if the instance or the module was removed since the open.
 */
static inline int
latency_tracker_work_begin(const struct latency_tracker_work *work,
			   const void *cookie, size_t len)
{
	return latency_tracker_work_mark(work, work->begin, "begin ", cookie,
					 len);
}

/*
 * Marks the work as done; the cookie may be unknown. Fails as
 * latency_tracker_work_begin() does, but never with -ENOSPC.
 */
static inline int
latency_tracker_work_done(const struct latency_tracker_work *work,
			  const void *cookie, size_t len)
{
	return latency_tracker_work_mark(work, work->done, "done ", cookie,
					 len);
}

#endif /* LATENCY_TRACKER_WORK_H */
