"""Selection of projects and allocations, and checks that what the filters name exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.shown import did_you_mean
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fairbank.cli.framework.context import Context, Row


def find_allocation(
    context: Context, number: int | None, account: str | None, resource: str | None
) -> int:
    """Return the allocation of this number, or the active one of the project and resource.

    Raises InvalidInput, NotFound.
    """
    if number is not None:
        return number
    if account is None:
        raise InvalidInput(
            "which allocation?",
            field="ALLOC",
            remedy="its number, or -A PROJECT -r RESOURCE; fairbank alloc list shows them",
        )
    rows = context.rows("/balance", {"account": account, "resource": resource})
    if not rows:
        check_accounts(context, [account])
        raise NotFound(
            f"{plain(account)} has no active"
            f" allocation{f' of {plain(resource)}' if resource else ''}",
            field="--account",
            remedy=f"fairbank alloc list -A {plain(account)} shows all; name one by its number",
        )
    if len(rows) > 1:
        which = ", ".join(f"{row['id']} ({row['resource']})" for row in rows[:10])
        raise InvalidInput(
            f"{plain(account)} has {len(rows)} active allocations: {which}",
            field="--resource",
            remedy="add -r, or the number",
        )
    return int(rows[0]["id"])


def find_project(context: Context, said: str, field: str = "PROJECT") -> Row:
    """Return the project of this number, account or group. Raises NotFound, naming `field`."""
    if said.isascii() and said.isdigit() and len(said) <= 15:
        try:
            return context.one(f"/project/{int(said)}")
        except NotFound as missing:
            missing.field = field
            raise
    for name in ("account", "gname"):
        for row in context.get("/project", {name: said, "limit": 1, "removed": "any"})["data"]:
            found: Row = row
            return found
    mine = [str(row["account"]) for row in context.rows("/project")]
    raise NotFound(
        f"there is no project {plain(said[:64])!r} that you may see{did_you_mean(said, mine)}",
        field=field,
        remedy="list yours with: fairbank project list",
    )


def group_query(group: str | None) -> dict[str, object]:
    """Return the query for a Unix group, given by name or number."""
    if group is not None and group.isascii() and group.isdigit():
        return {"gid": int(group)}
    return {"gname": group}


def check_listed(
    context: Context, rows: Sequence[Mapping[str, object]], *, of_jobs: bool = False
) -> None:
    """Check that what -A, -r and -M name exists, as far as no row shows it. Raises NotFound."""
    check_accounts(
        context, context.options.account, {row["account"] for row in rows}, of_jobs=of_jobs
    )
    check_resources(
        context,
        vars(context.options).get("resource"),
        {row["resource"] for row in rows if "resource" in row},
    )
    if of_jobs:
        _check_clusters(
            context, vars(context.options).get("clusters"), {row.get("cluster") for row in rows}
        )


def _check_clusters(
    context: Context, clusters: Sequence[str] | None, heard: Collection[object]
) -> None:
    """Check that the bank knows the clusters, or had jobs of them. Raises NotFound."""
    silent = [each for each in clusters or () if each not in heard]
    known = [str(cluster["name"]) for cluster in context.get("/cluster")["data"]] if silent else []
    for name in silent:
        if name not in known and not any(
            context.get(path, {"cluster": name, "limit": 1})["data"] for path in _OF_JOBS
        ):
            raise NotFound(
                f"there is no cluster {plain(name[:64])!r} that you may"
                f" see{did_you_mean(name, known)}",
                field="--clusters",
                remedy=(
                    f"one of {plain(', '.join(known[:8]))}"
                    if known
                    else "have it entered in the settings"
                ),
            )


def check_group(context: Context, group: str | None) -> None:
    """Check that a visible project has this Unix group. Raises NotFound."""
    if (
        group is not None
        and not context.get("/project", {**group_query(group), "limit": 1, "removed": "any"})[
            "data"
        ]
    ):
        mine = [str(row["gname"]) for row in context.rows("/project")]
        raise NotFound(
            f"you have no project with the group {plain(group[:64])!r}{did_you_mean(group, mine)}",
            field="--group",
            remedy="list yours with: sproject projects",
        )


def check_accounts(
    context: Context,
    accounts: Sequence[str] | None,
    heard: Collection[object] = (),
    *,
    of_jobs: bool = False,
) -> None:
    """Check that projects without rows exist. Raises NotFound.

    For a list `of_jobs`, projects are accepted if the user sees other jobs of theirs, such as a
    child's jobs that were paid by the user's project.
    """
    for account in accounts or ():
        asked = {"account": account, "limit": 1}
        if (
            account in heard or context.get("/project", {**asked, "removed": "any"})["data"]
        ):  # staff read the books of those removed, too
            continue
        if of_jobs and any(context.get(path, asked)["data"] for path in _OF_JOBS):
            continue
        mine = [str(row["account"]) for row in context.rows("/project")]
        is_hadm = context.prog.startswith("sproject")
        raise NotFound(
            "you have no project with the account"
            f" {plain(account[:64])!r}{did_you_mean(account, mine)}",
            field="--account",
            remedy=f"list yours with: {'sproject projects' if is_hadm else 'fairbank project list'}",
        )


_OF_JOBS = ("/job", "/failure")


def check_resources(
    context: Context, resources: Sequence[str] | None, heard: Collection[object] = ()
) -> None:
    """Check that a partition bills the resources, or credit existed for them. Raises NotFound."""
    silent = [each for each in resources or () if each not in heard]
    if not silent:
        return
    known = {
        str(part["resource"])
        for cluster in context.get("/cluster")["data"]
        for part in cluster["partitions"]
    }
    known |= {str(row["resource"]) for row in context.rows("/alloc")}
    for resource in silent:
        if resource not in known:
            raise NotFound(
                f"there is no resource {plain(resource[:64])!r} that you may"
                f" see{did_you_mean(resource, sorted(known))}",
                field="--resource",
                remedy=(
                    f"one of {plain(', '.join(sorted(known)[:8]))}"
                    if known
                    else "list them with: fairbank alloc list"
                ),
            )


ASKED_MAX = 200


def spread(query: Mapping[str, object]) -> list[dict[str, object]]:
    """Return one query for each combination of lists such as `-A chem,bio -j 1,2`.

    The bank takes one value of each. What is listed twice, perhaps by name and by number, is
    requested once. Raises InvalidInput.
    """
    queries: list[dict[str, object]] = [{}]
    for key, value in query.items():
        values = list(dict.fromkeys(value)) if isinstance(value, list) else [value]
        if len(queries) * len(values) > ASKED_MAX:
            raise InvalidInput(
                f"{len(queries) * len(values)} questions at once are too many",
                field=key,
                remedy="name fewer at a time",
            )
        queries = [{**each, key: one} for each in queries for one in values]
    return queries


def rows_of_each(
    context: Context, path: str, query: Mapping[str, object], limit: int = 0
) -> list[Row]:
    """Return the rows of all listed values, newest first, at most `limit` (0: all)."""
    queries = spread(query)
    rows = [row for each in queries for row in context.rows(path, each, limit)]
    if len(queries) > 1:
        rows.sort(key=lambda row: -row["id"])
        rows = rows[:limit] if limit else rows
    return rows
