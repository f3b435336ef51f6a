"""Comparison of the ledger with accounting, run by run. It computes prices itself and calls no
product code.
"""

from __future__ import annotations

import math
import pwd
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from tests.slurm.bank_cluster import BankStack
from tests.slurm.lab.machine import SIZES
from tests.slurm.lab.output_parsers import tres

COLUMNS = (
    "JobID",
    "JobIDRaw",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "State",
    "Account",
    "Partition",
    "AllocTRES",
    "User",
    "DBIndex",
)
GIGABYTES = {
    "K": Fraction(1, 1024**2),
    "M": Fraction(1, 1024),
    "G": Fraction(1),
    "T": Fraction(1024),
}
FREE = "NODE_FAIL"
REQUEUED_STATES = ("REQUEUED", "CANCELLED")  # states of jobs that are refused at their start
CLOCK_SECONDS = 1  # Slurm prints whole seconds
SAME_START_SECONDS = 2  # allowed difference between the start times of prolog and accounting
ONE_HOLD, END_MAY_COME_FIRST = (1,), (0, 1)


def executions(stack: BankStack, since: float) -> list[dict[str, str]]:
    """Return the accounting records of each execution since a time, requeued ones included. sacct
    shows a record without a start only if it is requested by number, so the jobs of the ledger are
    requested a second time. If a job is requeued while its prolog runs, 24.11 leaves a record that
    stays pending, with a newer record of the same job: the older one is dropped. The older record
    may have the later time of submission.
    """
    numbers = ",".join(
        map(str, sorted({run["job_id"] for run in stack.rows("/job", cluster="lab")}))
    )
    queries = [
        (f"--starttime={slurm_time(since)}", "--endtime=now+1hour"),
        *([(f"--jobs={numbers}", "--starttime=1970-01-02")] if numbers else []),
    ]
    rows = [
        row
        for query in queries
        for row in stack.slurm.sacct("--duplicates", *query, columns=COLUMNS)
    ]
    once = {(row["JobIDRaw"], row["Submit"], row["Start"]): row for row in rows}
    newest: dict[str, int] = {}
    for row in once.values():
        newest[row["JobIDRaw"]] = max(newest.get(row["JobIDRaw"], 0), int(row["DBIndex"]))
    return [
        row
        for row in once.values()
        if instant(row["Submit"]) >= int(since)
        and (row["State"] != "PENDING" or int(row["DBIndex"]) == newest[row["JobIDRaw"]])
    ]


def slurm_time(instant: float) -> str:
    """Return the time in the form that Slurm's and Fairbank's commands accept, in the lab's time
    zone.
    """
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def instant(text: str) -> int:
    """Return seconds since 1970; 0 for a time that Slurm does not know."""
    return (
        0
        if text in ("Unknown", "None", "")
        else int(datetime.fromisoformat(f"{text}+00:00").timestamp())
    )


def instants(run: dict[str, Any]) -> tuple[int, ...]:
    """Return the start of the run, and its end if it has one."""
    return tuple(instant(run[when].rstrip("Z")) for when in ("start", "ended") if run[when])


def key(row: dict[str, str]) -> tuple[int, int]:
    """Return job id and submit time. The id alone is not unique, because slurmctld may restart its
    numbers at 1.
    """
    return int(row["JobIDRaw"]), instant(row["Submit"])


def key_of_run(run: dict[str, Any]) -> tuple[int, int]:
    return run["job_id"], instant(run["submitted"].rstrip("Z"))


def price(row: dict[str, str]) -> int:
    """Return the price in SU-minutes: the most expensive resource times the elapsed time, rounded
    up to a minute.
    """
    (weights,) = [group.weights for group in SIZES["full"] if group.partition == row["Partition"]]
    allocated = tres(row["AllocTRES"])
    memory = allocated.get("mem", "0G")
    amounts = {
        "CPU": Fraction(allocated.get("cpu", 0)),
        "GRES/gpu": Fraction(allocated.get("gres/gpu", 0)),
    }
    amounts["Mem"] = Fraction(memory[:-1]) * GIGABYTES[memory[-1]]
    units = max(
        Fraction(weight.removesuffix("G")) * amounts[name]
        for name, weight in (weight.split("=") for weight in weights.split(","))
    )
    return math.ceil(units * int(row["ElapsedRaw"]) / 60)


@dataclass(frozen=True)
class AuditDifference:
    """Difference between ledger and accounting, with its job (id and submit time) and the times of
    its events (seconds since 1970).
    """

    text: str
    job: tuple[int, int]
    instants: tuple[int, ...]


@dataclass
class AuditResult:
    """Result of the comparison: numbers of records, and the differences."""

    counts: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    charged: int = 0
    differences: list[AuditDifference] = field(default_factory=list)
    deferred_seconds: int = 0
    """Longest elapsed time in accounting of a run that was deferred."""

    def summary(self) -> str:
        return f"{dict(self.counts)}, {self.charged} SU-minutes, by state {dict(self.states)}"


def audit(
    stack: BankStack,
    since: float,
    *,
    holds: Collection[int] = ONE_HOLD,
    lost: Iterable[tuple[int, int]] = (),
    begun: Mapping[int, Sequence[int]] | None = None,
) -> AuditResult:
    """Compare all runs since a time. `holds` has the allowed numbers of holds of a run. Jobs in
    `lost` (id and submit time) are skipped: Slurm has lost their ends. If jobs are deferred because
    the bank is unavailable, accounting counts seconds for a run that never started and costs
    nothing: `begun` has the real start times of each job's scripts.
    """
    result = AuditResult()
    skipped = set(lost)
    known, runs = {}, defaultdict(list)
    for run in stack.rows("/job", cluster="lab"):
        if key_of_run(run) in skipped:
            continue
        known[run["id"]] = run
        if key_of_run(run)[1] >= int(since):
            runs[run["job_id"]].append(run)
    refused = defaultdict(list)
    for refusal in stack.rows("/failure", cluster="lab"):
        refused[refusal["job_id"]].append(instant(refusal["at"].rstrip("Z")))
    for row in executions(stack, since):
        if key(row) not in skipped:
            never = begun is not None and not _has_begun(row, begun.get(int(row["JobIDRaw"]), ()))
            _compare(
                row, runs[int(row["JobIDRaw"])], refused[int(row["JobIDRaw"])], result, never=never
            )
    for run in (run for job_runs in runs.values() for run in job_runs):
        result.counts["runs of no execution"] += 1
        if run["state"] != "released":
            result.differences.append(
                AuditDifference(
                    f"in the ledger, and not in accounting: {run}", key_of_run(run), instants(run)
                )
            )
    _check_entries(stack, result, known, holds)
    return result


def _has_begun(row: dict[str, str], begun: Sequence[int]) -> bool:
    return any(_is_during(row, at) for at in begun)


def _is_during(row: dict[str, str], at: int) -> bool:
    return instant(row["Start"]) - CLOCK_SECONDS <= at <= instant(row["End"]) + CLOCK_SECONDS


def _compare(
    row: dict[str, str],
    runs: list[dict[str, Any]],
    refused: Sequence[int],
    result: AuditResult,
    *,
    never: bool,
) -> None:
    state = row["State"].split()[0]
    started = instant(row["Start"])
    same = [
        run for run in runs if instant(run["submitted"].rstrip("Z")) == instant(row["Submit"])
    ]  # the ledger's start is the end of the prolog
    same = same or [
        run
        for run in runs
        if started and abs(instant(run["start"].rstrip("Z")) - started) <= SAME_START_SECONDS
    ]
    result.counts["executions"] += 1
    result.states[state] += 1
    if not same:
        if (
            not started
            or int(row["ElapsedRaw"]) == 0
            or (state in REQUEUED_STATES and any(_is_during(row, at) for at in refused))
        ):
            result.counts["never ran"] += 1
        else:
            result.differences.append(
                AuditDifference(
                    f"in accounting, and not in the ledger: {row}",
                    key(row),
                    (started, instant(row["End"])),
                )
            )
        return
    # A slurmctld that was killed may give the number of another user's job again.
    owner = pwd.getpwnam(row["User"]).pw_uid if row["User"] else None
    run = min(
        same,
        key=lambda run: (
            owner not in (None, run["owner_uid"]),
            abs(instant(run["start"].rstrip("Z")) - started),
        ),
    )
    runs.remove(run)
    missing = (
        {} if row["Partition"] else {"Partition": run["partition"], "AllocTRES": run["tres"]}
    )  # accounting has not received its start
    expected = 0 if state == FREE else price(row | missing)
    result.charged += run["charged"]
    result.counts["charged" if run["charged"] else run["state"]] += 1
    if run["state"] not in ("charged", "released") or run["held"]:
        result.differences.append(
            AuditDifference(f"not resolved: {run}", key_of_run(run), instants(run))
        )
    elif run["state"] == "released" and state == "REQUEUED" and never:
        result.counts["deferred"] += 1
        result.deferred_seconds = max(result.deferred_seconds, int(row["ElapsedRaw"]))
    elif run["charged"] != expected:
        result.differences.append(
            AuditDifference(
                f"charged {run['charged']} and not {expected}: {run} {row}",
                key_of_run(run),
                instants(run),
            )
        )


def _check_entries(
    stack: BankStack,
    result: AuditResult,
    known: Mapping[int, dict[str, Any]],
    holds: Collection[int],
) -> None:
    """Check that every run has an allowed number of holds, and one charge or release."""
    steps: dict[int, list[str]] = defaultdict(list)
    for entry in stack.rows("/entry", about="credit"):
        if entry["run"] in known:
            steps[entry["run"]].append(entry["kind"])
    for number, kinds in steps.items():
        counted, run = Counter(kinds), known[number]
        result.counts["holds"] += counted["hold"]
        result.counts["resolutions"] += counted["charge"] + counted["release"]
        if counted["hold"] not in holds or counted["charge"] + counted["release"] != 1:
            result.differences.append(
                AuditDifference(
                    f"run {number} of the ledger: {kinds}", key_of_run(run), instants(run)
                )
            )


def rows_of_jobs(rows: Sequence[dict[str, str]], jobs: Iterable[int]) -> list[dict[str, str]]:
    numbers = set(jobs)
    return [row for row in rows if int(row["JobIDRaw"]) in numbers]
