"""Commands in a cluster, as its users and as root, with a time limit; and waiting for their
output.
"""

from __future__ import annotations

import grp
import os
import pwd
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.slurm.lab import output_parsers
from tests.slurm.lab.packages import slurm_release
from tests.slurm.lab.place import Place
from tests.support.conditions import wait_until

SECONDS = 30
UNTIL_RELEASED = "until [ -e over-$SLURM_JOB_ID ]; do sleep 0.1; done; rm over-$SLURM_JOB_ID"
"""Script of a job that runs until a test releases it. Each job has its own file, because a file
that another test left would end the job at once.
"""
RUN_COLUMNS = (
    "JobID",
    "JobIDRaw",
    "JobName",
    "User",
    "Group",
    "Account",
    "Partition",
    "QOS",
    "State",
    "ExitCode",
)
WITHOUT_NAMES = tuple(
    column for column in RUN_COLUMNS if column != "JobName"
)  # users may write anything into names, separators too
RUN_TIMES = (
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "TimelimitRaw",
    "AllocTRES",
    "ReqTRES",
    "NodeList",
)


@dataclass(frozen=True)
class CommandResult:
    """Command that has ended, with its output."""

    command: tuple[str, ...]
    code: int
    out: str
    err: str

    def checked(self) -> CommandResult:
        """Return itself if it succeeded. Raises AssertionError with its output."""
        assert self.code == 0, (
            f"`{' '.join(self.command)}` ended with {self.code}:\n{self.out}{self.err}"
        )
        return self


class Shell:
    """Commands of users on the cluster."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @cached_property
    def release(self) -> tuple[int, int]:
        """Return year and month of this Slurm, as in 22.05."""
        return slurm_release()

    def run(
        self,
        user: str,
        *command: str,
        group: str | None = None,
        stdin: str = "",
        seconds: float = SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run as this user, with this primary group (default: that of the user), in the user's home
        in this cluster. Raises TimeoutError, with the output so far, after the time limit; no
        process of the command is left then.
        """
        entry = pwd.getpwnam(user)
        home = str(self.place.folder if user == "root" else self.place.home(user))
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=home,
            env=self.place.environment
            | {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/sh"}
            | dict(environment or {}),
            user=entry.pw_uid,
            group=grp.getgrnam(group).gr_gid if group else entry.pw_gid,
            extra_groups=os.getgrouplist(user, entry.pw_gid),
            start_new_session=True,
        )
        with process:
            try:
                out, err = process.communicate(stdin, timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                raise TimeoutError(
                    f"`{' '.join(command)}` took more than {seconds:g} s; so far it"
                    f" said:\n{out}{err}"
                ) from None
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return CommandResult(command, process.returncode, out, err)

    def root(self, *command: str, stdin: str = "", seconds: float = SECONDS) -> str:
        """Run as root, expect success, and return the output."""
        return self.run("root", *command, stdin=stdin, seconds=seconds).checked().out

    def submit(
        self, user: str, *options: str, script: str = "true", group: str | None = None
    ) -> int:
        """Run `sbatch` with a shell script and return the number of the job."""
        result = self.run(
            user, "sbatch", "--parsable", *options, group=group, stdin=f"#!/bin/sh\n{script}\n"
        )
        return int(result.checked().out.partition(";")[0])

    def states(self, job: int | str) -> list[str]:
        """Return the states of the job, or of the parts of an array, in the controller; none if it
        does not know the job.
        """
        result = self.run(
            "root", "squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"
        )
        return result.out.split() if result.code == 0 else []

    def wait_for(self, job: int | str, *expected: str, seconds: float = SECONDS) -> None:
        """Return when every part of the job is in one of these states."""

        def is_reached() -> bool:
            states = self.states(job)
            return bool(states) and all(state in expected for state in states)

        try:
            wait_until(is_reached, f"job {job} to be {' or '.join(expected)}", seconds=seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it is {self.states(job) or 'unknown'}") from None

    def job(self, number: int | str) -> dict[str, str]:
        """Return the fields of `scontrol show job`."""
        return output_parsers.fields(
            self.root("scontrol", "--oneliner", "show", "job", str(number))
        )

    def nodes(self) -> dict[str, str]:
        """Return the state of each node, as `sinfo` writes it in one word: idle, mixed, allocated,
        down, and marks like `*`.
        """
        return dict(
            line.split()
            for line in self.root("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        )

    def wait_for_nodes(
        self, *expected: str, nodes: Collection[str] | None = None, seconds: float = SECONDS
    ) -> None:
        """Return when all nodes, or those named, are in one of these states."""

        def is_reached() -> bool:
            return all(
                state in expected
                for node, state in self.nodes().items()
                if nodes is None or node in nodes
            )

        try:
            wait_until(is_reached, f"nodes to be {' or '.join(expected)}", seconds=seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; they are {self.nodes()}") from None

    def queued(self) -> list[str]:
        """Return the jobs that the controller has not finished."""
        return self.root("squeue", "--noheader", "--format=%i").split()

    def sacct(
        self, *options: str, columns: Sequence[str] = (*WITHOUT_NAMES, *RUN_TIMES)
    ) -> list[dict[str, str]]:
        """Return rows of accounting: by default of all users, without steps. Accounting lags behind
        the controller, so wait for what you need.
        """
        arguments = (
            "--allusers",
            "--allocations",
            "--noheader",
            "--parsable2",
            f"--delimiter={output_parsers.DELIMITER}",
        )
        return output_parsers.rows(
            self.root("sacct", *arguments, f"--format={','.join(columns)}", *options), columns
        )

    def wait_for_sacct(
        self, job: int | str, *expected: str, rows: int = 1, seconds: float = SECONDS
    ) -> list[dict[str, str]]:
        """Return the rows of the job as soon as that many exist, complete, and all in one of these
        states.
        """
        records: list[dict[str, str]] = []

        def is_complete() -> bool:
            # Accounting also has the tasks of an array that had this number before slurmctld lost
            # its jobs.
            records[:] = [
                row for row in self.sacct(f"--jobs={job}") if rows > 1 or row["JobID"] == str(job)
            ]
            return len(records) == rows and all(
                output_parsers.is_whole(row) and row["State"].split()[0] in expected
                for row in records
            )

        try:
            wait_until(
                is_complete,
                f"accounting to have job {job} as {' or '.join(expected)}",
                seconds=seconds,
            )
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it has {records}") from None
        return records

    def file(self, user: str, name: str) -> Path:
        """Return the path of a file in the user's home."""
        return self.place.home(user) / name

    def let_end(self, user: str, job: int) -> None:
        """Let a job end that runs UNTIL_RELEASED."""
        self.file(user, f"over-{job}").touch()
