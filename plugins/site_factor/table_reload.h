/* Reload of the table of site factors: a thread checks the file and keeps the newest table in
 * memory. Nothing here knows Slurm.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_TABLE_RELOAD_H
#define FAIRBANK_TABLE_RELOAD_H

#include "table.h"

typedef struct {
	char path[256];		/* empty: there is no table, so all values are 0 */
	unsigned interval_ms;	/* between two checks of the file */
} reload_settings_t;

typedef void reload_log_t(bool is_error, const char *text);

/* Check the file once, and start the thread. Return false if no thread can be created. */
extern bool table_reload_start(const reload_settings_t *settings, reload_log_t *log);
extern void table_reload_change(const reload_settings_t *settings);
extern void table_reload_stop(void);

/* Return the table, or NULL if there is no fresh one; it stays in memory until table_release().
 * Each call must be followed by table_release(), also after NULL. Never waits for the file: the
 * thread holds the lock only to exchange the pointer. */
extern const table_t *table_acquire(void);
extern void table_release(void);

#endif
