/* Cache of the runs that have a prolog request or have started, and have not ended.
 * It has no lock: callers hold slurmctld's job lock, or are the only scan.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_JOB_CACHE_H
#define FAIRBANK_JOB_CACHE_H

#include "agent_client.h"

typedef struct cached_job {
	struct cached_job *next;
	/* As it was at its start: a requeue changes the job record before the epilog. */
	run_t run;
	uint32_t limit;		/* last one that was reported, in minutes */
	double billing;		/* last one that was reported */
	bool begun;		/* its verdict let it run */
	unsigned scan;
} cached_job_t;

extern cached_job_t *job_cache_get(uint32_t job_id);
/* Return the entry of the job, set to this run; create it if there is none. */
extern cached_job_t *job_cache_put(run_t run);
extern void job_cache_remove(uint32_t job_id);

/* Entries that are not marked between the start and the end of a scan are removed. */
extern void job_cache_start_scan(void);
extern void job_cache_mark(cached_job_t *job);
extern void job_cache_end_scan(void);

#endif
