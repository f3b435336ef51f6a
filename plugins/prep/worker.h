/* Worker: the only thread of ours that takes Slurm's locks. It applies verdicts, and scans the jobs
 * in between. Its lock may be taken while the client's lock is held; the worker never takes the
 * client's while it holds its own.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_WORKER_H
#define FAIRBANK_WORKER_H

#include <stdbool.h>

#include "agent_client.h"

/* Start the worker, which scans the jobs every `poll_interval` seconds. Return false if no
 * thread can be created. Not to be called while a worker runs. */
extern bool worker_start(const client_callbacks_t *callbacks, unsigned poll_interval);
/* Stop the worker after its present task. Return false if it was abandoned: it waits for locks that
 * slurmctld, our caller, may hold. The library stays in memory for it. */
extern bool worker_stop(void);
/* After a stop that abandoned the worker: return true if it is still in that task, and so serves
 * the new client. There are never two workers, and this function does not wait for Slurm's
 * locks, which our caller may hold. */
extern bool worker_resume(unsigned poll_interval);

/* Add a task: apply a verdict. Tasks are done in their order. */
extern void worker_add_verdict(const run_t *run, const verdict_t *verdict);
/* Scan and report all jobs now, because an agent has connected. */
extern void worker_resend_jobs(void);
/* Record that the end of a job was dropped: the next scan of that kind reports all ends again. */
extern void worker_end_dropped(void);

#endif
