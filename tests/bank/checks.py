"""Invariants of the ledger, computed independently of the product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from fairbank.bank.allocation import NO_LINK, Allocation
from fairbank.bank.audit import Finding, Fold
from fairbank.bank.entry import REGISTRY, Entry, Kind, link_of
from fairbank.bank.run import RunState
from fairbank.bank.transaction_data import RegistryHead, TransactionData
from fairbank.core.units import SUM_MAX

INTO, OUT_OF = {Kind.DEPOSIT, Kind.TRANSFER_IN}, {Kind.WITHDRAW, Kind.TRANSFER_OUT}
RESOLVED = {Kind.CHARGE, Kind.RELEASE}


def entries_by_allocation(entries: Iterable[Entry]) -> dict[int, list[Entry]]:
    """Return the entries of the journal by allocation."""
    journals: dict[int, list[Entry]] = {}
    for entry in entries:
        journals.setdefault(entry.allocation, []).append(entry)
    return journals


def sums_of_entries(entries: Iterable[Entry]) -> tuple[int, int, int]:
    """Return deposited, charged and held, added up from the entries of one allocation."""
    deposited = charged = 0
    holds: dict[int | None, int] = {}
    for entry in entries:
        match entry.kind:
            case kind if kind in INTO:
                deposited += entry.amount
            case kind if kind in OUT_OF:
                deposited -= entry.amount
            case Kind.HOLD | Kind.ADJUST:
                holds[entry.run] = holds.get(entry.run, 0) + entry.amount
            case Kind.CHARGE | Kind.RELEASE | Kind.LAPSE:
                holds.pop(entry.run, None)
                charged += entry.amount if entry.kind is Kind.CHARGE else 0
            case Kind.REFUND:
                charged -= entry.amount
            case Kind.RECHARGE:
                charged += entry.amount
    return deposited, charged, sum(holds.values())


def check_ledger(
    work: TransactionData, entries: list[Entry] | None = None, *, overdraft: bool = False
) -> None:
    """Check all invariants of a commit. `overdraft`: policy lets `remaining` go below zero."""
    journal = work.entries if entries is None else entries
    written = entries_by_allocation(journal)
    for allocation in work.allocations.values():
        _check_sums(allocation, written.get(allocation.id, []))
        assert overdraft or (allocation.remaining >= 0 and allocation.overrun == 0), (
            f"overdraft: {allocation}"
        )
        drawn = {
            kind: sum(
                getattr(sums, kind)
                for (number, _), sums in work.users.items()
                if number == allocation.id
            )
            for kind in ("charged", "held")
        }
        assert drawn == {"charged": allocation.charged, "held": allocation.held}
    for lines in written.values():
        _check_chain(lines)
    _check_runs(work, journal)
    assert len({entry.id for entry in journal}) == len(journal)
    keys = [(entry.actor, entry.key) for entry in journal if entry.key is not None]
    assert len(set(keys)) == len(keys)
    _check_conservation(work, journal)
    assert findings(work, journal) == []


def _check_sums(allocation: Allocation, lines: list[Entry]) -> None:
    assert (allocation.deposited, allocation.charged, allocation.held) == sums_of_entries(lines)
    assert all(
        0 <= amount <= SUM_MAX
        for amount in (
            allocation.deposited,
            allocation.charged,
            allocation.held,
            allocation.overrun,
        )
    )
    assert (
        allocation.deposited + allocation.terms.credit_limit + allocation.overrun
        >= allocation.charged + allocation.held
    )
    last = lines[-1]
    assert (allocation.seq, allocation.link) == (last.seq, last.link)
    assert (last.deposited, last.charged, last.held) == (
        allocation.deposited,
        allocation.charged,
        allocation.held,
    )


def _check_chain(lines: list[Entry]) -> None:
    before = NO_LINK
    for number, entry in enumerate(lines, start=1):
        assert entry.seq == number
        assert entry.link == link_of(entry, before)
        before = entry.link


def _check_runs(work: TransactionData, journal: list[Entry]) -> None:
    """Check that each run has one hold and is closed at most once, and that its row follows from
    entries.
    """
    opened = Counter(entry.run for entry in journal if entry.kind is Kind.HOLD)
    closed = Counter(entry.run for entry in journal if entry.kind in RESOLVED)
    assert all(times == 1 for times in (opened | closed).values())
    assert (opened | closed).keys() == {record.id for record in work.runs.values()}
    for record in work.runs.values():
        assert (closed[record.id] == 1) == (record.state in (RunState.CHARGED, RunState.RELEASED))
        assert (record.held == 0) or record.state is RunState.HELD
        assert 0 <= record.refunded <= record.charged
        setting = [
            entry
            for entry in journal
            if entry.run == record.id and entry.kind not in (Kind.REFUND, Kind.RECHARGE)
        ]
        assert record.set_by == setting[-1].id


def _check_conservation(work: TransactionData, journal: list[Entry]) -> None:
    """Check that only deposits and withdrawals change the sum of all credit; a transfer moves
    it.
    """
    moved = {kind: sum(entry.amount for entry in journal if entry.kind is kind) for kind in Kind}
    assert moved[Kind.TRANSFER_IN] == moved[Kind.TRANSFER_OUT]
    assert (
        sum(allocation.deposited for allocation in work.allocations.values())
        == moved[Kind.DEPOSIT] - moved[Kind.WITHDRAW]
    )


def findings(work: TransactionData, journal: list[Entry], *, soon: bool = True) -> list[Finding]:
    """Return the findings of the product's own audit for rows and a journal.

    `soon`: the row of a run is shown when the run is opened, as a store does; otherwise after the
    last entry.
    """
    written = entries_by_allocation(journal)
    return [
        finding
        for number in sorted({REGISTRY, *written, *work.allocations})
        for finding in _found_in(number, work, written.get(number, []), soon)
    ]


def _found_in(number: int, work: TransactionData, lines: list[Entry], soon: bool) -> list[Finding]:
    rows = sorted(
        (run for run in work.runs.values() if run.allocation == number), key=attrgetter("id")
    )
    fold, shown = Fold(number, again={row.id: row for row in rows}.get), 0
    for entry in lines:
        if soon and entry.run == entry.id:
            while shown < len(rows) and rows[shown].id <= entry.id:
                fold.check_run(rows[shown])
                shown += 1
        fold.add(entry)
    fold.finish()
    if number == REGISTRY:
        for project in work.projects.values():
            fold.registry.check_project(project)
        for member in work.members.values():
            fold.registry.check_member(member)
        for token in work.tokens.values():
            fold.registry.check_token(token)
        if work.registry != RegistryHead(
            fold.seq, fold.link
        ):  # the store's audit compares the head of the registry
            fold.findings.append(Finding(REGISTRY, "its head was altered"))
    else:
        fold.check_allocation(work.allocations.get(number))
        for record in rows[shown:]:
            fold.check_run(record)
        for (allocation, uid), sums in work.users.items():
            if allocation == number:
                fold.check_user(uid, sums)
    fold.check_left_over()
    return fold.findings
