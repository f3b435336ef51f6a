"""Submission policy: the site's rules, and the policy from these rules, the bank and slurmctld.

`policy_file` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.records import BankFunds, BankProject
from fairbank.bank.rules.short_term import short_terms
from fairbank.cluster.allocated_tres import MemoryUnit
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core import ids
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.settings_file import parse_toml, read_whole
from fairbank.core.validation import validated_settings
from fairbank.slurm.parsers.machine import ANY_GPU
from fairbank.slurm.parsers.values import SlurmNode, SlurmPartition
from fairbank.slurm.policy_file import (
    POLICY_FILE,
    AccountRule,
    PolicyAction,
    PolicyBalance,
    PolicyPartition,
    PolicyProject,
    SubmissionPolicy,
)
from fairbank.slurm.reconcile.node_sizes import default_partition

_OF_SITE = ("qos", "price", "gres", "unlisted", "account", "one_partition", "stale_seconds")
"""Fields of the policy that are those of the site's rules."""


def build_policy(
    site: SiteRules,
    cluster: Cluster,
    projects: Sequence[BankProject],
    allocations: Sequence[Allocation],
    *,
    partitions: Sequence[SlurmPartition],
    nodes: Sequence[SlurmNode],
    now: int,
) -> SubmissionPolicy:
    """Build the policy.

    Args:
        site: rules of the site.
        cluster: the cluster, with the bank's prices.
        partitions: those of slurmctld. `fairbank slurm import --dry-run` lists those that only one
            of slurmctld and the bank has; they are left out.
        now: current time.

    Raises:
        InvalidInput: the site's rules name a project that the bank does not have.
    """
    _check_accounts(site, projects)
    funds = BankFunds(projects, allocations)
    resources = sorted(cluster.resources)
    known = [partition for partition in partitions if partition.name in cluster.partitions]
    listed = [_partition(cluster.partitions[one.name], one, nodes) for one in known]
    accounts = {project.id: project.account for project in projects}
    places = [place.partition.name for place in listed]
    balances = (
        _balance(funds, project, resource, now) for project in projects for resource in resources
    )
    return SubmissionPolicy(
        cluster=cluster.name,
        written=now,
        projects=tuple(
            _project(project, site.projects.get(project.account, ProjectRules()))
            for project in projects
        ),
        partitions=tuple(listed),
        short_terms=tuple(short_terms(accounts, allocations, places, now)),
        balances=tuple(balances),
        qos_factors=cluster.qos_factors,
        qos_resources=cluster.qos_resources,
        exempt=tuple(sorted(site.exempt)),
        default_partition=None if site.require_partition else default_partition(partitions),
        **{name: getattr(site, name) for name in _OF_SITE},
    )


def _check_accounts(site: SiteRules, projects: Sequence[BankProject]) -> None:
    """Raise InvalidInput if the site's rules name a project that the bank does not have."""
    if unknown := sorted(set(site.projects) - {project.account for project in projects}):
        raise InvalidInput(
            f"no project has the account {unknown[0]!r}",
            field=f"projects.{unknown[0]}",
            remedy="name it as the bank does",
        )


def _project(project: BankProject, forced: ProjectRules) -> PolicyProject:
    return PolicyProject(
        project.gname,
        project.gid,
        project.account,
        qos=forced.qos,
        members=tuple(sorted(project.all_members)),
    )


def _partition(
    partition: Partition, slurm_partition: SlurmPartition, all_nodes: Sequence[SlurmNode]
) -> PolicyPartition:
    nodes = [node for node in all_nodes if partition.name in node.partitions]
    return PolicyPartition(
        partition,
        gpus={
            kind: min(_gpu_count(node, kind) for node in nodes)
            for kind in sorted({gpu for node in nodes for gpu in node.gpus})
        },
        memory_per_cpu=_memory_per_cpu(partition, slurm_partition),
        default_minutes=slurm_partition.minutes_without_limit,
        node_cpus=min((node.cpus for node in nodes), default=0),
        node_memory=min((node.memory for node in nodes), default=0),
        exclusive=slurm_partition.exclusive,
        most_cpus=max((node.cpus for node in nodes), default=0),
    )


def _gpu_count(node: SlurmNode, kind: str) -> int:
    """Return the number of GPUs of a type that a node has; of `any`, of those without a type."""
    gres = node.size.gres or {}
    if kind != ANY_GPU:
        return gres.get(f"gres/gpu:{kind.lower()}", 0)
    typed = sum(number for name, number in gres.items() if name.startswith("gres/gpu:"))
    return gres.get("gres/gpu", 0) - typed


def _memory_per_cpu(partition: Partition, slurm_partition: SlurmPartition) -> int:
    """Return the memory per CPU of jobs that request none, in MiB; 0 for none.

    It is Slurm's, else that of the bank's settings if Slurm's partition has no default.
    """
    own = partition.default_memory
    if slurm_partition.default_memory is None and own and own.unit is MemoryUnit.CPU:
        return own.mebibytes
    return slurm_partition.memory_per_cpu


def _balance(funds: BankFunds, project: BankProject, resource: str, now: int) -> PolicyBalance:
    """Return the most that one run could use: of one allocation of the project's chain, or 0."""
    payers = funds.payers(project.id, resource, now)
    active = [payer.remaining for payer in payers if payer.state is AllocationState.ACTIVE]
    return PolicyBalance(project.account, resource, max(active, default=0))


SITE_FILE = "/etc/fairbank/slurm.toml"

Uid = Annotated[int, msgspec.Meta(ge=0, le=ids.UID_MAX)]


class ProjectRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """QOS of all jobs of a project."""

    qos: str | None = None


class Profile(Enum):
    """Set of defaults: what Slurm itself takes, or the strict rules of HADM."""

    SLURM = "slurm"
    HADM = "hadm"


PROFILES: Mapping[Profile, Mapping[str, object]] = {
    Profile.SLURM: {},
    Profile.HADM: {"account": "group", "require_partition": True, "one_partition": True},
}
"""Settings whose defaults differ from those of SiteRules."""


class SiteRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rules for submissions that the bank does not have.

    `policy`: path of the policy file. `public_policy`: path of a second file without balances, for
    hosts with other users. `projects`: rules by account. `profile`: "hadm" makes the defaults
    strict: `account = "group"`, and `require_partition` and `one_partition` true. `account`:
    accounts for `--account`, of any project of the user (`member`) or only that of the current Unix
    group (`group`). `require_partition`: refuse jobs without `--partition`, instead of taking
    Slurm's default partition. `one_partition`: refuse jobs that name several partitions.
    """

    profile: Profile = Profile.SLURM

    policy: str = f"/etc/slurm/{POLICY_FILE}"
    public_policy: str | None = None
    price: PolicyAction = PolicyAction.WARN
    gres: PolicyAction = PolicyAction.WARN
    unlisted: PolicyAction = PolicyAction.REFUSE
    account: AccountRule = AccountRule.MEMBER
    require_partition: bool = False
    one_partition: bool = False
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
        with file.open("rb") as stream:
            text = read_whole(stream, str(file), field="--site")
    except FileNotFoundError as error:
        if path is None:
            return SiteRules()
        raise NotFound(
            f"there is no {file}",
            field="--site",
            remedy="name another file, or none for the default rules",
        ) from error
    except OSError as error:
        raise NotFound(
            f"cannot read {file}: {error.strerror}",
            field="--site",
            remedy="ask as the user who keeps it",
        ) from error
    settings = parse_toml(text, str(file), field="--site")
    with validated_settings(str(file), settings, SiteRules):
        return msgspec.convert({**_profile_settings(settings), **settings}, SiteRules)


def _profile_settings(settings: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the defaults of the profile; none for an unknown one, which is refused later."""
    return next((PROFILES[kind] for kind in Profile if kind.value == settings.get("profile")), {})
