"""Reference pages of fairbank.toml and slurm.toml."""

from __future__ import annotations

import msgspec

from fairbank.bank.policy import GrantCategory, GrantRange, Policy
from fairbank.service import settings
from fairbank.service.cluster_settings import ClusterSettings, PartitionSettings
from fairbank.slurm.policy import SITE_FILE, ProjectRules, SiteRules
from tools.reference.pages.keys import key_tables


def settings_page() -> str:
    """Return the page with every key of fairbank.toml, its type and default."""
    lines = [
        "# Settings",
        "",
        (
            "One TOML file, `fairbank.toml`; `fairbank init` writes a first one. An unknown key is"
            " refused with its path."
        ),
        "",
    ]
    tables: tuple[tuple[str, type[msgspec.Struct]], ...] = (
        ("(at the top)", settings.BankSettings),
        ("[store]", settings.StoreSettings),
        ("[server]", settings.ServerSettings),
        ("[staff]", settings.StaffSettings),
        ("[history]", settings.HistorySettings),
        ("[policy]", Policy),
        ("[policy.categories.NAME]", GrantCategory),
        ("[policy.categories.NAME.resources.RESOURCE]", GrantRange),
        ("[clusters.NAME]", ClusterSettings),
        ("[clusters.NAME.partitions.NAME]", PartitionSettings),
    )
    return "\n".join([*lines, *key_tables(tables)]).rstrip() + "\n"


def site_page() -> str:
    """Return the page with every key of slurm.toml, its type and default."""
    lines = [
        "# The site's rules of submission",
        "",
        (
            f"One TOML file, `{SITE_FILE}`, for `fairbank slurm sync`; without it the defaults"
            " apply. An"
        ),
        "unknown key is refused with its path. [Rules of submission](submission.md) explains the",
        "rules.",
        "",
    ]
    return (
        "\n".join(
            [
                *lines,
                *key_tables((("(at the top)", SiteRules), ("[projects.ACCOUNT]", ProjectRules))),
            ]
        ).rstrip()
        + "\n"
    )
