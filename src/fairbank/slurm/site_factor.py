"""Site factor: the bank's term of a job's priority, and the table from which slurmctld's plug-in
reads it.

docs/decisions/0016-site-factor-table.md describes the table and the choice of rules,
`priority.site_factor` has the rules. `plugins/site_factor/table.c` reads the table.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_MAX
from fairbank.priority.site_factor import LINEAR, CurveRule, credit_factor, expiry_factor, scaled
from fairbank.slurm.reconcile.bank_records import BankAllocation, BankFunds, BankProject

VERSION = 1
TABLE_SIZE_MAX = 16 * 1024 * 1024
"""Bytes; the plug-in reads no more."""

STALE_MAX = 2**31 - 1
NEUTRAL = 0

_MAGIC = b"FBSITEF\n"
_HEAD = struct.Struct(
    "<8sII QIIII"
)  # magic, version, sum of all that follows; written, stale after, partitions, entries, nothing
_SUMMED = 16  # where begins what the sum is of
_ROW = struct.Struct("<72s40siI")  # an account or a partition, a resource, a value, nothing
_NAME, _RESOURCE = 71, 39


class SiteFactorTable(msgspec.Struct, frozen=True):
    """Values of one cluster, valid for `stale_seconds` before and after `written`.

    `resources` are those that the partitions bill, `values` those of (account, resource). They are
    valid before `written` too, since a clock may be set back.
    """

    written: int
    stale_seconds: int
    resources: Mapping[str, str]
    values: Mapping[tuple[str, str], int]

    def value(self, account: str, partition: str, now: int) -> int:
        """Return the value for a job: neutral if it is not listed, and from a stale table.

        Args:
            account: of the job.
            partition: of the job.
            now: current time.
        """
        if abs(now - self.written) > self.stale_seconds:
            return NEUTRAL
        return self.values.get((account, self.resources.get(partition, "")), NEUTRAL)


# ---------------------------------------------------------------- the values


def build_table(
    cluster: Cluster,
    projects: Sequence[BankProject],
    allocations: Iterable[BankAllocation],
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
        cluster: with the resources of its partitions.
        projects: of the bank.
        allocations: of the bank.
        now: current time.
        weight: highest value.
        stale_seconds: age beyond which the table is not used.
        rule: values of remaining credit and time.
    """
    active = [
        allocation
        for allocation in allocations
        if allocation.state == "active" and allocation.start <= now < allocation.end
    ]
    longest = max((allocation.end - now for allocation in active), default=0)
    funds = BankFunds(projects, active)
    resources = {name: partition.resource for name, partition in cluster.partitions.items()}
    paying: dict[tuple[str, str], BankAllocation] = {}
    for account, project in funds.by_account.items():
        for resource in set(resources.values()):
            if payers := funds.payers(project.id, resource, now):
                paying[account, resource] = next(
                    (allocation for allocation in payers if allocation.available > 0), payers[0]
                )
    credit = credit_factor(
        [allocation.deposited for allocation in paying.values()],
        [allocation.charged + allocation.held for allocation in paying.values()],
    )
    expiry = expiry_factor([allocation.end - now for allocation in paying.values()], longest)
    values = dict(zip(paying, scaled(rule.of(credit, expiry), weight).tolist(), strict=True))
    return SiteFactorTable(now, stale_seconds, resources, values)


# ---------------------------------------------------------------- the bytes


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
            f"{value} is no site factor", field="values", remedy=f"from {-NICE_MAX} to {NICE_MAX}"
        )
    return _ROW.pack(_packed(name, _NAME), _packed(resource, _RESOURCE), value, 0)


def _packed(text: str, most: int) -> bytes:
    packed = text.encode(errors="replace")
    if not _is_name(packed, most):
        raise InvalidInput(
            f"{text[:80]!r} cannot stand in the table",
            field="values",
            remedy=f"1 to {most} visible ASCII characters",
        )
    return packed


def _is_name(packed: bytes, most: int) -> bool:
    return 0 < len(packed) <= most and all(0x21 <= byte <= 0x7E for byte in packed)


def decode(text: bytes) -> SiteFactorTable:
    """Read the bytes of a table.

    Raises InvalidInput with the fault; the plug-in rejects the same.
    """
    if len(text) < _HEAD.size or text[: len(_MAGIC)] != _MAGIC:
        raise _damaged("it is no table of site factors")
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
        yield name.decode(), resource.decode(), value


def _damaged(what: str) -> InvalidInput:
    return InvalidInput(what, field="site_factor.path", remedy="let the agent write it again")
