/* For tests: `check FILE NOW` checks a table and answers each "account partition" of the standard input with its value at that instant, or
 * tells what is wrong. `check keep FILE` does the same through the keeper, and tells what it logs.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keeper.h"

static bool question(char *account, char *partition)
{
	return scanf("%199s %199s", account, partition) == 2;
}

static void answer(const table_t *table)
{
	char account[200], partition[200];

	while (question(account, partition))
		printf("%d\n", table ? table_value(table, account, partition) : 0);
}

/* The copy has no byte to spare, so that the compiler's guards see each that is read beyond it. */
static int check_file(const char *path, int64_t now)
{
	FILE *file = fopen(path, "r");
	char *bytes = malloc(TABLE_MAX + 1);
	size_t length = file ? fread(bytes, 1, TABLE_MAX + 1, file) : 0;
	char *exact = malloc(length ? length : 1);
	const char *wrong;
	table_t table;

	memcpy(exact, bytes, length);
	free(bytes);
	wrong = table_check(exact, length, &table);
	if (wrong)
		printf("%s\n", wrong);
	else
		answer(table_is_fresh(&table, now) ? &table : NULL);
	free(exact);
	return !file || fclose(file);
}

static void note(bool is_error, const char *text)
{
	printf("%s %s\n", is_error ? "error" : "info", text);
	fflush(stdout);
}

static int check_keeper(const char *path)
{
	keeper_settings_t settings = { .look = 20 };
	char account[200], partition[200];

	snprintf(settings.path, sizeof(settings.path), "%s", path);
	if (!keeper_start(&settings, note))
		return 1;
	while (question(account, partition)) {
		const table_t *table = keeper_take();
		int32_t value = table ? table_value(table, account, partition) : 0;

		keeper_give();
		printf("%d\n", value);
		fflush(stdout);
	}
	keeper_stop();
	return 0;
}

int main(int count, char **words)
{
	if (count != 3)
		return 2;
	return strcmp(words[1], "keep") ? check_file(words[1], strtoll(words[2], NULL, 10)) : check_keeper(words[2]);
}
