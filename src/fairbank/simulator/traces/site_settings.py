"""Settings of synthetic sites, as their files have them."""

from __future__ import annotations

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.settings_file import parse_toml
from fairbank.core.time import parse_instant
from fairbank.core.validation import validated_settings
from fairbank.simulator.traces.synthetic import DAYS_MAX, SitePartition, SyntheticSite

DEFAULT_SITE = SyntheticSite()


class SitePartitionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Partition. Processors come `unit` at a time (the cores of one GPU), each with so many MiB."""

    name: str
    processors: int
    unit: int = 1
    memory_mib: int = 4_096


class SyntheticSiteSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Site, in a file. Without `days` the number of days is such that jobs are as dense as on the
    default site.
    """

    jobs: int = DEFAULT_SITE.jobs
    days: int | None = None
    projects: int = DEFAULT_SITE.projects
    users: int = DEFAULT_SITE.users
    node_failures: int = DEFAULT_SITE.node_failures
    starts: str = "2025-09-01"
    pools: tuple[SitePartitionSettings, ...] | None = None


def site_of(settings: SyntheticSiteSettings) -> SyntheticSite:
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
        else tuple(map(_partition_of, settings.pools)),
        projects=settings.projects,
        users=settings.users,
        jobs=settings.jobs,
        days=days,
        node_failures=settings.node_failures,
        starts=parse_instant(settings.starts, field="starts"),
    )


def _partition_of(settings: SitePartitionSettings) -> SitePartition:
    return SitePartition(
        settings.name, settings.processors, settings.unit, settings.memory_mib << 10
    )


def parse_site(text: bytes, name: str) -> SyntheticSiteSettings:
    """Parse the text of a file. Raises InvalidInput with the place for invalid content."""
    content = parse_toml(text, name, field="model")
    with validated_settings(name, content, SyntheticSiteSettings):
        return msgspec.convert(content, SyntheticSiteSettings)
