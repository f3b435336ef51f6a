/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "seen.h"

#include <stdlib.h>

#define BUCKETS 4096

static seen_t *buckets[BUCKETS];
static unsigned current;

static seen_t **slot_of(uint32_t job_id)
{
	seen_t **slot = &buckets[job_id % BUCKETS];

	while (*slot && (*slot)->run.job_id != job_id)
		slot = &(*slot)->after;
	return slot;
}

static void remove_at(seen_t **slot)
{
	seen_t *gone = *slot;

	*slot = gone->after;
	free(gone);
}

extern seen_t *seen_get(uint32_t job_id)
{
	return *slot_of(job_id);
}

extern seen_t *seen_put(run_t run)
{
	seen_t **slot = slot_of(run.job_id);

	if (!*slot && !(*slot = calloc(1, sizeof(seen_t))))
		abort();	/* slurmctld does the same when there is no memory */
	(*slot)->run = run;
	(*slot)->round = current;
	return *slot;
}

extern void seen_drop(uint32_t job_id)
{
	seen_t **slot = slot_of(job_id);

	if (*slot)
		remove_at(slot);
}

extern void seen_begin_round(void)
{
	current++;
}

extern void seen_mark(seen_t *seen)
{
	seen->round = current;
}

extern void seen_sweep(void)
{
	for (int i = 0; i < BUCKETS; i++) {
		seen_t **slot = &buckets[i];
		while (*slot) {
			if ((*slot)->round != current)
				remove_at(slot);
			else
				slot = &(*slot)->after;
		}
	}
}
