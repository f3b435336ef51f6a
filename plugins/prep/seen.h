/* The runs that have begun to begin and have not ended: what they are called, and which limit was told.
 * No lock of its own: whoever calls holds slurmctld's job lock, or is the only one looking.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_SEEN_H
#define FAIRBANK_SEEN_H

#include "courier.h"

typedef struct seen {
	struct seen *after;
	run_t run;		/* kept from its start: a requeue changes the record before the epilog is called */
	uint32_t limit;
	bool begun;		/* it was let run */
	unsigned round;
} seen_t;

extern seen_t *seen_get(uint32_t job_id);
/* The entry of the job, new or as it is, for this run. */
extern seen_t *seen_put(run_t run);
extern void seen_drop(uint32_t job_id);

/* What is not marked between the beginning of a round and its sweep is forgotten. */
extern void seen_begin_round(void);
extern void seen_mark(seen_t *seen);
extern void seen_sweep(void);

#endif
