"""What counts against limits: `sshare --all --noheader --parsable2`, of any version."""

from __future__ import annotations

import re

import msgspec

from fairbank.core import ids
from fairbank.slurm.parsers.delimited import PIPE, read_rows, split_records
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.parsers.words import number

USAGE_COLUMNS = ("Account", "User", "RawUsage", "TRESRunMins")
_BILLING = re.compile(r"(?:^|,)billing=(\d{1,18})(?:,|$)", re.ASCII)


class ShareUsage(msgspec.Struct, frozen=True):
    """What an account used in billing seconds, and what its running jobs may still use in billing minutes: as sshare counts them."""

    account: str
    seconds: int
    running: int


def read_usage(text: str) -> ParsedRows[ShareUsage]:
    """The accounts; their users are counted in them."""
    return read_rows("sshare", split_records("sshare", text, USAGE_COLUMNS, PIPE), _account_usage)


def _account_usage(cells: dict[str, str]) -> ShareUsage | None:
    if cells["User"]:
        return None
    billing = _BILLING.search(cells["TRESRunMins"])
    seconds = number(cells["RawUsage"], "RawUsage")
    return ShareUsage(
        ids.name(cells["Account"].strip(), field="Account"),
        seconds,
        int(billing[1]) if billing else 0,
    )
