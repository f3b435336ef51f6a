/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define JOIN_SECONDS 5		/* that slurmctld waits for our thread when it stops */

typedef struct task {
	struct task *next;
	run_t run;
	verdict_t verdict;
} task_t;

static client_callbacks_t callbacks;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards all up to the next line */
static pthread_cond_t work;
static task_t *tasks, **tasks_end = &tasks;
static bool stopping, resend, end_dropped;
static unsigned poll_interval;
static bool abandoned, finished;	/* abandoned: worker_stop did not wait */
/* ------------------------------------------------------------------ */

static pthread_t thread;
static pthread_once_t condition_once = PTHREAD_ONCE_INIT;

extern void worker_add_verdict(const run_t *run, const verdict_t *verdict)
{
	task_t *task = calloc(1, sizeof(*task));

	if (!task)
		abort();	/* slurmctld does the same when there is no memory */
	task->run = *run;
	task->verdict = *verdict;
	pthread_mutex_lock(&lock);
	*tasks_end = task;
	tasks_end = &task->next;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

extern void worker_resend_jobs(void)
{
	pthread_mutex_lock(&lock);
	resend = true;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

extern void worker_end_dropped(void)
{
	pthread_mutex_lock(&lock);
	end_dropped = true;
	pthread_mutex_unlock(&lock);
}

/* Wait for a task until a time. Without one, `scan` says that it is time for a scan. */
static task_t *next_task(struct timespec *until, bool *scan, bool *scan_resends)
{
	task_t *task;

	pthread_mutex_lock(&lock);
	while (!tasks && !stopping && !resend
	       && pthread_cond_timedwait(&work, &lock, until) != ETIMEDOUT)
		;
	if ((task = tasks) && !(tasks = task->next))
		tasks_end = &tasks;
	*scan_resends = resend;
	*scan = !task && !stopping;
	if (*scan)
		resend = false;
	pthread_mutex_unlock(&lock);
	return task;
}

/* Ends are reported again to the first agent that slurmctld meets, and after some were dropped. */
static void scan_jobs(bool resends, bool *ends)
{
	pthread_mutex_lock(&lock);
	if (resends && end_dropped)
		*ends = true;
	end_dropped = end_dropped && !resends;
	pthread_mutex_unlock(&lock);
	if (!callbacks.scan_jobs(resends, resends && *ends)) {
		pthread_mutex_lock(&lock);
		resend = resend || resends;
		pthread_mutex_unlock(&lock);
		nanosleep(&(struct timespec) { .tv_nsec = 100 * 1000 * 1000 }, NULL);
	} else if (resends) {
		*ends = false;
	}
}

static void *run_worker(void *nothing)
{
	struct timespec until;
	bool scan, resends, leaves = false, ends = true;
	unsigned seconds;
	task_t *task;

	clock_gettime(CLOCK_MONOTONIC, &until);
	while (!leaves) {
		if ((task = next_task(&until, &scan, &resends))) {
			callbacks.apply_verdict(&task->run, &task->verdict);
			free(task);
		} else if (scan) {
			scan_jobs(resends, &ends);
		}
		pthread_mutex_lock(&lock);
		leaves = finished = stopping;
		seconds = poll_interval;
		pthread_mutex_unlock(&lock);
		if (scan) {
			clock_gettime(CLOCK_MONOTONIC, &until);
			until.tv_sec += seconds;
		}
	}
	return nothing;
}

/* ---------------------------------------------------------------- start and stop */

/* Done once: callers may signal the condition at any time, also between a stop and a start. */
static void create_condition(void)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&work, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void delete_tasks(void)
{
	pthread_mutex_lock(&lock);
	for (task_t *task = tasks, *next; task; task = next) {
		next = task->next;
		free(task);
	}
	tasks = NULL;
	tasks_end = &tasks;
	pthread_mutex_unlock(&lock);
}

extern bool worker_resume(unsigned seconds)
{
	bool is_busy, has_left;

	pthread_mutex_lock(&lock);
	is_busy = abandoned && !finished;
	has_left = abandoned && finished;
	abandoned = stopping = resend = end_dropped = false;
	poll_interval = seconds;
	pthread_mutex_unlock(&lock);
	if (has_left) {
		pthread_join(thread, NULL);
		delete_tasks();
	}
	return is_busy;
}

extern bool worker_start(const client_callbacks_t *given, unsigned seconds)
{
	pthread_once(&condition_once, create_condition);
	callbacks = *given;
	pthread_mutex_lock(&lock);
	stopping = finished = false;
	poll_interval = seconds;
	pthread_mutex_unlock(&lock);
	return !pthread_create(&thread, NULL, run_worker, NULL);
}

extern bool worker_stop(void)
{
	struct timespec until;

	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&lock);
	/* pthread_timedjoin_np() requires CLOCK_REALTIME; all other deadlines are monotonic. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += JOIN_SECONDS;
	if (pthread_timedjoin_np(thread, NULL, &until)) {
		pthread_mutex_lock(&lock);
		abandoned = true;
		pthread_mutex_unlock(&lock);
		return false;
	}
	delete_tasks();
	return true;
}
