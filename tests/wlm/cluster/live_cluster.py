"""Cluster of `fairbank cluster up` with its bank: its processes, its jobs and its disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from fairbank.agent.control import agent_status
from fairbank.bank.query import PAGE_MAX, Page, RunQuery
from fairbank.bank.run import RunRecord
from fairbank.core.errors import Unavailable
from fairbank.setup.bank_settings import opened_store
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.client.requests import JobToSubmit
from fairbank.wlm.controller.state_store import AccountedRun, RunFilter, StateStore
from fairbank.wlm.core.effects import StoredRow
from fairbank.wlm.stepd.processes import process_table
from fairbank.wlm.stepd.step import StepStart, read_start
from tests.support.conditions import wait_until
from tests.wlm.cluster.running_cluster import RunningCluster

SETTINGS = """
[cluster]
cluster_name = "lab"
slurmctld_host = "lab"
return_to_service = 2

[jobs]
kill_wait = 1
auth_info = "cred_expire=0"

[[nodes]]
node_name = "n[1-4]"
cpus = 4
real_memory = 1000

[[partitions]]
partition_name = "main"
nodes = "ALL"
default = true
default_time = "10:00"

[scheduling]
def_mem_per_cpu = 10
"""
_ENDED_SECONDS = 120.0

T = TypeVar("T")


class LiveCluster(RunningCluster):
    """Cluster with four small nodes. Its daemons are processes, which a test may kill."""

    def __init__(self, home: Path, settings: str = SETTINGS) -> None:
        super().__init__(home)
        file = home / "wlm.toml"
        file.write_text(settings)
        self.controller = Controller(self.directory)
        self.fairbank("cluster", "up", "--config", str(file))

    def fairbank(self, *words: str) -> None:
        """Run a command of Fairbank, which must succeed."""
        result = self.run(*words)
        assert result.returncode == 0, (result, self.logs())

    def close(self) -> None:
        self.controller.close()
        super().close()

    def logs(self) -> str:
        """Return the ends of the logs."""
        return "\n".join(
            f"{log.name}:\n{log.read_text(errors='replace')[-1_500:]}"
            for log in sorted((self.directory / "log").glob("*.log"))
        )

    # ------------------------------------------------------------------ processes

    def daemon(self, name: str) -> int | None:
        """Return the process id of a daemon; None while it is started again."""
        pid: int | None = self.states().get(name, {}).get("pid")
        return pid

    def launcher(self) -> int | None:
        """Return the launcher: the oldest child of the node daemon."""
        node, table = self.daemon("node"), process_table().values()
        children = [process for process in table if node is not None and process.parent == node]
        return min(children, key=lambda one: one.start).pid if children else None

    def steps(self, below: str = "*/jobs/*") -> Iterator[StepStart]:
        """Yield the step daemons that live, by the pattern of their directories."""
        table = process_table()
        for directory in (self.directory / "nodes").glob(below):
            try:
                start = read_start(str(directory))
            except OSError:
                continue
            process = table.get(start.daemon) if start else None
            if start and process and process.start == start.daemon_start:
                yield start

    # ------------------------------------------------------------------ jobs

    def persist(self, request: Callable[[], T], what: str) -> T:
        """Repeat a request until the controller answers it: it may be killed meanwhile."""
        answers: list[T] = []

        def has_answer() -> bool:
            try:
                answers.append(request())
            except Unavailable:
                return False
            return True

        wait_until(has_answer, what)
        return answers[0]

    def submit(self, script: str, **options: str) -> int:
        """Submit a job with options of sbatch, and return its id."""
        job = JobToSubmit(
            script=f"#!/bin/sh\n{script}".encode(),
            options={"open-mode": "append"}
            | {name.replace("_", "-"): value for name, value in options.items()},
            directory=str(self.home),
            environment=[f"{name}={value}".encode() for name, value in self.environment.items()],
        )
        accepted = self.persist(
            lambda: requests.submit(self.controller, job), "an accepted submission"
        )
        return accepted.job

    def change(self, request: str, job: int) -> None:
        """Make a request about a job; it may be refused, because the job has ended."""

        self.persist(
            lambda: requests.change_jobs(self.controller, request, [str(job)]), "an answer"
        )

    def job_states(self) -> Mapping[str, str]:
        """Return the states of the jobs that the controller knows, by id."""
        wanted = {"tasks": True}
        listed = self.persist(
            lambda: requests.rows(self.controller, "jobs", ["job_id", "state"], matching=wanted),
            "the jobs",
        )
        return {str(number): state for number, state in listed.rows or ()}

    def settle(self) -> None:
        """Wait until all jobs have ended and the bank knows it."""
        ended = {"COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}

        def open_jobs() -> dict[str, str]:
            return {job: state for job, state in self.job_states().items() if state not in ended}

        def differs(before: Mapping[str, str]) -> bool:
            return open_jobs() != before

        try:
            while left := open_jobs():
                # On a busy host hundreds of jobs may need long: it is enough that they go on.
                wait_until(partial(differs, left), "an end", seconds=_ENDED_SECONDS)
            wait_until(self._has_reported, "reports to the bank", seconds=_ENDED_SECONDS)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {open_jobs()}\n{self.logs()}") from error

    def check_live(self) -> None:
        """Check the invariants on the live state, whatever is killed."""
        answer = self.persist(lambda: self.controller.request("check"), "the checks")
        faults = [check for check in answer["checks"] if not check["ok"]]
        assert [check for check in faults if check["what"].startswith("W")] == [], self.logs()

    def _has_reported(self) -> bool:
        try:
            status = agent_status(str(self.directory / "bank" / "agent.sock"))
        except Unavailable:
            return False
        has_open_runs = bool(self.bank_runs(RunQuery(closed=False)))
        return not status["outbox"]["reports"] and not has_open_runs

    # ------------------------------------------------------------------ the disk

    def stored(self) -> tuple[list[StoredRow], list[AccountedRun]]:
        """Return the rows and the accounting of the state file; the controller must not run."""
        store = StateStore(self.directory / "state.sqlite")
        try:
            return list(store.rows()), store.ended_runs(RunFilter(limit=100_000))
        finally:
            store.close()

    def bank_runs(self, query: RunQuery) -> dict[str, RunRecord]:
        """Return the runs that the bank has, by their identity."""
        settings = str(self.directory / "bank" / "fairbank.toml")
        rows: list[RunRecord] = []
        with opened_store(settings) as store, store.reading() as reader:
            while page := reader.runs(query, Page(PAGE_MAX, rows[-1].id if rows else None)):
                rows += page
        runs = {str(row.reported.run): row for row in rows}
        assert len(runs) == len(rows)
        return runs
