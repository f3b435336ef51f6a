"""Directory of a cluster: its files, its lock, and the state of its supervisor."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from fairbank.core.os_errors import translate_os_error

if TYPE_CHECKING:
    from collections.abc import Iterable

VARIABLE = "FAIRBANK_CLUSTER"
LOCK, LINKS, STATE = "lock", "bin", "supervisor.json"
_SOCKET_BYTES = 107  # sun_path, less its NUL
STOP_SECONDS = 120.0
"""Longest time that the end of all daemons may take: each has 20 s before it is killed."""
_ASK_SECONDS = 5.0
"""Pause between two requests to end, of which the supervisor needs one."""


class ClusterDirectory(NamedTuple):
    """Directory of a cluster.

    Only its supervisor has the lock: the kernel releases it whatever ends the process.
    """

    path: Path

    @property
    def settings(self) -> Path:
        return self.path / "wlm.toml"

    @property
    def bank(self) -> Path:
        return self.path / "bank"

    @property
    def bank_settings(self) -> Path:
        return self.bank / "fairbank.toml"

    @property
    def agent_settings(self) -> Path:
        return self.bank / "agent.toml"

    @property
    def controller_socket(self) -> Path:
        return self.path / "controller.sock"

    @property
    def commands_socket(self) -> Path:
        return self.path / "commands.sock"

    @property
    def metrics_socket(self) -> Path:
        return self.path / "metrics.sock"

    @property
    def agent_socket(self) -> Path:
        return self.path / "agent.sock"

    @property
    def bank_socket(self) -> Path:
        return self.bank / "fairbank.sock"

    @property
    def links(self) -> Path:
        return self.path / LINKS

    def check_exists(self) -> None:
        """Raise NotFound if there is no cluster."""
        if not self.settings.exists():
            remedy = f"start one: fairbank cluster up; or name its directory in {VARIABLE}"
            raise NotFound(f"there is no cluster in {self.path}", remedy=remedy)

    def prepare(self) -> None:
        """Create the directory with the mode 0700. Raises FairbankError if it will not do."""
        from fairbank.statefile.local_disk import check_local_disk

        text = str(self.path)
        # A colon would end an entry of PATH; the others are in no address of a bank.
        if set(text) & {":", " "} or not (text.isascii() and text.isprintable()):
            what = f"{text[:80]!a} has a colon, a blank, or a character that is not printable ASCII"
            raise InvalidInput(what, field="--dir", remedy=self._other_directory())
        check_local_disk(self.path, field="--dir")
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = self.path.stat().st_uid
            entries = os.listdir(self.path)
        except OSError as error:
            what = f"cannot use the directory {text}"
            raise translate_os_error(error, what, field="--dir") from error
        if owner != os.geteuid():
            what = f"{text} belongs to another user"
            raise Forbidden(what, field="--dir", remedy=self._other_directory())
        if entries and LOCK not in entries:
            what = f"{text} has other content than a cluster"
            raise Conflict(what, field="--dir", remedy="name a new or an empty directory")
        self.path.chmod(0o700)

    def check_sockets(self, paths: Iterable[Path]) -> None:
        """Raise InvalidInput if a path is too long for a socket."""
        longest = max(paths, key=lambda path: len(os.fsencode(path)))
        if (size := len(os.fsencode(longest))) > _SOCKET_BYTES:
            raise InvalidInput(
                f"the path of a socket has at most {_SOCKET_BYTES} bytes, {longest} has {size}",
                field="--dir",
                remedy=self._other_directory(),
            )

    def _other_directory(self) -> str:
        return f"fairbank cluster up --dir /var/tmp/fairbank-{os.geteuid()}"

    def lock(self) -> int | None:
        """Return a descriptor that has the lock, None if another process has it."""
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def lock_or_wait(self, seconds: float) -> int | None:
        """Return a descriptor that has the lock, None if there is a supervisor.

        While another `cluster up` starts one, wait for it. Raises Unavailable after some seconds.
        """
        deadline = time.monotonic() + seconds
        while (descriptor := self.lock()) is None and not self.supervisor():
            if time.monotonic() > deadline:
                raise Unavailable(f"another process starts the cluster in {self.path}")
            time.sleep(0.05)
        if descriptor is not None:
            # It may be that of a supervisor that was killed.
            (self.path / STATE).unlink(missing_ok=True)
        return descriptor

    def is_up(self) -> bool:
        """Return True if a supervisor runs."""
        if not (self.path / LOCK).exists():
            return False
        descriptor = self.lock()
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    def supervisor(self) -> dict[str, Any]:
        """Return what the supervisor wrote last; empty if it does not run."""
        try:
            state: dict[str, Any] = json.loads((self.path / STATE).read_bytes())
        except FileNotFoundError:
            return {}
        return state if self.is_up() else {}

    def daemon_pid(self, name: str) -> int | None:
        """Return the process of a daemon; None if it does not run."""
        states = self.supervisor().get("daemons", ())
        return next((state["pid"] for state in states if state["name"] == name), None)

    def partitions(self) -> list[str]:
        """Return the partitions that the controller has. Raises Unavailable."""
        from fairbank.wlm.client.connection import Controller
        from fairbank.wlm.client.requests import rows

        with Controller(self.path) as controller:
            return [name for (name,) in rows(controller, "partitions", ["name"]).rows or ()]

    def stop(self) -> None:
        """End the supervisor with all daemons, and remove links and sockets.

        Raises Conflict if it does not end.
        """
        import signal

        ask_at = time.monotonic()
        deadline = ask_at + STOP_SECONDS
        while self.is_up():
            state = self.supervisor()
            if state and time.monotonic() >= ask_at:
                with suppress(ProcessLookupError):
                    os.kill(state["pid"], signal.SIGTERM)
                ask_at = time.monotonic() + _ASK_SECONDS
            if time.monotonic() > deadline:
                remedy = f"see {self.path}/log, and repeat: fairbank cluster down --now"
                raise Conflict(f"the daemons have not ended in {STOP_SECONDS:.0f} s", remedy=remedy)
            time.sleep(0.02)
        self.remove_traces()

    def left_jobs(self) -> list[str]:
        """Return the jobs whose step daemons live, which outlive a supervisor that was killed."""
        from fairbank.wlm.stepd.processes import read_process
        from fairbank.wlm.stepd.step import read_start

        left = set[str]()
        for run in (self.path / "nodes").glob("*/jobs/*"):
            start = read_start(str(run))
            process = None if start is None else read_process(start.daemon)
            if start is None or process is None or process.start != start.daemon_start:
                continue
            if not process.is_zombie:
                left.add(run.name.partition(".")[0])
        return sorted(left, key=int)

    def daemons(self) -> list[dict[str, Any]]:
        """Return the programs that the supervisor starts; none before they were written."""
        file = self.path / "daemons.json"
        content: list[dict[str, Any]] = json.loads(file.read_bytes()) if file.exists() else []
        return content

    def log(self, name: str) -> Path:
        """Return the log of a daemon, or of the supervisor."""
        logs = {daemon["name"]: Path(daemon["log"]) for daemon in self.daemons()}
        return logs.get(name, self.path / "log" / f"{name}.log")

    @property
    def has_bank(self) -> bool:
        """True if a bank is one of the programs."""
        return any(daemon["name"] == "bank" for daemon in self.daemons())

    def remove_traces(self) -> None:
        """Remove the links with Slurm's names, and the sockets of daemons that were killed."""
        self.remove_links()
        for daemon in self.daemons():
            for path in map(Path, daemon["sockets"]):
                if path.is_socket():
                    path.unlink()

    def remove_links(self) -> None:
        """Remove the links with Slurm's names."""
        import shutil

        shutil.rmtree(self.links, ignore_errors=True)


def find_directory(named: str | None = None) -> ClusterDirectory:
    """Return the directory that is named, else that of FAIRBANK_CLUSTER, else the user's own."""
    from fairbank.wlm.client.connection import cluster_directory

    if named == "":  # a shell variable that is not set
        remedy = "name one, or leave it out"
        raise InvalidInput("the directory is empty", field="--dir", remedy=remedy)
    return ClusterDirectory(Path(named or cluster_directory()).absolute())
