"""The accounting database's accounts, users, shares and QOS: `sacctmgr --noheader --parsable2`, of any version."""

from __future__ import annotations

import re

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers.delimited import PIPE, read, records
from fairbank.slurm.parsers.values import (
    AssociationPriority,
    ParsedRows,
    SlurmAssociation,
    SlurmQos,
)
from fairbank.slurm.parsers.words import number, shown, user

ASSOCIATIONS = ("Account", "User", "ParentName", "Share", "GrpTRESMins", "Partition")
PRIORITIES = ("Account", "User", "Partition", "Priority")
COORDINATED = ("Account", "Coordinators")
QUALITIES = ("Name", "Priority", "UsageFactor")
_SHARES = re.compile(r"\d{1,10}|parent", re.ASCII)


def read_associations(text: str) -> ParsedRows[SlurmAssociation]:
    """`show associations format=account,user,parentname,share,grptresmins,partition`."""
    return read(
        "sacctmgr show associations",
        records("sacctmgr show associations", text, ASSOCIATIONS, PIPE),
        _association,
    )


def read_priorities(text: str) -> ParsedRows[AssociationPriority]:
    """`show associations format=account,user,partition,priority`."""
    return read(
        "sacctmgr show associations",
        records("sacctmgr show associations", text, PRIORITIES, PIPE),
        _priority,
    )


def read_coordinators(text: str) -> ParsedRows[SlurmAssociation]:
    """`show account withcoord format=account,coordinators`: accounts with the names of those who look after them."""
    return read(
        "sacctmgr show account",
        records("sacctmgr show account", text, COORDINATED, PIPE),
        _coordinated,
    )


def read_qualities(text: str) -> ParsedRows[SlurmQos]:
    """`show qos format=name,priority,usagefactor`."""
    return read("sacctmgr show qos", records("sacctmgr show qos", text, QUALITIES, PIPE), _qos)


def _association(cells: dict[str, str]) -> SlurmAssociation:
    shares = cells["Share"]
    if shares and not _SHARES.fullmatch(shares):
        raise InvalidInput(f"{shown(shares)} are no shares", field="Share")
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
        raise InvalidInput(f"{shown(factor)} is not a factor", field="UsageFactor")
    return SlurmQos(
        ids.name(cells["Name"], field="Name"), number(cells["Priority"], "Priority"), factor
    )
