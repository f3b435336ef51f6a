"""Slurm's commands, run one at a time with a time limit. `parsers` reads their output.

They run in UTC and without their users' format settings, so that the output is the same for all.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput, NotFound, Unavailable
from fairbank.core.time import iso
from fairbank.priority.settings import PrioritySettings
from fairbank.report.sshare import ShareRow
from fairbank.slurm.conf_file import conf_path, conf_settings
from fairbank.slurm.parsers import (
    json_jobs,
    pending_jobs,
    sacct,
    sacctmgr,
    scontrol,
    sprio,
    squeue,
    sshare,
)
from fairbank.slurm.parsers.columns import DELIMITER
from fairbank.slurm.parsers.pending_jobs import PendingFactors
from fairbank.slurm.parsers.priority import FLAGS, are_flags_uncertain, read_settings
from fairbank.slurm.parsers.sprio import SprioLine
from fairbank.slurm.parsers.squeue import HeldJob, StartingJob
from fairbank.slurm.parsers.sshare import ShareUsage
from fairbank.slurm.parsers.values import (
    AccountingJob,
    AssociationPriority,
    JobEnd,
    ParsedRows,
    PendingOwner,
    QueuedJob,
    SlurmAssociation,
    SlurmNode,
    SlurmPartition,
    SlurmQos,
)
from fairbank.slurm.parsers.version import COMPLETE_JSON, Version, read_version

TIMEOUT_SECONDS = 300.0
"""Time limit of a command: sacct for a month of a busy cluster can take minutes."""

_USER_SETTINGS = (
    "SACCT_",
    "SQUEUE_",
    "SINFO_",
    "SLURM_TIME_FORMAT",
    "SLURM_CLUSTERS",
    "SLURM_JSON",
    "SLURM_YAML",
)


class SlurmCommands:
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
        self._environ = {
            **kept,
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "SLURM_BITSTR_LEN": "0",
        }  # all tasks of an array, however many
        self._timeout_seconds = timeout_seconds
        self._uid = os.geteuid() if uid is None else uid

    @cached_property
    def version(self) -> Version:
        """Version of Slurm. Raises InvalidInput for one that is not supported."""
        return read_version(self._output("sinfo", "--version").decode(errors="replace"))

    @cached_property
    def config(self) -> Mapping[str, str]:
        """Settings of `scontrol show config`."""
        return scontrol.read_config(self._text("scontrol", "show", "config"))

    @cached_property
    def cluster(self) -> str:
        """Name of this cluster."""
        return ids.name(self.config.get("ClusterName", ""), field="ClusterName")

    def clock(self) -> int:
        """Return the time of slurmctld's clock, in seconds since 1970."""
        return scontrol.read_clock(self._text("scontrol", "show", "config"))

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
        return self._uid == 0 or self._uid == scontrol.slurm_uid(self.config)

    @property
    def conf(self) -> Path:
        """Path of slurm.conf on this host, which need not exist."""
        return conf_path(self._environ)

    # --- what runs and ran ---

    def jobs(self, since: int, until: int) -> ParsedRows[AccountingJob]:
        """Return accounting's executions of jobs that existed between two instants."""
        return self._jobs(f"--starttime={_instant(since)}", f"--endtime={_instant(until)}")

    def jobs_by_id(self, numbers: Sequence[int]) -> ParsedRows[AccountingJob]:
        """Return all executions that accounting has under these job ids."""
        return self._jobs(f"--jobs={','.join(map(str, numbers))}", "--starttime=1970-01-02")

    def job_ends(self, numbers: Sequence[int]) -> ParsedRows[JobEnd]:
        """Return exit codes and processor times of the jobs with these ids."""
        selection = (
            "sacct",
            "--allusers",
            "--duplicates",
            f"--jobs={','.join(map(str, numbers))}",
            "--starttime=1970-01-02",
        )
        columns = (
            "--noheader",
            "--parsable2",
            f"--delimiter={DELIMITER}",
            f"--format={','.join(sacct.END_COLUMNS)}",
        )
        return sacct.read_job_ends(self._text(*selection, *columns))

    def _jobs(self, *selection: str) -> ParsedRows[AccountingJob]:
        command = ("sacct", "--allusers", "--allocations", "--duplicates", *selection)
        if self.version >= COMPLETE_JSON and (output := self._json(*command)) is not None:
            parsed = json_jobs.read_jobs(output)
        else:
            columns = (
                "--noheader",
                "--parsable2",
                f"--delimiter={DELIMITER}",
                f"--format={','.join(sacct.COLUMNS)}",
            )
            parsed = sacct.read_jobs(self._text(*command, *columns))
        return msgspec.structs.replace(parsed, rows=tuple(_with_uid(job) for job in parsed.rows))

    def queue(self) -> ParsedRows[QueuedJob]:
        """Return the jobs that slurmctld knows."""
        command = ("squeue", "--all", "--states=all")
        if self.version >= COMPLETE_JSON and (output := self._json(*command)) is not None:
            return json_jobs.read_queue(output)
        return squeue.read_queue(self._text(*command, "--noheader", f"--format={squeue.FORMAT}"))

    def starting_job(self, name: str) -> StartingJob:
        """Return a job in its prolog (`7`, or `5_2` of an array).

        Raises InvalidInput if it is unknown.
        """
        command = (
            "squeue",
            "--noheader",
            "--states=all",
            f"--jobs={name}",
            f"--Format={squeue.STARTING_FORMAT}",
        )
        return squeue.read_starting_job(self._text(*command))

    def held_jobs(self) -> ParsedRows[HeldJob]:
        """Return the pending jobs that the plug-in held for lack of credit."""
        return squeue.read_held_jobs(
            self._text(
                "squeue",
                "--all",
                "--noheader",
                "--states=PENDING",
                f"--Format={squeue.HELD_FORMAT}",
            )
        )

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
        with contextlib.suppress(Unavailable):  # nobody may wait any more
            self._output("scontrol", "notify", name, text)
        self._output("scancel", name)

    def comment(self, name: str, text: str) -> None:
        """Set the job's AdminComment."""
        self._output("scontrol", "update", f"jobid={name}", f"admincomment={text}")

    # --- how it is set up ---

    def associations(self) -> ParsedRows[SlurmAssociation]:
        """Return the accounts and associations of the cluster."""
        return sacctmgr.read_associations(
            self._show("associations", sacctmgr.ASSOCIATION_COLUMNS, f"cluster={self.cluster}")
        )

    def association_priorities(self) -> ParsedRows[AssociationPriority]:
        """Return the priorities of the associations."""
        return sacctmgr.read_priorities(
            self._show("associations", sacctmgr.PRIORITY_COLUMNS, f"cluster={self.cluster}")
        )

    def coordinators(self) -> ParsedRows[SlurmAssociation]:
        """Return the accounts with their coordinators."""
        return sacctmgr.read_coordinators(
            self._show("account", sacctmgr.COORDINATOR_COLUMNS, "withcoord")
        )

    def qos(self) -> ParsedRows[SlurmQos]:
        """Return the QOS."""
        return sacctmgr.read_qos(self._show("qos", sacctmgr.QOS_COLUMNS))

    def partitions(self) -> ParsedRows[SlurmPartition]:
        """Return the partitions."""
        return scontrol.read_partitions(self._text("scontrol", "--oneliner", "show", "partition"))

    def nodes(self) -> ParsedRows[SlurmNode]:
        """Return the nodes."""
        return scontrol.read_nodes(self._text("scontrol", "--oneliner", "show", "node"))

    def account_usage(self) -> ParsedRows[ShareUsage]:
        """Return the usage that counts against GrpTRESMins, by account. Slurm decays it."""
        command = (
            "sshare",
            "--all",
            "--noheader",
            "--parsable2",
            f"--format={','.join(sshare.USAGE_COLUMNS).lower()}",
        )
        return sshare.read_usage(self._text(*command))

    def shares(self) -> ParsedRows[ShareRow]:
        """Return the fair share of every association."""
        columns = (
            "--partition",
            "--noheader",
            "--parsable2",
            f"--format={','.join(sshare.SHARE_COLUMNS)}",
        )
        return sshare.read_shares(self._text("sshare", "--all", *columns))

    def factors(self) -> ParsedRows[SprioLine]:
        """Return the priorities of pending jobs with their factors."""
        text = self._text("sprio", "--noheader", f"--format={sprio.format_of(self.version)}")
        return sprio.read_factors(text, sprio.letters_of(self.version))

    def pending_owners(self) -> ParsedRows[PendingOwner]:
        """Return the accounts and QOS of pending jobs."""
        return squeue.read_waiting(
            self._text(
                "squeue",
                "--all",
                "--noheader",
                "--states=PENDING",
                f"--format={squeue.WAITING_FORMAT}",
            )
        )

    def pending_jobs(self) -> ParsedRows[PendingFactors]:
        """Return the requests of pending jobs."""
        return pending_jobs.read_pending(
            self._text("scontrol", "--all", "--oneliner", "show", "job")
        )

    def priority_settings(self) -> PrioritySettings:
        """Return the settings of the priority plug-in. Raises InvalidInput."""
        return read_settings(
            self.config, self._flags_in_conf() if are_flags_uncertain(self.config) else None
        )

    def _flags_in_conf(self) -> str | None:
        """Return PriorityFlags of slurm.conf, or None if this host cannot read it."""
        try:
            return conf_settings(conf_path(self.config)).get(FLAGS.lower())
        except NotFound:
            return None

    def change_accounting(self, words: Sequence[str]) -> None:
        """Change the accounting database: `sacctmgr --immediate WORDS`."""
        self._output(
            "sacctmgr",
            "--immediate",
            *words,
            quiet=("Nothing modified", "Nothing new added", "Already existing"),
        )

    # --- asking ---

    def run(self, command: Sequence[str]) -> str:
        """Return the output of one of its commands."""
        return self._text(*command)

    def _show(self, what: str, columns: Sequence[str], *which: str) -> str:
        return self._text(
            "sacctmgr",
            "--noheader",
            "--parsable2",
            "show",
            what,
            *which,
            f"format={','.join(columns).lower()}",
        )

    def _json(self, *command: str) -> bytes | None:
        """Return the output as JSON, or None if this Slurm was built without it."""
        try:
            return self._output(*command, "--json")
        except Unavailable as error:
            if "json" in error.message.lower().split(":", 1)[-1]:
                return None
            raise

    def _text(self, *command: str) -> str:
        return self._output(*command).decode(errors="replace")

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
                field="slurm",
                remedy=_AGAIN,
            ) from error
        except OSError as error:
            remedy = "run this on a host that has Slurm's commands, with them in PATH"
            raise Unavailable(
                f"cannot run {name}: {error.strerror}", field="slurm", remedy=remedy
            ) from error
        text = (process.stderr + process.stdout).decode(errors="replace")
        if process.returncode and not any(word in text for word in quiet):
            first = next((line for line in text.splitlines() if line.strip()), "no output")
            raise Unavailable(
                f"{name} ended with {process.returncode}: {printable_line(first)}",
                field="slurm",
                remedy=_AGAIN,
            )
        return process.stdout


_AGAIN = (
    "see that slurmctld and slurmdbd answer (scontrol ping, sacctmgr show cluster), then run this"
    " again"
)


def printable_line(text: str) -> str:
    """Return the start of a command's line, safe to print."""
    return "".join(character if character.isprintable() else "?" for character in text[:200])


def _instant(at: int) -> str:
    return iso(at).removesuffix("Z")


def _with_uid(job: AccountingJob) -> AccountingJob:
    """Return the job with its owner's uid, where only the name is given and this host knows it."""
    return job if job.owner is not None else msgspec.structs.replace(job, owner=uid_of(job.user))


@cache
def uid_of(user: str) -> int | None:
    """Return the uid of a user of this host, or None."""
    try:
        return pwd.getpwnam(user).pw_uid if user else None
    except (KeyError, ValueError):
        return None
