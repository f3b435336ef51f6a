/* Letters between slurmctld and the agent: kept until answered, carried over a Unix socket by a thread of their own.
 * Nothing here knows Slurm, and none of these calls waits for the agent.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_COURIER_H
#define FAIRBANK_COURIER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "frame.h"

/* One execution of a job: the id alone is none, since it wraps, and a requeued job keeps it. */
typedef struct {
	uint32_t job_id;
	time_t submitted;
	uint32_t restart;
} run_t;

typedef enum { LETTER_QUESTION, LETTER_END, LETTER_LIMIT } letter_kind_t;

typedef struct {
	char socket[104];
	unsigned patience;	/* seconds that a question may wait for its answer */
	unsigned watch;		/* seconds between two looks at the jobs */
	unsigned most;		/* letters kept at most */
	bool open;		/* what a question gets that nobody answers: run, or else hold */
} courier_settings_t;

/* The reason of a hold that we decided ourselves, because nobody answered. */
#define REASON_SILENCE "Fairbank_does_not_answer"

typedef struct {
	/* Called in one thread of ours, with nothing locked; they may take Slurm's locks. */
	void (*settle)(const run_t *run, const verdict_t *verdict);
	/* Look at all jobs. `afresh`: an agent has just come, tell all again. `ends`: tell those that have ended, too.
	 * False: too early, come again. */
	bool (*look)(bool afresh, bool ends);
	void (*log)(bool error, const char *text);
} courier_hooks_t;

extern bool courier_start(const courier_settings_t *settings, const courier_hooks_t *hooks, const frame_t *hello);
extern void courier_stop(void);

/* A number for the next letter; it stands in the frame. */
extern uint64_t courier_number(void);
/* Take a letter. A question that cannot be kept is settled as if nobody had answered. */
extern void courier_send(letter_kind_t kind, const run_t *run, uint64_t number, const frame_t *frame);
/* The run has ended or is requeued: nobody waits for the answer any more, settle its question with `run`. */
extern void courier_withdraw(const run_t *run);

#endif
