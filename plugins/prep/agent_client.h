/* Client of the agent: messages are kept until they are answered, and one thread carries them
 * over a Unix socket. Nothing here knows Slurm, and no function waits for the agent.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_AGENT_CLIENT_H
#define FAIRBANK_AGENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "frame.h"

/* One execution of a job. The job id alone does not identify it: ids wrap, and a requeued job keeps
 * its id. */
typedef struct {
	uint32_t job_id;
	time_t submitted;
	uint32_t restart;
} run_t;

typedef enum { MESSAGE_PROLOG, MESSAGE_EPILOG, MESSAGE_LIMIT } message_kind_t;

typedef struct {
	char socket[104];
	unsigned patience;	/* seconds that a prolog request may wait for its verdict */
	unsigned poll_interval;	/* seconds between two scans of the jobs */
	unsigned max_messages;
	bool open;		/* outage policy: true lets jobs run, false holds them */
} client_settings_t;

/* Reason of a job that was held because the agent did not answer. */
#define REASON_AGENT_DOWN "Fairbank_does_not_answer"

typedef struct {
	/* Both are called in the worker thread without our locks; they may take Slurm's. */
	void (*apply_verdict)(const run_t *run, const verdict_t *verdict);
	/* Scan all jobs. `resend`: an agent has just connected, so report all running jobs again.
	 * `ends`: report finished jobs too. Return false if slurmctld has no job list yet. */
	bool (*scan_jobs)(bool resend, bool ends);
	void (*log)(bool is_error, const char *text);
} client_callbacks_t;

extern bool client_start(const client_settings_t *settings, const client_callbacks_t *callbacks,
			 const frame_t *hello);
extern void client_stop(void);

/* Return the number of the next message; it is part of its frame. */
extern uint64_t client_next_number(void);
/* Queue a message. A prolog request without space is decided by the outage policy. */
extern void client_send(message_kind_t kind, const run_t *run, uint64_t number,
			const frame_t *frame);
/* Complete the open prolog request of a run that has ended or is requeued: nothing waits for its
 * verdict. */
extern void client_withdraw(const run_t *run);

#endif
