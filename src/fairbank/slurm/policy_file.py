"""The submission policy: what a centre's Slurm checks when a job is submitted, as a value, and the text that the Lua plug-ins read.

The form of the text, and why it is so, is in docs/decisions/0011-submission-policy-file.md. `plugins/fairbank/policy_file.lua` reads it.
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

from fairbank.cluster.partition import Partition
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT
from fairbank.core.tres import BY_CPU, tres_name

VERSION = 1
SIZE_MAX = 4 * 1024 * 1024
"""Bytes; the plug-ins read no more."""

DENOMINATOR_MAX = 2**40
"""So that Lua, which may have nothing but doubles, counts exactly."""

NUMBER_MAX = 10**15


class PolicyAction(Enum):
    """What the plug-ins do about something they find wrong."""

    REFUSE = "refuse"
    WARN = "warn"
    IGNORE = "ignore"


class PolicyProject(msgspec.Struct, frozen=True):
    """Who may submit: a Unix group and its Slurm account, with the uids of its members, who are told of it where it helps.

    A short-term allocation names the partition and reservation that all its jobs go to.
    """

    group: str
    gid: int
    account: str
    qos: str | None = None
    partition: str | None = None
    reservation: str | None = None
    members: tuple[int, ...] = ()


class PolicyPartition(msgspec.Struct, frozen=True):
    """A partition with what a submission must know of it. 0 stands for unknown; memory in MiB, times in minutes.

    `gpus` are its GPU types: none, and it has no GPUs. `memory_per_cpu` is given to jobs that ask for no memory,
    `default_minutes` to those without a time limit. The nodes' size prices jobs that take whole nodes.
    """

    partition: Partition
    gpus: tuple[str, ...] = ()
    memory_per_cpu: int = 0
    default_minutes: int = 0
    node_cpus: int = 0
    node_memory: int = 0


class PolicyBalance(msgspec.Struct, frozen=True):
    """What one run of this account could draw on this resource when the bank was asked, in SU-minutes."""

    account: str
    resource: str
    available: int


class SubmissionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `written` is when the bank was asked; `balances` is None in a file that must not tell them, and then no price is checked.

    `price`: a job that its project cannot pay. `gres`: GPUs asked by --gres. `unlisted`: groups and partitions that are not in here.
    After `stale_seconds` the balances are too old to judge by.
    """

    cluster: str
    written: int
    projects: tuple[PolicyProject, ...]
    places: tuple[PolicyPartition, ...]
    balances: tuple[PolicyBalance, ...] | None = None
    qos_factors: Mapping[str, Fraction] = {}
    exempt: tuple[int, ...] = ()
    qos: str | None = None
    price: PolicyAction = PolicyAction.WARN
    gres: PolicyAction = PolicyAction.WARN
    unlisted: PolicyAction = PolicyAction.REFUSE
    stale_seconds: int = 3600


class Heading(msgspec.Struct, frozen=True):
    """What the first line of a file says of it: when the bank was asked; and whether the file is whole."""

    written: int
    whole: bool


def heading(text: bytes) -> Heading:
    """Raises InvalidInput for what is no policy, or one of a version that this release does not write."""
    first, _, rest = text.partition(b"\n")
    match = re.fullmatch(rb"fairbank-policy\t(\d{1,9})\t(\d{1,15})\t([0-9a-f]{32})", first)
    if match is None:
        raise InvalidInput(
            "it does not begin as a policy file does",
            field="policy",
            remedy="write it anew: fairbank slurm sync",
        )
    if int(match[1]) != VERSION:
        said = f"it has version {int(match[1])}, and this release writes version {VERSION}"
        raise InvalidInput(
            said,
            field="policy",
            remedy="install plug-ins and fairbank of the same release, then: fairbank slurm sync",
        )
    body, _, _ = rest.rpartition(b"end\t")
    return Heading(
        int(match[2]), hashlib.blake2b(body, digest_size=16).hexdigest().encode() == match[3]
    )


Row = tuple[str | int, ...]
T = TypeVar("T")


def render(policy: SubmissionPolicy) -> str:
    """The file, which reads back as the same values. Raises InvalidInput, naming the field, for what cannot stand in it."""
    rows = list(_rows(policy))
    body = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    digest = hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
    written = _number(policy.written, "written", most=LAST_INSTANT)
    text = f"fairbank-policy\t{VERSION}\t{written}\t{digest}\n{body}end\t{len(rows)}\n"
    if len(text) > SIZE_MAX:
        raise InvalidInput(
            f"the policy file has {len(text)} bytes",
            field="projects",
            remedy=f"at most {SIZE_MAX}; leave out what is closed",
        )
    return text


def _rows(policy: SubmissionPolicy) -> Iterator[Row]:
    factors = {
        ids.name(name, field="qos_factors"): _fraction(factor, "qos_factors")
        for name, factor in sorted(policy.qos_factors.items())
    }
    scale = lcm(*(factor.denominator for factor in factors.values()))
    yield ("cluster", ids.name(policy.cluster, field="cluster"))
    yield ("price", policy.price.value)
    yield ("gres", policy.gres.value)
    yield ("unlisted", policy.unlisted.value)
    yield ("qos", _optional(policy.qos, "qos"))
    yield ("stale", _number(policy.stale_seconds, "stale_seconds"))
    yield ("scale", _number(scale, "qos_factors", most=DENOMINATOR_MAX))
    for name, factor in factors.items():
        yield ("factor", name, _number(int(factor * scale), "qos_factors"))
    for user in _once(policy.exempt, "exempt"):
        yield ("exempt", ids.uid(user, field="exempt"))
    _once((place.partition.name for place in policy.places), "places")
    yield from chain.from_iterable(_place(place, scale) for place in policy.places)
    yield from _projects(policy)
    yield from _balances(policy)


def _place(place: PolicyPartition, scale: int) -> Iterator[Row]:
    name = ids.name(place.partition.name, field="places.partition")
    here = f"places.{name}"
    weights = {
        tres_name(tres, field=here): _fraction(weight, here)
        for tres, weight in (place.partition.weights or BY_CPU).items()
    }
    denominator = lcm(*(weight.denominator for weight in weights.values()))
    _number(denominator * scale, f"{here}.weights", most=DENOMINATOR_MAX)
    sizes = [
        _number(size, here)
        for size in (
            place.memory_per_cpu,
            place.default_minutes,
            place.node_cpus,
            place.node_memory,
        )
    ]
    yield (
        "partition",
        name,
        ids.kind(place.partition.resource),
        place.partition.billing_rule.value,
        denominator,
        *sizes,
    )
    for kind in _once(place.gpus, f"{here}.gpus"):
        yield ("gpu", name, ids.name(kind, field=f"{here}.gpus"))
    for tres, weight in sorted(weights.items()):
        yield (
            "weight",
            name,
            _tres(tres, here),
            _number(int(weight * denominator), f"{here}.weights"),
        )


def _projects(policy: SubmissionPolicy) -> Iterator[Row]:
    _once((project.group for project in policy.projects), "projects.group")
    _once((project.gid for project in policy.projects), "projects.gid")
    _once((project.account for project in policy.projects), "projects.account")
    there = {place.partition.name for place in policy.places}
    for project in policy.projects:
        group = ids.name(project.group, field="projects.group")
        here = f"projects.{group}"
        if project.partition is not None and project.partition not in there:
            raise InvalidInput(
                f"there is no partition {project.partition!r}",
                field=f"{here}.partition",
                remedy="list it among the places",
            )
        account, gid = (
            ids.name(project.account, field=f"{here}.account"),
            ids.uid(project.gid, field=f"{here}.gid"),
        )
        forced = (
            _optional(project.qos, f"{here}.qos"),
            _optional(project.partition, here),
            _optional(project.reservation, f"{here}.reservation"),
        )
        members = "".join(
            f" {ids.uid(member, field=f'{here}.members')}"
            for member in _once(project.members, f"{here}.members")
        )
        yield ("project", group, gid, account, *forced, f"{members} ")


def _balances(policy: SubmissionPolicy) -> Iterator[Row]:
    yield ("balances", "included" if policy.balances is not None else "omitted")
    known = {project.account for project in policy.projects}
    _once(((each.account, each.resource) for each in policy.balances or ()), "balances")
    for each in policy.balances or ():
        if each.account not in known:
            raise InvalidInput(
                f"no project has the account {each.account!r}",
                field="balances",
                remedy="list the project too",
            )
        yield (
            "balance",
            each.account,
            ids.kind(each.resource),
            _number(each.available, "balances", least=-NUMBER_MAX),
        )


def _once(values: Iterable[T], field: str) -> list[T]:
    """The values, none of which stands twice."""
    listed = list(values)
    if len(set(listed)) < len(listed):
        twice = next(each for each in listed if listed.count(each) > 1)
        raise InvalidInput(f"{twice!r} stands twice", field=field, remedy="list it once")
    return listed


def _optional(name: str | None, field: str) -> str:
    return ids.name(name, field=field) if name is not None else ""


def _tres(name: str, field: str) -> str:
    if not (name.isascii() and name.isprintable()) or len(name) > 64 or " " in name:
        raise InvalidInput(
            f"{name[:64]!r} cannot stand in the policy file",
            field=field,
            remedy="name TRES in ASCII without blanks",
        )
    return name


def _fraction(value: Fraction, field: str) -> Fraction:
    if value < 0:
        raise InvalidInput(
            f"{value} is below zero", field=field, remedy="weights and factors are 0 or more"
        )
    return value


def _number(value: int, field: str, *, least: int = 0, most: int = NUMBER_MAX) -> int:
    if least <= value <= most:
        return value
    finer = most == DENOMINATOR_MAX
    raise InvalidInput(
        f"{value} is out of range",
        field=field,
        remedy="use weights and factors with fewer decimals"
        if finer
        else f"a whole number from {least} to {most}",
    )
