/* site_factor/fairbank: sets each job's site factor to the value that the agent's table has for its
 * account and partition.
 *
 * Slurm calls site_factor_p_* with its job locks held, so they only read memory and no file.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "src/common/slurm_xlator.h"

#include <stdlib.h>
#include <string.h>

#include "slurm/slurm_errno.h"

#include "src/common/log.h"
#include "src/common/xstring.h"
#include "src/slurmctld/slurmctld.h"

#include "../plugin.h"
#include "table_reload.h"

FAIRBANK_PLUGIN("site_factor/fairbank", "site factors from the allocation bank");

/* ---------------------------------------------------------------- a job */

static void set_factor(job_record_t *job, const table_t *table)
{
	const char *partition = job->part_ptr ? job->part_ptr->name : job->partition;
	int32_t value = 0;

	if (table && job->account && partition)
		value = table_value(table, job->account, partition);
	job->site_factor = NICE_OFFSET + value;
}

static int update(void *record, void *table)
{
	job_record_t *job = record;

	if (IS_JOB_PENDING(job))
		set_factor(job, table);
	return 0;
}

extern void site_factor_p_set(job_record_t *job)
{
	set_factor(job, table_acquire());
	table_release();
}

extern void site_factor_p_update(void)
{
	const table_t *table = table_acquire();

	if (job_list)
		list_for_each(job_list, update, (void *) table);
	table_release();
}

/* ---------------------------------------------------------------- settings */

static bool read_setting(const char *name, const char *value, void *result)
{
	reload_settings_t *settings = result;
	unsigned seconds;

	if (!strcmp(name, "fairbank_table") && *value == '/'
	    && strlen(value) < sizeof(settings->path)) {
		strcpy(settings->path, value);
		return true;
	}
	if (strcmp(name, "fairbank_poll_interval") || !read_number(value, 3600, &seconds))
		return false;
	settings->interval_ms = seconds * 1000;
	return true;
}

static bool read_settings(reload_settings_t *settings)
{
	*settings = (reload_settings_t) {
		.path = "/run/fairbank-agent/site_factor", .interval_ms = 1000,
	};
	return read_params(slurm_conf.site_factor_params, "PrioritySiteFactorParameters",
			   read_setting, settings);
}

/* ---------------------------------------------------------------- start and stop */

/* With bad settings all values are 0. Slurm would try to load a plug-in that fails again for
 * every job. */
extern int init(void)
{
	reload_settings_t settings;

	if (!read_settings(&settings))
		*settings.path = '\0';
	return table_reload_start(&settings, write_log) ? SLURM_SUCCESS : SLURM_ERROR;
}

extern int fini(void)
{
	table_reload_stop();
	return SLURM_SUCCESS;
}

/* Bad settings change nothing. */
extern void site_factor_p_reconfig(void)
{
	reload_settings_t settings;

	if (read_settings(&settings))
		table_reload_change(&settings);
}
