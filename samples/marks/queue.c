// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * An example in C of a program that marks its work for latency-tracker.
 *
 * A listener reads lines and puts each into a queue with one slot; a worker
 * takes each line from the queue and finishes it after 50 ms. In between, only
 * the cookie, which has the number of the job, identifies the work.
 *
 *	latency-tracker start job tree end=work threshold=20ms
 *	cc -Iinclude -pthread -o queue (this file)
 *	printf 'one\ntwo\n' | ./queue
 *	latency-tracker watch job
 *
 * usage: queue [INSTANCE]
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <latency_tracker_work.h>

static struct latency_tracker_work work;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long waiting;	/* the number of the job in the queue, or 0 */
static bool at_end;

/* Marks a job. A refused mark is reported; the job is done anyway. */
static void mark(int (*how)(const struct latency_tracker_work *work,
			    const void *cookie, size_t len),
		 unsigned long job)
{
	char cookie[LATENCY_TRACKER_COOKIE_MAX];
	int len = snprintf(cookie, sizeof(cookie), "queue %lu", job);
	int error = how(&work, cookie, (size_t)len);

	if (error)
		fprintf(stderr, "%s: %s\n", cookie, strerror(-error));
}

static void *do_jobs(void *unused)
{
	const struct timespec while_working = { .tv_nsec = 50000000 };
	unsigned long job;

	for (;;) {
		pthread_mutex_lock(&lock);
		while (!waiting && !at_end)
			pthread_cond_wait(&changed, &lock);
		job = waiting;
		waiting = 0;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		if (!job)
			return unused;
		nanosleep(&while_working, NULL);
		mark(latency_tracker_work_done, job);
	}
}

int main(int argc, char **argv)
{
	int error = latency_tracker_work_open(&work, argc > 1 ? argv[1] : NULL);
	unsigned long job = 0;
	pthread_t worker;
	char line[256];

	if (error)
		fprintf(stderr, "work is not followed: %s\n", strerror(-error));
	if (pthread_create(&worker, NULL, do_jobs, NULL))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		mark(latency_tracker_work_begin, ++job);
		pthread_mutex_lock(&lock);
		while (waiting)
			pthread_cond_wait(&changed, &lock);
		waiting = job;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	at_end = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(worker, NULL);
	latency_tracker_work_close(&work);
	return 0;
}
