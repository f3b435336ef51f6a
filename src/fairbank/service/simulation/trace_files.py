"""Traces in files to simulate, plain or compressed by gzip."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.simulator.traces.fast_reader import Extent, FastTrace, read_fast
from fairbank.simulator.traces.swf import ByteStream, Trace, read

_OTHER_COMPRESSIONS = {b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
"""Programs of compressions that are not read, by the first bytes of their files."""


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
        raise NotFound(
            f"cannot read {path}: {error.strerror}",
            field="FILE",
            remedy="name a trace in the Standard Workload Format",
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
