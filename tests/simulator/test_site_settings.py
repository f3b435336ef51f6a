"""Settings of synthetic sites become sites."""

from __future__ import annotations

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.site_settings import SyntheticSiteSettings, parse_site, site_of
from fairbank.simulator.traces.synthetic import SitePartition, SyntheticSite


def test_million_jobs_are_allowed() -> None:
    assert site_of(SyntheticSiteSettings(jobs=1_000_000)).days == 7_500


def test_empty_file_describes_the_default_site() -> None:
    assert site_of(parse_site(b"", "site.toml")) == SyntheticSite()


def test_memory_of_a_partition_is_in_mib() -> None:
    text = b'[[pools]]\nname = "gpu"\nprocessors = 32\nunit = 8\nmemory_mib = 16384\n'
    assert site_of(parse_site(text, "site.toml")).pools == (
        SitePartition("gpu", 32, unit=8, memory=16 << 20),
    )


def test_unknown_key_is_reported_with_the_file() -> None:
    with pytest.raises(InvalidInput, match="site.toml: there is no setting nodes"):
        parse_site(b"nodes = 4\n", "site.toml")
