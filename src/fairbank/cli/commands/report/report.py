"""Command `fairbank report`: figures as tables and files."""

from __future__ import annotations

from fairbank.cli.commands.report import balance, centre, fair_share, site_factor, usage
from fairbank.cli.framework.command import Noun

COMMAND = Noun(
    "figures of the centre, of credit, usage, fair share and priorities",
    {
        "centre": centre.COMMAND,
        "balance": balance.COMMAND,
        "usage": usage.COMMAND,
        "fairshare": fair_share.COMMAND,
        "sitefactor": site_factor.COMMAND,
    },
)
