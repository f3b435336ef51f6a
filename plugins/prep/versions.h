/* Where Slurm's releases differ in what the PrEp plug-in uses of them: all of it, and nowhere else. (The site factor one uses nothing that has changed.)
 * A release is known, and named in plugins/build, when `make test-slurm` has been run with it.
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
