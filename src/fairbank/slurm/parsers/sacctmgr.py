"""Accounts, users, shares and QOS: `sacctmgr --noheader --parsable2 show`, of any version."""

from __future__ import annotations

import re

from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import PIPE, Cells, Table, table_of
from fairbank.slurm.parsers.values import (
    AssociationFactors,
    AssociationPriority,
    AssociationQos,
    QosFactors,
    SlurmAssociation,
    SlurmQos,
)

_SHARES = re.compile(r"\d{1,10}|parent", re.ASCII)
_FACTOR = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


def _account(text: str, field: str) -> str:
    """Return the account without the blanks that show its level in the tree."""
    return words.name(text.strip(), field)


def _shares(text: str, field: str) -> str:
    return words.match_cell(_SHARES, text, field, "are no shares")[0]


def _priority(text: str, field: str) -> int:
    return words.number(text or "0", field)


def _factor(text: str, field: str) -> str:
    return words.match_cell(_FACTOR, text, field, "is not a factor")[0]


def _coordinated(cells: Cells) -> SlurmAssociation:
    names = filter(None, cells["Coordinators"].split(","))
    return SlurmAssociation(
        cells.read("Account", words.name),
        coordinators=tuple(words.user(name, "Coordinators") for name in names),
    )


ASSOCIATIONS = table_of(
    "sacctmgr show associations",
    SlurmAssociation,
    {
        "Account": _account,
        "User": words.blank_or(words.user),
        "ParentName": words.name_or_blank,
        "Share": words.blank_or(_shares),
        "GrpTRESMins": words.any_text,
        "Partition": words.any_text,
    },
    PIPE,
)
PRIORITIES = table_of(
    "sacctmgr show associations",
    AssociationPriority,
    {
        "Account": _account,
        "User": words.blank_or(words.user),
        "Partition": words.any_text,
        "Priority": _priority,
    },
    PIPE,
)
ASSOCIATION_FACTORS = table_of(
    "sacctmgr show associations",
    AssociationFactors,
    {
        "Account": _account,
        "User": words.blank_or(words.user),
        "Partition": words.any_text,
        "ParentName": words.name_or_blank,
        "Priority": _priority,
        "GrpJobsAccrue": words.optional(words.number),
        "MaxJobsAccrue": words.optional(words.number),
    },
    PIPE,
)
QOS_FACTORS = table_of(
    "sacctmgr show qos",
    QosFactors,
    {
        "Name": words.name,
        "Priority": _priority,
        "GrpJobsAccrue": words.optional(words.number),
        "MaxJobsAccruePA": words.optional(words.number),
        "MaxJobsAccruePU": words.optional(words.number),
    },
    PIPE,
)
ASSOCIATION_QOS = table_of(
    "sacctmgr show associations",
    AssociationQos,
    {
        "Account": _account,
        "User": words.blank_or(words.user),
        "Partition": words.any_text,
        "QOS": words.names_or_none,
    },
    PIPE,
)
COORDINATORS = Table("sacctmgr show account", ("Account", "Coordinators"), _coordinated, PIPE)
QOS = table_of(
    "sacctmgr show qos",
    SlurmQos,
    {"Name": words.name, "Priority": words.number, "UsageFactor": _factor},
    PIPE,
)
