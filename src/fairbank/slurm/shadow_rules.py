"""Submissions of the past that each rule of the submission policy would have refused.

Accounting does not record the options of a job, so some counts are limits: whether --partition was
given is unknown, of a job that has started accounting has only the partition that it ran in, and
types of GPUs are recorded only if AccountingStorageTRES lists them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum

import msgspec

from fairbank.bank.records import BankCluster, BankProject
from fairbank.cluster.accounting_job import LIMIT_CELL, AccountingJob, UnreadableLine
from fairbank.core.tres import parse_counts
from fairbank.slurm.parsers.machine import ANY_GPU
from fairbank.slurm.parsers.values import ParsedRows, SlurmNode, SlurmPartition
from fairbank.slurm.policy import SiteRules
from fairbank.slurm.policy_file import AccountRule, PolicyAction
from fairbank.slurm.reconcile.node_sizes import default_partition


class SubmissionRule(Enum):
    """Rule of the submission policy that accounting can judge."""

    PROJECT = "the account is a project"
    MEMBER = "the user is a member of the account's project"
    GROUP = "the user's Unix group is that of the account's project"
    PARTITION_LISTED = "each partition is in the bank's settings"
    PARTITION_NAMED = "--partition is given"
    ONE_PARTITION = "only one partition is given"
    GPUS = "the partition, or one of several, has the GPUs"
    TIME_LIMIT = "the time limit is finite"


SETTINGS: Mapping[SubmissionRule, str] = {
    SubmissionRule.PROJECT: "unlisted",
    SubmissionRule.MEMBER: 'account = "member"',
    SubmissionRule.GROUP: 'account = "group"',
    SubmissionRule.PARTITION_LISTED: "unlisted",
    SubmissionRule.PARTITION_NAMED: "require_partition",
    SubmissionRule.ONE_PARTITION: "one_partition",
    SubmissionRule.GPUS: "always",
    SubmissionRule.TIME_LIMIT: "always",
}
"""Setting of slurm.toml that turns the rule on."""

KNOWN = {
    SubmissionRule.PARTITION_NAMED: "at most",
    SubmissionRule.ONE_PARTITION: "at least",
    SubmissionRule.GPUS: "at least",
}
"""Counts that are not exact."""


RULE_CELLS = frozenset({"UID", "Account", "Partition", LIMIT_CELL})
"""Columns of accounting that the rules judge. An unreadable cell breaks none.

TRES are not among them: without them the count of GPUs is still the least.
"""

ROOT = 0


class RuleCount(msgspec.Struct, frozen=True, kw_only=True):
    """Number of submissions that break a rule, of all; `action` is the policy's for that rule."""

    rule: SubmissionRule
    action: PolicyAction
    jobs: int
    of: int


class RuleInput(msgspec.Struct, frozen=True, kw_only=True):
    """State of Slurm and the bank. `groups`: Unix group of each job, by job id."""

    site: SiteRules
    cluster: BankCluster
    projects: Sequence[BankProject]
    partitions: ParsedRows[SlurmPartition]
    groups: Mapping[int, int]
    nodes: ParsedRows[SlurmNode]

    @property
    def default_partition(self) -> str | None:
        return default_partition(self.partitions.rows)

    @property
    def unjudged(self) -> Sequence[SubmissionRule]:
        """Rules that no submission can be judged by: a line of Slurm's was not read.

        It may have had the default partition, or the GPUs of a partition with other nodes.
        """
        no_default = self.partitions.unreadable and self.default_partition is None
        return [
            *([SubmissionRule.PARTITION_NAMED] if no_default else ()),
            *([SubmissionRule.GPUS] if self.nodes.unreadable else ()),
        ]


def rule_actions(site: SiteRules) -> Mapping[SubmissionRule, PolicyAction]:
    """Return the policy's action for a job that breaks each rule."""

    def refused_if(is_on: bool) -> PolicyAction:
        return PolicyAction.REFUSE if is_on else PolicyAction.IGNORE

    is_group = site.account is AccountRule.GROUP
    return {
        # With `account = "group"` the group is judged, and the account follows from it.
        SubmissionRule.PROJECT: PolicyAction.IGNORE if is_group else site.unlisted,
        SubmissionRule.MEMBER: refused_if(not is_group),
        SubmissionRule.GROUP: refused_if(is_group),
        SubmissionRule.PARTITION_LISTED: site.unlisted,
        SubmissionRule.PARTITION_NAMED: refused_if(site.require_partition),
        SubmissionRule.ONE_PARTITION: refused_if(site.one_partition),
        SubmissionRule.GPUS: PolicyAction.REFUSE,
        SubmissionRule.TIME_LIMIT: PolicyAction.REFUSE,
    }


def count_by_rule(jobs: Iterable[AccountingJob], world: RuleInput) -> list[RuleCount]:
    """Count the submissions that break each rule. A requeued job is one submission.

    Root and exempt users are left out, as the policy does, and so are rules that cannot be judged.
    """
    submissions = {job.job_id: job for job in jobs if job.owner not in {ROOT, *world.site.exempt}}
    projects = {project.account: project for project in world.projects}
    partitions, gpu_types = world.cluster.partitions, _gpu_types(world.nodes.rows)
    counts = Counter(
        rule for job in submissions.values() for rule in _broken_rules(job, world, projects)
    )
    counts[SubmissionRule.GPUS] = sum(
        _lacks_gpus(job, partitions, gpu_types) for job in submissions.values()
    )
    return [
        RuleCount(rule=rule, action=action, jobs=counts[rule], of=len(submissions))
        for rule, action in rule_actions(world.site).items()
        if rule not in world.unjudged
    ]


def rule_gaps(jobs: Iterable[AccountingJob]) -> tuple[UnreadableLine, ...]:
    """Return the unreadable cells of submissions for which a rule could not be judged."""
    return tuple(gap for job in jobs for gap in job.gaps_in(RULE_CELLS))


def exempt_note(jobs: Iterable[AccountingJob], site: SiteRules) -> str | None:
    """Return a sentence with the number of submissions that are left out, and why; or None."""
    owners = {job.job_id: job.owner for job in jobs if job.owner in {ROOT, *site.exempt}}
    if not owners:
        return None
    of_root = sum(1 for owner in owners.values() if owner == ROOT)
    return (
        f"{len(owners):,} submissions are not checked and not counted: {of_root:,} of root,"
        f" {len(owners) - of_root:,} of users in `exempt` of slurm.toml"
    )


def _broken_rules(
    job: AccountingJob, world: RuleInput, projects: Mapping[str, BankProject]
) -> Iterator[SubmissionRule]:
    """Yield the rules that the job breaks. A blank cell of accounting breaks none."""
    project, group = projects.get(job.account), world.groups.get(job.job_id)
    if project is not None:
        is_known = job.owner is not None and group is not None
        if is_known and job.owner not in project.all_members and group != project.gid:
            yield SubmissionRule.MEMBER
    elif job.account:
        yield SubmissionRule.PROJECT
    if group is not None and job.account and (project is None or project.gid != group):
        yield SubmissionRule.GROUP
    partitions = job.partition.split(",") if job.partition else []
    if any(name not in world.cluster.partitions for name in partitions):
        yield SubmissionRule.PARTITION_LISTED
    if partitions == [world.default_partition]:
        yield SubmissionRule.PARTITION_NAMED
    if len(partitions) > 1:
        yield SubmissionRule.ONE_PARTITION
    if job.limit_seconds is None and not job.gaps_in({LIMIT_CELL}):
        yield SubmissionRule.TIME_LIMIT


def _gpu_types(nodes: Sequence[SlurmNode]) -> Mapping[str, set[str]]:
    """Return the GPU types of each partition that has a known node.

    They are in lower case: Slurm compares names of TRES, which accounting has, without their case.
    """
    types: dict[str, set[str]] = {}
    for node in nodes:
        for name in node.partitions:
            types.setdefault(name, set()).update(kind.lower() for kind in node.gpus)
    return types


def _lacks_gpus(
    job: AccountingJob, partitions: Collection[str], gpu_types: Mapping[str, set[str]]
) -> bool:
    """Return True if no listed partition of the job has the GPUs that it holds or requests.

    Args:
        job: submission.
        partitions: names of the bank's partitions.
        gpu_types: GPU types by partition; without those whose nodes are unknown.
    """
    listed = [name for name in job.partition.split(",") if name in partitions]
    if "gpu" not in job.tres or not listed:
        return False
    requested = {name for name, count in parse_counts(job.tres).items() if count > 0}
    if "gres/gpu" not in requested:
        return False
    types = {name.removeprefix("gres/gpu:") for name in requested if name.startswith("gres/gpu:")}

    def lacks(known: set[str] | None) -> bool:
        return known is not None and (not known or not (ANY_GPU in known or types <= known))

    return all(lacks(gpu_types.get(name)) for name in listed)
