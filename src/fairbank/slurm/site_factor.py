"""Site factor: the bank's term of a job's priority, and the table from which slurmctld's plug-in
reads it.

docs/decisions/0016-site-factor-table.md describes the table and the choice of rules,
`priority.site_factor` has the rules. `plugins/site_factor/table.c` reads the table.
"""

from __future__ import annotations

import logging
import struct
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.project import Project
from fairbank.bank.records import BankFunds
from fairbank.cluster.partition import Cluster
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.slurm_numbers import NICE_MAX
from fairbank.priority.site_factor import LINEAR, CurveRule, RemainingCredit, rule_of, site_factors
from fairbank.rest.client import Client, parse_address
from fairbank.rest.client.bank_client import BankClient
from fairbank.rest.client.bulk_reports import cannot_connect
from fairbank.slurm.agent_settings import SlurmAgentSettings
from fairbank.slurm.sync import replace_file

_log = logging.getLogger(__name__)

VERSION = 2
TABLE_SIZE_MAX = 16 * 1024 * 1024
"""Bytes; the plug-in reads no more."""

STALE_MAX = 2**31 - 1

_MAGIC = b"FBSITEF\n"
# Magic, version, sum of all that follows; written, stale after, partitions, entries, nothing.
_HEAD = struct.Struct("<8sII QIIII")
_SUMMED = 16  # where begins what the sum is of
_ROW = struct.Struct("<256s40siI")  # an account or a partition, a resource, a value, nothing
_NAME, _RESOURCE = 255, 39


class SiteFactorTable(msgspec.Struct, frozen=True):
    """Values of one cluster, valid for `stale_seconds` before and after `written`.

    `resources` are those that the partitions bill, `values` those of (account, resource). They are
    valid before `written` too, since a clock may be set back.
    """

    written: int
    stale_seconds: int
    resources: Mapping[str, str]
    values: Mapping[tuple[str, str], int]


# --- values ---


def build_table(
    cluster: Cluster,
    projects: Sequence[Project],
    allocations: Iterable[Allocation],
    *,
    now: int,
    weight: int,
    stale_seconds: int,
    rule: CurveRule = LINEAR,
) -> SiteFactorTable:
    """Build the table of a cluster.

    The value of an account and resource is that of the allocation that pays next, its own or a
    parent's: of the active ones, in the order in which they pay, the first with available credit.

    Args:
        cluster: the cluster, with the resources of its partitions.
        now: current time.
        weight: highest value.
        stale_seconds: age beyond which the table is not used.
        rule: values of remaining credit and time.
    """
    active = [
        allocation
        for allocation in allocations
        if allocation.state is AllocationState.ACTIVE and allocation.is_in_period(now)
    ]
    longest: dict[str, int] = {}
    for allocation in active:
        left, resource = allocation.terms.end - now, allocation.terms.resource
        longest[resource] = max(left, longest.get(resource, 0))
    resources = {name: partition.resource for name, partition in cluster.partitions.items()}
    paying = _paying_next(BankFunds(projects, active), set(resources.values()), now)
    remaining = [
        RemainingCredit(
            deposited=allocation.deposited,
            used=allocation.charged + allocation.held,
            seconds=allocation.terms.end - now,
            longest=longest[allocation.terms.resource],
        )
        for allocation in paying.values()
    ]
    values = dict(zip(paying, site_factors(remaining, rule, weight).tolist(), strict=True))
    return SiteFactorTable(now, stale_seconds, resources, values)


def _paying_next(
    funds: BankFunds, resources: Collection[str], now: int
) -> dict[tuple[str, str], Allocation]:
    """Return the allocation that pays next, by account and resource."""
    paying: dict[tuple[str, str], Allocation] = {}
    for account, project in funds.by_account.items():
        for resource in resources:
            if payers := funds.payers(project.id, resource, now):
                paying[account, resource] = next(
                    (allocation for allocation in payers if allocation.remaining > 0), payers[0]
                )
    return paying


# --- bytes ---


def encode(table: SiteFactorTable) -> bytes:
    """Return the bytes of the table.

    Raises InvalidInput, naming the field, for a value that it cannot hold.
    """
    counts = (len(table.resources), len(table.values))
    if _HEAD.size + sum(counts) * _ROW.size > TABLE_SIZE_MAX:
        raise InvalidInput(
            f"{sum(counts)} rows are too many for the table",
            field="values",
            remedy=f"it may have {TABLE_SIZE_MAX} bytes",
        )
    if not (0 <= table.written < 2**63 and 0 <= table.stale_seconds <= STALE_MAX):
        raise InvalidInput(
            "these times cannot stand in the table",
            field="written",
            remedy=f"from 0, stale at most {STALE_MAX}",
        )
    body = b"".join(sorted(_row(name, resource, 0) for name, resource in table.resources.items()))
    body += b"".join(
        sorted(
            _row(account, resource, value) for (account, resource), value in table.values.items()
        )
    )
    summed = _HEAD.pack(b"", 0, 0, table.written, table.stale_seconds, *counts, 0)[_SUMMED:] + body
    return _HEAD.pack(_MAGIC, VERSION, zlib.crc32(summed), 0, 0, 0, 0, 0)[:_SUMMED] + summed


def _row(name: str, resource: str, value: int) -> bytes:
    if abs(value) > NICE_MAX:
        raise InvalidInput(
            f"{value} is not a site factor",
            field="values",
            remedy=f"from {-NICE_MAX} to {NICE_MAX}",
        )
    return _ROW.pack(_packed(name, _NAME), _packed(resource, _RESOURCE), value, 0)


def _packed(text: str, most: int) -> bytes:
    packed = text.encode(errors="replace")  # a lone surrogate, which is in no name
    if not _is_name(packed, most):
        raise InvalidInput(
            f"{text[:80]!r} cannot stand in the table",
            field="values",
            remedy=f"1 to {most} bytes of UTF-8 without control characters",
        )
    return packed


def _is_name(packed: bytes, most: int) -> bool:
    return 0 < len(packed) <= most and all(byte >= 0x20 and byte != 0x7F for byte in packed)


def decode(text: bytes) -> SiteFactorTable:
    """Read the bytes of a table.

    Raises InvalidInput with the fault; the plug-in rejects the same.
    """
    if len(text) < _HEAD.size or text[: len(_MAGIC)] != _MAGIC:
        raise _damaged("it is not a table of site factors")
    _, version, summed, written, stale_seconds, partitions, entries, nothing = _HEAD.unpack_from(
        text
    )
    if version != VERSION:
        raise _damaged(f"its version is {version}, and {VERSION} is known")
    if _HEAD.size + (partitions + entries) * _ROW.size != len(text) or len(text) > TABLE_SIZE_MAX:
        raise _damaged("its length is not what its head says")
    if zlib.crc32(text[_SUMMED:]) != summed:
        raise _damaged("its checksum is wrong")
    if nothing or stale_seconds > STALE_MAX or written >= 2**63:
        raise _damaged("its head is wrong")
    body = list(_ROW.iter_unpack(text[_HEAD.size :]))
    resources = {
        name: resource for name, resource, _ in _read_rows(body[:partitions], by_name=True)
    }
    values = {
        (account, resource): value
        for account, resource, value in _read_rows(body[partitions:], by_name=False)
    }
    return SiteFactorTable(written, stale_seconds, resources, values)


def _read_rows(
    rows: Sequence[tuple[bytes, bytes, int, int]], *, by_name: bool
) -> Iterator[tuple[str, str, int]]:
    before: tuple[bytes, ...] = ()
    for packed_name, packed_resource, value, nothing in rows:
        name, resource = packed_name.rstrip(b"\0"), packed_resource.rstrip(b"\0")
        if (
            not (_is_name(name, _NAME) and _is_name(resource, _RESOURCE))
            or nothing
            or abs(value) > NICE_MAX
        ):
            raise _damaged("one of its rows is wrong")
        key = (name,) if by_name else (name, resource)
        if key <= before:
            raise _damaged("its rows are not in order")
        before = key
        yield name.decode(errors="replace"), resource.decode(errors="replace"), value


def _damaged(what: str) -> InvalidInput:
    return InvalidInput(what, field="site_factor.path", remedy="let the agent write it again")


# --- periodic job of the agent ---


class TableWriter:
    """Writer of the table: it asks the bank and replaces the file as a whole.

    `now` returns seconds since 1970 by the clock of slurmctld's host.
    """

    def __init__(
        self, settings: SlurmAgentSettings, *, now: Callable[[], float] = time.time
    ) -> None:
        """Raises FairbankError if the credentials for the bank cannot be read."""
        address = parse_address(settings.bank.server, field="bank.server")
        signer = settings.bank.signer(settings.site_factor.token_file)
        client = Client(address, signer=signer, timeout_seconds=settings.bank.timeout)
        self._settings, self._now, self._bank = settings.site_factor, now, BankClient(client)
        self._table: SiteFactorTable | None = None
        self._error: FairbankError | None = None

    def write(self) -> None:
        """Write one table, or log an error that is not the last one again."""
        try:
            table = self._fetch()
            replace_file(Path(self._settings.path or ""), encode(table), field="site_factor.path")
        except FairbankError as error:
            self._fail(error)
        except OSError as error:
            self._fail(cannot_connect(error))
        except (KeyError, TypeError, ValueError) as error:
            text = f"the bank's answer is not understood: {error!r}"
            remedy = "install the bank and the agent of one release"
            self._fail(InvalidInput(text, field="bank.server", remedy=remedy))
        else:
            if self._error is not None or self._table is None:
                text = "%s: site factors are written, %d of them"
                _log.info(text, self._settings.path, len(table.values))
            self._table, self._error = table, None

    def _fetch(self) -> SiteFactorTable:
        settings = self._settings
        self._bank.require_full_view()
        return build_table(
            self._bank.cluster(settings.cluster),
            self._bank.projects_without_members(),
            self._bank.allocations(),
            now=int(self._now()),
            weight=settings.weight,
            stale_seconds=settings.stale,
            rule=rule_of(settings.rule, settings.credit, settings.expiry),
        )

    def _fail(self, error: FairbankError) -> None:
        if self._error is None or self._error.message != error.message:
            text = "%s: site factors are not written: %s; try: %s"
            _log.warning(text, self._settings.path, error.message, error.remedy)
        self._error = error

    def status(self) -> dict[str, Any]:
        """Return the status as JSON; times are seconds since 1970."""
        table, error = self._table, self._error
        return {
            "path": self._settings.path,
            "written": None if table is None else table.written,
            "values": 0 if table is None else len(table.values),
            "error": None if error is None else error.message,
            "remedy": None if error is None else error.remedy,
        }
