"""Slurm's accounts, associations and limits as the bank's projects require them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from fairbank.slurm.parsers.values import SlurmAssociation
from fairbank.slurm.reconcile.bank_records import BankAllocation, BankFunds, BankProject

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

    def billing_limit(self, room: int) -> int:
        """Return the limit that leaves so many minutes beyond the usage.

        Without any, the limit is reached at once; otherwise never a minute too early.
        """
        return -(-self.seconds // 60) + room if room else self.seconds // 60


class TargetAccounts(msgspec.Struct, frozen=True, kw_only=True):
    """State to establish in Slurm.

    removed   accounts of projects that were removed usage     by account, of all that Slurm shows
    fence     set GrpTRESMins to the balance, as a second limit for a time without the agent; of
              removed accounts to 0, or to what still runs there
    remove    delete associations without a membership, and all of removed accounts
    """

    cluster: str
    projects: Sequence[BankProject]
    associations: Sequence[SlurmAssociation]
    allocations: Sequence[BankAllocation] = ()
    removed: Sequence[str] = ()
    usage: Mapping[str, AccountUsage] = {}
    now: int = 0
    fence: bool = False
    remove: bool = False


def plan_changes(
    wanted: TargetAccounts, user_of: Callable[[int], str | None]
) -> tuple[list[SacctmgrChange], list[str]]:
    """Plan the changes: accounts with parents first, then users, then limits.

    Args:
        wanted: the state to establish.
        user_of: returns the name of a uid, or None.

    Returns:
        The changes, and notes on what cannot be done.
    """
    accounts = {each.account: each for each in wanted.associations if not each.user}
    people = {
        (each.account, each.user)
        for each in wanted.associations
        if each.user and not each.partition
    }
    funds = BankFunds(wanted.projects, wanted.allocations)
    found = list(_accounts(wanted, accounts, funds))
    notes: list[str] = []
    belong: set[tuple[str, str]] = set()
    for project in wanted.projects:
        for uid in sorted(project.members):
            user = user_of(uid)
            if user is None:
                notes.append(
                    f"uid {uid}, a member of {project.account}: this host knows nobody of this"
                    " number"
                )
                continue
            belong.add((project.account, user))
    found += [_added(wanted.cluster, *each) for each in sorted(belong - people)]
    if wanted.remove:
        ours = {each.account for each in wanted.projects}.union(wanted.removed)
        strangers = sorted(each for each in people - belong if each[0] in ours)
        if notes:
            notes.append("nobody is removed while there are members whose names are not known")
        else:
            found += [_removed(wanted.cluster, *each) for each in strangers]
    if wanted.fence:
        dark = _accounts_without_usage(wanted, accounts)
        found += _limit_changes(wanted, accounts, funds, dark)
        notes += [
            f"account {each}: sshare tells nothing of its usage, so it gets no fence; run this as"
            " root or as SlurmUser"
            for each in dark
        ]
    return found, notes


def _accounts(
    wanted: TargetAccounts, accounts: Mapping[str, SlurmAssociation], funds: BankFunds
) -> Iterator[SacctmgrChange]:
    by_id = {project.id: project for project in wanted.projects}
    cluster = f"cluster={wanted.cluster}"
    # Parents come first: sacctmgr knows no parent that does not exist.
    for project in sorted(
        wanted.projects, key=lambda project: (len(funds.chains[project.id]), project.account)
    ):
        name, group = project.account, project.group
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
    return SacctmgrChange(words, f"{user} is no member of {account}")


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
    dark: Collection[str],
) -> Iterator[SacctmgrChange]:
    """Yield the changes of GrpTRESMins.

    Slurm compares the limit with all usage of an account and those below it, and ends running jobs
    at it. So the limit is the usage, plus what running jobs may still use, plus the available
    credit.
    """
    below: dict[int, list[int]] = defaultdict(list)
    for number, line in funds.chains.items():
        for above in line:
            below[above].append(number)
    for project in (each for each in wanted.projects if each.account not in dark):
        drawn = {
            each.id: each
            for child in below[project.id]
            for each in _drawable_allocations(child, funds, wanted.now)
        }.values()
        left, held = sum(max(0, each.available) for each in drawn), sum(each.held for each in drawn)
        usage = wanted.usage.get(project.account, AccountUsage())
        limit = usage.billing_limit(max(held, usage.running) + left)
        known = accounts.get(project.account)
        if known is None or billing_limit(known) != limit:
            yield _set_limit(
                wanted.cluster,
                project.account,
                limit,
                f"{left} billing minutes may still be drawn by {project.account}",
            )
    for account in sorted(each for each in wanted.removed if each in accounts and each not in dark):
        usage = wanted.usage.get(account, AccountUsage())
        limit = usage.billing_limit(usage.running) if usage.running else 0
        if billing_limit(accounts[account]) != limit:
            yield _set_limit(
                wanted.cluster, account, limit, f"the project of {account} was removed"
            )


def _set_limit(cluster: str, account: str, limit: int, why: str) -> SacctmgrChange:
    words = (
        "modify",
        "account",
        "where",
        f"name={account}",
        f"cluster={cluster}",
        "set",
        f"GrpTRESMins={BILLING}={limit}",
    )
    return SacctmgrChange(words, why)


def _drawable_allocations(project: int, funds: BankFunds, now: int) -> list[BankAllocation]:
    return [
        allocation
        for resource in funds.resources
        for allocation in funds.payers(project, resource, now)
        if allocation.state == "active"
    ]


def billing_limit(association: SlurmAssociation) -> int | None:
    """Return the billing-minutes of an association's GrpTRESMins, or None."""
    for entry in association.group_limits.split(","):
        name, _, value = entry.partition("=")
        if name == BILLING and value.isascii() and value.isdigit():
            return int(value)
    return None
