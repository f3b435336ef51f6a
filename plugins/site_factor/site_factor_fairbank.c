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

#include "../plugin.h"
#include "keeper.h"

FAIRBANK_PLUGIN("site_factor/fairbank", "site factors from the allocation bank");

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

static bool read_setting(const char *name, const char *value, void *read)
{
	keeper_settings_t *settings = read;
	unsigned seconds;

	if (!strcmp(name, "fairbank_table") && *value == '/' && strlen(value) < sizeof(settings->path)) {
		strcpy(settings->path, value);
		return true;
	}
	if (strcmp(name, "fairbank_look") || !read_number(value, 3600, &seconds))
		return false;
	settings->look = seconds * 1000;
	return true;
}

static bool read_settings(keeper_settings_t *settings)
{
	*settings = (keeper_settings_t) { .path = "/run/fairbank-agent/site_factor", .look = 1000 };
	return read_params(slurm_conf.site_factor_params, "PrioritySiteFactorParameters", read_setting, settings);
}

/* ---------------------------------------------------------------- life */

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
