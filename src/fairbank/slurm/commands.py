"""Slurm's commands, run one at a time with a time limit.

They run in UTC and without their users' format settings, so that the output is the same for all.
`parsers` reads it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core import ids
from fairbank.core.errors import InvalidInput, NotFound, Unavailable
from fairbank.core.time import iso
from fairbank.slurm.output import PENDING_QUEUE, RecordedOutput, SlurmOutput, show_command
from fairbank.slurm.parsers import config, sacct, sacctmgr, squeue, sshare
from fairbank.slurm.parsers.columns import PIPE, Table
from fairbank.slurm.parsers.config import COMPLETE_JSON, FLAGS, Version
from fairbank.slurm.parsers.values import (
    JobEnd,
    JobGroup,
    MeasuredUsage,
    ParsedRows,
    QueuedJob,
    SlurmAssociation,
)
from fairbank.slurm.slurm_conf import conf_path, conf_settings
from fairbank.unix_users import find_uid

TIMEOUT_SECONDS = 300.0
"""Time limit of a command: sacct for a month of a busy cluster can take minutes."""

IDS_PER_COMMAND = 500
"""Job ids in one command, which keeps its arguments below the system's limit."""

_USER_SETTINGS = (
    "SACCT_",
    "SQUEUE_",
    "SINFO_",
    "SLURM_TIME_FORMAT",
    "SLURM_CLUSTERS",
    "SLURM_JSON",
    "SLURM_YAML",
)


class SlurmCommands(SlurmOutput):
    """Commands of the Slurm that PATH and SLURM_CONF find.

    Raises Unavailable if a command is missing, fails or hangs; it is safe to run it again.

    Args:
        environ: environment of the commands; None for that of this process.
        timeout_seconds: time limit of each command.
        uid: user who runs them, which decides how much Slurm shows; None for this process's.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        *,
        uid: int | None = None,
    ) -> None:
        source = os.environ if environ is None else environ
        kept = {
            name: value for name, value in source.items() if not name.startswith(_USER_SETTINGS)
        }
        # SLURM_BITSTR_LEN=0 prints all tasks of an array, however many.
        self._environ = {**kept, "TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}
        self._timeout_seconds = timeout_seconds
        self._uid = os.geteuid() if uid is None else uid

    def text(self, file: str, *command: str) -> str:
        """Return the output of a command."""
        return self._run(*command)

    def require(self, files: Collection[str], commands: Mapping[str, Sequence[str]] = {}) -> None:
        """Check nothing: the commands run when their output is needed."""

    @cached_property
    def version(self) -> Version:
        """Version of Slurm. Raises InvalidInput for one that is not supported."""
        return config.read_version(self._run("sinfo", "--version"))

    @property
    def cluster(self) -> str:
        """Name of this cluster. Raises InvalidInput if it has none."""
        return ids.cluster(super().cluster, field="ClusterName")

    def check_cluster(self, cluster: str | None) -> str:
        """Check version and name of the cluster, and return the name. Raises InvalidInput."""
        _ = self.version
        if cluster is not None and cluster != self.cluster:
            raise InvalidInput(
                f"this host belongs to cluster {self.cluster}, not {cluster}",
                field="cluster",
                remedy="ask on a host of its own",
            )
        return self.cluster

    @property
    def can_see_all_jobs(self) -> bool:
        """True if Slurm surely shows all users' jobs.

        PrivateData, here or in slurmdbd, may hide them from all but root and SlurmUser.
        """
        return self._uid == 0 or self._uid == config.slurm_uid(self.config)

    @property
    def conf(self) -> Path:
        """Path of slurm.conf on this host, which need not exist."""
        return conf_path(self._environ)

    def _flags_in_conf(self) -> str | None:
        try:
            return conf_settings(conf_path(self.config)).get(FLAGS.lower())
        except NotFound:
            return None

    # --- jobs ---

    def jobs(self, since: int, until: int) -> ParsedRows[AccountingJob]:
        """Return accounting's executions of jobs that existed between two instants."""
        return self._jobs(*_of_period(since, until))

    def jobs_by_id(self, numbers: Sequence[int]) -> ParsedRows[AccountingJob]:
        """Return all executions that accounting has under these job ids."""
        return self._jobs(*_of_jobs(numbers))

    def job_ends(self, numbers: Sequence[int]) -> ParsedRows[JobEnd]:
        """Return exit codes and processor times of the jobs with these ids."""
        return self._table(
            sacct.JOB_ENDS, "sacct", "--allusers", "--duplicates", *_of_jobs(numbers)
        )

    def system_comment(self, number: int, submitted: int) -> str:
        """Return the comment that Slurm itself made on a job, such as why it failed."""
        words = ("--allusers", "--allocations", "--duplicates", *_of_jobs([number]))
        rows = self._table(sacct.SYSTEM_COMMENTS, "sacct", *words).rows
        return next((text for at, text in reversed(rows) if at == submitted), "")

    def job_usage(self, numbers: Sequence[int]) -> dict[tuple[int, int], MeasuredUsage]:
        """Return the measured usage of these jobs, by job id and submission; without those of which
        nothing was measured.
        """
        words = ("--allusers", "--duplicates", "--units=K", *_of_jobs(numbers))
        usages: dict[tuple[int, int], MeasuredUsage] = {}
        run = None
        for row in self._table(sacct.MEASURED_STEPS, "sacct", *words).rows:
            if row.peak is None:
                run = (row.job_id, row.submitted)
            elif run is not None and (row.peak or row.gpu_seconds is not None):
                usage = usages.get(run, MeasuredUsage())
                gpus = usage.gpu_seconds
                if row.gpu_seconds is not None:
                    gpus = (gpus or 0.0) + row.gpu_seconds
                usages[run] = MeasuredUsage(max(usage.memory, row.peak), gpus)
        return usages

    def job_groups(self, since: int, until: int) -> ParsedRows[JobGroup]:
        """Return the Unix groups of the jobs that existed between two instants."""
        return self._table(
            sacct.JOB_GROUPS, "sacct", "--allusers", "--allocations", *_of_period(since, until)
        )

    def _jobs(self, *selection: str) -> ParsedRows[AccountingJob]:
        command = ("sacct", "--allusers", "--allocations", "--duplicates", *selection)
        output = self._json(*command)
        parsed = self._table(sacct.JOBS, *command) if output is None else sacct.read_json(output)
        rows = [_with_uid(job) for job in parsed.rows]
        unowned = sorted({job.job_id for job in rows if job.owner is None and job.has_ended})
        if output is not None and unowned:
            owners = self._owners(unowned)
            rows = [
                msgspec.structs.replace(job, owner=owners.get((job.job_id, job.submitted)))
                if job.owner is None
                else job
                for job in rows
            ]
        return msgspec.structs.replace(parsed, rows=tuple(rows))

    def _owners(self, numbers: Sequence[int]) -> dict[tuple[int, int], int | None]:
        """Return owners by job id and submission.

        JSON has only the names of users, columns also the uids: that of a user who is gone too.
        """
        owners: dict[tuple[int, int], int | None] = {}
        for first in range(0, len(numbers), IDS_PER_COMMAND):
            which = _of_jobs(numbers[first : first + IDS_PER_COMMAND])
            command = ("sacct", "--allusers", "--allocations", "--duplicates", *which)
            for job in self._table(sacct.JOBS, *command).rows:
                owners[job.job_id, job.submitted] = job.owner
        return owners

    def queue(self) -> ParsedRows[QueuedJob]:
        """Return the jobs that slurmctld knows."""
        columns = ("--noheader", f"--format={squeue.QUEUE_FORMAT}")
        return squeue.QUEUE.read(self._run("squeue", "--all", "--states=all", *columns))

    def starting_job(self, name: str) -> squeue.StartingJob:
        """Return a job in its prolog (`7`, or `5_2` of an array).

        Raises InvalidInput if it is unknown.
        """
        which = ("--states=all", f"--jobs={name}", f"--Format={squeue.STARTING_FORMAT}")
        return squeue.read_starting_job(self._run("squeue", "--noheader", *which))

    def held_jobs(self) -> ParsedRows[squeue.HeldJob]:
        """Return the pending jobs that the plug-in held for lack of credit."""
        return squeue.read_held_jobs(self._run(*PENDING_QUEUE, f"--Format={squeue.HELD_FORMAT}"))

    def release(self, name: str) -> None:
        """Release a held job, so that it may start."""
        self._output("scontrol", "release", name)

    def requeue_and_hold(self, name: str) -> None:
        """Requeue a starting batch job and hold it.

        Raises Unavailable if it may not be requeued.
        """
        self._output("scontrol", "requeuehold", name)

    def end(self, name: str, text: str) -> None:
        """Cancel a starting job, and show the user who waits for it a text."""
        with contextlib.suppress(Unavailable):  # the user may have stopped waiting
            self._output("scontrol", "notify", name, text)
        self._output("scancel", name)

    def comment(self, name: str, text: str) -> None:
        """Set the job's AdminComment."""
        self._output("scontrol", "update", f"jobid={name}", f"admincomment={text}")

    # --- accounting ---

    def associations(self) -> ParsedRows[SlurmAssociation]:
        """Return the accounts and associations of the cluster."""
        command = show_command(sacctmgr.ASSOCIATIONS, f"cluster={self.cluster}")
        return sacctmgr.ASSOCIATIONS.read(self._run(*command))

    def coordinators(self) -> ParsedRows[SlurmAssociation]:
        """Return the accounts with their coordinators."""
        return sacctmgr.COORDINATORS.read(
            self._run(*show_command(sacctmgr.COORDINATORS, "withcoord"))
        )

    def account_usage(self) -> ParsedRows[sshare.ShareUsage]:
        """Return the usage that counts against GrpTRESMins, by account. Slurm decays it."""
        return self._table(sshare.USAGE, "sshare", "--all")

    def change_accounting(self, words: Sequence[str]) -> None:
        """Change the accounting database: `sacctmgr --immediate WORDS`."""
        self._output(
            "sacctmgr",
            "--immediate",
            *words,
            quiet=("Nothing modified", "Nothing new added", "Already existing"),
        )

    # --- run ---

    def _table(self, table: Table[Any], *command: str) -> ParsedRows[Any]:
        delimiter = () if table.delimiter == PIPE else (f"--delimiter={table.delimiter}",)
        columns = f"--format={','.join(table.columns)}"
        return table.read(self._run(*command, "--noheader", "--parsable2", *delimiter, columns))

    def _run(self, *command: str) -> str:
        return self._output(*command).decode(errors="replace")

    def _json(self, *command: str) -> bytes | None:
        """Return the output as JSON, or None if this Slurm is too old or was built without it."""
        if self.version < COMPLETE_JSON:
            return None
        try:
            return self._output(*command, "--json")
        except _CommandFailed as failed:
            if "json" in failed.error.lower():  # Slurm names the format that it cannot write
                return None
            raise

    def _output(self, *command: str, quiet: Sequence[str] = ()) -> bytes:
        name = command[0]
        try:
            process = subprocess.run(
                command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(
                f"{name} did not answer within {self._timeout_seconds:g} s",
                field=name,
                remedy=_AGAIN,
            ) from error
        except OSError as error:
            remedy = "run this on a host that has Slurm's commands, with them in PATH"
            raise Unavailable(
                f"cannot run {name}: {error.strerror}", field=name, remedy=remedy
            ) from error
        text = (process.stderr + process.stdout).decode(errors="replace")
        if process.returncode and not any(word in text for word in quiet):
            first = next((line for line in text.splitlines() if line.strip()), "no output")
            # Whatever a command prints must be safe to print again.
            shown = "".join(letter if letter.isprintable() else "?" for letter in first[:200])
            raise _CommandFailed(name, process.returncode, shown)
        return process.stdout


_AGAIN = (
    "see that slurmctld and slurmdbd answer (scontrol ping, sacctmgr show cluster), then run this"
    " again"
)


class _CommandFailed(Unavailable):
    """A command ended with an exit code other than 0; `error` is the first line that it printed."""

    def __init__(self, name: str, exit_code: int, error: str) -> None:
        super().__init__(f"{name} ended with {exit_code}: {error}", field=name, remedy=_AGAIN)
        self.error = error


def _of_period(since: int, until: int) -> tuple[str, str]:
    start, end = (iso(at).removesuffix("Z") for at in (since, until))
    return f"--starttime={start}", f"--endtime={end}"


def _of_jobs(numbers: Sequence[int]) -> tuple[str, str]:
    return f"--jobs={','.join(map(str, numbers))}", "--starttime=1970-01-02"


def _with_uid(job: AccountingJob) -> AccountingJob:
    """Return the job with its owner's uid, where only the name is given and this host knows it."""
    return job if job.owner is not None else msgspec.structs.replace(job, owner=find_uid(job.user))


def output_of(directory: str | None, timeout_seconds: float = TIMEOUT_SECONDS) -> SlurmOutput:
    """Return the recorded output in a directory, or without one the output of Slurm's commands.

    Args:
        directory: directory with the recorded output.
        timeout_seconds: time limit of each command.
    """
    return (
        RecordedOutput(directory) if directory else SlurmCommands(timeout_seconds=timeout_seconds)
    )
