/* All differences between Slurm's releases that matter to the PrEp plug-in. (The site factor
 * plug-in uses nothing that has changed.) A release is in the list of plugins/build once `make
 * test-slurm` has passed with it.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef FAIRBANK_PREP_VERSIONS_H
#define FAIRBANK_PREP_VERSIONS_H

#include "slurm/slurm_version.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
#include "src/interfaces/prep.h"
#include "src/stepmgr/srun_comm.h"
#else
#include "src/common/prep.h"
#include "src/slurmctld/srun_comm.h"
typedef struct xlist list_t;
#endif

#endif
