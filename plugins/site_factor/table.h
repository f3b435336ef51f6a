/* The table of site factors in memory: checked once, then looked up. Nothing here reads a file, waits or allocates.
 * Its form is in docs/decisions/0016-site-factor-table.md; src/fairbank/slurm/site_factor.py writes it.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_TABLE_H
#define FAIRBANK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_MAX (16 * 1024 * 1024)	/* bytes */

typedef struct table_row table_row_t;

typedef struct {
	int64_t written;
	uint32_t stale;			/* seconds for which it is good on either side of that instant, should clocks be set */
	uint32_t partitions, entries;
	const table_row_t *rows;	/* those of partitions, then those of accounts, each in the order of strcmp() */
} table_t;

/* What is wrong with these bytes, aligned as memory of mmap() is; NULL: nothing, and `table` looks into them. */
extern const char *table_check(const void *bytes, size_t length, table_t *table);
extern bool table_is_fresh(const table_t *table, int64_t now);
/* 0 for what is not listed. */
extern int32_t table_value(const table_t *table, const char *account, const char *partition);

#endif
