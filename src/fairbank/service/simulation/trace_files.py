"""Traces in files to simulate, plain or compressed by gzip."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.settings_file import read_whole
from fairbank.simulator.traces.fast_reader import FastTrace, read_fast
from fairbank.simulator.traces.swf import ByteStream, Trace, read

_OTHER_COMPRESSIONS = {b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
"""Programs of compressions that are not read, by the first bytes of their files."""


class Extent(NamedTuple):
    """Size of a workload. `about` returns the total number of jobs, estimated when so many are
    read. `once`: it cannot be read again.
    """

    about: Callable[[int], int]
    once: bool = False


Source = Callable[[], AbstractContextManager[tuple[FastTrace, Extent]]]
"""Function that opens a workload, from its begin each time."""


class _OpenTraceFile(NamedTuple):
    """File that is being read: stream, size in bytes, and number of bytes read so far.

    For a pipe both are 0, and it is read only once.
    """

    stream: ByteStream
    size: int
    position: Callable[[], int]
    once: bool


@contextmanager
def _opened(path: Path, *, again: bool = False) -> Iterator[_OpenTraceFile]:
    """Open a file, plain or compressed by gzip.

    Raises NotFound if it cannot be opened, InvalidInput for a pipe that must be opened `again`
    later and for another compression.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(
            path, error, "FILE", "name a trace in the Standard Workload Format"
        ) from error
    with file:
        if again and not file.seekable():
            raise InvalidInput(
                f"{path} is a pipe, and a replay reads its trace twice",
                field="FILE",
                remedy="write it to a file first, and name that",
            )
        magic = file.peek(6)[:6]
        for other, name in _OTHER_COMPRESSIONS.items():
            if magic.startswith(other):
                raise InvalidInput(
                    f"{path} is compressed by {name}; gzip is the only compression that is read",
                    field="FILE",
                    remedy=f"decompress it first: {name} -d",
                )
        packed = magic.startswith(b"\x1f\x8b")
        with gzip.open(file) if packed else file as stream:
            if file.seekable():
                yield _OpenTraceFile(stream, path.stat().st_size, file.tell, once=False)
            else:
                yield _OpenTraceFile(stream, 0, lambda: 0, once=True)


@contextmanager
def open_trace(path: Path) -> Iterator[Trace]:
    """Open a trace with all columns, which can be opened again. Raises NotFound if it cannot be
    opened, InvalidInput for a pipe.
    """
    with _opened(path, again=True) as file:
        yield read(file.stream)


Reader = Callable[[ByteStream], FastTrace]


@contextmanager
def in_file(path: Path, reader: Reader = read_fast) -> Iterator[tuple[FastTrace, Extent]]:
    """Yield a trace as a simulation reads it. Raises NotFound if it cannot be opened."""
    with _opened(path) as file:
        yield (
            reader(file.stream),
            Extent(lambda jobs: jobs * file.size // max(file.position(), 1), file.once),
        )


def read_file(path: Path, field: str, remedy: str) -> bytes:
    """Return the content of a file.

    Args:
        path: the file.
        field: option that names it.
        remedy: remedy for a file that cannot be read.

    Raises:
        NotFound: the file cannot be read.
        InvalidInput: it is too large.
    """
    try:
        with path.open("rb") as file:
            return read_whole(file, str(path), field=field)
    except OSError as error:
        raise _unreadable(path, error, field, remedy) from error


def _unreadable(path: Path, error: OSError, field: str, remedy: str) -> NotFound:
    return NotFound(f"cannot read {path}: {error.strerror}", field=field, remedy=remedy)
