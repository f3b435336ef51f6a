"""Frames that cannot be read are put aside in a file and answered, so that the plug-in does not say them for ever (docs/decisions/0012).

What they told of is not lost: reconciling finds it in Slurm's accounting.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from fairbank.core.time import iso
from fairbank.slurm.agent.core import Core, verdict
from fairbank.slurm.agent.judging import not_understood
from fairbank.slurm.agent.letters import Receipt
from fairbank.slurm.agent.silence import Silence
from fairbank.slurm.frames import Unread
from fairbank.slurm.records import Noted

_log = logging.getLogger(__name__)

FRAMES_MAX, BYTES_MAX = 1_000, 4 * 1024 * 1024
"""What the file holds at most. Further frames are answered and counted, but not kept: more of the same tell nobody more."""
RETRY_SECONDS = 1.0


class AsideFile:
    """One frame a line, as JSON with the bytes in base64. Whoever has looked at it moves it away. Use `keep` from one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path, self._frames = path, 0
        self.last: str | None = None
        """What was wrong with the newest."""
        with suppress(OSError, msgspec.MsgspecError, KeyError, IndexError, TypeError):
            lines = path.read_bytes().splitlines()
            self._frames = len(lines)
            self.last = str(msgspec.json.decode(lines[-1])["why"])

    @property
    def frames(self) -> int:
        """How many are in it; none when it was moved away."""
        return self._frames if self._path.exists() else 0

    def keep(self, unread: Sequence[Unread], at: int) -> None:
        """All of them, as far as there is room, or none; safe on the disk when this returns. Raises OSError."""
        file = os.open(
            self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            size = os.fstat(file).st_size
            count = self._frames if size else 0
            lines = [_line(each, at) for each in unread[: max(0, FRAMES_MAX - count)]]
            text = b"".join(lines)
            if size + len(text) > BYTES_MAX:
                lines, text = [], b""
            if os.write(file, text) != len(text):
                os.ftruncate(file, size)
                raise OSError("no space left on its disk")
            os.fsync(file)
        finally:
            os.close(file)
        self._frames, self.last = count + len(lines), _why(unread[-1])


class Aside:
    """The shell around the file: one thread. `do` carries out what is begun here, `done` is called when something came of it."""

    def __init__(
        self,
        outbox: Path,
        core: Core,
        do: Callable[[Coroutine[None, None, None]], None],
        done: Callable[[], None],
    ) -> None:
        self.path = outbox.with_suffix(".aside")
        self._core, self._do, self._done, self._file = core, do, done, AsideFile(self.path)
        self._thread = ThreadPoolExecutor(1, "aside")
        self._waiting: list[tuple[Receipt, Unread]] = []
        self._keeping, self._trouble = False, ""
        self._told: set[tuple[str, str | None]] = set()

    def take(self, door: object, who: str, unread: Sequence[Unread]) -> None:
        """Questions are answered at once, as if the bank were away; what is news, when it is in the file."""
        for each in unread:
            receipt = Receipt(door, each.number)
            self._core.tally["aside", each.kind] += 1
            self._tell(who, each)
            if each.is_question:
                self._answer(receipt, each)
            if (
                len(self._waiting) < FRAMES_MAX
            ):  # else it is not answered, and said again to the next connection
                self._waiting.append((receipt, each))
        if self._waiting and not self._keeping:
            self._keeping = True
            self._do(self._keep())

    def _answer(self, receipt: Receipt, unread: Unread) -> None:
        runs = self._core.terms_of(unread.partition).silence is Silence.OPEN
        self._core.tally[
            "answers", "not understood: run" if runs else "not understood: put off"
        ] += 1
        words = None if runs else not_understood(batch=unread.batch)
        self._core.sayings.append((receipt, verdict(unread.number, words)))

    def _tell(self, who: str, unread: Unread) -> None:
        """Each way of not being understood once in the life of this agent."""
        what = (unread.kind, unread.why.field)
        if what not in self._told:
            self._told.add(what)
            _log.error(
                "%s: a frame is not understood: %s; it is put aside in %s; %s",
                who,
                _why(unread),
                self.path,
                self.remedy,
            )

    async def _keep(self) -> None:
        while self._waiting:
            taken = self._waiting[:]
            try:
                await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._file.keep, [each for _, each in taken], int(time.time())
                )
            except OSError as bad:
                self._failed(str(bad))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._trouble = ""
            del self._waiting[: len(taken)]
            self._core.sayings += [
                (receipt, Noted(number=each.number))
                for receipt, each in taken
                if not each.is_question
            ]
            self._done()
        self._keeping = False

    def _failed(self, trouble: str) -> None:
        if not self._trouble:
            _log.error(
                "%s cannot be written: %s; make room for it. Until then frames that are not understood wait",
                self.path,
                trouble,
            )
        self._trouble = trouble

    @property
    def remedy(self) -> str:
        """What to do about frames put aside."""
        return (
            "install the plug-in and the agent of one release, restart slurmctld and the agent; "
            f"fairbank reconcile --fix charges what is missing; then move {self.path} away"
        )

    def status(self) -> dict[str, Any]:
        """What a person may want to know, as JSON."""
        frames = self._file.frames
        return {
            "path": str(self.path),
            "frames": frames,
            "last": self._file.last if frames else None,
            "trouble": self._trouble or None,
            "remedy": self.remedy,
        }

    def close(self) -> None:
        self._thread.shutdown(wait=True)


def _why(unread: Unread) -> str:
    return f"{unread.kind}: {unread.why.message} ({unread.why.field})"


def _line(unread: Unread, at: int) -> bytes:
    return (
        msgspec.json.encode(
            {"at": iso(at), "number": unread.number, "why": _why(unread), "body": unread.body}
        )
        + b"\n"
    )
