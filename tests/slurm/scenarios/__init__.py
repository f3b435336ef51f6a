"""Scripted queues. Each runs what is to be there, puts the partitions down and lets jobs come. It returns the partitions to put up again,
where these are not the usual ones.

The machine: c01 to c06 with 64 CPUs and 128 GiB, g01 and g02 with 48 and four A100, g03 and g04 with 64 and four T4.
"""

from __future__ import annotations

from tests.slurm.scenarios.arrays import ARRAYS
from tests.slurm.scenarios.asked_of_nodes import ASKED_OF_NODES
from tests.slurm.scenarios.held_back import HELD_BACK
from tests.slurm.scenarios.holes import HOLES
from tests.slurm.scenarios.reserved import RESERVED
from tests.slurm.scenarios.turns import TURNS

SCENARIOS = (*HOLES, *TURNS, *ARRAYS, *ASKED_OF_NODES, *HELD_BACK, *RESERVED)
