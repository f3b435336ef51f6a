"""Slurm cluster of the lab: start, configuration, faults, reset and removal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.slurm.lab import daemons, people
from tests.slurm.lab.configuration import CLUSTER
from tests.slurm.lab.daemons import MARIADBD, MUNGED, SLURMCTLD, SLURMDBD, Daemon
from tests.slurm.lab.layout import RECORD, configure, furnish, read_record, record, set_first_job
from tests.slurm.lab.machine import SIZES, node_names
from tests.slurm.lab.output_parsers import saved_time
from tests.slurm.lab.packages import check
from tests.slurm.lab.place import BASE, Place, blocks
from tests.slurm.lab.processes import Process, cluster_processes, end_cluster_processes
from tests.slurm.lab.shell import Shell
from tests.support.conditions import wait_until

START_SECONDS = 60


class NoSuchCluster(Exception):
    """No cluster of this name was started here."""


class ClusterExists(Exception):
    """A cluster of this name exists."""


class Cluster(Shell):
    """Cluster that has a directory. Daemons are named munged, mariadbd, slurmdbd, slurmctld, and a
    slurmd after its node.
    """

    def __init__(
        self, place: Place, size: str = "full", changes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(place)
        self.size = size
        self.machine = SIZES[size]
        self.node_names = tuple(node_names(self.machine))
        self._daemons = {daemon.name: daemon for daemon in daemons.all_daemons(place, self.machine)}
        self._changes = dict(changes or {})

    # ------------------------------------------------------------------ creation and removal

    @classmethod
    def up(
        cls, name: str, *, size: str = "full", changes: Mapping[str, str] | None = None
    ) -> Cluster:
        """Start a new cluster with all nodes idle. Remove everything if it fails.

        Raises Unobtainable, people.NameTaken, ClusterExists.
        """
        check()
        with _locked():
            place = _claim(name, size)
        cluster = cls(place, size, changes)
        try:
            with _locked():
                people.create_users()
            furnish(place, cluster.machine)
            configure(place, cluster.machine, changes or {})
            cluster._start_all()
        except BaseException:
            cluster.down()
            raise
        return cluster

    @classmethod
    def found(cls, name: str) -> Cluster:
        """Return the started cluster of this name. Raises NoSuchCluster."""
        if name not in names():
            raise NoSuchCluster(
                f"there is no cluster {name}; there"
                f" {'are ' + ', '.join(names()) if names() else 'is none'}"
            )
        return cls(*read_record(BASE / name))

    def down(self) -> list[str]:
        """End every process of the cluster and remove its directory; with the last cluster also the
        users. Return the names of users who stay because they have other processes here.
        """
        end_cluster_processes(self.place)
        with _locked():
            shutil.rmtree(self.place.folder)
            if names():
                return []
            stay = people.remove_users()
            BASE.rmdir()
            return stay

    def _start_all(self) -> None:
        self.start(MUNGED, MARIADBD)
        self.start(SLURMDBD)
        for command in people.accounting(CLUSTER):
            self.root("sacctmgr", "--immediate", *command)
        self.start(SLURMCTLD, *self.node_names)
        self.wait_for_nodes("idle", seconds=START_SECONDS)

    # ------------------------------------------------------------------ daemons

    def pid(self, name: str) -> int | None:
        """Return the process id of the daemon, or None if it does not run."""
        process = self._process(name)
        return process.pid if process else None

    def start(self, *names: str) -> None:
        """Start the daemons that do not run, and return when they listen."""
        self._start([self._daemons[name] for name in names])

    def stop(self, *names: str) -> None:
        """Stop daemons as the host's own scripts would, and return when they have ended."""
        daemons.end_daemons(self.place, names)

    def kill(self, *names: str) -> None:
        """Kill a daemon with SIGKILL. Jobs of a node continue, as they do when a real slurmd
        dies.
        """
        daemons.end_daemons(self.place, names, signal.SIGKILL)

    def processes(self) -> list[Process]:
        """Return all processes that belong to the cluster, jobs included."""
        return cluster_processes(self.place)

    def log(self, name: str) -> str:
        """Return the log and the output of a daemon up to now."""
        files = (
            self.place.logs / f"{stem}"
            for stem in (f"{name}.log", f"slurmd-{name}.log", f"{name}.output")
        )
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    # ------------------------------------------------------------------ settings and saved state

    def wait_until_saved(self, job: int) -> None:
        """Return when slurmctld has saved the current state of the job. It saves every few seconds,
        and SIGKILL loses the rest.
        """
        marker = f"written down at {time.monotonic_ns()}"
        self.root("scontrol", "update", f"jobid={job}", f"admincomment={marker}")
        wait_until(
            lambda: marker.encode() in (self.place.state / "job_state").read_bytes(),
            "slurmctld to save its jobs",
        )

    def saved_at(self) -> int:
        """Return the time in seconds since 1970 at which slurmctld last began to write its jobs to
        disk; 0 if it never did. kill -9 loses later changes.
        """
        file = self.place.state / "job_state"
        return saved_time(file.read_bytes()) if file.exists() else 0

    def reconfigure(self, changes: Mapping[str, str]) -> None:
        """Apply settings that differ from configuration.SETTINGS, and restart slurmctld and every
        slurmd.
        """
        self._changes = dict(changes)
        self.stop(SLURMCTLD, *self.node_names)
        configure(self.place, self.machine, self._changes)
        self.start(SLURMCTLD, *self.node_names)
        self._wait_for_controller()

    def start_controller(self, changes: Mapping[str, str]) -> None:
        """Restart slurmctld with settings that no slurmd needs, such as those of priorities and
        partitions.
        """
        self._changes = dict(changes)
        self.stop(SLURMCTLD)
        configure(self.place, self.machine, self._changes)
        self.start(SLURMCTLD)
        self._wait_for_controller()

    @contextmanager
    def configured(self, changes: Mapping[str, str]) -> Iterator[None]:
        """Apply these settings in a block, then the former ones."""
        before = self._changes
        try:
            self.reconfigure({**before, **changes})
            yield
        finally:
            self.reconfigure(before)

    def empty(self, first_job: int | None = None) -> None:
        """Remove all jobs and steps; accounting keeps the jobs, as ended. The next job has a number
        that accounting does not know, or this one.
        """
        self.start(MUNGED, MARIADBD)
        self.start(SLURMDBD)
        self.stop(SLURMCTLD, *self.node_names)
        kept = [self._process(name) for name in (MUNGED, MARIADBD, SLURMDBD)]
        for process in self.processes():
            if process not in kept:
                process.end(signal.SIGKILL, 1)
        for node in self.node_names:
            shutil.rmtree(self.place.spool / node, ignore_errors=True)
        if first_job:  # otherwise slurmctld continues from its last number
            for file in self.place.state.glob("job_state*"):
                file.unlink()
        set_first_job(self.place, first_job or self._new_number())
        self._start([daemons.slurmctld(self.place, forgetting=True)])
        self.start(*self.node_names)
        self.wait_for_nodes("idle", seconds=START_SECONDS)

    def calm(self) -> None:
        """Return when every daemon runs, no job is left, and all nodes are idle: the state in which
        a test begins.
        """
        self.start(MUNGED, MARIADBD)
        self.start(SLURMDBD)
        self.start(SLURMCTLD, *self.node_names)
        self._wait_for_controller()
        try:
            if jobs := self.queued():
                self.root("scancel", *jobs)
            wait_until(lambda: not self.queued(), "the queue to be empty")
            self.wait_for_nodes("idle")
        except (TimeoutError, AssertionError):
            self.empty()

    def _new_number(self) -> int:
        """Return a job number above all in accounting."""
        rows = self.sacct("--duplicates", "--starttime=1970-01-02", columns=("JobIDRaw",))
        return max((int(row["JobIDRaw"]) for row in rows), default=0) + 1

    def _wait_for_controller(self) -> None:
        wait_until(
            lambda: self.run("root", "scontrol", "ping").code == 0,
            "slurmctld to answer",
            seconds=START_SECONDS,
        )

    def _process(self, name: str) -> Process | None:
        return daemons.pid_of(self.place, name)

    def _start(self, daemons_to_start: list[Daemon]) -> None:
        for daemon in daemons_to_start:
            daemons.launch_daemon(self.place, daemon)
        for daemon in daemons_to_start:
            daemons.await_daemon(self.place, daemon)


def names() -> list[str]:
    """Return the names of the clusters of this host."""
    return sorted(folder.name for folder in BASE.iterdir()) if BASE.exists() else []


def _claim(name: str, size: str) -> Place:
    """Claim a directory and a free block of ports, recorded for other processes."""
    if name in names():
        raise ClusterExists(
            f"there is a cluster {name} already: use it, take it down, or give another name"
        )
    folder = BASE / name
    folder.mkdir()
    for directory in (BASE, folder):
        directory.chmod(0o755)  # accessible for all users, whatever the umask is
    host = socket.gethostname().partition(".")[0]
    taken = []
    for other in names():
        with contextlib.suppress(FileNotFoundError):
            taken.append(read_record(BASE / other)[0].first_port)
    for first in blocks(taken):
        place = Place(folder, first, host, socket.gethostbyname(host))
        if all(_free(port) for port in place.ports):
            (folder / RECORD).write_text(record(place, size))
            return place
    folder.rmdir()
    raise RuntimeError("no free block of ports for another cluster; take one down")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


@contextmanager
def _locked() -> Iterator[None]:
    """Lock the directory of all clusters, so that no other process claims or returns a place. It is
    removed with the last cluster.
    """
    while True:
        BASE.mkdir(mode=0o755, exist_ok=True)
        try:
            lock = os.open(BASE, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_same(lock, BASE):
                yield
                return
        finally:
            os.close(lock)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
