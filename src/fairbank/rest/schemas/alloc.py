"""Projects, and allocations with their balances and users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from msgspec import UNSET, Struct, UnsetType, structs

from fairbank.bank.allocation import NO_LINK, Allocation, AllocationState, AllocationTerms
from fairbank.bank.outlook import OutlookState, daily_pace, outlook
from fairbank.bank.project import Project
from fairbank.bank.query import Balance, ListedMember, UserRow
from fairbank.cluster.partition import Cluster, one_su
from fairbank.core.ids import known_uid
from fairbank.core.time import DAY, Instant, iso, parse_instant
from fairbank.core.units import SuMinutes, in_percent
from fairbank.rest.schemas.answers import Amounts, RoleWord
from fairbank.rest.schemas.envelope import convert_to


class AllocationRow(Amounts, frozen=True, kw_only=True):
    """An allocation with its balance. It is valid at t if start <= t < end.

    `remaining` = deposited + credit_limit - charged - held. `available` is what the user who asks
    may use now: the least of `remaining` and `my_left`, and 0 unless the allocation is active.
    `my_charged` and `my_held` are the user's own charges and holds, `my_cap` the user's cap (null:
    none), `my_left` = my_cap - my_charged - my_held. `state` is that at the time of the response.
    For an allocation that is not active, `state_since` is when it was frozen, ended or entered, and
    `state_reason` the reason that staff gave, of a planned one that of its grant. `partition` and
    `reservation` are those of a short-term allocation. HADM's schema 2: allocation_id is `id`,
    project_id `project`, start_date `start`, end_date `end`.
    """

    schema_name: ClassVar[str] = "fairbank.allocation/1"
    id: int
    project: int
    account: str
    gname: str
    resource: str
    category: str
    start: str
    end: str
    state: Literal["planned", "active", "frozen", "ended", "removed"]
    state_since: str | None
    state_reason: str | None
    shared: bool
    partition: str | None
    reservation: str | None
    credit_limit: int
    deposited: int
    charged: int
    held: int
    remaining: int
    available: int
    my_charged: int
    my_held: int
    my_cap: int | None
    my_left: int | None


class ChangedAllocation(AllocationRow, frozen=True, kw_only=True):
    """An allocation after a change. `entry` recorded it; `warnings`, if any, name likely
    mistakes."""

    entry: int
    warnings: list[str] | UnsetType = UNSET


class BalanceRow(AllocationRow, frozen=True, kw_only=True):
    """An allocation with its outlook: the pace of its use, projected to its end.

    `used_percent` is the used part of the deposits, rounded; 0 without deposits. `runs_out` is
    the time at which the credit will be used up, if before the end. `left_over` is the part of the
    deposits that will expire unused, and `available_at_end` what will be available then, with the
    credit limit; both are null if it runs out before, or if there is no pace yet. `pace` is the use
    per day since the start, `days_left` the number of whole days to the end. `one_su` is what one
    SU of the resource buys for an hour, null if no partition bills it.
    """

    schema_name: ClassVar[str] = "fairbank.balance/1"
    used_percent: int
    outlook: OutlookState
    runs_out: str | None
    left_over: int | None
    available_at_end: int | None
    pace: int
    days_left: int
    one_su: str | None


class AllocationUserRow(Amounts, frozen=True, kw_only=True):
    """Use of an allocation by one user, and the user's cap. `uid` is null for measured use, and for
    runs whose user has no uid here."""

    schema_name: ClassVar[str] = "fairbank.allocation-use/1"
    uid: int | None
    charged: int
    held: int
    cap: int | None


def allocation_row(balance: Balance, project: Project, now: Instant) -> AllocationRow:
    """Return an allocation with its project's names, and its state at `now`.

    Args:
        balance: the allocation, with the use and cap of the user who asks.
        project: the project of the allocation, even if a child asks.
        now: the time of the response, in seconds since 1970.
    """
    allocation, sums, since = balance.allocation, balance.sums, balance.inactive_since
    terms = allocation.terms
    period = {"start": iso(terms.start), "end": iso(terms.end)}
    return convert_to(
        AllocationRow,
        allocation,
        **(structs.asdict(terms) | period),
        remaining=allocation.remaining,
        available=allocation.available_now(sums, now),
        my_charged=sums.charged,
        my_held=sums.held,
        my_cap=sums.cap,
        my_left=sums.left,
        state_since=since and iso(since.at),
        state_reason=since and since.reason,
        account=project.account,
        gname=project.gname,
        state=allocation.shown_state(now).value,
    )


def allocation_record(row: AllocationRow) -> Allocation:
    """Return the allocation of a row. Raises InvalidInput for what is no time.

    `state` is that at the time of the response. A row has neither `overrun` nor the last entry.
    """
    return convert_to(
        Allocation,
        row,
        terms=convert_to(
            AllocationTerms,
            row,
            start=parse_instant(row.start, field="start"),
            end=parse_instant(row.end, field="end"),
        ),
        state=AllocationState("active" if row.state == "planned" else row.state),
        overrun=SuMinutes(0),
        seq=0,
        link=NO_LINK,
    )


def balance_row(
    balance: Balance, project: Project, now: Instant, clusters: Mapping[str, Cluster]
) -> BalanceRow:
    """Return an allocation with its outlook at `now`.

    Args:
        balance: the allocation, with the use and cap of the user who asks.
        project: the project of the allocation, even if a child asks.
        now: the time of the response, in seconds since 1970.
        clusters: clusters of the settings by name, whose prices show what one SU buys.
    """
    allocation, terms = balance.allocation, balance.allocation.terms
    # Staff may have ended it before its start, and it keeps a period.
    end = min(terms.end, now) if allocation.state_at(now) is AllocationState.ENDED else terms.end
    projected = outlook(
        allocation.deposited,
        allocation.charged,
        terms.start,
        end,
        now,
        held=allocation.held,
        limit=terms.credit_limit,
    )
    return BalanceRow(
        **structs.asdict(allocation_row(balance, project, now)),
        used_percent=in_percent(allocation.charged, allocation.deposited) or 0,
        outlook=projected.state,
        runs_out=None if projected.at is None else iso(Instant(projected.at)),
        left_over=projected.left_over,
        available_at_end=projected.available_at_end,
        pace=daily_pace(allocation.charged, terms.start, terms.end, now),
        days_left=max(0, terms.end - now) // DAY,
        one_su=one_su(terms.resource, clusters),
    )


def allocation_user_row(user: UserRow) -> AllocationUserRow:
    """Return the use of an allocation by one user."""
    sums = user.sums
    uid = known_uid(user.uid)
    return AllocationUserRow(uid=uid, charged=sums.charged, held=sums.held, cap=sums.cap)


def changed_terms(changed: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return changed terms of an allocation under the names of its row."""
    if changed is None:
        return None
    return {
        name: iso(value) if name in ("start", "end") else value for name, value in changed.items()
    }


class MemberRow(Struct, frozen=True, kw_only=True):
    """A member of a project, by a row of the bank or through the project's Unix group."""

    schema_name: ClassVar[str] = "fairbank.member/1"
    uid: int
    role: RoleWord
    via: Literal["bank", "group"]


class ProjectRow(Struct, frozen=True, kw_only=True):
    """A project. HADM's schema 1: project_id is `id`."""

    schema_name: ClassVar[str] = "fairbank.project/1"
    id: int
    gname: str
    gid: int
    account: str
    parent: int | None
    removed: bool


class EnteredProject(ProjectRow, frozen=True, kw_only=True):
    """A new project. `entry` recorded it; null if the same project existed before."""

    entry: int | None


class ProjectDetails(ProjectRow, frozen=True, kw_only=True):
    """A project with its members."""

    schema_name: ClassVar[str] = "fairbank.project-card/1"
    members: list[MemberRow]


def project_row(project: Project) -> ProjectRow:
    """Return a project as lists show it."""
    return ProjectRow(**structs.asdict(project))


def project_record(row: ProjectRow) -> Project:
    """Return the project of a row."""
    return convert_to(Project, row)


def project_details(project: Project, members: list[ListedMember]) -> ProjectDetails:
    """Return a project with its members."""
    return ProjectDetails(
        **structs.asdict(project_row(project)), members=[member_row(member) for member in members]
    )


def member_row(listed: ListedMember) -> MemberRow:
    """Return a member's uid and role, and what makes the user a member."""
    member = listed.member
    via: Literal["bank", "group"] = "group" if listed.by_group else "bank"
    return MemberRow(uid=member.uid, role=member.role.value, via=via)
