/* The clerk: one thread, the only one of ours that takes Slurm's locks. It settles questions, and looks at the jobs in between.
 * It has a lock of its own, which may be taken while the courier's is held; the clerk never takes that one.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_CLERK_H
#define FAIRBANK_CLERK_H

#include <stdbool.h>

#include "courier.h"

/* Start it; `watch` is the seconds between two looks. False when no thread can be had. Not while one is at work. */
extern bool clerk_hire(const courier_hooks_t *hooks, unsigned watch);
/* Let it finish what it is at, and be over. False when it was left behind: it waits for locks that slurmctld, which stops
 * us, may hold. The library stays in memory for it. */
extern bool clerk_dismiss(void);
/* After a stop that left it behind: true when it is still at its matter, and so goes on as the clerk of the new life. There are never two,
 * and nobody waits here for Slurm's locks, which our caller may hold. */
extern bool clerk_take_back(unsigned watch);

/* Something to settle, in the order in which it comes. */
extern void clerk_settle(const run_t *run, const verdict_t *verdict);
/* An agent has come: look at all jobs afresh. */
extern void clerk_look_afresh(void);
/* An end was lost for lack of room: tell all ends again at the next such look. */
extern void clerk_lost_an_end(void);

#endif
