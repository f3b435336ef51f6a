"""Workloads to simulate: traces in files, compressed or not, and synthetic ones."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.os_errors import translate_os_error
from fairbank.core.time import parse_instant
from fairbank.core.validation import parse_toml, validated_settings
from fairbank.service.ops.atomic_file import atomic_write
from fairbank.simulator.traces.fast_reader import FastTrace, ReaderNotes, fast_line, read_fast
from fairbank.simulator.traces.swf import ByteStream, Trace, read, write
from fairbank.simulator.traces.synthetic import SitePartition, SyntheticSite, month


class Extent(NamedTuple):
    """Size of a workload. `about` returns the total number of jobs, estimated when so many are
    read. `once`: it cannot be read again.
    """

    about: Callable[[int], int]
    once: bool = False


Source = Callable[[], AbstractContextManager[tuple[FastTrace, Extent]]]
"""Function that opens a workload, from its begin each time."""


# --- traces in files ---


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
    """Open a file, compressed or not. Raises NotFound if it cannot be opened, InvalidInput for a
    pipe that must be opened `again` later.
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
        packed = file.peek(2)[:2] == b"\x1f\x8b"
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
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error, field, remedy) from error


def _unreadable(path: Path, error: OSError, field: str, remedy: str) -> NotFound:
    return NotFound(f"cannot read {path}: {error.strerror}", field=field, remedy=remedy)


# --- synthetic workloads: generated at each reading, and the same for the same seed ---

USUAL = SyntheticSite()
DAYS_MAX = 3_660


class PoolSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Partition. Processors come `unit` at a time (the cores of one GPU), each with so many MiB."""

    name: str
    processors: int
    unit: int = 1
    memory_mib: int = 4_096


class CentreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Site, in a file. Without `days` the number of days is such that jobs are as dense as on the
    default site.
    """

    jobs: int = USUAL.jobs
    days: int | None = None
    projects: int = USUAL.projects
    users: int = USUAL.users
    node_failures: int = USUAL.node_failures
    starts: str = "2025-09-01"
    pools: tuple[PoolSettings, ...] | None = None


class Modelled(NamedTuple):
    """Workload of a site, with a seed."""

    centre: SyntheticSite
    seed: int

    @contextmanager
    def opened(self) -> Iterator[tuple[FastTrace, Extent]]:
        """Yield the jobs as a simulation reads them."""
        trace = month(self.centre, self.seed)
        yield (
            FastTrace(trace.header, map(fast_line, trace.jobs), ReaderNotes()),
            Extent(lambda _: self.centre.jobs),
        )

    def save(self, path: Path) -> None:
        """Write the workload as a trace, as a whole or not at all. Raises an error of
        `translate_os_error` if that fails.
        """
        try:
            with atomic_write(path) as file:
                file.writelines(map(str.encode, write(*month(self.centre, self.seed))))
        except OSError as error:
            raise translate_os_error(error, f"cannot write {path}", field="save") from error


def centre_of(settings: CentreSettings) -> SyntheticSite:
    """Return the site. Raises InvalidInput, naming the field, for an impossible one."""
    days = settings.days
    if days is None:
        days = max(1, -(-settings.jobs * USUAL.days // USUAL.jobs))
        if days > DAYS_MAX:
            what = f"{settings.jobs:,} jobs are more than the usual centre runs in {DAYS_MAX} days"
            raise InvalidInput(
                what,
                field="jobs",
                remedy="describe a larger centre, and how many days it works: --model FILE",
            )
    return SyntheticSite(
        pools=USUAL.pools if settings.pools is None else tuple(map(_pool_of, settings.pools)),
        projects=settings.projects,
        users=settings.users,
        jobs=settings.jobs,
        days=days,
        node_failures=settings.node_failures,
        starts=parse_instant(settings.starts, field="starts"),
    )


def _pool_of(settings: PoolSettings) -> SitePartition:
    return SitePartition(
        settings.name, settings.processors, settings.unit, settings.memory_mib << 10
    )


def read_centre(path: Path) -> CentreSettings:
    """Read a site from a file. Raises NotFound for a file that cannot be read, InvalidInput with
    the place for invalid content.
    """
    text = read_file(path, "model", "name a file that describes a centre")
    said = parse_toml(text, str(path), field="model")
    with validated_settings(str(path), CentreSettings, "docs/howto/simulate.md"):
        return msgspec.convert(said, CentreSettings)
