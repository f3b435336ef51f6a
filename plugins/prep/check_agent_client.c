/* Test program: the agent client without Slurm. check_agent_client SOCKET REQUESTS TIMEOUT
 * MESSAGES Four threads send prolog requests and limits. It ends when each request has a
 * verdict, and prints the number of verdicts by action.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent_client.h"

#define THREADS 4

static atomic_int verdicts[3], connections;
static atomic_int *verdicts_of_job;
static int requests;

static void apply_verdict(const run_t *run, const verdict_t *verdict)
{
	verdicts[verdict->action]++;
	verdicts_of_job[run->job_id]++;
}

static bool scan_jobs(bool resend, bool ends)
{
	connections += resend;
	return ends || !resend || connections > 1;
}

static void write_log(bool is_error, const char *text)
{
	fprintf(stderr, "%s%s\n", is_error ? "error: " : "", text);
}

static void send_message(message_kind_t kind, const char *word, uint32_t job)
{
	run_t run = { .job_id = job, .submitted = 1, .restart = 0 };
	uint64_t number = client_next_number();
	frame_t frame;

	frame_begin(&frame, word);
	frame_number(&frame, "number", (int64_t) number);
	frame_text(&frame, "cluster", "lab");
	frame_number(&frame, "job", job);
	frame_number(&frame, "submitted", 1);
	frame_number(&frame, "restart", 0);
	frame_number(&frame, "uid", 1);
	frame_number(&frame, "gid", 1);
	frame_number(&frame, "start", 1);
	frame_number(&frame, "batch", 1);
	frame_end(&frame);
	client_send(kind, &run, number, &frame);
	if (job % 50 == 0)
		client_withdraw(&run);
}

static void *send_all(void *first)
{
	for (int job = 1 + (int) (intptr_t) first; job <= requests; job += THREADS) {
		send_message(MESSAGE_PROLOG, "prolog", (uint32_t) job);
		send_message(MESSAGE_LIMIT, "limit", (uint32_t) job);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	client_settings_t settings = { .poll_interval = 1 };
	client_callbacks_t callbacks = {
		.apply_verdict = apply_verdict, .scan_jobs = scan_jobs, .log = write_log,
	};
	pthread_t threads[THREADS];
	frame_t hello;
	int wrong = 0;

	if (count != 5)
		return 2;
	snprintf(settings.socket, sizeof(settings.socket), "%s", arguments[1]);
	requests = atoi(arguments[2]);
	settings.patience = (unsigned) atoi(arguments[3]);
	settings.max_messages = (unsigned) atoi(arguments[4]);
	verdicts_of_job = calloc((size_t) requests + 1, sizeof(*verdicts_of_job));
	frame_begin(&hello, "hello");
	frame_number(&hello, "version", WIRE_VERSION);
	frame_text(&hello, "slurm", "none");
	frame_text(&hello, "cluster", "lab");
	frame_end(&hello);
	if (!client_start(&settings, &callbacks, &hello))
		return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, send_all, (void *) (intptr_t) i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (verdicts[0] + verdicts[1] + verdicts[2] < requests)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
	client_stop();
	for (int job = 1; job <= requests; job++)
		wrong += verdicts_of_job[job] != 1;
	printf("run %d hold %d cancel %d wrong %d\n", verdicts[ACTION_RUN], verdicts[ACTION_HOLD],
	       verdicts[ACTION_CANCEL], wrong);
	free(verdicts_of_job);
	return wrong != 0;
}
