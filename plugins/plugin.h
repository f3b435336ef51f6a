/* What both plug-ins do alike, each for itself: they name themselves to Slurm, write into its log, and read their settings.
 * To be included once by the file that Slurm calls, after Slurm's own headers.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_PLUGIN_H
#define FAIRBANK_PLUGIN_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The three words by which Slurm knows a plug-in. */
#define FAIRBANK_PLUGIN(type, about) \
	const char plugin_name[] = "Fairbank: " about; \
	const char plugin_type[] = type; \
	const uint32_t plugin_version = SLURM_VERSION_NUMBER

extern const char plugin_type[];

static void note(bool is_error, const char *text)
{
	if (is_error)
		error("%s: %s", plugin_type, text);
	else
		info("%s: %s", plugin_type, text);
}

/* A whole number from 1 to `most`, and nothing behind it. */
static bool read_number(const char *value, unsigned long most, unsigned *number)
{
	char *end;
	unsigned long found = strtoul(value, &end, 10);

	*number = (unsigned) found;
	return *value >= '0' && *value <= '9' && !*end && found >= 1 && found <= most;
}

/* Takes one setting; false for what is not understood. */
typedef bool (*setting_t)(const char *name, const char *value, void *settings);

/* Reads what begins with fairbank_ among NAME=VALUE,... of Slurm's `option`; false, and told, for the first that is not understood. */
static bool read_params(const char *params, const char *option, setting_t take, void *settings)
{
	char *copy = xstrdup(params), *rest = NULL;
	bool good = true;

	for (char *each = copy ? strtok_r(copy, ",", &rest) : NULL; each && good; each = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(each, '=');
		if (strncmp(each, "fairbank_", strlen("fairbank_")))
			continue;
		if (value)
			*value++ = '\0';
		if (!(good = value && take(each, value, settings)))
			error("%s: %s: %s=%s is not understood; see plugins/%.*s/README.md", plugin_type, option, each, value ? value : "",
			      (int) strcspn(plugin_type, "/"), plugin_type);
	}
	xfree(copy);
	return good;
}

#endif
