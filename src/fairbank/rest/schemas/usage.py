"""Usage in groups, and use of the whole centre."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from msgspec import Struct, structs

from fairbank.bank.centre import CentreUse, ClusterSize, JobSums, ResourceUse
from fairbank.bank.query import Usage
from fairbank.cluster.job import split_status
from fairbank.core.time import Instant, iso
from fairbank.core.units import exact_decimal
from fairbank.rest.schemas.answers import Amounts, ListResponse
from fairbank.rest.schemas.envelope import convert_to, set_texts


class UsageRow(Amounts, frozen=True, kw_only=True):
    """Usage of a group of runs of one resource, on clusters with the same prices.

    `group` is the uid (null: only measured use, which has no user), the account of the project, the
    allocation, `allocation/uid` (the allocation alone for measured use), the day, ISO week or month
    (in the zone of the request), the job as `cluster/number`, or a name (`-`: the QOS is not
    known).
    `resource` and `clusters` are the unit of the amounts; `clusters` is empty for measured use of a
    resource that no cluster bills. `runs` are those that ended, also those that cost nothing, such
    as after a node failure, but not measured use, such as that of storage.
    `core_seconds` and `gpu_seconds` are those of the processors and GPUs that the runs had, as far
    as known. `elapsed`, `waited` (from submission to start), `cpu_seconds` and `cpu_given` are
    seconds: processors were busy for `cpu_seconds` of the `cpu_given` that the runs had. `wasted`
    are the SU-minutes charged for the idle rest. `cpu_seconds`, `cpu_given` and `wasted` count only
    runs of which they are known; without any they are 0, and `wasted` is null.
    `failed_early` counts the runs that failed within two minutes of their start; `early_exit_code`
    is their common exit code, null if it differs or is not known.
    """

    group: str | int | None
    resource: str
    clusters: str
    runs: int
    failed: int
    charged: int
    elapsed: int
    core_seconds: int
    gpu_seconds: int
    waited: int
    cpu_seconds: int
    cpu_given: int
    wasted: int | None
    failed_early: int
    early_exit_code: int | None


class UsageResponse(ListResponse[UsageRow], frozen=True, kw_only=True):
    """A page of usage rows of the runs that ended in a period: from `since` (null: the first) until
    before `until` (null: now). `zone` is the time zone of days, weeks and months. `totals` has a
    row for each unit, with the sums of all groups (`group` is null): what the rows of all pages
    lack of it is the rest. Only the first page has them."""

    schema_name: ClassVar[str] = "fairbank.usage/2"
    totals: list[UsageRow]
    zone: str
    since: str | None
    until: str | None


def usage_row(usage: Usage, group: str | int | None) -> UsageRow:
    """Return the usage of a group of runs with its name: charged in SU-minutes, times in
    seconds.
    """
    code, signal = split_status(usage.early_exit)
    row = convert_to(
        UsageRow,
        usage,
        group=group,
        elapsed=usage.elapsed_seconds,
        waited=usage.waited_seconds,
        cpu_given=usage.given_seconds,
        failed_early=usage.early,
        wasted=usage.wasted if usage.given_seconds else None,
        early_exit_code=None if signal else code,
    )
    set_texts(row)
    return row


class ResourceUseRow(Amounts, frozen=True, kw_only=True):
    """Use of a resource in a period, on clusters with the same prices; amounts in SU-minutes.

    `clusters` joins the names in `cluster_names`. `billing_units` is that of all nodes together, as
    a decimal or a fraction; `capacity` is that times the period; both are null if the settings have
    no capacity. `granted` is the credit of the allocations for the period, their terms spread
    evenly; `granted_at_end` is what those that are valid at its end would grant for a period of
    this length. `used` is what runs that ended in the period were charged, less refunds; `runs` is
    their number. If the resource has several prices, its credit is in a row with empty `clusters`,
    beside the sum of what the clusters can charge (`several_prices`): there `used` is null, unless
    use was measured, and their `granted` is null. Measured use of a resource that no cluster bills
    has empty `clusters` too. `occupied` is what the runs on the partitions of the resource had of
    its capacity: billing units x time without QOS factors, also of runs that were free or paid with
    another resource. It is null where `used` is, and if `without_size` runs cost nothing and have
    no known size. If no partition bills a resource, but a QOS does (`of_qos`), its runs have the
    nodes of other resources, and `occupied` is null. `core_seconds` and `gpu_seconds` are those of
    the processors and GPUs that they had; resized runs are not counted in them.
    """

    resource: str
    clusters: str
    cluster_names: list[str]
    billing_units: str | None
    capacity: int | None
    granted: int | None
    granted_at_end: int | None
    used: int | None
    runs: int
    core_seconds: int
    gpu_seconds: int
    occupied: int | None
    without_size: int
    several_prices: bool
    of_qos: bool


class ClusterSizeRow(ClusterSize, frozen=True):
    """Processors and GPUs of all nodes of a cluster; null if the settings do not have them."""


class CentreFigures(Struct, frozen=True, kw_only=True):
    """Use of the whole centre; `projects` and `allocations` had a term in the period, empty ones
    too.

    `runs`, `core_seconds` and `gpu_seconds` are the sums of all resources, `cpus` and `gpus` those
    of `clusters`, null if one of these is not known, and the permilles the parts of their time.
    Runs on clusters that the settings lack count in the sums, not in the parts. A run counts where
    it ended, with all its time.
    """

    schema_name: ClassVar[str] = "fairbank.centre/1"
    since: str
    until: str
    resources: list[ResourceUseRow]
    projects: int
    allocations: int
    runs: int
    core_seconds: int
    gpu_seconds: int
    cpus: int | None
    gpus: int | None
    cpu_used_permille: int | None
    gpu_used_permille: int | None
    clusters: list[ClusterSizeRow]


def centre_figures(use: CentreUse, since: Instant, until: Instant) -> CentreFigures:
    """Return the use of a centre in a period.

    Args:
        use: the use, by resource and in numbers of projects and allocations.
        since: the start of the period that `use` is of.
        until: its end, which is excluded.
    """
    resources = [
        convert_to(
            ResourceUseRow,
            resource,
            billing_units=None
            if resource.billing_units is None
            else exact_decimal(resource.billing_units),
        )
        for resource in use.resources
    ]
    set_texts(*resources)
    return CentreFigures(
        since=iso(since),
        until=iso(until),
        resources=resources,
        projects=use.projects,
        allocations=use.allocations,
        **structs.asdict(use.jobs),
        clusters=[convert_to(ClusterSizeRow, cluster) for cluster in use.clusters],
    )


def use_of_figures(figures: CentreFigures) -> CentreUse:
    """Return the use of a centre that the figures describe."""
    return CentreUse(
        resources=[
            convert_to(
                ResourceUse,
                row,
                billing_units=None if row.billing_units is None else Fraction(row.billing_units),
            )
            for row in figures.resources
        ],
        jobs=convert_to(JobSums, figures),
        clusters=[convert_to(ClusterSize, row) for row in figures.clusters],
        projects=figures.projects,
        allocations=figures.allocations,
    )
