/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "job_cache.h"

#include <stdlib.h>

#define BUCKETS 4096

static cached_job_t *buckets[BUCKETS];
static unsigned current_scan;

static cached_job_t **slot_of(uint32_t job_id)
{
	cached_job_t **slot = &buckets[job_id % BUCKETS];

	while (*slot && (*slot)->run.job_id != job_id)
		slot = &(*slot)->next;
	return slot;
}

static void remove_at(cached_job_t **slot)
{
	cached_job_t *job = *slot;

	*slot = job->next;
	free(job);
}

extern cached_job_t *job_cache_get(uint32_t job_id)
{
	return *slot_of(job_id);
}

extern cached_job_t *job_cache_put(run_t run)
{
	cached_job_t **slot = slot_of(run.job_id);

	if (!*slot && !(*slot = calloc(1, sizeof(cached_job_t))))
		abort();	/* slurmctld does the same when there is no memory */
	(*slot)->run = run;
	(*slot)->scan = current_scan;
	return *slot;
}

extern void job_cache_remove(uint32_t job_id)
{
	cached_job_t **slot = slot_of(job_id);

	if (*slot)
		remove_at(slot);
}

extern void job_cache_start_scan(void)
{
	current_scan++;
}

extern void job_cache_mark(cached_job_t *job)
{
	job->scan = current_scan;
}

extern void job_cache_end_scan(void)
{
	for (int i = 0; i < BUCKETS; i++) {
		cached_job_t **slot = &buckets[i];
		while (*slot) {
			if ((*slot)->scan != current_scan)
				remove_at(slot);
			else
				slot = &(*slot)->next;
		}
	}
}
