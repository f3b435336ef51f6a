"""Who used what."""

from __future__ import annotations

from msgspec import Struct


class UsageRow(Struct, frozen=True, kw_only=True):
    """What a group of runs used; `group` is the uid, the day or month (UTC), the partition, the allocation, the job as `cluster/number`,
    or the QOS, `-` where nobody told it.

    `runs` are those that ended, also those that cost nothing, such as after a node failure. `elapsed`, `waited` (from submission to
    start), `cpu_seconds` and `cpu_given` are in seconds. Processors were busy for `cpu_seconds` of the `cpu_given` that there were, and
    for no more where more was told; `wasted` are the SU-minutes that were charged for the idle rest. All three count only runs of which
    this is known. `failed_early` counts the runs that failed within two minutes of their start; `early_exit_code` is what all these
    exited with, null where it differs or is not known.
    """

    group: str | int
    runs: int
    failed: int
    charged: int
    elapsed: int
    waited: int
    cpu_seconds: int
    cpu_given: int
    wasted: int
    failed_early: int
    early_exit_code: int | None
