"""sacctmgr show: accounts, associations, users, QOS, cluster and TRES.

Projects of the bank and wlm.toml are where they are changed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import STATIC_TRES
from fairbank.report.slurm import sacctmgr
from fairbank.report.slurm.layout import Columns, SlurmColumn
from fairbank.report.slurm.notation import Notation
from fairbank.report.slurm.sacctmgr import AssociationLine, ClusterLine, QosLine, TresLine, UserLine
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import CommandOption, read_command_line
from fairbank.wlm.commands.tables.rows import fetch, print_fields, read_fields

OPTIONS = (
    CommandOption("associations", "s", "", "show associations of accounts and users"),
    CommandOption("immediate", "i", "", "no effect"),
    CommandOption("noheader", "n", "", "print no header"),
    CommandOption("parsable", "p", "", "separate cells by |, also after the last"),
    CommandOption("parsable2", "P", "", "separate cells by |"),
    CommandOption("quiet", "Q", "", "no effect"),
    CommandOption("readonly", "r", "", "no effect"),
    CommandOption("verbose", "v", "", "no effect"),
)
_VERBS = {"add": "create", "create": "create", "modify": "set", "delete": "remove"}
"""Verbs of `fairbank project` in place of those of sacctmgr."""
_IN_FILE = frozenset({"qos", "cluster", "tres", "resource", "event", "wckey"})


class _Table(NamedTuple):
    """Entity: its rows, columns and default format."""

    of: str
    line: type
    columns: Columns
    form: str


TABLES = {
    "accounts": _Table("associations", AssociationLine, sacctmgr.ACCOUNT, sacctmgr.ACCOUNT_FORMAT),
    "associations": _Table(
        "associations", AssociationLine, sacctmgr.ASSOCIATION, sacctmgr.ASSOCIATION_FORMAT
    ),
    "users": _Table("users", UserLine, sacctmgr.USER, sacctmgr.USER_FORMAT),
    "qos": _Table("qos", QosLine, sacctmgr.QOS, sacctmgr.QOS_FORMAT),
    "clusters": _Table("", ClusterLine, sacctmgr.CLUSTER, sacctmgr.CLUSTER_FORMAT),
    "tres": _Table("", TresLine, sacctmgr.TRES, sacctmgr.TRES_FORMAT),
}
_FILTERS = {
    "account": "account",
    "name": "name",
    "user": "user",
    "partition": "partition",
    "cluster": "cluster",
    "parent": "parent",
    "type": "kind",
    "id": "number",
}
"""Fields of rows by the words of `where`, which may be plurals."""


def run(name: str, words: Sequence[str]) -> int:
    """Print what accounting knows, and return the exit code."""
    line = read_command_line(name, "[OPTIONS] show ENTITY [where] [NAME=VALUE...]", OPTIONS, words)
    if line is None:
        return 0
    verb, *rest = line.words or ("",)
    if verb.lower() not in ("show", "list"):
        raise _no_change(verb, rest)
    if not rest:
        raise InvalidInput("No entity was given to show", remedy=f"one of {', '.join(TABLES)}")
    entity = _entity(rest[0])
    table = TABLES[entity]
    form, conditions, words_given = _conditions(table, rest[1:])
    if "withassoc" in words_given or "associations" in line.options:
        table = TABLES["associations"]
    fields = read_fields(form or table.form, table.columns)
    with Controller() as controller:
        rows = _rows(controller, entity, table, fields, conditions)
    if entity == "accounts" and table is not TABLES["associations"]:
        rows = [row for row in rows if not row.user]
    if "tree" in words_given:
        rows = [_indented(row) for row in rows]
    print_fields(line, rows, fields, Notation())
    return 0


def _no_change(verb: str, rest: Sequence[str]) -> InvalidInput:
    """Return the error of a verb that changes something, with the command that does it."""
    own = _VERBS.get(verb.lower().replace("remove", "delete"))
    if own is None:
        return InvalidInput(f"unknown keyword: {verb[:40]}", remedy="sacctmgr only shows")
    entity = rest[0].lower() if rest else ""
    if entity == "user" and own != "set":
        own = "add-user" if own == "create" else "remove-user"
    remedy = f"fairbank project {own} changes projects, which are the accounts"
    if entity in _IN_FILE:
        remedy = "change wlm.toml, then: scontrol reconfigure"
    return InvalidInput(f"sacctmgr {verb} changes nothing here: sacctmgr only shows", remedy=remedy)


def _entity(word: str) -> str:
    """Return the entity that a word means, which may be cut short. Raises InvalidInput."""
    name = word.lower()
    for entity in TABLES:
        if name and entity.startswith(name):
            return entity
    raise InvalidInput(f"there is nothing to show of {word[:40]!r}", remedy=", ".join(TABLES))


def _conditions(
    table: _Table, words: Sequence[str]
) -> tuple[str, dict[str, set[str]], frozenset[str]]:
    """Return format, accepted values by field, and single words."""
    form, conditions, single = "", dict[str, set[str]](), set[str]()
    for word in words:
        name, has_value, value = word.partition("=")
        key = name.lower()
        if not has_value:
            single.add(key)
        elif key == "format":
            form = value
        elif (filter_name := key.removesuffix("s")) in _FILTERS:
            conditions[_FILTERS[filter_name]] = {item.strip("'\"") for item in value.split(",")}
        else:
            raise InvalidInput(f"Unknown condition: {word[:60]}", remedy=", ".join(_FILTERS))
    known = {"where", "withassoc", "withcoord", "tree", "wopinfo", "wolimits"}
    if unknown := sorted(single - known):
        # A single name means the entity of that name.
        conditions["account" if table.line is AssociationLine else "name"] = set(unknown)
    return form, conditions, frozenset(single & known)


def _rows(
    controller: Controller,
    entity: str,
    table: _Table,
    fields: Sequence[SlurmColumn],
    conditions: dict[str, set[str]],
) -> list[Any]:
    """Return the rows that fit all conditions."""
    stored: Sequence[str] = getattr(table.line, "_fields", ())
    if entity == "users" and "name" in conditions:
        conditions["user"] = conditions.pop("name")
    conditions = {name: values for name, values in conditions.items() if name in stored}
    if entity == "clusters":
        host = str(controller.request("ping")["host"])
        listing = fetch(controller, "qos", QosLine, ["name"])
        qos = ",".join(sorted(row.name for row in listing.rows))
        rows: list[Any] = [ClusterLine(listing.cluster, host, qos)]
    elif entity == "tres":
        rows = _tres(requests.settings(controller).get("AccountingStorageTRES", ""))
    else:
        names = [column.field for column in fields]
        extra = ("account", "user", "depth") if table.line is AssociationLine else ()
        wanted = dict.fromkeys([*names, *extra, *conditions])
        rows = fetch(controller, table.of, table.line, wanted).rows
    return [
        row
        for row in rows
        if all(str(getattr(row, name)) in values for name, values in conditions.items())
    ]


def _tres(text: str) -> list[TresLine]:
    """Return the TRES of a setting with Slurm's ids: those of a site begin at 1001."""
    rows = []
    site = 1001
    for item in filter(None, text.split(",")):
        kind, _, name = item.partition("/")
        number = STATIC_TRES.index(item) + 1 if item in STATIC_TRES else site
        site += number == site
        rows.append(TresLine(kind, name, number))
    return rows


def _indented(row: Any) -> Any:
    depth = row.depth + bool(row.user)
    return row._replace(account=" " * depth + row.account)
