"""Faults under load: processes are killed or unavailable, the disk is full and messages are
disordered while jobs are submitted. The ledger must equal accounting in the end.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.running_agent import RunningAgent
from tests.slurm.accounting_audit import (
    CLOCK_SECONDS,
    END_MAY_COME_FIRST,
    audit,
    executions,
    instant,
    instants,
    key,
    key_of_run,
    slurm_time,
)
from tests.slurm.bank_cluster import TERMS, BankStack, running_stack
from tests.slurm.conftest import RecordFigure
from tests.slurm.faults import FaultInjector
from tests.slurm.faulty_socket import FaultyFrameProxy, FaultyProxy, FaultyRequestProxy
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import SLURMCTLD
from tests.slurm.load import (
    Load,
    Operator,
    QueuePoller,
    Submission,
    describe_polls,
    missed_polls,
    script_starts,
)
from tests.slurm.prep_cluster import build, socket_of
from tests.support.conditions import wait_until
from tests.support.postgres import PostgresServer
from tests.support.server import create_bank
from tests.support.small_disk import small_disk

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(3_600)]

SEED = 20_261_121
FAULTS = [
    pytest.param(11, 1, 2.0, 10.0, id="short"),
    pytest.param(104, 4, 8.0, 150.0, marks=pytest.mark.campaign, id="a hundred and more"),
]
MISSED_SHARE, FORGOTTEN_SHARE, FEW = (
    0.02,
    0.03,
    10,
)  # a few for all kills together, and for each reset
LOST_BY_SLURM = {"ORPHAN", "RUNAWAY"}  # slurmctld and accounting have lost the end of the job
REPORTED_ONLY = {"AMOUNT"}  # a slurmctld that had lost the first end reported another one
OVER_SECONDS = 400


@dataclass
class FaultStack:
    """Full stack with a proxy on each connection, an outbox on its own small disk, and a bank on
    PostgreSQL.
    """

    stack: BankStack
    disk: Path
    proxies: tuple[FaultyProxy, FaultyProxy]


@pytest.fixture
def fault_stack(
    cluster: Cluster, checkout: Path, tmp_path: Path, postgres18: PostgresServer
) -> Iterator[FaultStack]:
    cluster.calm()
    plugin = build(checkout, tmp_path / "plugins")
    rng = random.Random(SEED)
    with (
        postgres18.fresh_database() as name,
        create_bank(postgres18.url(name)) as bank,
        small_disk(tmp_path / "disk", "8m") as disk,
    ):
        to_bank = FaultyRequestProxy(tmp_path / "bank.sock", bank.socket, rng)
        agent = RunningAgent(
            f"unix:{to_bank.path}",
            tables=TERMS,
            outbox=disk / "outbox.sqlite",
            slurm_user='"slurm"',
            timeout=3.0,
        )
        to_agent = FaultyFrameProxy(socket_of(cluster), agent.socket, rng)
        to_bank.start()
        to_agent.start()
        try:
            with running_stack(cluster, plugin, bank, agent) as stack:
                yield FaultStack(stack, disk, (to_agent, to_bank))
                cluster.empty()  # after resets, with numbers that no other test has used
        finally:
            to_agent.stop()
            to_bank.stop()


@pytest.mark.parametrize(("faults", "resets", "away", "once"), FAULTS)
def test_ledger_equals_accounting_after_all_faults(
    fault_stack: FaultStack,
    postgres18: PostgresServer,
    faults: int,
    resets: int,
    away: float,
    once: float,
    record_figure: RecordFigure,
) -> None:
    """The bank is unavailable for at most `away` seconds, and once for `once` seconds."""
    stack, slurm, rng = fault_stack.stack, fault_stack.stack.slurm, random.Random(SEED)
    since = float(int(time.time()) + 1)
    wait_until(lambda: time.time() > since, "what was before to be over")
    load, poller = Load(slurm, rng), QueuePoller(slurm)
    injector = FaultInjector(
        stack,
        postgres18,
        fault_stack.disk,
        fault_stack.proxies,
        load,
        random.Random(SEED),
        away,
        once,
    )
    load.start()
    poller.start()
    try:
        injector.inject(faults, resets)
        load.stop()
        wait_until_nothing_is_queued(slurm, load.operator)
    finally:
        load.stop()
        poller.stop()
    stack.agent.wait_until_empty(seconds=120)
    record_figure(
        f"{injector.done.total()} faults in {time.time() - since:.0f} s: {dict(injector.done)}"
    )
    record_figure(f"the bank was unavailable for {injector.without_bank.longest():.0f} s at most")
    assert injector.without_bank.longest() >= once
    for proxy, name in zip(fault_stack.proxies, ("the plug-in", "the bank"), strict=True):
        record_figure(f"messages to and from {name}: {dict(proxy.done)}")

    lost = lost_by_slurm(stack, since, injector, record_figure)
    polls = [
        poll
        for poll in poller.polls
        if not injector.without_controller.overlaps(poll.begun, poll.ended)
    ]
    bank_away_polls = [
        poll for poll in polls if injector.without_bank.overlaps(poll.begun, poll.ended)
    ]
    record_figure(
        f"squeue: {describe_polls(polls)};"
        f" of them without the bank: {describe_polls(bank_away_polls)}"
    )
    lost_reports = reports_lost(stack, since, lost, injector, record_figure)
    reconciled = stack.reconcile("--starttime", slurm_time(since), "--fix")
    record_figure("$ fairbank reconcile --fix\n" + reconciled.stdout + reconciled.stderr)
    left = reconcile_findings(stack, since)
    record_figure(f"then fairbank reconcile finds: {_amounts(left)}")
    result = audit(stack, since, holds=END_MAY_COME_FIRST, lost=lost, begun=script_starts(slurm))
    forgotten = [
        difference
        for difference in result.differences
        if any(_was_unsaved(at, at, injector) for at in difference.instants)
    ]
    record_figure(
        f"ledger against accounting: {result.summary()};"
        f" deferred for {result.deferred_seconds} s at most"
    )
    record_figure(
        "\n        ".join(
            [
                "reported differently by a slurmctld that had lost its state:",
                *(difference.text for difference in forgotten),
            ]
        )
    )
    wrong = [difference.text for difference in result.differences if difference not in forgotten]
    assert wrong == [], "\n".join(wrong[:20])
    assert lost_reports == [], "\n".join(map(str, lost_reports[:20]))
    assert len(forgotten) <= FEW * (1 + resets) + FORGOTTEN_SHARE * result.counts["executions"]
    assert {finding["kind"] for finding in left} <= REPORTED_ONLY
    assert {(finding["job_id"], finding["submitted"]) for finding in left} <= {
        difference.job for difference in forgotten
    } | lost
    record_figure(
        "after fairbank refund of what is above accounting:"
        f" {_amounts(refund_excess(stack, since, left))}"
    )
    assert stack.bank.command("audit", "verify").returncode == 0
    for some_polls in (polls, bank_away_polls):
        assert len(some_polls) > 0
        assert missed_polls(some_polls) <= MISSED_SHARE * len(some_polls)


def wait_until_nothing_is_queued(slurm: Cluster, operator: Operator) -> None:
    """Wait until the queue is empty. Requeued jobs are started in three seconds instead of two
    minutes.
    """

    def over() -> bool:
        operator.start_requeued_jobs()
        ran = slurm.run("root", "squeue", "--noheader", "--format=%i", seconds=OVER_SECONDS)
        return ran.code == 0 and not ran.out.split()

    try:
        wait_until(over, "the queue to be empty", seconds=OVER_SECONDS)
    except TimeoutError as late:
        raise TimeoutError(
            f"{late}:\n{slurm.root('squeue')}\n{slurm.log(SLURMCTLD)[-3000:]}"
        ) from None


def reconcile_findings(stack: BankStack, since: float) -> list[dict[str, Any]]:
    """Return the findings of `fairbank reconcile` without --fix."""
    rows: list[dict[str, Any]] = json.loads(
        stack.reconcile("--starttime", slurm_time(since), "--json").stdout
    )["data"]
    return rows


def _kinds(rows: list[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(finding["kind"] for finding in rows))


def refund_excess(
    stack: BankStack, since: float, left: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Refund what the bank charged beyond accounting, and return the remaining findings, which must
    be the others.
    """
    above = [finding for finding in left if finding["amount"] > 0]
    for finding in above:
        process = stack.bank.command(
            "refund",
            "--id",
            str(finding["job"]),
            f"{finding['amount']}m",
            "--reason",
            "as accounting has it",
            "--yes",
        )
        assert process.returncode == 0, process.stderr
    still = reconcile_findings(stack, since)
    assert still == [finding for finding in left if finding not in above]
    return still


def _amounts(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{finding['kind']} {finding['amount']:+} min" for finding in rows]


def reports_lost(
    stack: BankStack,
    since: float,
    lost: set[tuple[int, int]],
    injector: FaultInjector,
    record_figure: RecordFigure,
) -> list[dict[str, Any]]:
    """Return the findings before repair, without those that slurmctld itself caused. There should
    be none: a report lost by agent, bank, disk or proxy was never acknowledged, and so it was sent
    again.
    """
    differing = reconcile_findings(stack, since)
    runs = stack.rows("/job", cluster="lab")
    ours = [
        finding
        for finding in differing
        if not _is_caused_by_slurmctld(
            finding,
            # its own run, and that of a lost job whose number it was given
            [at for run in runs if _is_under_its_number(run, finding) for at in instants(run)],
            lost,
            injector,
        )
    ]
    record_figure(
        f"fairbank reconcile finds: {_kinds(differing)}; of them lost by others than slurmctld:"
        f" {_kinds(ours)}"
    )
    return ours


def _is_under_its_number(run: dict[str, Any], finding: dict[str, Any]) -> bool:
    is_own = run["id"] == finding["job"]
    return is_own or key_of_run(run) == (finding["job_id"], finding["submitted"])


def _is_caused_by_slurmctld(
    finding: dict[str, Any],
    runs: Sequence[int],
    lost: set[tuple[int, int]],
    injector: FaultInjector,
) -> bool:
    """Return True if slurmctld caused the difference: it was killed before it saved its state, or
    was reset. `runs` has the starts and ends in the ledger.
    """
    job, begun_at = (finding["job_id"], finding["submitted"]), finding["start"]
    of_accounting = () if begun_at is None else (begun_at, begun_at + finding["elapsed"])
    times = (finding["submitted"], *of_accounting, *runs)
    if job in lost or any(_was_unsaved(at, at, injector) for at in times):
        return True
    return finding["kind"] in LOST_BY_SLURM and any(
        finding["submitted"] <= ended for _, ended in injector.resets
    )


def lost_by_slurm(
    stack: BankStack, since: float, injector: FaultInjector, record_figure: RecordFigure
) -> set[tuple[int, int]]:
    """Return the jobs that slurmctld has lost: those not saved yet when it was killed, and those
    before a reset. Fails if any other job has no end.
    """
    try:
        wait_until(
            lambda: not _without_end(executions(stack, since), injector),
            "accounting to have every end",
            seconds=120,
        )
    except TimeoutError:
        assert _without_end(executions(stack, since), injector) == []
    rows = executions(stack, since)
    lost = {key(row) for row in rows if _is_lost(row, injector)}
    known = {(int(row["JobIDRaw"])) for row in rows}
    unheard = [job for job in injector.load.submitted if job.job not in known]
    assert [
        job
        for job in unheard
        if not _was_unsaved(job.before, job.after, injector) and not _was_reset(job, injector)
    ] == []
    load = injector.load
    record_figure(
        f"{len(load.submitted)} submissions, {load.failed} not taken; {len(rows)} executions"
    )
    record_figure(
        f"by Slurm itself: {len(lost)} executions lost,"
        f" {load.operator.duplicate_launches} jobs held"
        " because their numbers were known"
    )
    return lost


def _without_end(rows: list[dict[str, str]], injector: FaultInjector) -> list[dict[str, str]]:
    return [row for row in rows if not instant(row["End"]) and not _is_lost(row, injector)]


def _is_lost(row: dict[str, str], injector: FaultInjector) -> bool:
    """Return True if slurmctld has lost the job. An array task gets its number when it starts, and
    another one from a slurmctld that has lost that.
    """
    submitted, started, end = instant(row["Submit"]), instant(row["Start"]), instant(row["End"])
    at_reset = any(
        submitted <= ended and (not end or end >= int(begun)) for begun, ended in injector.resets
    )
    return at_reset or (
        not end and any(_was_unsaved(at, at, injector) for at in (submitted, started) if at)
    )


def _was_unsaved(first: float, last: float, injector: FaultInjector) -> bool:
    """Return True if a slurmctld was killed before it saved the events between these times."""
    return any(
        saved - CLOCK_SECONDS <= last and first <= death + CLOCK_SECONDS
        for saved, death in injector.unsaved
    )


def _was_reset(job: Submission, injector: FaultInjector) -> bool:
    return any(job.before <= ended for _, ended in injector.resets)
