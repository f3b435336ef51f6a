"""Traces in files, compressed or not."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.simulator.traces.fast_reader import FastTrace, read_fast
from fairbank.simulator.traces.swf import ByteStream, Trace, read


class OpenTraceFile(NamedTuple):
    """File that is being read: stream, size in bytes, and number of bytes read so far.

    For a pipe both are 0, and it is read only once.
    """

    stream: ByteStream
    size: int
    position: Callable[[], int]
    once: bool


@contextmanager
def opened(path: Path, *, again: bool = False) -> Iterator[OpenTraceFile]:
    """Open a file, compressed or not. Raises NotFound if it cannot be opened, InvalidInput for a
    pipe that must be opened `again` later.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        remedy = "name a trace in the Standard Workload Format"
        raise NotFound(
            f"cannot read {path}: {error.strerror}", field="FILE", remedy=remedy
        ) from error
    with file:
        if again and not file.seekable():
            raise InvalidInput(
                f"{path} is a pipe, and a replay reads its trace twice",
                field="FILE",
                remedy="write it to a file first, and name that",
            )
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        with gzip.open(file) if packed else file as stream:
            if file.seekable():
                yield OpenTraceFile(stream, path.stat().st_size, file.tell, once=False)
            else:
                yield OpenTraceFile(stream, 0, lambda: 0, once=True)


@contextmanager
def open_trace(path: Path) -> Iterator[Trace]:
    """Open a trace with all columns, which can be opened again. Raises NotFound if it cannot be
    opened, InvalidInput for a pipe.
    """
    with opened(path, again=True) as file:
        yield read(file.stream)


Reader = Callable[[ByteStream], FastTrace]


@contextmanager
def open_skimmed(
    path: Path, reader: Reader = read_fast
) -> Iterator[tuple[FastTrace, OpenTraceFile]]:
    """Open a trace as a simulation reads it, in the reader's format. Raises NotFound if it cannot
    be opened.
    """
    with opened(path) as file:
        yield reader(file.stream), file
