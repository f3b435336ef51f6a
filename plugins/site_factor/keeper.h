/* Keeps the newest table in memory: a thread looks at the file, and nobody else does. Nothing here knows Slurm.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_KEEPER_H
#define FAIRBANK_KEEPER_H

#include "table.h"

typedef struct {
	char path[256];		/* empty: there is none, and all is neutral */
	unsigned look;		/* milliseconds between two looks */
} keeper_settings_t;

typedef void keeper_log_t(bool is_error, const char *text);

/* Looks once before it returns. False: there can be no thread. */
extern bool keeper_start(const keeper_settings_t *settings, keeper_log_t *log);
extern void keeper_change(const keeper_settings_t *settings);
extern void keeper_stop(void);

/* The table, which stays until it is given back; NULL: there is none that is fresh, and all is neutral. Waits for nothing and
 * nobody but for a pointer to be exchanged. Each take wants its give, also of NULL. */
extern const table_t *keeper_take(void);
extern void keeper_give(void);

#endif
