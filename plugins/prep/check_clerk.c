/* For tests: a courier that is stopped while its clerk waits for Slurm's locks, and started again in the same process.
 * check_clerk SOCKET stuck|late: the locks are let go after the second start, or before it. Says how many questions were settled, by how
 * many clerks in all, how many of these were at work at once, and how many threads the second start has added to those of the first.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
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

	(void) run;
	(void) verdict;
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
	(void) afresh;
	(void) ends;
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

/* Those of this process, also of the sanitizers. */
static int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	if (!tasks)
		return -1;
	for (struct dirent *task; (task = readdir(tasks));)
		count += task->d_name[0] != '.';
	closedir(tasks);
	return count;
}

/* A thread that was joined, or has said that it is over, may be on its way out still. */
static void wait_for_threads(int wanted)
{
	while (threads() != wanted)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
}

int main(int count, char **words)
{
	courier_settings_t settings = { .watch = 1, .most = 1000, .open = true };
	courier_hooks_t hooks = { .settle = settle, .look = look, .log = note };
	frame_t hello;
	int first, second;

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
	first = threads();
	courier_stop();
	if (!strcmp(words[2], "late")) {
		pthread_mutex_unlock(&slurms_lock);
		wait_for_threads(first - 2);
	} else {
		wait_for_threads(first - 1);	/* the clerk stays behind */
	}
	if (!courier_start(&settings, &hooks, &hello))
		return 2;
	second = threads();
	for (uint32_t job = 2; job < 2 + MORE; job++)
		ask(job);
	if (!strcmp(words[2], "stuck"))
		pthread_mutex_unlock(&slurms_lock);
	wait_for(&settled, 1 + MORE);
	courier_stop();
	printf("settled %d clerks %d at once %d more threads %d\n", settled, clerks, most_inside, second - first);
	return 0;
}
