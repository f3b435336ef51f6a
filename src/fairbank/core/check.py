"""What a doctor finds, of a bank or beside a Slurm."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairbank.core.errors import Trouble


class HealthCheck(msgspec.Struct, frozen=True):
    """One thing that was looked at. `remedy` is what to do when it is not `ok`."""

    what: str
    ok: bool
    remedy: str | None = None


def run_check(what: str, look: Callable[[], object]) -> HealthCheck:
    """A check that is ok when `look` raises no Trouble."""
    try:
        look()
    except Trouble as trouble:
        return HealthCheck(f"{what}: {trouble.message}", False, trouble.remedy)
    return HealthCheck(what, True)
