/* For tests: a courier that is stopped while its clerk waits for Slurm's locks, and started again in the same process.
 * check_clerk SOCKET stuck|late: the locks are let go after the second start, or before it. Says how many questions were settled, by how
 * many clerks in all, and how many of these were at work at once.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "courier.h"

#define MORE 20

static pthread_mutex_t slurms_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int settled, entered, inside, most_inside, clerks;
static _Thread_local bool known;

static void settle(const run_t *run, const verdict_t *verdict)
{
	int now = ++inside;

	if (now > most_inside)
		most_inside = now;
	clerks += !known;
	known = true;
	entered++;
	pthread_mutex_lock(&slurms_lock);
	settled++;
	pthread_mutex_unlock(&slurms_lock);
	inside--;
}

static bool look(bool afresh, bool ends)
{
	return true;
}

static void note(bool error, const char *text)
{
	fprintf(stderr, "%s%s\n", error ? "error: " : "", text);
}

static void ask(uint32_t job)
{
	run_t run = { .job_id = job, .submitted = 1, .restart = 0 };
	uint64_t number = courier_number();
	frame_t frame;

	frame_begin(&frame, "prolog");
	frame_number(&frame, "number", (int64_t) number);
	frame_end(&frame);
	courier_send(LETTER_QUESTION, &run, number, &frame);
}

static void wait_for(atomic_int *count, int least)
{
	while (*count < least)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
}

int main(int count, char **words)
{
	courier_settings_t settings = { .watch = 1, .most = 1000, .open = true };
	courier_hooks_t hooks = { .settle = settle, .look = look, .log = note };
	frame_t hello;

	if (count != 3)
		return 2;
	snprintf(settings.socket, sizeof(settings.socket), "%s", words[1]);
	frame_begin(&hello, "hello");
	frame_end(&hello);
	pthread_mutex_lock(&slurms_lock);
	if (!courier_start(&settings, &hooks, &hello))
		return 2;
	ask(1);
	wait_for(&entered, 1);
	courier_stop();
	if (!strcmp(words[2], "late")) {
		pthread_mutex_unlock(&slurms_lock);
		wait_for(&settled, 1);
		nanosleep(&(struct timespec) { .tv_nsec = 200000000 }, NULL);	/* nothing tells that a thread is over */
	}
	if (!courier_start(&settings, &hooks, &hello))
		return 2;
	for (uint32_t job = 2; job < 2 + MORE; job++)
		ask(job);
	if (!strcmp(words[2], "stuck")) {
		nanosleep(&(struct timespec) { .tv_sec = 1 }, NULL);	/* a second clerk would be in there by now */
		pthread_mutex_unlock(&slurms_lock);
	}
	wait_for(&settled, 1 + MORE);
	courier_stop();
	printf("settled %d clerks %d at once %d\n", settled, clerks, most_inside);
	return 0;
}
