"""The submission policy from what the bank, slurmctld and the site say. Pure; `policy_file` writes it down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput
from fairbank.slurm import policy_file
from fairbank.slurm.compare.bank_records import BankFunds, BookedAllocation, BookedProject
from fairbank.slurm.parsers.values import SlurmNode, SlurmPartition
from fairbank.slurm.policy_file import PolicyBalance, PolicyProject, SubmissionPolicy
from fairbank.slurm.site import Forced, Site


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """All that a policy is made of, at `now`."""

    site: Site
    cluster: Cluster
    projects: Sequence[BookedProject]
    allocations: Sequence[BookedAllocation]
    places: Sequence[SlurmPartition]
    nodes: Sequence[SlurmNode]
    now: int


def policy_of(sources: Sources) -> SubmissionPolicy:
    """Raises InvalidInput for a project of the site's that the bank does not have."""
    site, cluster = sources.site, sources.cluster
    there = {each.account for each in sources.projects}
    if wrong := sorted(set(site.projects) - there):
        raise InvalidInput(
            f"no project has the account {wrong[0]!r}",
            field=f"projects.{wrong[0]}",
            remedy="name it as the bank does",
        )
    return SubmissionPolicy(
        cluster=cluster.name,
        written=sources.now,
        projects=tuple(
            _project(each, site.projects.get(each.account, Forced())) for each in sources.projects
        ),
        places=tuple(_places(sources)),
        balances=tuple(_balances(sources)),
        qos_factors=cluster.qos_factors,
        exempt=tuple(sorted(site.exempt)),
        qos=site.qos,
        price=site.price,
        gres=site.gres,
        unlisted=site.unlisted,
        stale_seconds=site.stale_seconds,
    )


def untold(policy: SubmissionPolicy) -> SubmissionPolicy:
    """The same for those who must not see balances."""
    return msgspec.structs.replace(policy, balances=None)


def _project(project: BookedProject, forced: Forced) -> PolicyProject:
    return PolicyProject(
        project.group,
        project.gid,
        project.account,
        qos=forced.qos,
        partition=forced.partition,
        reservation=forced.reservation,
        members=tuple(sorted(project.members)),
    )


def _places(sources: Sources) -> Iterator[policy_file.PolicyPartition]:
    """Those that both the bank and slurmctld know; what only one of them knows is for `fairbank slurm import --dry-run` to tell."""
    for place in sources.places:
        partition = sources.cluster.partitions.get(place.name)
        if partition is None:
            continue
        nodes = [node for node in sources.nodes if place.name in node.partitions]
        yield policy_file.PolicyPartition(
            partition,
            gpus=tuple(sorted({gpu for node in nodes for gpu in node.gpus})),
            memory_per_cpu=place.memory_per_cpu,
            default_minutes=place.default_minutes,
            node_cpus=min((node.cpus for node in nodes), default=0),
            node_memory=min((node.memory for node in nodes), default=0),
        )


def _balances(sources: Sources) -> Iterator[PolicyBalance]:
    """What one run could draw: the most that one allocation of the project's line has left, 0 where there is none."""
    funds = BankFunds(sources.projects, sources.allocations)
    for project in sources.projects:
        for resource in sorted({each.resource for each in sources.cluster.partitions.values()}):
            found = funds.payers(project.id, resource, sources.now)
            yield PolicyBalance(
                project.account,
                resource,
                max((each.available for each in found if each.state == "active"), default=0),
            )
