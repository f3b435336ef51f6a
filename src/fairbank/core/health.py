"""Result of one health check, of a bank or of a Slurm beside it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairbank.core.errors import FairbankError


class HealthCheck(msgspec.Struct, frozen=True):
    """Result of one check. `remedy` says what to do if it is not `ok`."""

    what: str
    ok: bool
    remedy: str | None = None


def run_check(what: str, test: Callable[[], object]) -> HealthCheck:
    """Return a check that is ok if `test` raises no error."""
    try:
        test()
    except FairbankError as error:
        return HealthCheck(f"{what}: {error.message}", False, error.remedy)
    return HealthCheck(what, True)
