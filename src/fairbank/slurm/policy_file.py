"""Submission policy: the checks of a job at its submission, and the file that the Lua plug-ins
read.

docs/decisions/0011-submission-policy-file.md describes the file. `plugins/fairbank/policy_file.lua`
reads it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from fractions import Fraction
from itertools import chain
from math import lcm
from typing import TypeVar

import msgspec

from fairbank.bank.rules.short_term import ShortTerm
from fairbank.cluster.partition import Partition
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT
from fairbank.core.tres import BY_CPU, tres_name

VERSION = 7  # earlier ones were written before the first release
POLICY_FILE = "fairbank/policy"
"""Path of the policy file in the directory of slurm.conf."""

POLICY_SIZE_MAX = 4 * 1024 * 1024
"""Bytes; the plug-ins read no more."""

DENOMINATOR_MAX = 2**40
"""Limit with which Lua computes exactly, although it may have doubles only."""

NUMBER_MAX = 10**15


class PolicyAction(Enum):
    """Action of the plug-ins on a fault."""

    REFUSE = "refuse"
    WARN = "warn"
    IGNORE = "ignore"


class AccountRule(Enum):
    """Accounts that a user may choose: of any project of theirs, or of their Unix group only."""

    MEMBER = "member"
    GROUP = "group"


class PolicyProject(msgspec.Struct, frozen=True):
    """Unix group that may submit, its Slurm account, and its members' uids, who may see its
    balance.
    """

    group: str
    gid: int
    account: str
    qos: str | None = None
    members: tuple[int, ...] = ()


class PolicyPartition(msgspec.Struct, frozen=True):
    """Partition with what a submission must know. 0 stands for unknown; memory in MiB, times in
    minutes.

    `gpus` are its GPU types, each with the number that every node has; empty without GPUs, and
    where its nodes are unknown (`node_cpus` 0).
    `exclusive` gives each job whole nodes. `memory_per_cpu` is given to jobs that request no
    memory, `default_minutes` to those without a time limit. The size of the smallest node gives
    the CPUs and GPUs of jobs on whole nodes and the memory of those with --mem=0. `most_cpus` of
    the largest give the number of nodes, so that no price is above that of what a job gets.
    """

    partition: Partition
    gpus: Mapping[str, int] = {}
    memory_per_cpu: int = 0
    default_minutes: int = 0
    node_cpus: int = 0
    node_memory: int = 0
    exclusive: bool = False
    most_cpus: int = 0


class PolicyBalance(msgspec.Struct, frozen=True):
    """Credit in SU-minutes that one run of the account could use, when the bank was asked."""

    account: str
    resource: str
    available: int


class SubmissionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Whole policy, as of `written`. Without `balances` no price is checked.

    `price` is the action for a job that its project cannot pay, `gres` for GPUs requested by
    --gres, `unlisted` for groups and partitions that are not in the policy. Balances older than
    `stale_seconds` are not used. `account` is the choice of --account. `default_partition` is the
    partition of jobs that name none; None if they are refused. `one_partition` refuses jobs that
    name several.
    """

    cluster: str
    written: int
    projects: tuple[PolicyProject, ...]
    partitions: tuple[PolicyPartition, ...]
    short_terms: tuple[ShortTerm, ...] = ()
    balances: tuple[PolicyBalance, ...] | None = None
    qos_factors: Mapping[str, Fraction] = {}
    qos_resources: Mapping[str, str] = {}
    exempt: tuple[int, ...] = ()
    qos: str | None = None
    price: PolicyAction = PolicyAction.WARN
    gres: PolicyAction = PolicyAction.WARN
    unlisted: PolicyAction = PolicyAction.REFUSE
    account: AccountRule = AccountRule.MEMBER
    default_partition: str | None = None
    one_partition: bool = False
    stale_seconds: int = 3600


class PolicyHeader(msgspec.Struct, frozen=True):
    """First line of a file: the time of the policy, and whether the rest is complete."""

    written: int
    is_whole: bool


def read_header(text: bytes) -> PolicyHeader:
    """Read the first line.

    Raises InvalidInput for another file, or for another version of the format.
    """
    first, _, rest = text.partition(b"\n")
    match = re.fullmatch(rb"fairbank-policy\t(\d{1,9})\t(\d{1,15})\t([0-9a-f]{32})", first)
    if match is None:
        raise InvalidInput(
            "it does not begin as a policy file does",
            field="policy",
            remedy="write it again: fairbank slurm sync",
        )
    if int(match[1]) != VERSION:
        age = "older" if int(match[1]) < VERSION else "newer"
        message = f"it is of the {age} version {int(match[1])}; this release has version {VERSION}"
        raise InvalidInput(
            message,
            field="policy",
            remedy="install plug-ins and fairbank of the same release, then: fairbank slurm sync",
        )
    body, _, _ = rest.rpartition(b"end\t")
    return PolicyHeader(
        int(match[2]), hashlib.blake2b(body, digest_size=16).hexdigest().encode() == match[3]
    )


Row = tuple[str | int, ...]
T = TypeVar("T")


def render(policy: SubmissionPolicy) -> str:
    """Return the text of the file.

    Raises InvalidInput, naming the field, for a value that it cannot hold.
    """
    rows = list(_rows(policy))
    body = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    digest = hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
    written = _number(policy.written, "written", most=LAST_INSTANT)
    text = f"fairbank-policy\t{VERSION}\t{written}\t{digest}\n{body}end\t{len(rows)}\n"
    if len(text) > POLICY_SIZE_MAX:
        raise InvalidInput(
            f"the policy file has {len(text)} bytes",
            field="projects",
            remedy=f"at most {POLICY_SIZE_MAX}; leave out what is closed",
        )
    return text


def _rows(policy: SubmissionPolicy) -> Iterator[Row]:
    factors = {
        ids.name(name, field="qos_factors"): _fraction(factor, "qos_factors")
        for name, factor in sorted(policy.qos_factors.items())
    }
    scale = lcm(*(factor.denominator for factor in factors.values()))
    yield ("cluster", ids.cluster(policy.cluster))
    yield ("price", policy.price.value)
    yield ("gres", policy.gres.value)
    yield ("unlisted", policy.unlisted.value)
    yield ("account", policy.account.value)
    yield ("default", _optional(policy.default_partition, "default_partition"))
    yield ("list", "refuse" if policy.one_partition else "admit")
    yield ("qos", _optional(policy.qos, "qos"))
    yield ("stale", _number(policy.stale_seconds, "stale_seconds"))
    yield ("scale", _number(scale, "qos_factors", most=DENOMINATOR_MAX))
    for name, factor in factors.items():
        yield ("factor", name, _number(int(factor * scale), "qos_factors"))
    for name, resource in sorted(policy.qos_resources.items()):
        yield ("billed", ids.name(name, field="qos_resources"), ids.kind(resource))
    for user in _unique(policy.exempt, "exempt"):
        yield ("exempt", ids.uid(user, field="exempt"))
    _unique((place.partition.name for place in policy.partitions), "partitions")
    yield from chain.from_iterable(_partition_rows(place, scale) for place in policy.partitions)
    yield from _project_rows(policy)
    yield from _short_term_rows(policy)
    yield from _balance_rows(policy)


def _partition_rows(place: PolicyPartition, scale: int) -> Iterator[Row]:
    partition = place.partition
    name = ids.name(partition.name, field="partitions.name")
    here = f"partitions.{name}"
    weights = {
        tres_name(tres, field=here): _fraction(weight, here)
        for tres, weight in (partition.weights or BY_CPU).items()
    }
    denominator = lcm(*(weight.denominator for weight in weights.values()))
    _number(denominator * scale, f"{here}.weights", most=DENOMINATOR_MAX)
    yield (
        "partition",
        name,
        ids.kind(partition.resource),
        partition.billing_rule.value,
        denominator,
        _number(place.memory_per_cpu, here),
        _number(place.default_minutes, here),
        _number(place.node_cpus, here),
        _number(place.node_memory, here),
        "exclusive" if place.exclusive else "shared",
        _number(place.most_cpus, here),
    )
    for kind, number in place.gpus.items():
        field = f"{here}.gpus"
        yield ("gpu", name, ids.name(kind, field=field), _number(number, field))
    for tres, weight in sorted(weights.items()):
        units = _number(int(weight * denominator), f"{here}.weights")
        yield ("weight", name, tres, units)


def _project_rows(policy: SubmissionPolicy) -> Iterator[Row]:
    for name in ("group", "gid", "account"):
        _unique((getattr(project, name) for project in policy.projects), f"projects.{name}")
    for project in policy.projects:
        group = ids.name(project.group, field="projects.group")
        field = f"projects.{group}"
        qos = _optional(project.qos, f"{field}.qos")
        members = "".join(
            f" {ids.uid(member, field=f'{field}.members')}"
            for member in _unique(project.members, f"{field}.members")
        )
        account = ids.name(project.account, field=f"{field}.account")
        gid = ids.uid(project.gid, field=f"{field}.gid")
        yield ("project", group, gid, account, qos, f"{members} ")


def _short_term_rows(policy: SubmissionPolicy) -> Iterator[Row]:
    accounts = {project.account for project in policy.projects}
    partitions = {None, *(place.partition.name for place in policy.partitions)}
    for term in policy.short_terms:
        if term.account not in accounts or term.partition not in partitions:
            raise InvalidInput(
                f"no project or partition of the policy: {term.account!r}, {term.partition!r}",
                field="short_terms",
                remedy="list both too",
            )
        yield (
            "short",
            term.account,
            _optional(term.partition, "short_terms.partition"),
            _optional(term.reservation, "short_terms.reservation"),
            _number(term.start, "short_terms.start"),
            _number(term.end, "short_terms.end"),
        )


def _balance_rows(policy: SubmissionPolicy) -> Iterator[Row]:
    yield ("balances", "omitted" if policy.balances is None else "included")
    known = {project.account for project in policy.projects}
    balances = policy.balances or ()
    _unique(((balance.account, balance.resource) for balance in balances), "balances")
    for balance in balances:
        if balance.account not in known:
            raise InvalidInput(
                f"no project has the account {balance.account!r}",
                field="balances",
                remedy="list the project too",
            )
        credit = _number(balance.available, "balances", least=-NUMBER_MAX)
        yield ("balance", balance.account, ids.kind(balance.resource), credit)


def _unique(values: Iterable[T], field: str) -> list[T]:
    """Return the values. Raises InvalidInput if one is repeated."""
    listed = list(values)
    if len(set(listed)) < len(listed):
        repeated = next(value for value in listed if listed.count(value) > 1)
        raise InvalidInput(f"{repeated!r} is listed twice", field=field, remedy="list it once")
    return listed


def _optional(name: str | None, field: str) -> str:
    return ids.name(name, field=field) if name is not None else ""


def _fraction(value: Fraction, field: str) -> Fraction:
    if value < 0:
        raise InvalidInput(
            f"{value} is below zero", field=field, remedy="weights and factors are 0 or more"
        )
    return value


def _number(value: int, field: str, *, least: int = 0, most: int = NUMBER_MAX) -> int:
    if least <= value <= most:
        return value
    remedy = f"a whole number from {least} to {most}"
    if most == DENOMINATOR_MAX:
        remedy = "use weights and factors with fewer decimals"
    raise InvalidInput(f"{value} is out of range", field=field, remedy=remedy)
