"""Synthetic workloads: generated at each reading, and the same for the same seed.

A file of its own: reading a trace must not load msgspec, or every simulation would start later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from fairbank.core.errors import Conflict, InvalidInput
from fairbank.core.os_errors import translate_os_error
from fairbank.core.settings_file import parse_toml
from fairbank.core.time import parse_instant
from fairbank.core.validation import validated_settings
from fairbank.service.ops.atomic_file import atomic_write
from fairbank.service.simulation.trace_files import Extent, read_file
from fairbank.simulator.traces.fast_reader import FastTrace, ReaderNotes, fast_line
from fairbank.simulator.traces.swf import write
from fairbank.simulator.traces.synthetic import DAYS_MAX, SitePartition, SyntheticSite, month

DEFAULT_SITE = SyntheticSite()


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

    jobs: int = DEFAULT_SITE.jobs
    days: int | None = None
    projects: int = DEFAULT_SITE.projects
    users: int = DEFAULT_SITE.users
    node_failures: int = DEFAULT_SITE.node_failures
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

    def save(self, path: Path, *, replace: bool = False) -> None:
        """Write the workload as a trace, as a whole or not at all.

        Raises Conflict if the file exists and `replace` is false, and an error of
        `translate_os_error` if writing fails.
        """
        # A device, such as /dev/stdout, may be redirected to a file that exists.
        if not replace and path.is_file() and path.parent != Path("/dev"):
            raise Conflict(
                f"there is a file {path} already",
                field="save",
                remedy="name another, or replace this one with --force",
            )
        try:
            with atomic_write(path) as file:
                file.writelines(map(str.encode, write(*month(self.centre, self.seed))))
        except OSError as error:
            raise translate_os_error(error, f"cannot write {path}", field="save") from error


def centre_of(settings: CentreSettings) -> SyntheticSite:
    """Return the site. Raises InvalidInput, naming the field, for an impossible one."""
    days = settings.days
    if days is None:
        days = max(1, -(-settings.jobs * DEFAULT_SITE.days // DEFAULT_SITE.jobs))
        if days > DAYS_MAX:
            what = (
                f"{settings.jobs:,} jobs are more than the default site runs in {DAYS_MAX:,} days"
            )
            raise InvalidInput(
                what,
                field="jobs",
                remedy="describe a larger centre, and how many days it works: --model FILE",
            )
    return SyntheticSite(
        pools=DEFAULT_SITE.pools
        if settings.pools is None
        else tuple(map(_pool_of, settings.pools)),
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
    content = parse_toml(text, str(path), field="model")
    with validated_settings(str(path), CentreSettings):
        return msgspec.convert(content, CentreSettings)
