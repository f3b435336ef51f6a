/* For tests: what it takes to withdraw a question while ends wait. check_withdraw SOCKET ENDS
 * Nobody listens there. One question and so many ends wait; runs are withdrawn that have none, and then the one that has.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "courier.h"

#define TIMES 500

static atomic_int settled;

static void settle(const run_t *run, const verdict_t *verdict)
{
	settled += run->job_id == 1 && verdict->say == SAY_RUN;
}

static bool look(bool afresh, bool ends)
{
	return afresh || !ends;
}

static void note(bool error, const char *text)
{
	fprintf(stderr, "%s%s\n", error ? "error: " : "", text);
}

static void write_to(letter_kind_t kind, const char *word, uint32_t job)
{
	run_t run = { .job_id = job, .submitted = 1, .restart = 0 };
	uint64_t number = courier_number();
	frame_t frame;

	frame_begin(&frame, word);
	frame_number(&frame, "number", (int64_t) number);
	frame_number(&frame, "job", job);
	frame_end(&frame);
	courier_send(kind, &run, number, &frame);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int count, char **words)
{
	courier_settings_t settings = { .watch = 60, .patience = 60, .most = 100000 };
	courier_hooks_t hooks = { .settle = settle, .look = look, .log = note };
	run_t run = { .submitted = 1 };
	frame_t hello;
	int64_t begun, took;

	if (count != 3)
		return 2;
	snprintf(settings.socket, sizeof(settings.socket), "%s", words[1]);
	frame_begin(&hello, "hello");
	frame_end(&hello);
	if (!courier_start(&settings, &hooks, &hello))
		return 2;
	write_to(LETTER_QUESTION, "prolog", 1);
	for (int end = 0; end < atoi(words[2]); end++)
		write_to(LETTER_END, "epilog", (uint32_t) (end + 2));
	begun = now_ns();
	for (run.job_id = 2; run.job_id < TIMES + 2; run.job_id++)
		courier_withdraw(&run);
	took = now_ns() - begun;
	run.job_id = 1;
	courier_withdraw(&run);
	for (int tries = 0; !settled && tries < 1000; tries++)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
	courier_stop();
	printf("settled %d of 1 in %lld ns\n", settled, (long long) took);
	return settled != 1;
}
