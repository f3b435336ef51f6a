/* Test program: time to withdraw a prolog request while ends wait. check_withdraw SOCKET ENDS
 * Nobody listens at the socket. One request and ENDS ends wait. Runs without a request are
 * withdrawn first, and then the one with a request.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent_client.h"

#define WITHDRAWALS 500

static atomic_int verdicts;

static void apply_verdict(const run_t *run, const verdict_t *verdict)
{
	verdicts += run->job_id == 1 && verdict->action == ACTION_RUN;
}

static bool scan_jobs(bool resend, bool ends)
{
	return resend || !ends;
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
	frame_number(&frame, "job", job);
	frame_end(&frame);
	client_send(kind, &run, number, &frame);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int count, char **arguments)
{
	client_settings_t settings = {
		.poll_interval = 60, .patience = 60, .max_messages = 100000,
	};
	client_callbacks_t callbacks = {
		.apply_verdict = apply_verdict, .scan_jobs = scan_jobs, .log = write_log,
	};
	run_t run = { .submitted = 1 };
	frame_t hello;
	int64_t start, duration;

	if (count != 3)
		return 2;
	snprintf(settings.socket, sizeof(settings.socket), "%s", arguments[1]);
	frame_begin(&hello, "hello");
	frame_end(&hello);
	if (!client_start(&settings, &callbacks, &hello))
		return 2;
	send_message(MESSAGE_PROLOG, "prolog", 1);
	for (int end = 0; end < atoi(arguments[2]); end++)
		send_message(MESSAGE_EPILOG, "epilog", (uint32_t) (end + 2));
	start = now_ns();
	for (run.job_id = 2; run.job_id < WITHDRAWALS + 2; run.job_id++)
		client_withdraw(&run);
	duration = now_ns() - start;
	run.job_id = 1;
	client_withdraw(&run);
	for (int tries = 0; !verdicts && tries < 1000; tries++)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
	client_stop();
	printf("verdicts %d of 1 in %lld ns\n", verdicts, (long long) duration);
	return verdicts != 1;
}
