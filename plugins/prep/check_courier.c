/* For tests: the courier without Slurm. check_courier SOCKET QUESTIONS PATIENCE LETTERS
 * Four threads ask and tell; ends when each question is settled and each end noted, and says how often it was what.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "courier.h"

#define THREADS 4

static atomic_int settled[3], looks, welcomes;
static atomic_int *times;
static int questions;

static void settle(const run_t *run, const verdict_t *verdict)
{
	settled[verdict->say]++;
	times[run->job_id]++;
}

static bool look(bool afresh, bool ends)
{
	looks++;
	welcomes += afresh;
	return ends || !afresh || welcomes > 1;
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
	frame_text(&frame, "cluster", "lab");
	frame_number(&frame, "job", job);
	frame_number(&frame, "submitted", 1);
	frame_number(&frame, "restart", 0);
	frame_number(&frame, "uid", 1);
	frame_number(&frame, "gid", 1);
	frame_number(&frame, "start", 1);
	frame_number(&frame, "batch", 1);
	frame_end(&frame);
	courier_send(kind, &run, number, &frame);
	if (job % 50 == 0)
		courier_withdraw(&run);
}

static void *ask(void *of)
{
	for (int job = 1 + (int) (intptr_t) of; job <= questions; job += THREADS) {
		write_to(LETTER_QUESTION, "prolog", (uint32_t) job);
		write_to(LETTER_LIMIT, "limit", (uint32_t) job);
	}
	return NULL;
}

int main(int count, char **words)
{
	courier_settings_t settings = { .watch = 1 };
	courier_hooks_t hooks = { .settle = settle, .look = look, .log = note };
	pthread_t threads[THREADS];
	frame_t hello;
	int wrong = 0;

	if (count != 5)
		return 2;
	snprintf(settings.socket, sizeof(settings.socket), "%s", words[1]);
	questions = atoi(words[2]);
	settings.patience = (unsigned) atoi(words[3]);
	settings.most = (unsigned) atoi(words[4]);
	times = calloc((size_t) questions + 1, sizeof(*times));
	frame_begin(&hello, "hello");
	frame_number(&hello, "version", WIRE_VERSION);
	frame_text(&hello, "slurm", "none");
	frame_text(&hello, "cluster", "lab");
	frame_end(&hello);
	if (!courier_start(&settings, &hooks, &hello))
		return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, ask, (void *) (intptr_t) i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (settled[0] + settled[1] + settled[2] < questions)
		nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
	courier_stop();
	for (int job = 1; job <= questions; job++)
		wrong += times[job] != 1;
	printf("run %d hold %d cancel %d wrong %d\n", settled[SAY_RUN], settled[SAY_HOLD], settled[SAY_CANCEL], wrong);
	free(times);
	return wrong != 0;
}
