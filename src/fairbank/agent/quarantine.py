"""Quarantine: a file of frames that cannot be decoded (docs/decisions/0012).

They are answered, so that the plug-in does not repeat them for ever. What they reported is not
lost: `fairbank reconcile` finds it in Slurm's accounting.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from fairbank.agent.engine import Engine
from fairbank.agent.outage_policy import RUN, UNREADABLE_TEXT, OutagePolicy, defer
from fairbank.agent.protocol import UnreadableFrame
from fairbank.agent.reports.report import Receipt
from fairbank.agent.work_starter import WorkStarter
from fairbank.core.time import iso

_log = logging.getLogger(__name__)

FRAMES_MAX, BYTES_MAX = 1_000, 4 * 1024 * 1024  # further frames are only answered and counted

RETRY_SECONDS = 1.0


class QuarantineFile:
    """File with one frame per line, as JSON with the bytes in base64.

    The administrator who has read it moves it away. Call `append` from one thread at a time.
    `last` is the error of the newest frame.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._frames = path, 0
        self.last: str | None = None
        with suppress(OSError, msgspec.MsgspecError, KeyError, IndexError, TypeError):
            lines = path.read_bytes().splitlines()
            self._frames = len(lines)
            self.last = str(msgspec.json.decode(lines[-1])["why"])

    @property
    def frames(self) -> int:
        """Number of frames in the file; 0 if it was moved away."""
        return self._frames if self._path.exists() else 0

    def append(self, frames: Sequence[UnreadableFrame], at: int) -> None:
        """Append all frames that fit, or none, and sync the file; `at` is in seconds since 1970.

        Raises OSError if the file cannot be written.
        """
        # O_NOFOLLOW: a symbolic link in the directory must not redirect root's writes.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            size = os.fstat(file).st_size
            count = self._frames if size else 0
            rows = [
                {"at": iso(at), "number": frame.number, "why": frame.error, "body": frame.body}
                for frame in frames[: max(0, FRAMES_MAX - count)]
            ]
            text = msgspec.json.Encoder().encode_lines(rows)
            if size + len(text) > BYTES_MAX:
                rows, text = [], b""
            if os.write(file, text) != len(text):
                os.ftruncate(file, size)
                raise OSError("no space left on its disk")
            os.fsync(file)
        finally:
            os.close(file)
        self._frames, self.last = count + len(rows), frames[-1].error


class Quarantine:
    """Answers to frames that cannot be decoded, and the thread that writes their file.

    Invariant: a frame other than a prolog request is acknowledged only when it is in the file or
    the file is full; at most FRAMES_MAX frames wait for the disk in `_waiting`.
    """

    def __init__(self, engine: Engine, starter: WorkStarter, outbox: Path) -> None:
        self.path = outbox.with_suffix(".quarantine")
        self._engine, self._starter = engine, starter
        self._file = QuarantineFile(self.path)
        self._thread = ThreadPoolExecutor(1, "quarantine")
        self._waiting: list[tuple[Receipt, UnreadableFrame]] = []
        self._writing, self._error = False, ""
        self._logged: set[tuple[str, str | None]] = set()

    def take(self, connection: object, peer: str, frames: Sequence[UnreadableFrame]) -> None:
        """Answer prolog requests at once, as in an outage; the others once they are in the file.

        Args:
            connection: where the answers go.
            peer: the other end, for the log.
        """
        for frame in frames:
            receipt = Receipt(connection, frame.number)
            self._engine.counts["unreadable_frames", frame.kind] += 1
            kind = (frame.kind, frame.why.field)
            if kind not in self._logged:  # once for each kind of error
                self._logged.add(kind)
                text = "%s: a frame is not understood: %s; it is kept in %s; %s"
                _log.error(text, peer, frame.error, self.path, self.remedy)
            if frame.kind == "prolog":
                self._answer(receipt, frame)
            # Beyond that it is not answered, so the plug-in sends it again on its next connection.
            if len(self._waiting) < FRAMES_MAX:
                self._waiting.append((receipt, frame))
        if self._waiting and not self._writing:
            self._writing = True
            self._starter.start_task(self._write())

    def _answer(self, receipt: Receipt, frame: UnreadableFrame) -> None:
        is_open = self._engine.terms_of(frame.partition).outage_policy is OutagePolicy.OPEN
        self._engine.counts["verdicts", f"unreadable: {'run' if is_open else 'deferred'}"] += 1
        verdict = RUN if is_open else defer(UNREADABLE_TEXT, batch=frame.batch)
        self._engine.flow.reply([receipt], verdict)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch = self._waiting[:]
            frames, now = [frame for _, frame in batch], int(time.time())
            try:
                await loop.run_in_executor(self._thread, self._file.append, frames, now)
            except OSError as error:
                if not self._error:
                    text = (
                        "%s cannot be written: %s; free space on its disk. Until then frames wait"
                    )
                    _log.error(text, self.path, error)
                self._error = str(error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._error = ""
            del self._waiting[: len(batch)]
            for receipt, frame in batch:
                if frame.kind != "prolog":
                    self._engine.flow.acknowledge(receipt)
            self._starter.pump_soon()
        self._writing = False

    @property
    def remedy(self) -> str:
        return (
            "install the plug-in and the agent of one release, restart slurmctld and the agent; "
            f"fairbank reconcile --fix charges what is missing; then move {self.path} away"
        )

    def status(self) -> dict[str, Any]:
        """Return the status as JSON."""
        frames = self._file.frames
        return {
            "path": str(self.path),
            "frames": frames,
            "last": self._file.last if frames else None,
            "error": self._error or None,
            "remedy": self.remedy,
        }

    def close(self) -> None:
        self._thread.shutdown(wait=True)
