"""Submission policy: the site's rules, and the policy from these rules, the bank and slurmctld.

`policy_file` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core import ids
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.validation import parse_toml, validated_settings
from fairbank.slurm import policy_file
from fairbank.slurm.parsers.values import SlurmNode, SlurmPartition
from fairbank.slurm.policy_file import PolicyAction, PolicyBalance, PolicyProject, SubmissionPolicy
from fairbank.slurm.reconcile.bank_records import BankAllocation, BankFunds, BankProject


class PolicySources(msgspec.Struct, frozen=True, kw_only=True):
    """Sources of a policy at `now`."""

    site: SiteRules
    cluster: Cluster
    projects: Sequence[BankProject]
    allocations: Sequence[BankAllocation]
    partitions: Sequence[SlurmPartition]
    nodes: Sequence[SlurmNode]
    now: int


def build_policy(sources: PolicySources) -> SubmissionPolicy:
    """Build the policy.

    Raises InvalidInput if the site's rules name a project that the bank does not have.
    """
    site, cluster = sources.site, sources.cluster
    accounts = {project.account for project in sources.projects}
    if unknown := sorted(set(site.projects) - accounts):
        raise InvalidInput(
            f"no project has the account {unknown[0]!r}",
            field=f"projects.{unknown[0]}",
            remedy="name it as the bank does",
        )
    return SubmissionPolicy(
        cluster=cluster.name,
        written=sources.now,
        projects=tuple(
            _project(project, site.projects.get(project.account, ProjectRules()))
            for project in sources.projects
        ),
        partitions=tuple(_policy_partitions(sources)),
        balances=tuple(_balances(sources)),
        qos_factors=cluster.qos_factors,
        exempt=tuple(sorted(site.exempt)),
        qos=site.qos,
        price=site.price,
        gres=site.gres,
        unlisted=site.unlisted,
        stale_seconds=site.stale_seconds,
    )


def without_balances(policy: SubmissionPolicy) -> SubmissionPolicy:
    """Return the policy for hosts whose users must not see balances."""
    return msgspec.structs.replace(policy, balances=None)


def _project(project: BankProject, forced: ProjectRules) -> PolicyProject:
    return PolicyProject(
        project.group,
        project.gid,
        project.account,
        qos=forced.qos,
        partition=forced.partition,
        reservation=forced.reservation,
        members=tuple(sorted(project.members)),
    )


def _policy_partitions(sources: PolicySources) -> Iterator[policy_file.PolicyPartition]:
    """Yield the partitions that both the bank and slurmctld have.

    `fairbank slurm import --dry-run` lists those that only one of them has.
    """
    for slurm_partition in sources.partitions:
        partition = sources.cluster.partitions.get(slurm_partition.name)
        if partition is None:
            continue
        nodes = [node for node in sources.nodes if slurm_partition.name in node.partitions]
        yield policy_file.PolicyPartition(
            partition,
            gpus=tuple(sorted({gpu for node in nodes for gpu in node.gpus})),
            memory_per_cpu=slurm_partition.memory_per_cpu,
            default_minutes=slurm_partition.default_minutes,
            node_cpus=min((node.cpus for node in nodes), default=0),
            node_memory=min((node.memory for node in nodes), default=0),
        )


def _balances(sources: PolicySources) -> Iterator[PolicyBalance]:
    """Yield the most that one run could use: of one allocation of the project's chain, or 0."""
    funds = BankFunds(sources.projects, sources.allocations)
    for project in sources.projects:
        for resource in sorted(
            {partition.resource for partition in sources.cluster.partitions.values()}
        ):
            payers = funds.payers(project.id, resource, sources.now)
            yield PolicyBalance(
                project.account,
                resource,
                max(
                    (allocation.available for allocation in payers if allocation.state == "active"),
                    default=0,
                ),
            )


SITE_FILE = "/etc/fairbank/slurm.toml"
POLICY_FILE = "/etc/slurm/fairbank/policy"

Uid = Annotated[int, msgspec.Meta(ge=0, le=ids.UID_MAX)]


class ProjectRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Partition and reservation of all jobs of a short-term allocation, and a QOS of its own."""

    partition: str | None = None
    reservation: str | None = None
    qos: str | None = None


class SiteRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rules for submissions that the bank does not have.

    `policy`: path of the policy file. `public_policy`: path of a second file without balances, for
    hosts with other users. `projects`: rules by account.
    """

    policy: str = POLICY_FILE
    public_policy: str | None = None
    price: PolicyAction = PolicyAction.WARN
    gres: PolicyAction = PolicyAction.WARN
    unlisted: PolicyAction = PolicyAction.REFUSE
    qos: str | None = None
    stale_seconds: Annotated[int, msgspec.Meta(ge=1)] = 3600
    exempt: frozenset[Uid] = frozenset()
    projects: dict[str, ProjectRules] = {}


def read_site_rules(path: str | None) -> SiteRules:
    """Read the file, or the default file if it exists.

    Raises NotFound, or InvalidInput with the place.
    """
    file = Path(path or SITE_FILE)
    try:
        text = file.read_bytes()
    except FileNotFoundError as error:
        if path is None:
            return SiteRules()
        raise NotFound(
            f"there is no {file}",
            field="--site",
            remedy="name another file, or none for the usual rules",
        ) from error
    except OSError as error:
        raise NotFound(
            f"cannot read {file}: {error.strerror}",
            field="--site",
            remedy="ask as the user who keeps it",
        ) from error
    settings = parse_toml(text, str(file), field="--site")
    with validated_settings(str(file), SiteRules, "docs/reference/slurm.md"):
        return msgspec.convert(settings, SiteRules)
