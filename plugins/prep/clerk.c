/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "clerk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define LAST_JOIN 5		/* seconds that slurmctld waits for our thread when it ends */

typedef struct matter {
	struct matter *after;
	run_t run;
	verdict_t verdict;
} matter_t;

static courier_hooks_t hooks;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* for all that follows up to the next line */
static pthread_cond_t work;
static matter_t *matters, **matters_end = &matters;
static bool stopping, afresh, forgotten;	/* forgotten: an end was lost for lack of room */
static unsigned watch;
static bool left, over;				/* left: by clerk_dismiss, which did not wait any longer for it to be over */
/* ------------------------------------------------------------------ */

static pthread_t clerk;
static pthread_once_t timed = PTHREAD_ONCE_INIT;

extern void clerk_settle(const run_t *run, const verdict_t *verdict)
{
	matter_t *matter = calloc(1, sizeof(*matter));

	if (!matter)
		abort();	/* slurmctld does the same when there is no memory */
	matter->run = *run;
	matter->verdict = *verdict;
	pthread_mutex_lock(&lock);
	*matters_end = matter;
	matters_end = &matter->after;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

extern void clerk_look_afresh(void)
{
	pthread_mutex_lock(&lock);
	afresh = true;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

extern void clerk_lost_an_end(void)
{
	pthread_mutex_lock(&lock);
	forgotten = true;
	pthread_mutex_unlock(&lock);
}

static matter_t *next_matter(struct timespec *until, bool *look, bool *all)
{
	matter_t *matter;

	pthread_mutex_lock(&lock);
	while (!matters && !stopping && !afresh && pthread_cond_timedwait(&work, &lock, until) != ETIMEDOUT)
		;
	if ((matter = matters) && !(matters = matter->after))
		matters_end = &matters;
	*all = afresh;
	*look = !matter && !stopping;
	if (*look)
		afresh = false;
	pthread_mutex_unlock(&lock);
	return matter;
}

/* Ends are told again to the first agent that slurmctld meets, and where some were lost. */
static void look_round(bool all, bool *ends)
{
	pthread_mutex_lock(&lock);
	if (all && forgotten)
		*ends = true;
	forgotten = forgotten && !all;
	pthread_mutex_unlock(&lock);
	if (!hooks.look(all, all && *ends)) {
		pthread_mutex_lock(&lock);
		afresh = afresh || all;
		pthread_mutex_unlock(&lock);
		nanosleep(&(struct timespec) { .tv_nsec = 100 * 1000 * 1000 }, NULL);
	} else if (all) {
		*ends = false;
	}
}

static void *settle_and_look(void *nothing)
{
	struct timespec until;
	bool look, all, leaves = false, ends = true;
	unsigned seconds;
	matter_t *matter;

	clock_gettime(CLOCK_MONOTONIC, &until);
	while (!leaves) {
		if ((matter = next_matter(&until, &look, &all))) {
			hooks.settle(&matter->run, &matter->verdict);
			free(matter);
		} else if (look) {
			look_round(all, &ends);
		}
		pthread_mutex_lock(&lock);
		leaves = over = stopping;
		seconds = watch;
		pthread_mutex_unlock(&lock);
		if (look) {
			clock_gettime(CLOCK_MONOTONIC, &until);
			until.tv_sec += seconds;
		}
	}
	return nothing;
}

/* ---------------------------------------------------------------- life */

/* Once: who calls may signal it at any time, also between two lives. */
static void time_by_the_steady_clock(void)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&work, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void forget_matters(void)
{
	pthread_mutex_lock(&lock);
	for (matter_t *matter = matters, *after; matter; matter = after) {
		after = matter->after;
		free(matter);
	}
	matters = NULL;
	matters_end = &matters;
	pthread_mutex_unlock(&lock);
}

extern bool clerk_take_back(unsigned seconds)
{
	bool at_work, gone;

	pthread_mutex_lock(&lock);
	at_work = left && !over;
	gone = left && over;
	left = stopping = afresh = forgotten = false;
	watch = seconds;
	pthread_mutex_unlock(&lock);
	if (gone) {
		pthread_join(clerk, NULL);
		forget_matters();
	}
	return at_work;
}

extern bool clerk_hire(const courier_hooks_t *called, unsigned seconds)
{
	pthread_once(&timed, time_by_the_steady_clock);
	hooks = *called;
	pthread_mutex_lock(&lock);
	stopping = over = false;
	watch = seconds;
	pthread_mutex_unlock(&lock);
	return !pthread_create(&clerk, NULL, settle_and_look, NULL);
}

extern bool clerk_dismiss(void)
{
	struct timespec until;

	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LAST_JOIN;
	if (pthread_timedjoin_np(clerk, NULL, &until)) {
		pthread_mutex_lock(&lock);
		left = true;
		pthread_mutex_unlock(&lock);
		return false;
	}
	forget_matters();
	return true;
}
