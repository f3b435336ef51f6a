"""Tests of a request at submission, in Slurm's order: account, state and access of its partitions,
reservation, limits of partitions (EnforcePartLimits), whether empty nodes could ever run it, and
limits of accounting.
"""

from __future__ import annotations

from msgspec.structs import replace

from fairbank.cluster.partition_rules import PartitionState
from fairbank.core.errors import Conflict, FairbankError, Forbidden, InvalidInput
from fairbank.priority.associations import own_association
from fairbank.scheduling.explain.infeasibility import explain_infeasibility
from fairbank.scheduling.explain.rule_checks import partition_figures
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.machines.partition_access import PartitionTest, Subject, partition_tests
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.core.jobs import Moment
from fairbank.wlm.core.requests.known_names import check_known
from fairbank.wlm.core.snapshot import queue_limits
from fairbank.wlm.core.state import CoreState

_ACCESS = {Subject.RESERVATION, Subject.USER, Subject.HOST, Subject.GROUPS}
"""Tests that always refuse a job; the others do as EnforcePartLimits says."""
_FIELDS = {
    Subject.NODES: "nodes",
    Subject.CPUS: "ntasks",
    Subject.SECONDS: "time",
    Subject.MEMORY: "mem",
    Subject.QOS: "qos",
    Subject.ACCOUNT: "account",
    Subject.GROUPS: "groups",
}
_OF_MACHINE = {"nodes", "TotalCPUs"}
"""Tests of what a partition has, which are no limits."""


def check_request(state: CoreState, request: PendingJob) -> None:
    """Check that the partitions accept the job, and that idle nodes could run it.

    Raises:
        FairbankError: the first reason that refuses it.
    """
    for name in request.partitions:
        _check_partition(state, request, name)
    if request.reservation is not None:
        check_known("reservation", request.reservation, state.reservations)
    state.table.named((*request.wanted.required, *request.wanted.excluded), field="nodelist")
    nodes = Nodes(state.acceptance_table)
    placed = replace(request, wanted=state.settings.placed_request(request.wanted))
    errors = [
        error for name in request.partitions if (error := _refusal(state, nodes, placed, name))
    ]
    # With ALL every partition must be able to run it, else one of them.
    needed = 1 if state.settings.scheduling.part_limits == "ALL" else len(request.partitions)
    if len(errors) >= needed:
        raise errors[0]


def check_job_name(name: str) -> None:
    """Raise InvalidInput unless a job can have this name."""
    if not name or len(name.encode()) > 255 or not name.isprintable():
        raise InvalidInput(
            f"{name[:40]!a} is not the name of a job",
            field="job-name",
            remedy="printable characters, at most 255 bytes",
        )


def check_limits(state: CoreState, request: PendingJob, tasks: int, now: Moment) -> None:
    """Raise Forbidden if a limit of accounting refuses a new job.

    Args:
        state: the state without the job.
        request: the job.
        tasks: number of tasks of an array; 1 for another job.
        now: current time.
    """
    if not state.settings.accounting.enforced.limits:
        return
    test = queue_limits(state, now).refusing_limit(request, request.partitions[0], tasks)
    if test is not None:
        raise Forbidden(
            f"{test.reason}: {test}",
            field="limits",
            remedy="sacctmgr show associations, and qos, list the limits",
        )


def _check_partition(state: CoreState, request: PendingJob, name: str) -> None:
    """Check that a partition is open to the user and the account."""
    rules = state.partitions[name]
    reason = state.account_reason(request, name)
    if reason == "InvalidAccount":
        what = f"association with account {request.account!r}" if request.account else "account"
        raise Forbidden(
            f"user {request.user} has no {what}",
            field="account",
            remedy="sacctmgr show associations lists yours",
        )
    if reason is not None:
        place = request.account, request.user, name
        allowed = own_association(state.accounts.allowed_qos, *place) or ()
        raise Forbidden(
            f"jobs of user {request.user} and account {request.account!r} may not use QOS"
            f" {request.qos}",
            field="qos",
            remedy=f"use one of: {', '.join(allowed)}",
        )
    if rules.state in (PartitionState.INACTIVE, PartitionState.DRAIN):
        raise Conflict(
            f"partition {name} accepts no jobs: it is {rules.state.value}",
            field="partition",
            remedy="name another one",
        )
    for test in partition_tests(request, state.table, name):
        if test.reason is not None and test.subject in _ACCESS:
            raise _partition_error(test, name)


def _refusal(
    state: CoreState, nodes: Nodes, request: PendingJob, name: str
) -> FairbankError | None:
    """Return why a partition refuses the job, or could never run it; None if it could.

    The partitions of the machine have only the limits that are enforced.
    """
    wanted, most = request.wanted, state.partitions[name].max_nodes
    if most is not None and wanted.nodes <= most < (wanted.max_nodes or most + 1):
        # It never gets more nodes. With a larger minimum it waits for a change of the partition.
        wanted = replace(wanted, max_nodes=most)
    job = replace(request, wanted=wanted, partitions=(name,), priorities=())
    for test in partition_tests(job, nodes.cluster, name):
        if test.reason is not None and test.setting not in _OF_MACHINE:
            return _partition_error(test, name)
    if nodes.can_ever_fit(job):
        return None
    cause, option, by_features = explain_infeasibility(nodes, job)
    if wanted is not request.wanted:
        cause += f", and a job gets at most {most} there (MaxNodes)"
    return InvalidInput(
        f"no set of nodes of partition {name} could ever run this job: {cause}",
        field="constraint" if by_features else "nodes",
        remedy=f"it could with {option}" if option else "sinfo -Nl lists what the nodes have",
    )


def _partition_error(test: PartitionTest, name: str) -> Forbidden:
    return Forbidden(
        f"partition {name} does not accept this job: {test.setting} is {partition_figures(test)}",
        field=_FIELDS.get(test.subject, "partition"),
        remedy=f"scontrol show partition {name} shows what it accepts",
    )
