/* All differences between Slurm's releases that matter to the plug-ins. (The site factor plug-in
 * uses nothing that has changed.) plugins/build lists the releases that both compile with.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_PREP_VERSIONS_H
#define FAIRBANK_PREP_VERSIONS_H

#include "slurm/slurm_version.h"

#include "src/slurmctld/slurmctld.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#include "src/interfaces/prep.h"
#else
#include "src/common/prep.h"
typedef struct xlist list_t;
#endif

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
#include "src/stepmgr/srun_comm.h"
#else
#include "src/slurmctld/srun_comm.h"
#endif

/* Requeue a job, or all components of a heterogeneous job if it is their leader. */
static inline int requeue_job(job_record_t *job, uint32_t flags)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
	return job_requeue_internal(0, job, false, flags);
#else
	return job_requeue(0, job->job_id, NULL, false, flags);
#endif
}

#endif
