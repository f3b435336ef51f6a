"""Output of the tasks of a step, as srun prints it: whole lines, with or without labels."""

from __future__ import annotations

import os
import select
from collections.abc import Mapping

from fairbank.wlm.protocol.frames import ERRORS, OUTPUT

LINE_MAX = 64 * 1024
"""Longest part of a line that waits for its end."""


class StepOutput:
    """Output of tasks. Each stream keeps the line that is not complete."""

    def __init__(
        self,
        files: Mapping[int, int],
        ranks: int,
        *,
        has_labels: bool,
        is_buffered: bool,
        only: Mapping[int, int] | None = None,
    ) -> None:
        """Begin with no output.

        Args:
            files: descriptors for output and errors, by kind of frame; a kind that is missing is
                not shown.
            ranks: number of all tasks.
            has_labels: whether each line begins with the rank of its task.
            is_buffered: whether only whole lines are written.
            only: rank that alone is shown, by kind of frame; a kind that is missing is of all.
        """
        self._files, self._width = files, len(str(ranks - 1))
        self._only = only or {}
        self._has_labels, self._is_buffered = has_labels, is_buffered
        self._rest: dict[tuple[int, int], bytes] = {}

    def write(self, kind: int, rank: int, data: bytes) -> int:
        """Write what a task has written. Raises OSError.

        Args:
            kind: OUTPUT or ERRORS.
            rank: rank of the task.
            data: empty at the end of the stream.

        Returns:
            Number of bytes of the stream that are written now; the others wait for a line's end.
        """
        if kind not in self._files or self._only.get(kind, rank) != rank:
            return len(data)
        if not (self._has_labels or self._is_buffered):
            self._write(kind, data)
            return len(data)
        text = self._rest.pop((kind, rank), b"") + data
        end = text.rfind(b"\n") + 1 if data and self._is_buffered else len(text)
        if len(text) - end > LINE_MAX:
            end = len(text)
        if end < len(text):
            self._rest[kind, rank] = text[end:]
        self._write(kind, self._labelled(rank, text[:end]) if self._has_labels else text[:end])
        return end

    def _labelled(self, rank: int, text: bytes) -> bytes:
        label = b"%*d: " % (self._width, rank)
        # Not at carriage returns, as splitlines does.
        *lines, last = text.split(b"\n")
        # The label of another task must not follow on the same line.
        return b"".join(label + line + b"\n" for line in (*lines, *([last] if last else ())))

    def _write(self, kind: int, data: bytes) -> None:
        file = self._files[kind]
        while data:
            try:
                data = data[os.write(file, data) :]
            except BlockingIOError:  # another process that has the file open made it so
                select.select([], [file], [])


STANDARD: Mapping[int, int] = {OUTPUT: 1, ERRORS: 2}
"""Standard output and error output."""
