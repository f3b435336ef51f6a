"""What counts against limits: `sshare --all --noheader --parsable2`, of any version."""

from __future__ import annotations

import re

import msgspec

from fairbank.slurm.parsers.delimited import (PIPE, read, records)
from fairbank.slurm.parsers.values import Answer
from fairbank.slurm.parsers.words import number
from fairbank.core import ids

COLUMNS = ("Account", "User", "RawUsage", "TRESRunMins")
_BILLING = re.compile(r"(?:^|,)billing=(\d{1,18})(?:,|$)", re.ASCII)


class Used(msgspec.Struct, frozen=True):
    """What an account used in billing seconds, and what its running jobs may still use in billing minutes: as sshare counts them."""

    account: str
    seconds: int
    running: int


def read_usage(text: str) -> Answer[Used]:
    """The accounts; their users are counted in them."""
    return read("sshare", records("sshare", text, COLUMNS, PIPE), _used)


def _used(cells: dict[str, str]) -> Used | None:
    if cells["User"]:
        return None
    billing = _BILLING.search(cells["TRESRunMins"])
    seconds = number(cells["RawUsage"], "RawUsage")
    return Used(
        ids.name(cells["Account"].strip(), field="Account"),
        seconds,
        int(billing[1]) if billing else 0,
    )
