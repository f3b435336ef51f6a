/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table.h"

#include <endian.h>
#include <string.h>

#define VERSION 2
#define VALUE_MAX 2147483645	/* largest site factor of Slurm */

static const char magic[8] = "FBSITEF\n";

typedef struct {		/* little-endian, as in a row */
	char magic[8];
	uint32_t version, checksum;
	uint64_t written;	/* first field that the checksum covers */
	uint32_t stale, partitions, entries, unused;
} head_t;

struct table_row {
	char name[256];		/* an account, or a partition */
	char resource[40];
	uint32_t value, unused;
};

_Static_assert(sizeof(head_t) == 40 && sizeof(table_row_t) == 304, "format of the file");

/* CRC-32, bit by bit: it runs only when the table has changed, in a thread that nothing waits
 * for. */
static uint32_t checksum(const unsigned char *bytes, size_t length)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static int32_t value_of(const table_row_t *row)
{
	return (int32_t) le32toh(row->value);
}

/* Return true for one or more bytes that are no control characters, then one or more zeros up to
 * the end. */
static bool is_name(const char *text, size_t size)
{
	size_t length = 0;

	while (length < size && (unsigned char) text[length] >= 0x20 && text[length] != 0x7f)
		length++;
	if (!length || length == size)
		return false;
	for (; length < size; length++) {
		if (text[length])
			return false;
	}
	return true;
}

static bool is_row(const table_row_t *row)
{
	int32_t value = value_of(row);

	return is_name(row->name, sizeof(row->name))
		&& is_name(row->resource, sizeof(row->resource))
		&& !row->unused && value <= VALUE_MAX && value >= -VALUE_MAX;
}

static int compare(const table_row_t *row, const char *name, const char *resource)
{
	int order = strcmp(row->name, name);

	return order || !resource ? order : strcmp(row->resource, resource);
}

static const char *check_rows(const table_row_t *rows, uint32_t count, bool by_name)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!is_row(&rows[i]))
			return "one of its rows is wrong";
		const char *resource = by_name ? NULL : rows[i].resource;

		if (i && compare(&rows[i - 1], rows[i].name, resource) >= 0)
			return "its rows are not in order";
	}
	return NULL;
}

extern const char *table_check(const void *bytes, size_t length, table_t *table)
{
	const head_t *head = bytes;
	const char *problem;
	uint64_t rows;

	if (length < sizeof(*head) || memcmp(head->magic, magic, sizeof(magic)))
		return "it is not a table of site factors";
	if (le32toh(head->version) != VERSION)
		return "its version is not known to this plug-in";
	table->partitions = le32toh(head->partitions);
	table->entries = le32toh(head->entries);
	rows = (uint64_t) table->partitions + table->entries;
	if (length > TABLE_MAX || sizeof(*head) + rows * sizeof(table_row_t) != length)
		return "its length is not what its head says";
	if (checksum((const unsigned char *) &head->written, length - offsetof(head_t, written))
	    != le32toh(head->checksum))
		return "its checksum is wrong";
	table->written = (int64_t) le64toh(head->written);
	table->stale = le32toh(head->stale);
	table->rows = (const table_row_t *) (head + 1);
	if (head->unused || table->stale > INT32_MAX || table->written < 0)
		return "its head is wrong";
	if ((problem = check_rows(table->rows, table->partitions, true)))
		return problem;
	return check_rows(table->rows + table->partitions, table->entries, false);
}

extern bool table_is_fresh(const table_t *table, int64_t now)
{
	int64_t age = now > table->written ? now - table->written : table->written - now;

	return age <= table->stale;
}

static const table_row_t *find(const table_row_t *rows, uint32_t count, const char *name,
			       const char *resource)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = compare(&rows[middle], name, resource);

		if (!order)
			return &rows[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

extern int32_t table_value(const table_t *table, const char *account, const char *partition)
{
	const table_row_t *place = find(table->rows, table->partitions, partition, NULL);
	const table_row_t *row = NULL;

	if (place)
		row = find(table->rows + table->partitions, table->entries, account,
			   place->resource);
	return row ? value_of(row) : 0;
}
