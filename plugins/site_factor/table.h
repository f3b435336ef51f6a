/* Table of site factors in memory: checked once, then searched. Nothing here reads a file, waits or
 * allocates. docs/decisions/0016-site-factor-table.md has its format;
 * src/fairbank/slurm/site_factor.py encodes it.
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
	uint32_t stale;			/* seconds around `written` in which it is valid */
	uint32_t partitions, entries;
	const table_row_t *rows;	/* of partitions, then of accounts; sorted */
} table_t;

/* Check bytes that are aligned as memory of mmap() is. Return NULL if they are a table, and set
 * `table`, which points into them; else return the problem. */
extern const char *table_check(const void *bytes, size_t length, table_t *table);
extern bool table_is_fresh(const table_t *table, int64_t now);
/* Return the value; 0 if the account or the partition is not in the table. */
extern int32_t table_value(const table_t *table, const char *account, const char *partition);

#endif
