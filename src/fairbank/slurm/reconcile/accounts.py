"""Slurm's accounts, associations and limits as the bank's projects require them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.records import BankFunds, BankProject
from fairbank.slurm.parsers.values import SlurmAssociation

BILLING = "billing"


class SacctmgrChange(msgspec.Struct, frozen=True):
    """Arguments of one call of sacctmgr, and its reason."""

    words: tuple[str, ...]
    why: str


class AccountUsage(msgspec.Struct, frozen=True):
    """Usage of an account and those below it.

    `seconds` are used billing-seconds, `running` the billing-minutes that its running jobs may
    still use.
    """

    seconds: int = 0
    running: int = 0

    def billing_limit(self, beyond: int) -> int:
        """Return the limit that leaves so many minutes beyond the usage.

        Without any, the limit is reached at once; otherwise never a minute too early.
        """
        return -(-self.seconds // 60) + beyond if beyond else self.seconds // 60


class TargetAccounts(msgspec.Struct, frozen=True, kw_only=True):
    """State to establish in Slurm.

    `removed` are the accounts of projects that were removed. `usage` is by account, of all that
    Slurm shows. `fence`: set GrpTRESMins to the balance, as a second limit for a time without the
    agent; of removed accounts to 0, or to what still runs there. `remove`: delete associations
    without a membership, and all of removed accounts. Users of a project's Unix group on this host
    keep theirs: the bank need not list those whose primary group it is.
    """

    cluster: str
    projects: Sequence[BankProject]
    associations: Sequence[SlurmAssociation]
    allocations: Sequence[Allocation] = ()
    removed: Sequence[str] = ()
    usage: Mapping[str, AccountUsage] = {}
    now: int = 0
    fence: bool = False
    remove: bool = False


def plan_changes(
    wanted: TargetAccounts,
    user_of: Callable[[int], str | None],
    groups_of: Callable[[str], Collection[str]],
) -> tuple[list[SacctmgrChange], list[str]]:
    """Plan the changes: accounts with parents first, then users, then limits. Return also notes on
    what cannot be done.

    Args:
        wanted: the state to establish.
        user_of: returns the name of a uid, or None.
        groups_of: returns the names of a user's Unix groups.
    """
    accounts = {
        association.account: association
        for association in wanted.associations
        if not association.user
    }
    existing_members = {
        (association.account, association.user)
        for association in wanted.associations
        if association.user and not association.partition
    }
    funds = BankFunds(wanted.projects, wanted.allocations)
    changes = list(_accounts(wanted, accounts, funds))
    wanted_members, notes = _members(wanted.projects, user_of)
    changes += [
        _added(wanted.cluster, account, user)
        for account, user in sorted(wanted_members - existing_members)
    ]
    if wanted.remove and notes:
        # One of them may be the member whose name is unknown here.
        notes.append("no association is removed while members are unknown on this host")
    elif wanted.remove:
        removals, notes = _removals(wanted, existing_members - wanted_members, groups_of)
        changes += removals
    if wanted.fence:
        hidden = _accounts_without_usage(wanted, accounts)
        changes += _limit_changes(wanted, accounts, funds, hidden)
        notes += [
            f"account {account}: sshare does not show its usage, so it gets no limit; "
            "run this as root or as SlurmUser"
            for account in hidden
        ]
    return changes, notes


def _members(
    projects: Iterable[BankProject], user_of: Callable[[int], str | None]
) -> tuple[set[tuple[str, str]], list[str]]:
    """Return the members by account and user, and notes on those that have no name here."""
    members: set[tuple[str, str]] = set()
    notes: list[str] = []
    for project in projects:
        for uid in sorted(project.all_members):
            user = user_of(uid)
            if user is None:
                notes.append(
                    f"uid {uid}, a member of {project.account}: this host has no such user"
                )
            else:
                members.add((project.account, user))
    return members, notes


def _removals(
    wanted: TargetAccounts,
    unwanted: Collection[tuple[str, str]],
    groups_of: Callable[[str], Collection[str]],
) -> tuple[list[SacctmgrChange], list[str]]:
    """Return the removals of associations, and notes on those that stay.

    Args:
        wanted: the state to establish.
        unwanted: accounts with users who are no members, as far as the bank lists them.
        groups_of: see `plan_changes`.
    """
    groups: dict[str, str | None] = dict.fromkeys(wanted.removed)
    groups |= {project.account: project.gname for project in wanted.projects}
    removals, notes = [], []
    for account, user in sorted(unwanted):
        if account not in groups:
            continue
        group = groups[account]
        if group is not None and group in groups_of(user):
            notes.append(
                f"{user} keeps the association with {account}: on this host they are in its Unix"
                f" group {group}"
            )
        else:
            removals.append(_removed(wanted.cluster, account, user))
    return removals, notes


def _accounts(
    wanted: TargetAccounts, accounts: Mapping[str, SlurmAssociation], funds: BankFunds
) -> Iterator[SacctmgrChange]:
    by_id = {project.id: project for project in wanted.projects}
    cluster = f"cluster={wanted.cluster}"
    # Parents come first: sacctmgr knows no parent that does not exist.
    for project in sorted(
        wanted.projects, key=lambda project: (len(funds.chains[project.id]), project.account)
    ):
        name, group = project.account, project.gname
        parent = by_id[project.parent].account if project.parent in by_id else None
        known = accounts.get(name)
        if known is None:
            words = ["add", "account", name, cluster]
            words += [f"description={group}", f"organization={group}"]
            words += [f"parent={parent}"] if parent else []
            yield SacctmgrChange(tuple(words), f"project {name} has no account")
        elif parent is not None and known.parent != parent:
            words = ["modify", "account", "where", f"name={name}", cluster]
            words += ["set", f"parent={parent}"]
            why = f"the parent of {name} is {parent}, in Slurm {known.parent or 'root'}"
            yield SacctmgrChange(tuple(words), why)


def _added(cluster: str, account: str, user: str) -> SacctmgrChange:
    return SacctmgrChange(
        ("add", "user", user, f"account={account}", f"cluster={cluster}"),
        f"{user} is a member of {account}",
    )


def _removed(cluster: str, account: str, user: str) -> SacctmgrChange:
    words = ("delete", "user", "where", f"name={user}", f"account={account}", f"cluster={cluster}")
    return SacctmgrChange(words, f"{user} is not a member of {account}")


def _accounts_without_usage(
    wanted: TargetAccounts, accounts: Mapping[str, SlurmAssociation]
) -> list[str]:
    """Return the accounts that Slurm has but whose usage it hides (PrivateData).

    With a usage of 0 assumed, the limit would end their running jobs.
    """
    known_accounts = {project.account for project in wanted.projects}.union(wanted.removed)
    return sorted(known_accounts & accounts.keys() - wanted.usage.keys())


def _limit_changes(
    wanted: TargetAccounts,
    accounts: Mapping[str, SlurmAssociation],
    funds: BankFunds,
    hidden: Collection[str],
) -> Iterator[SacctmgrChange]:
    """Yield the changes of GrpTRESMins.

    Slurm compares the limit with all usage of an account and those below it, and ends running jobs
    at it. So the limit is the usage, plus what running jobs may still use, plus the available
    credit.
    """
    projects_below: dict[int, list[int]] = defaultdict(list)
    for number, chain in funds.chains.items():
        for parent in chain:
            projects_below[parent].append(number)
    for project in wanted.projects:
        if project.account in hidden:
            continue
        # An allocation that several projects below share counts once.
        allocations = {
            allocation.id: allocation
            for child in projects_below[project.id]
            for allocation in _drawable_allocations(child, funds, wanted.now)
        }.values()
        available = sum(max(0, allocation.remaining) for allocation in allocations)
        held = sum(allocation.held for allocation in allocations)
        usage = wanted.usage.get(project.account, AccountUsage())
        limit = usage.billing_limit(max(held, usage.running) + available)
        known = accounts.get(project.account)
        if known is None or billing_limit(known) != limit:
            yield _set_limit(
                wanted.cluster,
                project.account,
                limit,
                f"{available} billing minutes may still be drawn by {project.account}",
            )
    for account in sorted(accounts.keys() & set(wanted.removed) - set(hidden)):
        usage = wanted.usage.get(account, AccountUsage())
        limit = usage.billing_limit(usage.running) if usage.running else 0
        if billing_limit(accounts[account]) != limit:
            yield _set_limit(
                wanted.cluster, account, limit, f"the project of {account} was removed"
            )


def _set_limit(cluster: str, account: str, limit: int, why: str) -> SacctmgrChange:
    where = ("modify", "account", "where", f"name={account}", f"cluster={cluster}")
    return SacctmgrChange((*where, "set", f"GrpTRESMins={BILLING}={limit}"), why)


def _drawable_allocations(project: int, funds: BankFunds, now: int) -> list[Allocation]:
    return [
        allocation
        for resource in funds.resources
        for allocation in funds.payers(project, resource, now)
        if allocation.state is AllocationState.ACTIVE
    ]


def billing_limit(association: SlurmAssociation) -> int | None:
    """Return the billing-minutes of an association's GrpTRESMins, or None."""
    for entry in association.group_limits.split(","):
        name, _, value = entry.partition("=")
        if name == BILLING and value.isascii() and value.isdigit():
            return int(value)
    return None
