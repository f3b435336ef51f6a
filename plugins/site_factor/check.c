/* Test program. `check FILE NOW` checks a table, and prints the value at that time for each
 * line "account<tab>partition" of standard input, or the problem. `check reload FILE` does the same
 * through table_reload.c, and prints its log.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "table_reload.h"

#define LINE_MAX_BYTES 600

/* Cut a line into the account and the partition. */
static bool read_question(char *line, char **account, char **partition)
{
	if (!fgets(line, LINE_MAX_BYTES, stdin))
		return false;
	line[strcspn(line, "\n")] = 0;
	*account = line;
	*partition = strchr(line, '\t');
	if (!*partition)
		return false;
	*(*partition)++ = 0;
	return true;
}

static void print_values(const table_t *table)
{
	char line[LINE_MAX_BYTES], *account, *partition;

	while (read_question(line, &account, &partition))
		printf("%d\n", table ? table_value(table, account, partition) : 0);
}

/* The copy has exactly the length of the file, so that the sanitizer finds each read beyond it. */
static int check_file(const char *path, int64_t now)
{
	FILE *file = fopen(path, "r");
	char *bytes = malloc(TABLE_MAX + 1);
	size_t length = file ? fread(bytes, 1, TABLE_MAX + 1, file) : 0;
	char *exact = malloc(length ? length : 1);
	const char *problem;
	table_t table;

	memcpy(exact, bytes, length);
	free(bytes);
	problem = table_check(exact, length, &table);
	if (problem)
		printf("%s\n", problem);
	else
		print_values(table_is_fresh(&table, now) ? &table : NULL);
	free(exact);
	return !file || fclose(file);
}

static void write_log(bool is_error, const char *text)
{
	printf("%s %s\n", is_error ? "error" : "info", text);
	fflush(stdout);
}

static int check_reload(const char *path)
{
	reload_settings_t settings = { .interval_ms = 20 };
	char line[LINE_MAX_BYTES], *account, *partition;

	snprintf(settings.path, sizeof(settings.path), "%s", path);
	if (!table_reload_start(&settings, write_log))
		return 1;
	while (read_question(line, &account, &partition)) {
		const table_t *table = table_acquire();
		int32_t value = table ? table_value(table, account, partition) : 0;

		table_release();
		printf("%d\n", value);
		fflush(stdout);
	}
	table_reload_stop();
	return 0;
}

int main(int count, char **arguments)
{
	if (count != 3)
		return 2;
	if (!strcmp(arguments[1], "reload"))
		return check_reload(arguments[2]);
	return check_file(arguments[1], strtoll(arguments[2], NULL, 10));
}
