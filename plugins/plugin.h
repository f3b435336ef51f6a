/* Code that both plug-ins share: their names for Slurm, its log, and their settings.
 * Included once, after Slurm's own headers, by the file that Slurm calls.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_PLUGIN_H
#define FAIRBANK_PLUGIN_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The three symbols that Slurm reads from a plug-in. */
#define FAIRBANK_PLUGIN(type, about) \
	const char plugin_name[] = "Fairbank: " about; \
	const char plugin_type[] = type; \
	const uint32_t plugin_version = SLURM_VERSION_NUMBER

extern const char plugin_type[];

static void write_log(bool is_error, const char *text)
{
	if (is_error)
		error("%s: %s", plugin_type, text);
	else
		info("%s: %s", plugin_type, text);
}

/* Read a whole number from 1 to `max`; return false for anything else. */
static bool read_number(const char *value, unsigned long max, unsigned *number)
{
	char *end;
	unsigned long parsed = strtoul(value, &end, 10);

	*number = (unsigned) parsed;
	return *value >= '0' && *value <= '9' && !*end && parsed >= 1 && parsed <= max;
}

/* Reads one setting; returns false for an unknown name or a bad value. */
typedef bool (*read_setting_t)(const char *name, const char *value, void *settings);

/* Read all settings NAME=VALUE,... of Slurm's `option` that begin with fairbank_. Log the first bad
 * one and return false. */
static bool read_params(const char *params, const char *option, read_setting_t read_setting,
			void *settings)
{
	char *copy = xstrdup(params), *rest = NULL;
	bool good = true;

	for (char *name = copy ? strtok_r(copy, ",", &rest) : NULL; name && good;
	     name = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(name, '=');
		if (strncmp(name, "fairbank_", strlen("fairbank_")))
			continue;
		if (value)
			*value++ = '\0';
		if (!(good = value && read_setting(name, value, settings)))
			error("%s: %s: %s=%s is not understood; see plugins/%.*s/README.md",
			      plugin_type, option, name, value ? value : "",
			      (int) strcspn(plugin_type, "/"), plugin_type);
	}
	xfree(copy);
	return good;
}

#endif
