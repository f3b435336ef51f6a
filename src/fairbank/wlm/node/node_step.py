"""Step of a run on a node, beside its batch script: start, end, and what a restart finds of it."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec

from fairbank.wlm.node.launcher_process import LauncherProcess
from fairbank.wlm.node.step_process import StepProcess
from fairbank.wlm.protocol.messages import RunOutcome, StepStatus
from fairbank.wlm.stepd.step import read_start, socket_path


class NodeStep:
    """Step that the node has accepted.

    `status` is what the controller knows, or will know. `is_forgotten`: it has stored the end.
    """

    def __init__(
        self,
        directory: Path,
        status: StepStatus,
        kill_wait: float,
        notify: Callable[[StepStatus], None],
    ) -> None:
        self.directory, self.status, self._notify = directory, status, notify
        self.is_forgotten = False
        self.process = StepProcess(directory, f"step {status.run.job_id}.{status.step}", kill_wait)

    async def start(self, launcher: LauncherProcess) -> None:
        """Bring a new step to its end."""
        self._finish(await self.process.launch(launcher, self._note_running))

    async def resume(self) -> None:
        """Bring a step of an earlier daemon to its end. One that had not started ends."""
        if read_start(str(self.directory)) is None and self.process.has_never_started():
            text = "the node daemon was killed during the start"
            self._finish(self.process.end_without_daemon("launch", text))
        else:
            self._finish(await self.process.follow(self._note_running))

    def _note_running(self) -> None:
        self._notify(self.status)

    def _finish(self, end: RunOutcome) -> None:
        self.status = msgspec.structs.replace(self.status, end=end)
        self._notify(self.status)

    def remove(self) -> bool:
        """Remove its directory. Return False while its streams are served: an srun may come."""
        try:
            with (
                socket.socket(socket.AF_UNIX) as connection,
                socket_path(str(self.directory)) as at,
            ):
                connection.settimeout(0)
                connection.connect(at)
            return False
        except BlockingIOError:
            return False
        except OSError:
            shutil.rmtree(self.directory, ignore_errors=True)
            return True
