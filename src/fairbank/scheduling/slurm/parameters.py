"""SchedulerParameters of slurm.conf, and the rules of both passes that follow from them alone
(slurm-rules.md, "Scheduler parameters", "Main scheduler", "Backfill").
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, NamedTuple, get_type_hints

import msgspec

from fairbank.core.errors import InvalidInput

_MOST = 2**31 - 1
SECOND = 1_000_000
"""Microseconds of a second: sched_min_interval is in microseconds."""


class _Range(NamedTuple):
    low: int
    high: int
    unit: str = ""


_JobLimit = Annotated[int, _Range(0, _MOST, "jobs; 0 for no limit")]


class SchedulerParameters(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters with the names, units and defaults of Slurm.

    A pass of pure functions is never interrupted, so `bf_continue` changes nothing in it. It is for
    a caller that releases its locks during a cycle: without it, that cycle ends with the next
    change of a job or node.

    Raises InvalidInput, naming the parameter, for a value out of range.
    """

    sched_interval: Annotated[int, _Range(-1, _MOST, "seconds; -1 for no full pass at all")] = 60
    sched_min_interval: Annotated[int, _Range(0, _MOST, "microseconds")] = 2
    sched_max_job_start: _JobLimit = 0
    default_queue_depth: Annotated[int, _Range(0, _MOST, "jobs")] = 100
    partition_job_depth: _JobLimit = 0
    assoc_limit_stop: bool = False
    bf_interval: Annotated[int, _Range(-1, 10_800, "seconds; -1 for no backfill")] = 30
    bf_window: Annotated[int, _Range(1, 43_200, "minutes")] = 1_440
    bf_resolution: Annotated[int, _Range(1, 3_600, "seconds")] = 60
    bf_max_job_test: Annotated[int, _Range(1, 1_000_000, "jobs")] = 500
    bf_max_job_start: Annotated[int, _Range(0, 10_000, "jobs; 0 for no limit")] = 0
    bf_max_job_user: _JobLimit = 0
    bf_max_job_part: _JobLimit = 0
    bf_max_job_user_part: _JobLimit = 0
    bf_max_job_assoc: _JobLimit = 0
    bf_max_job_array_resv: Annotated[int, _Range(0, 1_000, "tasks")] = 20
    bf_min_age_reserve: Annotated[int, _Range(0, 30 * 86_400, "seconds")] = 0
    bf_min_prio_reserve: Annotated[int, _Range(0, 2**32 - 1)] = 0
    bf_job_part_count_reserve: _JobLimit = 0
    bf_one_resv_per_job: bool = False
    bf_continue: bool = False
    bf_window_linear: Annotated[int, _Range(0, _MOST, "seconds; 0 for stretches that double")] = 0

    def __post_init__(self) -> None:
        for name, allowed in _RANGES.items():
            value = getattr(self, name)
            if not allowed.low <= value <= allowed.high or (
                value == 0 and name in ("sched_interval", "bf_interval")
            ):
                raise _out_of_range(name, str(value))

    @property
    def window_seconds(self) -> int:
        """Return how many seconds ahead backfill plans."""
        return self.bf_window * 60

    def is_main_due(self, ended: int, requested: bool, now: int) -> bool:
        """Return True if the main pass runs at `now`. Submissions, ends and a due full pass request
        one.

        Args:
            ended: end of the last main pass, in microseconds.
            requested: a pass was requested since.
            now: time in microseconds.
        """
        return requested and now - ended > self.sched_min_interval

    def is_full_due(self, ended: int, now: int) -> bool:
        """Return True if a full main pass runs at `now`, requested or not. All times are in
        seconds.

        Other passes do not count: where events are frequent, no pass would reach the jobs far
        behind.
        """
        return 0 < self.sched_interval <= now - ended

    def is_backfill_due(self, ended: int, changed: bool, now: int) -> bool:
        """Return True if backfill runs at `now`.

        Args:
            ended: end of the last cycle, in seconds.
            changed: a job or node changed since.
            now: time in seconds.
        """
        return changed and 0 < self.bf_interval <= now - ended


_HINTS = get_type_hints(SchedulerParameters, include_extras=True)
_RANGES = {name: hint.__metadata__[0] for name, hint in _HINTS.items() if hint is not bool}
_FLAGS = frozenset(_HINTS.keys() - _RANGES.keys())
NO_MATTER = frozenset(
    (
        "allow_zero_lic batch_sched_delay bb_array_stage_cnt bf_ignore_newly_avail_nodes "
        "bf_max_time bf_yield_interval bf_yield_rpc_cnt bf_yield_sleep build_queue_timeout "
        "correspond_after_task_cnt default_gbytes disable_job_shrink disable_hetjob_steps "
        "enable_hetjob_steps enable_user_top ignore_numa ignore_prefer_validation "
        "inventory_interval max_array_tasks max_depend_depth max_rpc_cnt max_sched_time "
        "max_script_size max_submit_line_size no_backup_scheduling no_env_cache "
        "nohold_on_prolog_fail permit_job_expansion requeue_delay requeue_setup_env_fail "
        "salloc_wait_nodes sbatch_wait_nodes spec_cores_first step_retry_count step_retry_time "
        "whole_hetjob "
    ).split()
)
"""Parameters that change nothing in a pass that takes no time: how slurmctld divides its time
between passes and requests, and what happens to jobs before they wait and after they start.
"""
NOT_MODELLED = frozenset(
    (
        "bf_allow_magnetic_slot bf_busy_nodes bf_hetjob_immediate bf_hetjob_prio bf_licenses "
        "bf_node_space_size bf_running_job_reserve bf_topopt_enable bf_topopt_iterations defer "
        "defer_batch delay_boot extra_constraints max_switch_wait pack_serial_at_end "
        "preempt_reorder_count preempt_strict_order preempt_youngest_first preempt_youngest_order "
        "reduce_completing_frag time_min_as_soft_limit "
    ).split()
)
"""Parameters that change which job starts, where or when, and that these passes do not model. A
reader of slurm.conf must report them.
"""


def parse_parameters(text: str, *, field: str = "SchedulerParameters") -> SchedulerParameters:
    """Parse `text`, such as `bf_window=2880,bf_continue`, in lower or upper case, as slurmctld
    does.

    Parameters that change nothing in a pass are ignored, and so are those that are NOT_MODELLED.
    Raises InvalidInput, naming `field` and the parameter, for an unknown one and for one out of
    range, which Slurm would silently replace by its default.
    """
    values: dict[str, int | bool] = {}
    for setting in filter(None, (part.strip() for part in text.split(","))):
        written, has_value, value = setting.partition("=")
        name = written.lower()
        if name in values:
            raise InvalidInput(f"{name} is given twice", field=field, remedy="give it once")
        if name in _FLAGS:
            if has_value:
                raise InvalidInput(
                    f"{name} takes no value",
                    field=field,
                    remedy=f"write {name} alone, or leave it out",
                )
            values[name] = True
        elif name in _RANGES:
            if (
                not value.removeprefix("-").isascii()
                or not value.removeprefix("-").isdecimal()
                or len(value) > 12
            ):
                raise _out_of_range(name, value or "nothing")
            values[name] = int(value)
        elif name not in NO_MATTER and name not in NOT_MODELLED:
            known = ", ".join(sorted(_FLAGS | set(_RANGES)))
            raise InvalidInput(
                f"{written[:40]!r} is not a parameter of the scheduler",
                field=field,
                remedy=f"there are: {known}",
            )
    return msgspec.convert(values, SchedulerParameters)


def _out_of_range(name: str, value: str) -> InvalidInput:
    allowed = _RANGES[name]
    low = "-1, or from 1" if allowed.low < 0 else f"from {allowed.low}"
    unit = f" ({allowed.unit})" if allowed.unit else ""
    return InvalidInput(
        f"{value[:40]} is not a {name}",
        field=name,
        remedy=f"a whole number {low} to {allowed.high}{unit}",
    )


KILL_WAIT = 30
"""Seconds between SIGTERM and SIGKILL for a job that is over its limit: default of KillWait."""


class JobCaps:
    """Maximum number of jobs with the same key, for each of several keys; 0: no maximum."""

    __slots__ = ("_most", "_seen")

    def __init__(self, *most: int) -> None:
        self._most = most
        self._seen: list[dict[Hashable, int]] = [{} for _ in most]

    def __bool__(self) -> bool:
        return any(self._most)

    def allow(self, *kinds: Hashable) -> bool:
        """Count a job with these keys and return True if all counts are within the maximum. Keys
        behind the first that is exceeded are not counted, as in Slurm.
        """
        for kind, most, seen in zip(kinds, self._most, self._seen, strict=True):
            if most:
                seen[kind] = seen.get(kind, 0) + 1
                if seen[kind] > most:
                    return False
        return True


def main_caps(parameters: SchedulerParameters) -> JobCaps:
    """Return the caps of the main pass, by partition. They hold in a full pass, too."""
    return JobCaps(parameters.partition_job_depth)


def backfill_caps(parameters: SchedulerParameters) -> JobCaps:
    """Return the caps of backfill: by user or association, partition, and user in a partition."""
    return JobCaps(
        parameters.bf_max_job_assoc or parameters.bf_max_job_user,
        parameters.bf_max_job_part,
        parameters.bf_max_job_user_part,
    )


def cap_keys(
    parameters: SchedulerParameters, user: Hashable, account: Hashable, partition: Hashable
) -> tuple[Hashable, Hashable, Hashable]:
    """Return the keys of a job for the caps of backfill: of its user, partition, and of both.

    Args:
        parameters: settings; with bf_max_job_assoc an association takes the place of the user.
        account: account of the job; an association is a user in an account.
        partition: partition in which the job would start.
    """
    return (user, account) if parameters.bf_max_job_assoc else user, partition, (user, partition)


def can_reserve(parameters: SchedulerParameters, waited: int, priority: int | None = None) -> bool:
    """Return True if a job that does not fit keeps resources from the jobs behind it. Jobs that are
    too young or too low do not.

    Args:
        parameters: SchedulerParameters of slurm.conf.
        waited: seconds since the job became eligible.
        priority: priority of the job; None: do not compare it.
    """
    return waited >= parameters.bf_min_age_reserve and (
        priority is None or priority >= parameters.bf_min_prio_reserve
    )


def expected_end(ends: int, now: int) -> int:
    """Return the time when a running job is gone: at its limit; over the limit when it will have
    been killed, or in a second.
    """
    return ends if ends > now else max(ends + KILL_WAIT, now + 1)
