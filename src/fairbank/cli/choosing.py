"""Which project or allocation is meant: by its number, or by project and resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.parser import did_you_mean
from fairbank.report.cells import plain
from fairbank.values.trouble import Malformed, Unknown

if TYPE_CHECKING:
    from fairbank.cli.desk import Desk, Row


def the_allocation(desk: Desk, number: int | None, account: str | None, resource: str | None) -> int:
    """The allocation with this number, or the one that is active for the project and the resource. Raises Malformed, Unknown."""
    if number is not None:
        return number
    if account is None:
        raise Malformed("which allocation?", field="ALLOC", remedy="its number, or -A PROJECT -r RESOURCE; fairbank alloc list shows them")
    rows = desk.rows("/balance", {"account": account, "resource": resource})
    if not rows:
        desk.check_account(account)
        raise Unknown(
            f"{plain(account)} has no active allocation{f' of {plain(resource)}' if resource else ''}",
            field="--account",
            remedy=f"fairbank alloc list -A {plain(account)} shows all; name one by its number",
        )
    if len(rows) > 1:
        which = ", ".join(f"{row['id']} ({row['resource']})" for row in rows[:10])
        raise Malformed(f"{plain(account)} has {len(rows)} active allocations: {which}", field="--resource", remedy="add -r, or the number")
    return int(rows[0]["id"])


def the_project(desk: Desk, said: str) -> Row:
    """The project with this number, account or group. Raises Unknown."""
    if said.isascii() and said.isdigit() and len(said) <= 15:
        return desk.one(f"/project/{int(said)}")
    for field in ("account", "gname"):
        for row in desk.get("/project", {field: said, "limit": 1})["data"]:
            found: Row = row
            return found
    mine = [str(row["account"]) for row in desk.rows("/project")]
    raise Unknown(
        f"there is no project {plain(said[:64])!r} that you may see{did_you_mean(said, mine)}",
        field="PROJECT",
        remedy="list yours with: fairbank project list",
    )


def group_query(group: str | None) -> dict[str, object]:
    """A Unix group by name or number, as the bank is asked for it."""
    if group is not None and group.isascii() and group.isdigit():
        return {"gid": int(group)}
    return {"gname": group}
