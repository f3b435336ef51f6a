/* Test program: a client that is stopped while its worker waits for Slurm's locks, and started
 * again in the same process. check_worker SOCKET stuck|late: the locks are released after the
 * second start, or before it. Prints the number of verdicts, of workers in all, of workers at
 * once, and of threads that the second start has added.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent_client.h"

#define MORE 20

static pthread_mutex_t slurms_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int verdicts, entered, inside, max_inside, workers;
static _Thread_local bool is_counted;

static void apply_verdict(const run_t *run, const verdict_t *verdict)
{
	int now = ++inside;

	(void) run;
	(void) verdict;
	if (now > max_inside)
		max_inside = now;
	workers += !is_counted;
	is_counted = true;
	entered++;
	pthread_mutex_lock(&slurms_lock);
	verdicts++;
	pthread_mutex_unlock(&slurms_lock);
	inside--;
}

static bool scan_jobs(bool resend, bool ends)
{
	(void) resend;
	(void) ends;
	return true;
}

static void write_log(bool is_error, const char *text)
{
	fprintf(stderr, "%s%s\n", is_error ? "error: " : "", text);
}

static void send_request(uint32_t job)
{
	run_t run = { .job_id = job, .submitted = 1, .restart = 0 };
	uint64_t number = client_next_number();
	frame_t frame;

	frame_begin(&frame, "prolog");
	frame_number(&frame, "number", (int64_t) number);
	frame_end(&frame);
	client_send(MESSAGE_PROLOG, &run, number, &frame);
}

static void wait_for(atomic_int *count, int least)
{
	while (*count < least)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
}

/* Return the number of threads of this process, those of the sanitizers included. */
static int count_threads(void)
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

/* A thread that was joined or is finished may still be about to exit. */
static void wait_for_threads(int expected)
{
	while (count_threads() != expected)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
}

int main(int count, char **arguments)
{
	client_settings_t settings = { .poll_interval = 1, .max_messages = 1000, .open = true };
	client_callbacks_t callbacks = {
		.apply_verdict = apply_verdict, .scan_jobs = scan_jobs, .log = write_log,
	};
	frame_t hello;
	int first, second;

	if (count != 3)
		return 2;
	snprintf(settings.socket, sizeof(settings.socket), "%s", arguments[1]);
	frame_begin(&hello, "hello");
	frame_end(&hello);
	pthread_mutex_lock(&slurms_lock);
	if (!client_start(&settings, &callbacks, &hello))
		return 2;
	send_request(1);
	wait_for(&entered, 1);
	first = count_threads();
	client_stop();
	if (!strcmp(arguments[2], "late")) {
		pthread_mutex_unlock(&slurms_lock);
		wait_for_threads(first - 2);
	} else {
		wait_for_threads(first - 1);	/* the worker remains */
	}
	if (!client_start(&settings, &callbacks, &hello))
		return 2;
	second = count_threads();
	for (uint32_t job = 2; job < 2 + MORE; job++)
		send_request(job);
	if (!strcmp(arguments[2], "stuck"))
		pthread_mutex_unlock(&slurms_lock);
	wait_for(&verdicts, 1 + MORE);
	client_stop();
	printf("verdicts %d workers %d at once %d more threads %d\n", verdicts, workers, max_inside,
	       second - first);
	return 0;
}
