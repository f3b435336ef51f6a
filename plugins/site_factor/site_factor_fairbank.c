/* site_factor/fairbank: adds to each job's priority what the table of the agent has for its account and partition.
 *
 * Slurm calls site_factor_p_* with its job locks held: they look into memory, and read no file.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "src/common/slurm_xlator.h"

#include <stdlib.h>
#include <string.h>

#include "slurm/slurm_errno.h"

#include "src/common/log.h"
#include "src/common/xstring.h"
#include "src/slurmctld/slurmctld.h"

#include "keeper.h"

const char plugin_name[] = "Fairbank: site factors from the allocation bank";
const char plugin_type[] = "site_factor/fairbank";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* ---------------------------------------------------------------- a job */

static void set(job_record_t *job, const table_t *table)
{
	const char *partition = job->part_ptr ? job->part_ptr->name : job->partition;
	int32_t value = table && job->account && partition ? table_value(table, job->account, partition) : 0;

	job->site_factor = NICE_OFFSET + value;
}

static int update(void *each, void *table)
{
	job_record_t *job = each;

	if (IS_JOB_PENDING(job))
		set(job, table);
	return 0;
}

extern void site_factor_p_set(job_record_t *job)
{
	set(job, keeper_take());
	keeper_give();
}

extern void site_factor_p_update(void)
{
	const table_t *table = keeper_take();

	if (job_list)
		list_for_each(job_list, update, (void *) table);
	keeper_give();
}

/* ---------------------------------------------------------------- settings */

static bool read_setting(const char *name, const char *value, keeper_settings_t *settings)
{
	char *end;
	unsigned long seconds;

	if (!strcmp(name, "fairbank_table") && *value == '/' && strlen(value) < sizeof(settings->path)) {
		strcpy(settings->path, value);
		return true;
	}
	if (strcmp(name, "fairbank_look") || *value < '0' || *value > '9')
		return false;
	seconds = strtoul(value, &end, 10);
	settings->look = (unsigned) seconds * 1000;
	return !*end && seconds >= 1 && seconds <= 3600;
}

static bool read_settings(keeper_settings_t *settings)
{
	char *copy = xstrdup(slurm_conf.site_factor_params), *rest = NULL;
	bool good = true;

	*settings = (keeper_settings_t) { .path = "/run/fairbank/site_factor", .look = 1000 };
	for (char *each = copy ? strtok_r(copy, ",", &rest) : NULL; each && good; each = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(each, '=');
		if (strncmp(each, "fairbank_", strlen("fairbank_")))
			continue;
		if (value)
			*value++ = '\0';
		if (!(good = value && read_setting(each, value, settings)))
			error("%s: PrioritySiteFactorParameters: %s=%s is not understood; see plugins/site_factor/README.md", plugin_type, each,
			      value ? value : "");
	}
	xfree(copy);
	return good;
}

/* ---------------------------------------------------------------- life */

static void note(bool is_error, const char *text)
{
	if (is_error)
		error("%s: %s", plugin_type, text);
	else
		info("%s: %s", plugin_type, text);
}

/* Settings that are not understood make all neutral. A plug-in that refused to be loaded would be tried again with every job. */
extern int init(void)
{
	keeper_settings_t settings;

	if (!read_settings(&settings))
		*settings.path = '\0';
	return keeper_start(&settings, note) ? SLURM_SUCCESS : SLURM_ERROR;
}

extern int fini(void)
{
	keeper_stop();
	return SLURM_SUCCESS;
}

/* What is not understood leaves all as it was. */
extern void site_factor_p_reconfig(void)
{
	keeper_settings_t settings;

	if (read_settings(&settings))
		keeper_change(&settings);
}
