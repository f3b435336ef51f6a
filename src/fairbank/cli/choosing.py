"""Which project or allocation is meant: by its number, or by project and resource; and rows for each of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.shown import did_you_mean
from fairbank.core.errors import Malformed, Unknown
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fairbank.cli.desk import Desk, Row


def the_allocation(
    desk: Desk, number: int | None, account: str | None, resource: str | None
) -> int:
    """The allocation with this number, or the one that is active for the project and the resource. Raises Malformed, Unknown."""
    if number is not None:
        return number
    if account is None:
        raise Malformed(
            "which allocation?",
            field="ALLOC",
            remedy="its number, or -A PROJECT -r RESOURCE; fairbank alloc list shows them",
        )
    rows = desk.rows("/balance", {"account": account, "resource": resource})
    if not rows:
        check_accounts(desk, [account])
        raise Unknown(
            f"{plain(account)} has no active allocation{f' of {plain(resource)}' if resource else ''}",
            field="--account",
            remedy=f"fairbank alloc list -A {plain(account)} shows all; name one by its number",
        )
    if len(rows) > 1:
        which = ", ".join(f"{row['id']} ({row['resource']})" for row in rows[:10])
        raise Malformed(
            f"{plain(account)} has {len(rows)} active allocations: {which}",
            field="--resource",
            remedy="add -r, or the number",
        )
    return int(rows[0]["id"])


def the_project(desk: Desk, said: str, field: str = "PROJECT") -> Row:
    """The project with this number, account or group. Raises Unknown, naming `field`."""
    if said.isascii() and said.isdigit() and len(said) <= 15:
        try:
            return desk.one(f"/project/{int(said)}")
        except Unknown as missing:
            missing.field = field
            raise
    for name in ("account", "gname"):
        for row in desk.get("/project", {name: said, "limit": 1, "removed": "any"})["data"]:
            found: Row = row
            return found
    mine = [str(row["account"]) for row in desk.rows("/project")]
    raise Unknown(
        f"there is no project {plain(said[:64])!r} that you may see{did_you_mean(said, mine)}",
        field=field,
        remedy="list yours with: fairbank project list",
    )


def group_query(group: str | None) -> dict[str, object]:
    """A Unix group by name or number, as the bank is asked for it."""
    if group is not None and group.isascii() and group.isdigit():
        return {"gid": int(group)}
    return {"gname": group}


def check_listed(
    desk: Desk, rows: Sequence[Mapping[str, object]], *, of_jobs: bool = False
) -> None:
    """Whether there is what -A and -r list at all, as far as no row tells of it. Raises Unknown."""
    check_accounts(desk, desk.options.account, {row["account"] for row in rows}, of_jobs=of_jobs)
    check_resources(
        desk,
        vars(desk.options).get("resource"),
        {row["resource"] for row in rows if "resource" in row},
    )
    if of_jobs:
        _check_clusters(
            desk, vars(desk.options).get("clusters"), {row.get("cluster") for row in rows}
        )


def _check_clusters(desk: Desk, clusters: Sequence[str] | None, heard: Collection[object]) -> None:
    """The same of clusters: whether the bank knows them, or had jobs of them. Raises Unknown."""
    silent = [each for each in clusters or () if each not in heard]
    known = [str(cluster["name"]) for cluster in desk.get("/cluster")["data"]] if silent else []
    for name in silent:
        if name not in known and not any(
            desk.get(path, {"cluster": name, "limit": 1})["data"] for path in _OF_JOBS
        ):
            raise Unknown(
                f"there is no cluster {plain(name[:64])!r} that you may see{did_you_mean(name, known)}",
                field="--clusters",
                remedy=f"one of {plain(', '.join(known[:8]))}"
                if known
                else "have it entered in the settings",
            )


def check_group(desk: Desk, group: str | None) -> None:
    """Whether a project that the user sees has this Unix group. Raises Unknown."""
    if (
        group is not None
        and not desk.get("/project", {**group_query(group), "limit": 1, "removed": "any"})["data"]
    ):
        mine = [str(row["gname"]) for row in desk.rows("/project")]
        raise Unknown(
            f"you have no project with the group {plain(group[:64])!r}{did_you_mean(group, mine)}",
            field="--group",
            remedy="list yours with: sproject projects",
        )


def check_accounts(
    desk: Desk,
    accounts: Sequence[str] | None,
    heard: Collection[object] = (),
    *,
    of_jobs: bool = False,
) -> None:
    """Of the projects that no answer tells of: whether there are such at all; of a list `of_jobs`, also those of which the user sees other
    jobs than what was asked for, such as a child's that the credit of the user's project paid. Raises Unknown."""
    for account in accounts or ():
        asked = {"account": account, "limit": 1}
        if (
            account in heard or desk.get("/project", {**asked, "removed": "any"})["data"]
        ):  # staff read the books of those removed, too
            continue
        if of_jobs and any(desk.get(path, asked)["data"] for path in _OF_JOBS):
            continue
        mine = [str(row["account"]) for row in desk.rows("/project")]
        raise Unknown(
            f"you have no project with the account {plain(account[:64])!r}{did_you_mean(account, mine)}",
            field="--account",
            remedy=f"list yours with: {'sproject projects' if desk.prog.startswith('sproject') else 'fairbank project list'}",
        )


_OF_JOBS = ("/job", "/failure")


def check_resources(
    desk: Desk, resources: Sequence[str] | None, heard: Collection[object] = ()
) -> None:
    """The same of resources: whether a partition bills them, or there ever was credit for them. Raises Unknown."""
    silent = [each for each in resources or () if each not in heard]
    if not silent:
        return
    known = {
        str(part["resource"])
        for cluster in desk.get("/cluster")["data"]
        for part in cluster["partitions"]
    }
    known |= {str(row["resource"]) for row in desk.rows("/alloc")}
    for resource in silent:
        if resource not in known:
            raise Unknown(
                f"there is no resource {plain(resource[:64])!r} that you may see{did_you_mean(resource, sorted(known))}",
                field="--resource",
                remedy=f"one of {plain(', '.join(sorted(known)[:8]))}"
                if known
                else "list them with: fairbank alloc list",
            )


ASKED_MAX = 200


def spread(query: Mapping[str, object]) -> list[dict[str, object]]:
    """Lists such as `-A chem,bio -j 1,2`: a query for each combination, since the bank is asked for one of each. Raises Malformed.

    What is listed twice, perhaps once by name and once by number, is asked for once.
    """
    queries: list[dict[str, object]] = [{}]
    for key, value in query.items():
        values = list(dict.fromkeys(value)) if isinstance(value, list) else [value]
        if len(queries) * len(values) > ASKED_MAX:
            raise Malformed(
                f"{len(queries) * len(values)} questions at once are too many",
                field=key,
                remedy="name fewer at a time",
            )
        queries = [{**each, key: one} for each in queries for one in values]
    return queries


def rows_of_each(desk: Desk, path: str, query: Mapping[str, object], limit: int = 0) -> list[Row]:
    """The rows that any of the listed lets through, at most `limit` (0: all), the newest first: for paths whose lists are so."""
    queries = spread(query)
    rows = [row for each in queries for row in desk.rows(path, each, limit)]
    if len(queries) > 1:
        rows.sort(key=lambda row: -row["id"])
        rows = rows[:limit] if limit else rows
    return rows
