"""The site factor: what the bank adds to a job's priority in Slurm, and the table from which slurmctld's plug-in takes it.

The form of the table and the choice of the rules are in docs/decisions/0016-site-factor-table.md; the rules themselves in
`priority.site_factor`. `plugins/site_factor/table.c` reads it.
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
from fairbank.slurm.compare.bank_records import BankFunds, BookedAllocation, BookedProject

VERSION = 1
SIZE_MAX = 16 * 1024 * 1024
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
    """The values of one cluster as of `written`, good for `stale_seconds` on either side of it, should clocks be set.

    `resources` says what each partition bills, `values` are those of (account, resource).
    """

    written: int
    stale_seconds: int
    resources: Mapping[str, str]
    values: Mapping[tuple[str, str], int]

    def value(self, account: str, partition: str, now: int) -> int:
        """What a job's priority gets: neutral for whatever is not listed, and when the table is stale."""
        if abs(now - self.written) > self.stale_seconds:
            return NEUTRAL
        return self.values.get((account, self.resources.get(partition, "")), NEUTRAL)


# ---------------------------------------------------------------- the values


def table_of(
    cluster: Cluster,
    projects: Sequence[BookedProject],
    allocations: Iterable[BookedAllocation],
    *,
    now: int,
    weight: int,
    stale_seconds: int,
    rule: CurveRule = LINEAR,
) -> SiteFactorTable:
    """The table of a cluster: for each account and resource the value of the allocation that pays next, its own or a parent's.

    That is the first with something left, in the order in which they pay. Only allocations that are active count. `rule` says what
    their credit and their ends are worth, `weight` how much of a priority the most of both is.
    """
    active = [
        each for each in allocations if each.state == "active" and each.start <= now < each.end
    ]
    longest = max((each.end - now for each in active), default=0)
    funds = BankFunds(projects, active)
    resources = {name: partition.resource for name, partition in cluster.partitions.items()}
    paying: dict[tuple[str, str], BookedAllocation] = {}
    for account, project in funds.by_account.items():
        for resource in set(resources.values()):
            if payers := funds.payers(project.id, resource, now):
                paying[account, resource] = next(
                    (each for each in payers if each.available > 0), payers[0]
                )
    credit = credit_factor(
        [each.deposited for each in paying.values()],
        [each.charged + each.held for each in paying.values()],
    )
    expiry = expiry_factor([each.end - now for each in paying.values()], longest)
    values = dict(zip(paying, scaled(rule.of(credit, expiry), weight).tolist(), strict=True))
    return SiteFactorTable(now, stale_seconds, resources, values)


# ---------------------------------------------------------------- the bytes


def encode(table: SiteFactorTable) -> bytes:
    """The file, which reads back as the same table. Raises InvalidInput, naming the field, for what cannot stand in it."""
    counts = (len(table.resources), len(table.values))
    if _HEAD.size + sum(counts) * _ROW.size > SIZE_MAX:
        raise InvalidInput(
            f"{sum(counts)} rows are too many for the table",
            field="values",
            remedy=f"it may have {SIZE_MAX} bytes",
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
    """The table of a file.

    Raises InvalidInput, saying what is wrong; the plug-in refuses the same.
    """
    if len(text) < _HEAD.size or text[: len(_MAGIC)] != _MAGIC:
        raise _wrong("it is no table of site factors")
    _, version, summed, written, stale_seconds, partitions, entries, nothing = _HEAD.unpack_from(
        text
    )
    if version != VERSION:
        raise _wrong(f"its version is {version}, and {VERSION} is known")
    if _HEAD.size + (partitions + entries) * _ROW.size != len(text) or len(text) > SIZE_MAX:
        raise _wrong("its length is not what its head says")
    if zlib.crc32(text[_SUMMED:]) != summed:
        raise _wrong("its checksum is wrong")
    if nothing or stale_seconds > STALE_MAX or written >= 2**63:
        raise _wrong("its head is wrong")
    body = list(_ROW.iter_unpack(text[_HEAD.size :]))
    resources = {name: resource for name, resource, _ in _rising(body[:partitions], by_name=True)}
    values = {
        (account, resource): value
        for account, resource, value in _rising(body[partitions:], by_name=False)
    }
    return SiteFactorTable(written, stale_seconds, resources, values)


def _rising(
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
            raise _wrong("one of its rows is wrong")
        key = (name,) if by_name else (name, resource)
        if key <= before:
            raise _wrong("its rows are not in order")
        before = key
        yield name.decode(), resource.decode(), value


def _wrong(what: str) -> InvalidInput:
    return InvalidInput(what, field="site_factor.path", remedy="let the agent write it again")
