"""Faults under load: processes are killed or unavailable, the disk is full and messages are
disordered while jobs are submitted. The ledger must equal accounting in the end.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.running_agent import RunningAgent
from tests.slurm.accounting_audit import (
    CLOCK_SECONDS,
    END_MAY_COME_FIRST,
    executions,
    instant,
    instants,
    key,
    reckon,
    words_of,
)
from tests.slurm.bank_cluster import TERMS, Office, opened
from tests.slurm.conftest import Tell
from tests.slurm.faults import Troubles
from tests.slurm.faulty_socket import FrameMischief, Mischief, RequestMischief
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import SLURMCTLD
from tests.slurm.load import Haste, Load, Looking, Submitted, begun, missed, told
from tests.slurm.prep_cluster import build, socket_of
from tests.support.conditions import wait_until
from tests.support.postgres import PostgresServer
from tests.support.server import made
from tests.support.small_disk import small_disk

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(3_600)]

SEED = 20_261_121
FAULTS = [
    pytest.param(11, 1, 2.0, 10.0, id="short"),
    pytest.param(104, 4, 8.0, 150.0, marks=pytest.mark.campaign, id="a hundred and more"),
]
MISSED_SHARE, FORGOTTEN_SHARE, SOME = (
    0.02,
    0.03,
    10,
)  # some for the kills together, and for each reset, which forgets as much at once
GONE = {
    "ORPHAN",
    "RUNAWAY",
}  # neither slurmctld nor accounting has what became of it: they have lost it, and not we
FOR_PEOPLE = {
    "AMOUNT"
}  # accounting was told of another end by a slurmctld that had forgotten the first
OVER_SECONDS = 400


@dataclass
class Stage:
    """Full stack with a proxy on each connection, an outbox on its own small disk, and a bank on
    PostgreSQL.
    """

    office: Office
    disk: Path
    mischief: tuple[Mischief, Mischief]


@pytest.fixture
def stage(
    cluster: Cluster, checkout: Path, tmp_path: Path, postgres18: PostgresServer
) -> Iterator[Stage]:
    cluster.calm()
    plugin = build(checkout, tmp_path / "plugins")
    rng = random.Random(SEED)
    with (
        postgres18.fresh_database() as name,
        made(postgres18.url(name)) as bank,
        small_disk(tmp_path / "disk", "8m") as disk,
    ):
        to_bank = RequestMischief(tmp_path / "bank.sock", bank.socket, rng)
        agent = RunningAgent(
            f"unix:{to_bank.path}",
            tables=TERMS,
            outbox=disk / "outbox.sqlite",
            slurm_user='"slurm"',
            timeout=3.0,
        )
        to_agent = FrameMischief(socket_of(cluster), agent.socket, rng)
        to_bank.start()
        to_agent.start()
        try:
            with opened(cluster, plugin, bank, agent) as office:
                yield Stage(office, disk, (to_agent, to_bank))
                cluster.calm()
        finally:
            to_agent.stop()
            to_bank.stop()


@pytest.mark.parametrize(("faults", "resets", "away", "once"), FAULTS)
def test_ledger_equals_accounting_after_all_faults(
    stage: Stage,
    postgres18: PostgresServer,
    faults: int,
    resets: int,
    away: float,
    once: float,
    tell: Tell,
) -> None:
    """The bank is unavailable for at most `away` seconds, and once for `once` seconds."""
    office, slurm, rng = stage.office, stage.office.slurm, random.Random(SEED)
    since = float(int(time.time()) + 1)
    wait_until(lambda: time.time() > since, "what was before to be over")
    load, poller = Load(slurm, rng), Looking(slurm)
    injector = Troubles(
        office, postgres18, stage.disk, stage.mischief, load, random.Random(SEED), away, once
    )
    load.start()
    poller.start()
    try:
        injector.strike(faults, resets)
        load.stop()
        wait_until_nothing_is_queued(slurm, load.haste)
    finally:
        load.stop()
        poller.stop()
    office.agent.wait_until_empty(seconds=120)
    tell(f"{injector.done.total()} faults in {time.time() - since:.0f} s: {dict(injector.done)}")
    tell(f"the bank was away for {injector.without_bank.longest():.0f} s at most")
    assert injector.without_bank.longest() >= once
    for proxy, name in zip(stage.mischief, ("the plug-in", "the bank"), strict=True):
        tell(f"messages to and from {name}: {dict(proxy.done)}")

    lost = lost_by_slurm(office, since, injector, tell)
    polls = [
        poll
        for poll in poller.looks
        if not injector.without_controller.touch(poll.begun, poll.ended)
    ]
    bank_away_polls = [
        poll for poll in polls if injector.without_bank.touch(poll.begun, poll.ended)
    ]
    tell(f"squeue: {told(polls)}; of them with the bank away: {told(bank_away_polls)}")
    lost_reports = lost_by_us(office, since, lost, injector, tell)
    reconciled = office.reconciled("--starttime", words_of(since), "--fix")
    tell("$ fairbank reconcile --fix\n" + reconciled.stdout + reconciled.stderr)
    left = findings(office, since)
    tell(f"then fairbank reconcile finds: {_amounts(left)}")
    result = reckon(office, since, holds=END_MAY_COME_FIRST, lost=lost, begun=begun(slurm))
    forgotten = [
        difference
        for difference in result.wrong
        if any(_was_unsaved(at, at, injector) for at in difference.instants)
    ]
    tell(
        f"books against accounting: {result.told()}; put off for {result.put_off_seconds} s at most"
    )
    tell(
        "\n        ".join(
            [
                "told otherwise by a slurmctld that had forgotten:",
                *(difference.words for difference in forgotten),
            ]
        )
    )
    wrong = [difference.words for difference in result.wrong if difference not in forgotten]
    assert wrong == [], "\n".join(wrong[:20])
    assert lost_reports == [], "\n".join(map(str, lost_reports[:20]))
    assert len(forgotten) <= SOME * (1 + resets) + FORGOTTEN_SHARE * result.counts["executions"]
    assert {finding["kind"] for finding in left} <= FOR_PEOPLE
    assert {(finding["job_id"], finding["submitted"]) for finding in left} <= {
        difference.job for difference in forgotten
    } | lost
    tell(
        "after fairbank refund of what is above accounting:"
        f" {_amounts(refunded(office, since, left))}"
    )
    assert office.bank.command("audit", "verify").returncode == 0
    for some_polls in (polls, bank_away_polls):
        assert len(some_polls) > 0
        assert missed(some_polls) <= MISSED_SHARE * len(some_polls)


def wait_until_nothing_is_queued(slurm: Cluster, haste: Haste) -> None:
    """Wait until the queue is empty. Requeued jobs are started in three seconds instead of two
    minutes.
    """

    def over() -> bool:
        haste.see_to_it()
        ran = slurm.run("root", "squeue", "--noheader", "--format=%i", seconds=OVER_SECONDS)
        return ran.code == 0 and not ran.out.split()

    try:
        wait_until(over, "the queue to be empty", seconds=OVER_SECONDS)
    except TimeoutError as late:
        raise TimeoutError(
            f"{late}:\n{slurm.root('squeue')}\n{slurm.log(SLURMCTLD)[-3000:]}"
        ) from None


def findings(office: Office, since: float) -> list[dict[str, Any]]:
    """Return the findings of `fairbank reconcile` without --fix."""
    rows: list[dict[str, Any]] = json.loads(
        office.reconciled("--starttime", words_of(since), "--json").stdout
    )["data"]
    return rows


def _kinds(rows: list[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(finding["kind"] for finding in rows))


def refunded(office: Office, since: float, left: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Refund what the bank charged beyond accounting, and return the remaining findings, which must
    be the others.
    """
    above = [finding for finding in left if finding["amount"] > 0]
    for finding in above:
        process = office.bank.command(
            "refund",
            "--id",
            str(finding["job"]),
            f"{finding['amount']}m",
            "--reason",
            "as accounting has it",
            "--yes",
        )
        assert process.returncode == 0, process.stderr
    still = findings(office, since)
    assert still == [finding for finding in left if finding not in above]
    return still


def _amounts(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{finding['kind']} {finding['amount']:+} min" for finding in rows]


def lost_by_us(
    office: Office, since: float, lost: set[tuple[int, int]], injector: Troubles, tell: Tell
) -> list[dict[str, Any]]:
    """Return the findings before repair, without those that slurmctld itself caused. There should
    be none: a report lost by agent, bank, disk or proxy was never acknowledged, and so it was sent
    again.
    """
    differing = findings(office, since)
    runs = {run["id"]: instants(run) for run in office.rows("/job", cluster="lab")}
    ours = [
        finding
        for finding in differing
        if not _is_slurms_own(finding, runs.get(finding["job"], ()), lost, injector)
    ]
    tell(
        f"fairbank reconcile finds: {_kinds(differing)}; of them lost by others than slurmctld:"
        f" {_kinds(ours)}"
    )
    return ours


def _is_slurms_own(
    finding: dict[str, Any], run: tuple[int, ...], lost: set[tuple[int, int]], injector: Troubles
) -> bool:
    """Return True if slurmctld caused the difference: it was killed before it saved its state, or
    was reset. `run` has start and end in the ledger.
    """
    job, begun_at = (finding["job_id"], finding["submitted"]), finding["start"]
    of_accounting = () if begun_at is None else (begun_at, begun_at + finding["elapsed"])
    times = (finding["submitted"], *of_accounting, *run)
    if job in lost or any(_was_unsaved(at, at, injector) for at in times):
        return True
    return finding["kind"] in GONE and any(
        finding["submitted"] <= ended for _, ended in injector.resets
    )


def lost_by_slurm(
    office: Office, since: float, injector: Troubles, tell: Tell
) -> set[tuple[int, int]]:
    """Return the jobs that slurmctld has lost: those not saved yet when it was killed, and those
    before a reset. Fails if any other job has no end.
    """
    wait_until(
        lambda: not _without_end(executions(office, since), injector),
        "accounting to have every end",
        seconds=120,
    )
    rows = executions(office, since)
    lost = {key(row) for row in rows if _is_lost(row, injector)}
    known = {(int(row["JobIDRaw"])) for row in rows}
    unheard = [job for job in injector.load.submitted if job.job not in known]
    assert [
        job
        for job in unheard
        if not _was_unsaved(job.asked, job.told, injector) and not _was_reset(job, injector)
    ] == []
    load = injector.load
    tell(f"{len(load.submitted)} submissions, {load.failed} not taken; {len(rows)} executions")
    tell(
        f"by Slurm itself: {len(lost)} executions lost, {load.haste.slurms_own} jobs held since"
        " their numbers were known"
    )
    return lost


def _without_end(rows: list[dict[str, str]], injector: Troubles) -> list[dict[str, str]]:
    return [row for row in rows if not instant(row["End"]) and not _is_lost(row, injector)]


def _is_lost(row: dict[str, str], injector: Troubles) -> bool:
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


def _was_unsaved(first: float, last: float, injector: Troubles) -> bool:
    """Return True if a slurmctld was killed before it saved the events between these times."""
    return any(
        saved - CLOCK_SECONDS <= last and first <= death + CLOCK_SECONDS
        for saved, death in injector.unsaved
    )


def _was_reset(job: Submitted, injector: Troubles) -> bool:
    return any(job.asked <= ended for _, ended in injector.resets)
