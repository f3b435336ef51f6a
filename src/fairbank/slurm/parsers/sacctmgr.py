"""Accounts, users, shares and QOS: `sacctmgr --noheader --parsable2 show`, of any version."""

from __future__ import annotations

import re

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers.columns import PIPE, read_rows, split_records
from fairbank.slurm.parsers.values import (
    AssociationPriority,
    ParsedRows,
    SlurmAssociation,
    SlurmQos,
)
from fairbank.slurm.parsers.words import number, quoted, user

ASSOCIATION_COLUMNS = ("Account", "User", "ParentName", "Share", "GrpTRESMins", "Partition")
PRIORITY_COLUMNS = ("Account", "User", "Partition", "Priority")
COORDINATOR_COLUMNS = ("Account", "Coordinators")
QOS_COLUMNS = ("Name", "Priority", "UsageFactor")
_SHARES = re.compile(r"\d{1,10}|parent", re.ASCII)


def read_associations(text: str) -> ParsedRows[SlurmAssociation]:
    """Read `show associations format=account,user,parentname,share,grptresmins,partition`."""
    return read_rows(
        "sacctmgr show associations",
        split_records("sacctmgr show associations", text, ASSOCIATION_COLUMNS, PIPE),
        _association,
    )


def read_priorities(text: str) -> ParsedRows[AssociationPriority]:
    """Read `show associations format=account,user,partition,priority`."""
    return read_rows(
        "sacctmgr show associations",
        split_records("sacctmgr show associations", text, PRIORITY_COLUMNS, PIPE),
        _priority,
    )


def read_coordinators(text: str) -> ParsedRows[SlurmAssociation]:
    """Read `show account withcoord format=account,coordinators`."""
    return read_rows(
        "sacctmgr show account",
        split_records("sacctmgr show account", text, COORDINATOR_COLUMNS, PIPE),
        _coordinated,
    )


def read_qos(text: str) -> ParsedRows[SlurmQos]:
    """Read `show qos format=name,priority,usagefactor`."""
    return read_rows(
        "sacctmgr show qos", split_records("sacctmgr show qos", text, QOS_COLUMNS, PIPE), _qos
    )


def _association(cells: dict[str, str]) -> SlurmAssociation:
    shares = cells["Share"]
    if shares and not _SHARES.fullmatch(shares):
        raise InvalidInput(f"{quoted(shares)} are no shares", field="Share")
    return SlurmAssociation(
        ids.name(cells["Account"].strip(), field="Account"),
        user(cells["User"], "User") if cells["User"] else "",
        cells["ParentName"] and ids.name(cells["ParentName"], field="ParentName"),
        shares,
        cells["GrpTRESMins"],
        cells["Partition"],
    )


def _priority(cells: dict[str, str]) -> AssociationPriority:
    return AssociationPriority(
        ids.name(cells["Account"].strip(), field="Account"),
        cells["User"] and user(cells["User"], "User"),
        cells["Partition"],
        number(cells["Priority"] or "0", "Priority"),
    )


def _coordinated(cells: dict[str, str]) -> SlurmAssociation:
    names = tuple(user(name, "Coordinators") for name in cells["Coordinators"].split(",") if name)
    return SlurmAssociation(ids.name(cells["Account"], field="Account"), coordinators=names)


def _qos(cells: dict[str, str]) -> SlurmQos:
    factor = cells["UsageFactor"]
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", factor, re.ASCII):
        raise InvalidInput(f"{quoted(factor)} is not a factor", field="UsageFactor")
    return SlurmQos(
        ids.name(cells["Name"], field="Name"), number(cells["Priority"], "Priority"), factor
    )
