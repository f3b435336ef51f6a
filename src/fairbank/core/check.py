"""What a doctor finds, of a bank or beside a Slurm."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairbank.core.errors import Trouble


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at. `remedy` is what to do when it is not `ok`."""

    what: str
    ok: bool
    remedy: str | None = None


def attempt(what: str, look: Callable[[], object]) -> Check:
    """A check that is ok when `look` raises no Trouble."""
    try:
        look()
    except Trouble as trouble:
        return Check(f"{what}: {trouble.message}", False, trouble.remedy)
    return Check(what, True)
