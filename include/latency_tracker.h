/* SPDX-License-Identifier: GPL-2.0 */
/*
 * latency_tracker.h: track your own latencies, from another kernel module.
 *
 * A tracker pairs the start and the end of operations by a key, in any context,
 * and calls back when an operation took too long or does not end:
 *
 *	event_in(key) ----------------- event_out(key)
 *	     |<-------- delay --------->|  > threshold: callback
 *	     |<-- timeout -->| no end yet: callback; again at the late end
 *
 * Each tracker is an instance under /proc/latency_tracker, with counters, a
 * histogram, pending events and alerts, as for the built-in trackers.
 * Documentation/api.md is the guide. Examples: samples/c/sample.c, and in Rust
 * samples/rust/sample.rs.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC (ktime_get_mono_fast_ns()).
 *
 * Contexts: create, destroy, clear, synchronize, set_timeout and set_enabled may
 * sleep, and are refused in a callback. All other functions may be called in any
 * context, including NMI, and under the runqueue lock; they do not sleep, lock,
 * allocate or wake.
 *
 * The callback runs with preemption off and must not sleep. It runs in the context
 * of the call that ends the event, or in a kernel thread if the event times out. It
 * may end events, whose callbacks are then nested in it. If
 * LATENCY_TRACKER_NESTED_MAX callbacks are nested on a stack, a further one is
 * counted as "nested" instead of being called.
 */
#ifndef _LATENCY_TRACKER_H
#define _LATENCY_TRACKER_H

#include <linux/err.h>
#include <linux/module.h>
#include <linux/types.h>

/** struct latency_tracker - a tracker; opaque */
struct latency_tracker;

/**
 * struct latency_tracker_event - a reference to an event; opaque
 *
 * This is not an address. It identifies one event, live or ended, until it is
 * returned with latency_tracker_event_put(). A number that is not a reference of the
 * tracker is refused (-EINVAL, 0, false), unless another caller holds a reference
 * with this number: a returned number may identify another event later.
 */
struct latency_tracker_event;

/* The maximum length of a key, in bytes. */
#define LATENCY_TRACKER_KEY_MAX		64
/* The maximum size of an event's private data, in bytes. */
#define LATENCY_TRACKER_DATA_MAX	256
/* The maximum number of nested callbacks on a CPU, in one context. */
#define LATENCY_TRACKER_NESTED_MAX	4
/* The maximum number of references to one event at a time. */
#define LATENCY_TRACKER_REFS_MAX	255
/* The timeout of an event that must never time out. */
#define LATENCY_TRACKER_NO_TIMEOUT	(~0ULL)

/**
 * enum latency_tracker_reason - why the callback is called
 * @LATENCY_TRACKER_THRESHOLD: the event took longer than the threshold
 * @LATENCY_TRACKER_TIMEOUT: the event has not ended within its timeout; it is
 *	still pending
 * @LATENCY_TRACKER_LATE: an event that had timed out has ended. If the end
 *	precedes the start, the delay is 0.
 */
enum latency_tracker_reason {
	LATENCY_TRACKER_THRESHOLD	= 0,
	LATENCY_TRACKER_TIMEOUT		= 1,
	LATENCY_TRACKER_LATE		= 2,
};

/**
 * struct latency_tracker_report - the argument of the callback
 * @tracker: the tracker
 * @priv: as in struct latency_tracker_config
 * @key: the key
 * @data: the private data of the event
 * @start: when the event began
 * @end: when the event ended, or when its timeout was noticed; if the end precedes
 *	the start, @end is @start, and @delay is 0
 * @delay: from @start to @end
 * @threshold: the threshold or timeout that @delay was compared with
 * @id: as passed to the function that ended the event; 0 for a timeout
 * @key_size: the size of @key in bytes
 * @data_size: the size of @data in bytes
 * @reason: why the callback is called
 *
 * The report is valid until the callback returns; @key and @data point to copies.
 * Unless this is a timeout, the event has already ended, and exactly one caller has
 * ended it. An event that times out may end while the callback runs, or just
 * before it starts; that end then returns LATENCY_TRACKER_ENDED_REPORTING.
 * New fields go last.
 */
struct latency_tracker_report {
	struct latency_tracker *tracker;
	void *priv;
	const void *key;
	const void *data;
	u64 start;
	u64 end;
	u64 delay;
	u64 threshold;
	u64 id;
	u32 key_size;
	u32 data_size;
	enum latency_tracker_reason reason;
};

typedef void (*latency_tracker_fn)(const struct latency_tracker_report *report);

/**
 * enum latency_tracker_ended - what an end returns, besides 0 and errors
 * @LATENCY_TRACKER_ENDED_REPORTING: the event has ended, but the callback for
 *	its timeout is running, or about to start: on another CPU, or in the code
 *	that the caller interrupts or is called by. Do not free the object behind the
 *	key or the data at once: use kfree_rcu() or call_rcu(), or first call
 *	synchronize_rcu() or latency_tracker_synchronize(). Callbacks run with
 *	preemption off, which is an RCU read-side critical section.
 */
enum latency_tracker_ended {
	LATENCY_TRACKER_ENDED_REPORTING	= 1,
};

/**
 * enum latency_tracker_flags - flags of a tracker
 * @LATENCY_TRACKER_UNIQUE: a key has at most one live event; a second start
 *	replaces it, which is counted as "replaced". Without this flag, events of
 *	one key accumulate, and each end ends one event.
 * @LATENCY_TRACKER_WORST: an end beyond the threshold raises the threshold to
 *	its delay, so that only new worst cases are reported. If `max_alerts`
 *	suppresses the alert of such an end, the threshold stays, and the end is
 *	not reported unless the event had timed out.
 * @LATENCY_TRACKER_VARIABLE_KEYS: keys may be shorter than @key_size. The
 *	length is part of a key.
 * @LATENCY_TRACKER_SHOW_KEYS: keys appear in /proc as they are; otherwise as a
 *	number that stands for the key, since many keys are addresses
 */
enum latency_tracker_flags {
	LATENCY_TRACKER_UNIQUE		= 1 << 0,
	LATENCY_TRACKER_WORST		= 1 << 1,
	LATENCY_TRACKER_VARIABLE_KEYS	= 1 << 2,
	LATENCY_TRACKER_SHOW_KEYS	= 1 << 3,
};

/**
 * struct latency_tracker_config - the configuration of a tracker
 * @size: sizeof(struct latency_tracker_config), so that fields can be added
 * @owner: THIS_MODULE, not NULL
 * @name: the name of the instance, up to 31 letters, digits, '_' and '-',
 *	starting with a letter or '_'
 * @priv: passed to the callback
 * @callback: called for late events, or NULL
 * @threshold: report delays longer than this; ~0ULL for none
 * @timeout: report an event that has not ended after this time, once; 0 for never
 * @min_event_timeout: the minimum of the events' own timeouts, which determines how
 *	often timeouts are checked; 0 if no event has a timeout of its own
 * @key_size: the size of keys in bytes, 1 to LATENCY_TRACKER_KEY_MAX
 * @data_size: the private data of an event in bytes, up to
 *	LATENCY_TRACKER_DATA_MAX
 * @capacity: how many events can be live at once, initially
 * @max_capacity: how many can be live after growing; 0 for @capacity
 * @flags: of enum latency_tracker_flags
 *
 * Start with LATENCY_TRACKER_CONFIG(name). The threshold and the timeout can be
 * changed later, and the tracker can be turned off and on, also through /proc.
 */
struct latency_tracker_config {
	size_t size;
	struct module *owner;
	const char *name;
	void *priv;
	latency_tracker_fn callback;
	u64 threshold;
	u64 timeout;
	u64 min_event_timeout;
	u32 key_size;
	u32 data_size;
	u32 capacity;
	u32 max_capacity;
	u32 flags;
};

/**
 * LATENCY_TRACKER_CONFIG - initialise a configuration with its defaults
 * @_name: the name
 *
 * The defaults: keys the size of a long, no data, 4096 events, a threshold of 1 ms,
 * no timeout, no callback. Fields that follow override the defaults:
 *
 *	struct latency_tracker_config config = {
 *		LATENCY_TRACKER_CONFIG("my_driver"),
 *		.threshold = 500 * NSEC_PER_USEC,
 *	};
 */
#define LATENCY_TRACKER_CONFIG(_name)				\
	.size = sizeof(struct latency_tracker_config),		\
	.owner = THIS_MODULE,					\
	.name = (_name),					\
	.threshold = 1000000,					\
	.key_size = sizeof(long),				\
	.capacity = 4096

/**
 * latency_tracker_create() - create an enabled tracker
 * @config: the configuration; not needed afterwards
 *
 * The module that exports this function cannot be unloaded until the tracker is
 * destroyed.
 *
 * Context: task, may sleep.
 * Return: the tracker, or an ERR_PTR: -EINVAL for an invalid configuration (the
 * kernel log says why), -EEXIST if there is an instance with this name, -ENOMEM,
 * -E2BIG if @config sets fields that this version does not have, -EDEADLK in a
 * callback.
 */
struct latency_tracker *
latency_tracker_create(const struct latency_tracker_config *config);

/**
 * latency_tracker_destroy() - remove a tracker
 * @tracker: the tracker, or NULL, or an ERR_PTR
 *
 * First unregister all probes that use the tracker, and return all references. The
 * function waits for calls that are still running with preemption off (an RCU and
 * a tracepoint grace period), for callbacks, and for readers of the tracker's
 * files. Pending events are dropped and counted.
 *
 * Leaked references are reported in the kernel log; the memory of the tracker is
 * then not freed, so that they can still be read and returned, and the module that
 * exports this function can no longer be unloaded. If a module is unloaded without
 * destroying its trackers, they are destroyed, and the kernel log names them.
 *
 * Context: task, may sleep. In a callback it is refused: the kernel log has a
 * message, and the tracker is left unchanged.
 */
void latency_tracker_destroy(struct latency_tracker *tracker);

/**
 * latency_tracker_event_in_at() - start an operation
 * @tracker: the tracker
 * @key: the key of the operation
 * @key_size: the size of the key; the tracker's key_size, or, with
 *	LATENCY_TRACKER_VARIABLE_KEYS, from 1 to key_size
 * @data: the private data (data_size bytes), or NULL for zeros
 * @start: when the operation began; 0 for now
 * @timeout: the event's own timeout, at least the tracker's min_event_timeout, or
 *	LATENCY_TRACKER_NO_TIMEOUT; 0 for the tracker's timeout
 *
 * With LATENCY_TRACKER_UNIQUE, of two events with the same key, the one with the
 * later @start stays, whichever call came first. When the function returns, the
 * callback for the timeout of the replaced event may be running or about to start:
 * free the object behind that event as after LATENCY_TRACKER_ENDED_REPORTING.
 *
 * An event with a @start in the past may already have timed out. The next search
 * for timeouts finds it. That search is at most one timeout or one min_event_timeout
 * away, whichever is shorter; a value of 0 does not count. The pause after a search
 * is at least 0.5 ms, and at least as long as the search took.
 *
 * Without LATENCY_TRACKER_UNIQUE, a key can have about 200 live events, plus 8 for
 * each time that the capacity has grown while they were live. This limit keeps
 * every call short.
 *
 * Context: any.
 * Return: 0; -ENOSPC if the pool is full (counted); -EBUSY if too many events of
 * this key are live (counted as "crowded"); -EAGAIN if the tracker is off
 * (counted); -EINVAL.
 */
int latency_tracker_event_in_at(struct latency_tracker *tracker, const void *key,
				size_t key_size, const void *data, u64 start,
				u64 timeout);

/**
 * latency_tracker_event_in() - start an operation now
 * @tracker: the tracker
 * @key: the key of the operation
 * @key_size: the size of the key
 * @data: the private data or NULL
 *
 * Context: any.
 * Return: as latency_tracker_event_in_at().
 */
static inline int latency_tracker_event_in(struct latency_tracker *tracker,
					   const void *key, size_t key_size,
					   const void *data)
{
	return latency_tracker_event_in_at(tracker, key, key_size, data, 0, 0);
}

/**
 * latency_tracker_event_in_get() - start an operation and get a reference to it
 * @tracker: the tracker
 * @key: the key of the operation
 * @key_size: the size of the key
 * @data: the private data or NULL
 * @start: when the operation began; 0 for now
 * @timeout: the event's own timeout; 0 for the tracker's timeout
 *
 * Context: any.
 * Return: a reference, or an ERR_PTR as latency_tracker_event_in_at().
 */
struct latency_tracker_event *
latency_tracker_event_in_get(struct latency_tracker *tracker, const void *key,
			     size_t key_size, const void *data, u64 start,
			     u64 timeout);

/**
 * latency_tracker_event_out_at() - end an operation
 * @tracker: the tracker
 * @key: the key of the operation
 * @key_size: the size of the key
 * @id: for the callback: which of several kinds of end this is
 * @end: when the operation ended; 0 for now
 *
 * Ends one event of this key, any one if there are several. If several callers
 * try to end an event, exactly one succeeds. If the event is late, the callback is
 * called before that caller's call returns. An end before the start, or
 * 2^63 ns (292 years) or more after it, is counted as "negative". It is not reported,
 * unless the event had timed out: then it is LATENCY_TRACKER_LATE with a delay of 0,
 * so that each reported timeout is followed by an end.
 *
 * If the result is 0, no callback for this event is running or will start: the
 * object behind its key or data may be freed. If the result is
 * LATENCY_TRACKER_ENDED_REPORTING, the callback for its timeout may be running or
 * about to start; see enum latency_tracker_ended. This holds for any caller, even in
 * an NMI that interrupts the callback, and in the callback itself.
 *
 * Context: any.
 * Return: 0; LATENCY_TRACKER_ENDED_REPORTING (1); -ENOENT if no event of this key
 * is live (counted as "unmatched"); -EINVAL.
 */
int latency_tracker_event_out_at(struct latency_tracker *tracker,
				 const void *key, size_t key_size, u64 id,
				 u64 end);

/**
 * latency_tracker_event_out() - end an operation now
 * @tracker: the tracker
 * @key: the key of the operation
 * @key_size: the size of the key
 * @id: for the callback
 *
 * Context: any.
 * Return: as latency_tracker_event_out_at().
 */
static inline int latency_tracker_event_out(struct latency_tracker *tracker,
					    const void *key, size_t key_size,
					    u64 id)
{
	return latency_tracker_event_out_at(tracker, key, key_size, id, 0);
}

/**
 * latency_tracker_event_out_all() - end all operations of a key
 * @tracker: the tracker
 * @key: the key
 * @key_size: the size of the key
 * @id: for the callback, which is called for each late event
 * @end: when the operations ended; 0 for now
 *
 * The callbacks for the timeouts of some events may be running or about to start;
 * free the objects behind all events as after LATENCY_TRACKER_ENDED_REPORTING. To
 * get a result for each event, end the events with latency_tracker_for_each() and
 * latency_tracker_event_out_event().
 *
 * Context: any.
 * Return: how many ended, at least 1; -ENOENT; -EINVAL.
 */
int latency_tracker_event_out_all(struct latency_tracker *tracker,
				  const void *key, size_t key_size, u64 id,
				  u64 end);

/**
 * latency_tracker_event_out_event() - end the operation of a referenced event
 * @tracker: the tracker
 * @event: a reference, which the caller keeps
 * @id: for the callback
 * @end: when the operation ended; 0 for now
 *
 * Context: any.
 * Return: as latency_tracker_event_out_at(), but -ENOENT if the event has already
 * ended, which is not counted as "unmatched".
 */
int latency_tracker_event_out_event(struct latency_tracker *tracker,
				    struct latency_tracker_event *event, u64 id,
				    u64 end);

/**
 * latency_tracker_lookup() - get a reference to a live event
 * @tracker: the tracker
 * @key: the key of the event
 * @key_size: the size of the key
 *
 * A reference keeps the event's memory, but does not keep the event alive: any
 * caller can end the event, and the reference can still be used to read it. A
 * referenced event that has ended still takes room in the pool.
 *
 * Context: any.
 * Return: a reference; ERR_PTR(-ENOENT) if no event of this key is live;
 * ERR_PTR(-EBUSY) if the event already has LATENCY_TRACKER_REFS_MAX references
 * (counted as "busy"); ERR_PTR(-EINVAL).
 */
struct latency_tracker_event *
latency_tracker_lookup(struct latency_tracker *tracker, const void *key,
		       size_t key_size);

/**
 * latency_tracker_event_get() - get one more reference
 * @tracker: the tracker
 * @event: a reference
 *
 * Context: any.
 * Return: 0; -EBUSY if there are too many references (counted as "busy"); -EINVAL.
 */
int latency_tracker_event_get(struct latency_tracker *tracker,
			      struct latency_tracker_event *event);

/**
 * latency_tracker_event_put() - return a reference
 * @tracker: the tracker
 * @event: the reference, or NULL, or an ERR_PTR
 *
 * Context: any.
 */
void latency_tracker_event_put(struct latency_tracker *tracker,
			       struct latency_tracker_event *event);

/**
 * latency_tracker_event_is_live() - check whether an event is still live
 * @tracker: the tracker
 * @event: a reference
 *
 * Context: any.
 * Return: true if the event has not ended; false also if @event is not a reference.
 */
bool latency_tracker_event_is_live(struct latency_tracker *tracker,
				   struct latency_tracker_event *event);

/**
 * latency_tracker_event_start() - get the start time of an event
 * @tracker: the tracker
 * @event: a reference
 *
 * Context: any.
 * Return: nanoseconds; 0 if @event is not a reference.
 */
u64 latency_tracker_event_start(struct latency_tracker *tracker,
				struct latency_tracker_event *event);

/**
 * latency_tracker_event_key() - copy the key of an event
 * @tracker: the tracker
 * @event: a reference
 * @key: the destination buffer
 * @size: the size of the buffer in bytes
 *
 * Context: any.
 * Return: the size of the key, of which at most @size bytes were copied;
 * -EINVAL.
 */
int latency_tracker_event_key(struct latency_tracker *tracker,
			      struct latency_tracker_event *event, void *key,
			      size_t size);

/**
 * latency_tracker_event_data() - copy the private data of an event
 * @tracker: the tracker
 * @event: a reference
 * @data: the destination buffer
 * @size: the size of the buffer in bytes
 *
 * Context: any.
 * Return: the tracker's data_size, of which at most @size bytes were copied;
 * -EINVAL.
 */
int latency_tracker_event_data(struct latency_tracker *tracker,
			       struct latency_tracker_event *event, void *data,
			       size_t size);

/**
 * latency_tracker_for_each() - visit the live events of a key
 * @tracker: the tracker
 * @key: the key
 * @key_size: the size of the key
 * @visit: called for each event with a reference that is valid during the call
 *	(get one more to keep it), until @visit returns a value other than 0. It runs
 *	with preemption off, may call any function that does not sleep, and may end
 *	the event.
 * @arg: for @visit
 *
 * Each event that is live throughout is visited exactly once, unless it already has
 * the maximum number of references.
 *
 * Context: any.
 * Return: how many were visited; -EINVAL.
 */
int latency_tracker_for_each(struct latency_tracker *tracker, const void *key,
			     size_t key_size,
			     int (*visit)(struct latency_tracker *tracker,
					  struct latency_tracker_event *event,
					  void *arg),
			     void *arg);

/**
 * latency_tracker_clear() - drop all live events
 * @tracker: the tracker
 *
 * The events are counted as "cleared", and not reported. Events that begin meanwhile
 * may stay. When the function returns, no callback of a dropped event is running.
 *
 * Context: task, may sleep. In a callback it is refused: the kernel log has a
 * message, and nothing is dropped.
 * Return: how many events were dropped.
 */
u64 latency_tracker_clear(struct latency_tracker *tracker);

/**
 * latency_tracker_synchronize() - wait for callbacks
 * @tracker: the tracker
 *
 * Waits until all callbacks that are running or about to start have returned. After
 * that, no callback is running or will start for an event that ended before the
 * call.
 *
 * Context: task, sleeps for an RCU grace period.
 * Return: 0; -EINVAL; -EDEADLK in a callback.
 */
int latency_tracker_synchronize(struct latency_tracker *tracker);

/**
 * latency_tracker_set_threshold() - change the threshold
 * @tracker: the tracker
 * @ns: report delays longer than this, from now on
 *
 * Context: any.
 */
void latency_tracker_set_threshold(struct latency_tracker *tracker, u64 ns);

/**
 * latency_tracker_set_timeout() - change the timeout
 * @tracker: the tracker
 * @ns: report events that have not ended after this time; 0 for never. It also
 *	applies to pending events.
 *
 * Context: task, may sleep.
 * Return: 0; -ENOMEM; -ERANGE for more than a year; -ENODEV if the tracker is being
 * destroyed; -EDEADLK in a callback.
 */
int latency_tracker_set_timeout(struct latency_tracker *tracker, u64 ns);

/**
 * latency_tracker_set_enabled() - turn a tracker on or off
 * @tracker: the tracker
 * @on: the new state. Turning the tracker off waits for running callbacks, and drops
 *	the pending events.
 *
 * Context: task, may sleep.
 * Return: 0; -ENOMEM; -ENODEV if the tracker is being destroyed; -EDEADLK in a
 * callback.
 */
int latency_tracker_set_enabled(struct latency_tracker *tracker, bool on);

#endif /* _LATENCY_TRACKER_H */
