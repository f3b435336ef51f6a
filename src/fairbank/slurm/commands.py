"""Slurm's own commands, run one at a time under a time limit; `answers` reads what they say.

They run in UTC and without their users' settings of formats, so that what they say does not depend on who asks.
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
from fairbank.priority.fairshare.settings import PrioritySettings
from fairbank.report.sshare import ShareRow
from fairbank.slurm.conf_file import conf_path, conf_settings
from fairbank.slurm.parsers import (
    held_jobs,
    job_ends,
    json_2311,
    pending_jobs,
    sacct,
    sacctmgr,
    scontrol,
    shares,
    sprio,
    squeue,
    sshare,
    starting_job,
)
from fairbank.slurm.parsers.delimited import DELIMITER
from fairbank.slurm.parsers.held_jobs import Held
from fairbank.slurm.parsers.pending_jobs import PendingFactors
from fairbank.slurm.parsers.priority import FLAGS, flags_in_doubt, read_settings
from fairbank.slurm.parsers.sprio import Factors
from fairbank.slurm.parsers.sshare import ShareUsage
from fairbank.slurm.parsers.starting_job import Starting
from fairbank.slurm.parsers.values import (
    AccountingJob,
    AssociationPriority,
    ParsedRows,
    Queued,
    QueuedOwner,
    SlurmAssociation,
    SlurmNode,
    SlurmPartition,
    SlurmQos,
    Spent,
)
from fairbank.slurm.parsers.version import COMPLETE_JSON, Version, read_version

PATIENCE_SECONDS = 300.0
"""How long a command may take: sacct over a month of a busy cluster can take minutes."""

_SETTINGS_OF_USERS = (
    "SACCT_",
    "SQUEUE_",
    "SINFO_",
    "SLURM_TIME_FORMAT",
    "SLURM_CLUSTERS",
    "SLURM_JSON",
    "SLURM_YAML",
)


class SlurmCommands:
    """The Slurm that PATH and SLURM_CONF find. Raises Unavailable when a command is missing, fails or hangs; it is safe to ask again.

    `uid` is who asks (None: whoever we are), and decides how much Slurm shows."""

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
        *,
        uid: int | None = None,
    ) -> None:
        given = os.environ if environ is None else environ
        kept = {
            name: value for name, value in given.items() if not name.startswith(_SETTINGS_OF_USERS)
        }
        self._environ = {
            **kept,
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "SLURM_BITSTR_LEN": "0",
        }  # all tasks of an array, however many
        self._patience_seconds = patience_seconds
        self._uid = os.geteuid() if uid is None else uid

    @cached_property
    def version(self) -> Version:
        """Raises InvalidInput for one that we do not know."""
        return read_version(self._said("sinfo", "--version").decode(errors="replace"))

    @cached_property
    def config(self) -> Mapping[str, str]:
        return scontrol.read_config(self._text("scontrol", "show", "config"))

    @cached_property
    def cluster(self) -> str:
        """The name of this cluster."""
        return ids.name(self.config.get("ClusterName", ""), field="ClusterName")

    def clock(self) -> int:
        """What slurmctld's clock says now, in seconds since 1970."""
        return scontrol.read_clock(self._text("scontrol", "show", "config"))

    def check(self, cluster: str | None) -> str:
        """The name of the cluster, once version and name are as expected. Raises InvalidInput."""
        _ = self.version
        if cluster is not None and cluster != self.cluster:
            raise InvalidInput(
                f"this host belongs to cluster {self.cluster}, not {cluster}",
                field="cluster",
                remedy="ask on a host of its own",
            )
        return self.cluster

    @property
    def sees_everything(self) -> bool:
        """Whether Slurm surely shows us everybody's jobs: PrivateData, here or in slurmdbd, may hide those of others from all but root and
        its own user."""
        return self._uid == 0 or self._uid == scontrol.slurm_uid(self.config)

    @property
    def conf(self) -> Path:
        """The slurm.conf of this host, which need not be there."""
        return conf_path(self._environ)

    # --- what runs and ran ---

    def jobs(self, since: int, until: int) -> ParsedRows[AccountingJob]:
        """What accounting has of jobs that were there between two instants, each execution by itself."""
        return self._jobs(f"--starttime={_instant(since)}", f"--endtime={_instant(until)}")

    def history_of(self, numbers: Sequence[int]) -> ParsedRows[AccountingJob]:
        """All that accounting ever had under these job ids."""
        return self._jobs(f"--jobs={','.join(map(str, numbers))}", "--starttime=1970-01-02")

    def spent_by(self, numbers: Sequence[int]) -> ParsedRows[Spent]:
        """How the jobs with these ids ended, and the processor time that they used."""
        which = (
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
            f"--format={','.join(job_ends.COLUMNS)}",
        )
        return job_ends.read_spent(self._text(*which, *columns))

    def _jobs(self, *which: str) -> ParsedRows[AccountingJob]:
        asked = ("sacct", "--allusers", "--allocations", "--duplicates", *which)
        if self.version >= COMPLETE_JSON and (told := self._json(*asked)) is not None:
            found = json_2311.read_jobs(told)
        else:
            columns = (
                "--noheader",
                "--parsable2",
                f"--delimiter={DELIMITER}",
                f"--format={','.join(sacct.COLUMNS)}",
            )
            found = sacct.read_jobs(self._text(*asked, *columns))
        return msgspec.structs.replace(found, rows=tuple(_owned(job) for job in found.rows))

    def queue(self) -> ParsedRows[Queued]:
        """What slurmctld still knows."""
        asked = ("squeue", "--all", "--states=all")
        if self.version >= COMPLETE_JSON and (told := self._json(*asked)) is not None:
            return json_2311.read_queue(told)
        return squeue.read_queue(self._text(*asked, "--noheader", f"--format={squeue.FORMAT}"))

    def starting(self, name: str) -> Starting:
        """A job (`7`, or `5_2` of an array) whose prolog runs. Raises InvalidInput when slurmctld does not know it."""
        command = (
            "squeue",
            "--noheader",
            "--states=all",
            f"--jobs={name}",
            f"--Format={starting_job.FORMAT}",
        )
        return starting_job.read_starting(self._text(*command))

    def held(self) -> ParsedRows[Held]:
        """The pending jobs that our plug-in held for lack of credit."""
        return held_jobs.read_held(
            self._text(
                "squeue", "--all", "--noheader", "--states=PENDING", f"--Format={held_jobs.FORMAT}"
            )
        )

    def release(self, name: str) -> None:
        """A held job may start again."""
        self._said("scontrol", "release", name)

    def send_back(self, name: str) -> None:
        """A script that is just starting goes back into the queue and is held. Raises Unavailable where it must not be requeued."""
        self._said("scontrol", "requeuehold", name)

    def end(self, name: str, text: str) -> None:
        """End a job that is just starting, and tell whoever waits for it."""
        with contextlib.suppress(Unavailable):  # nobody may wait any more
            self._said("scontrol", "notify", name, text)
        self._said("scancel", name)

    def comment(self, name: str, text: str) -> None:
        """Set the job's AdminComment."""
        self._said("scontrol", "update", f"jobid={name}", f"admincomment={text}")

    # --- how it is set up ---

    def associations(self) -> ParsedRows[SlurmAssociation]:
        return sacctmgr.read_associations(
            self._managed("associations", sacctmgr.ASSOCIATIONS, f"cluster={self.cluster}")
        )

    def association_priorities(self) -> ParsedRows[AssociationPriority]:
        return sacctmgr.read_priorities(
            self._managed("associations", sacctmgr.PRIORITIES, f"cluster={self.cluster}")
        )

    def coordinators(self) -> ParsedRows[SlurmAssociation]:
        return sacctmgr.read_coordinators(
            self._managed("account", sacctmgr.COORDINATED, "withcoord")
        )

    def qualities(self) -> ParsedRows[SlurmQos]:
        return sacctmgr.read_qualities(self._managed("qos", sacctmgr.QUALITIES))

    def places(self) -> ParsedRows[SlurmPartition]:
        return scontrol.read_places(self._text("scontrol", "--oneliner", "show", "partition"))

    def nodes(self) -> ParsedRows[SlurmNode]:
        return scontrol.read_nodes(self._text("scontrol", "--oneliner", "show", "node"))

    def usage(self) -> ParsedRows[ShareUsage]:
        """What counts against GrpTRESMins, by account. Slurm lets it decay."""
        command = (
            "sshare",
            "--all",
            "--noheader",
            "--parsable2",
            f"--format={','.join(sshare.COLUMNS).lower()}",
        )
        return sshare.read_usage(self._text(*command))

    def shares(self) -> ParsedRows[ShareRow]:
        """Fair share of every association."""
        columns = (
            "--partition",
            "--noheader",
            "--parsable2",
            f"--format={','.join(shares.COLUMNS)}",
        )
        return shares.read_shares(self._text("sshare", "--all", *columns))

    def factors(self) -> ParsedRows[Factors]:
        """The priorities of the jobs that wait, and what they are made of."""
        text = self._text("sprio", "--noheader", f"--format={sprio.format_of(self.version)}")
        return sprio.read_factors(text, sprio.letters_of(self.version))

    def waiting(self) -> ParsedRows[QueuedOwner]:
        """Whose the jobs are that wait."""
        return squeue.read_waiting(
            self._text(
                "squeue",
                "--all",
                "--noheader",
                "--states=PENDING",
                f"--format={squeue.WAITING_FORMAT}",
            )
        )

    def pending(self) -> ParsedRows[PendingFactors]:
        """What the jobs that wait ask for."""
        return pending_jobs.read_pending(
            self._text("scontrol", "--all", "--oneliner", "show", "job")
        )

    def priority(self) -> PrioritySettings:
        """How it ranks users and jobs. Raises InvalidInput."""
        return read_settings(
            self.config, self._flags_of_conf() if flags_in_doubt(self.config) else None
        )

    def _flags_of_conf(self) -> str | None:
        """Those of slurm.conf itself, where this host has it."""
        try:
            return conf_settings(conf_path(self.config)).get(FLAGS.lower())
        except NotFound:
            return None

    def manage(self, words: Sequence[str]) -> None:
        """Change the accounting database: `sacctmgr --immediate WORDS`."""
        self._said(
            "sacctmgr",
            "--immediate",
            *words,
            quiet=("Nothing modified", "Nothing new added", "Already existing"),
        )

    # --- asking ---

    def answer(self, command: Sequence[str]) -> str:
        """What one of its commands says."""
        return self._text(*command)

    def _managed(self, what: str, columns: Sequence[str], *which: str) -> str:
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
        """What it says as JSON; None when this Slurm was built without."""
        try:
            return self._said(*command, "--json")
        except Unavailable as failed:
            if "json" in failed.message.lower().split(":", 1)[-1]:
                return None
            raise

    def _text(self, *command: str) -> str:
        return self._said(*command).decode(errors="replace")

    def _said(self, *command: str, quiet: Sequence[str] = ()) -> bytes:
        name = command[0]
        try:
            done = subprocess.run(
                command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._patience_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise Unavailable(
                f"{name} did not answer within {self._patience_seconds:g} s",
                field="slurm",
                remedy=_AGAIN,
            ) from late
        except OSError as missing:
            remedy = "run this on a host that has Slurm's commands, with them in PATH"
            raise Unavailable(
                f"cannot run {name}: {missing.strerror}", field="slurm", remedy=remedy
            ) from missing
        said = (done.stderr + done.stdout).decode(errors="replace")
        if done.returncode and not any(word in said for word in quiet):
            first = next((line for line in said.splitlines() if line.strip()), "it said nothing")
            raise Unavailable(
                f"{name} ended with {done.returncode}: {shown_line(first)}",
                field="slurm",
                remedy=_AGAIN,
            )
        return done.stdout


_AGAIN = "see that slurmctld and slurmdbd answer (scontrol ping, sacctmgr show cluster), then run this again"


def shown_line(text: str) -> str:
    """A line of a command's own, safe to print."""
    return "".join(each if each.isprintable() else "?" for each in text[:200])


def _instant(at: int) -> str:
    return iso(at).removesuffix("Z")


def _owned(job: AccountingJob) -> AccountingJob:
    """The job with its owner's number, where only the name was told and this host knows it."""
    return job if job.owner is not None else msgspec.structs.replace(job, owner=uid_of(job.user))


@cache
def uid_of(user: str) -> int | None:
    """The number of a user of this host, or None."""
    try:
        return pwd.getpwnam(user).pw_uid if user else None
    except (KeyError, ValueError):
        return None
