"""Selection of projects and allocations, and checks that what the filters name exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairbank.cli.framework.screen import did_you_mean
from fairbank.core import ids
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fairbank.cli.framework.context import Context, Row


class AllocationWords(NamedTuple):
    """Words by which a command names an allocation: its number, or its project."""

    argument: str = "ALLOC"
    option: str = "-A"


ALLOC = AllocationWords()


def allocation_to_change(context: Context) -> Row:
    """Return the allocation that ALLOC, or -A and -r, name (`find_allocation`)."""
    number, account = context.options.allocation, context.options.account
    return named_allocation(context, number, account, ALLOC)


def named_allocation(
    context: Context, number: int | None, account: str | None, words: AllocationWords
) -> Row:
    """Return an allocation that a command changes, by its number or with -r by its project.

    Args:
        context: the command; its option -r names the resource.
        number: the number of the allocation; None: not given.
        account: account of the project; None: not given.
        words: argument and option by which the command names it, for errors.
    """
    resource = context.options.resource
    number = find_allocation(context, number, account, resource, changes=True, words=words)
    return context.one(f"/alloc/{number}", words.argument)


def find_allocation(
    context: Context,
    number: int | None,
    account: str | None,
    resource: str | None,
    *,
    changes: bool = False,
    words: AllocationWords = ALLOC,
) -> int:
    """Return the allocation of this number, or the active one of project and resource.

    Args:
        context: the command, which sends the requests.
        number: the number of the allocation, which is not checked; None: not given.
        account: account of the project; None: not given.
        resource: resource of the allocation; None: any.
        changes: it must be the only one of the project's own that has not ended.
        words: argument and option by which the command names it, for errors.

    Raises:
        NotFound: the project has no such allocation, or does not exist.
        InvalidInput: it is named twice or not at all, or several match; they are listed.
    """
    if number is not None and account is not None:
        raise InvalidInput(
            f"the allocation is named twice: {number} and {words.option} {plain(account)}",
            field=words.argument,
            remedy=f"give its number, or {words.option} and -r",
        )
    if number is not None:
        return number
    if account is None:
        raise InvalidInput(
            f"the argument {words.argument} is missing",
            field=words.argument,
            remedy=f"name the number of an allocation, or {words.option} PROJECT -r RESOURCE; list"
            " them with: fairbank alloc list",
        )
    balances = context.rows("/balance", {"account": account, "resource": resource})
    if changes:  # not what a parent shares
        rows = balances = [row for row in balances if row["account"] == account]
    else:
        rows = [row for row in balances if row["state"] == "active"] or balances
    if not rows:
        check_accounts(context, [account])
        raise _no_allocation(account, resource, words)
    if len(rows) > 1:
        # Also those that are not active: -r may choose one.
        raise _several_allocations(account, resource, balances, words)
    return int(rows[0]["id"])


def _several_allocations(
    account: str, resource: str | None, rows: Sequence[Row], words: AllocationWords
) -> InvalidInput:
    which = ", ".join(f"{row['id']} ({row['resource']}, {row['state']})" for row in rows[:10])
    return InvalidInput(
        f"{plain(account)} has {len(rows)} allocations: {which}",
        field="--resource" if resource is None else words.argument,
        remedy="give the number" + (", or the resource with -r" if resource is None else ""),
    )


def _no_allocation(account: str, resource: str | None, words: AllocationWords) -> NotFound:
    from shlex import quote  # 1 ms, only for this message

    return NotFound(
        f"{plain(account)} has no allocation{f' of {plain(resource)}' if resource else ''}",
        field=words.option,
        remedy=f"fairbank alloc list -A {quote(plain(account))} shows all; name one by its number",
    )


def find_project(context: Context, text: str, field: str = "PROJECT") -> Row:
    """Return the project of this account, group or number.

    Args:
        context: the command, which sends the requests.
        text: what the user typed.
        field: the argument or option, for errors. `--account` names no number.

    Raises:
        NotFound: there is none that the user may see.
        InvalidInput: it is the account or group of one project and the number of another. Credit
            must not go to the wrong one.
    """
    named, numbered = _project_named(context, text), None
    if field != "--account":
        numbered = _project_numbered(context, text)
    if named and numbered and named["id"] != numbered["id"]:
        raise InvalidInput(
            f"{text} is the name of project {named['id']} and the number of the project"
            f" {plain(numbered['account'])}",
            field=field,
            remedy=f"give {named['id']} for the first, {plain(numbered['account'])} for the other",
        )
    if row := named or numbered:
        return row
    mine = [str(row["account"]) for row in context.rows("/project")]
    raise NotFound(
        f"there is no project {plain(text[:64])!r} that you may see{did_you_mean(text, mine)}",
        field=field,
        remedy="list yours with: fairbank project list",
    )


def _project_named(context: Context, text: str) -> Row | None:
    for name in ("account", "gname"):
        for row in context.get("/project", {name: text, "limit": 1, "removed": "any"})["data"]:
            project: Row = row
            return project
    return None


def _project_numbered(context: Context, text: str) -> Row | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= 16
    if not is_number or not 0 < int(text) <= ids.ID_MAX:
        return None
    try:
        return context.one(f"/project/{int(text)}")
    except NotFound:
        return None


def find_cluster(context: Context) -> Row:
    """Return the cluster of -M or the settings, else the only one of the bank, and name it in the
    answer. Raises NotFound, InvalidInput.
    """
    from fairbank.cluster.partition import only_cluster  # few commands are about a cluster

    rows: list[Row] = context.get("/cluster")["data"]
    names = [str(row["name"]) for row in rows]
    name = context.settings.cluster or only_cluster(names, field="--clusters")
    if name not in names:
        remedy = "have it added to the bank's settings"
        raise not_visible("cluster", name, "--clusters", names, remedy)
    row = rows[names.index(name)]
    context.cluster = str(row["name"])
    return row


class SeveralClusters(InvalidInput):
    """Jobs of several clusters have one number."""

    @classmethod
    def check(cls, job: object, rows: Sequence[Row]) -> None:
        """Raise it if the rows, jobs or refusals, are of several clusters."""
        clusters = sorted({str(row["cluster"]) for row in rows})
        names = plain(", ".join(clusters))
        if len(clusters) > 1:
            raise cls(
                f"several clusters have a job {job}: {names}",
                field="--clusters",
                remedy=f"name its cluster with -M: {names}",
            )


def job_names(context: Context, rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the jobs of rows as numbers, or as `darwin/812301` if the bank has several clusters
    and the caption names none, as `usage --by job` has them.
    """
    if rows and context.cluster is None and context.has_several_clusters:
        return [plain(f"{row['cluster']}/{row['job_id']}") for row in rows]
    return [str(row["job_id"]) for row in rows]


def group_query(group: str | None) -> dict[str, object]:
    """Return the query for a Unix group, given by name or number."""
    if group is not None and group.isascii() and group.isdigit():
        return {"gid": int(group)}
    return {"gname": group}


_OF_JOBS = ("/job", "/failure")


def check_listed(
    context: Context, rows: Sequence[Mapping[str, object]], *, of_jobs: bool = False
) -> None:
    """Check that what the filters name exists, as far as no row shows it. Raises NotFound.

    Args:
        context: the command, with its options.
        rows: the rows that the command prints.
        of_jobs: the rows are jobs: check also -M and --partition, and accept a project or an
            allocation if the user sees other jobs of it.
    """
    options = vars(context.options)
    if not rows:
        check_group(context, options.get("group"))
        check_category(context, options.get("category"))
        check_payer(context, options.get("alloc"))
    check_accounts(context, options["account"], {row["account"] for row in rows}, of_jobs=of_jobs)
    check_resources(
        context, options.get("resource"), {row["resource"] for row in rows if "resource" in row}
    )
    if of_jobs:
        check_job_names(context, "cluster", "--clusters", rows)
        check_job_names(context, "partition", "--partition", rows)


def check_job_names(
    context: Context, what: str, option: str, rows: Sequence[Mapping[str, object]]
) -> None:
    """Check that the bank knows the clusters or partitions of an option, or had jobs of them.

    Args:
        context: the command, with its options.
        what: `cluster` or `partition`.
        option: the option that names them.
        rows: jobs to show; what they name need not be looked up.

    Raises:
        NotFound: the bank does not know one of them.
    """
    names = vars(context.options).get(option.removeprefix("--"))
    shown = {row.get(what) for row in rows}
    missing = [name for name in names or () if name not in shown]
    clusters = context.get("/cluster")["data"] if missing else []
    known = [str(cluster["name"]) for cluster in clusters]
    if what == "partition":
        parts = [part for cluster in clusters for part in cluster["partitions"]]
        known = list(dict.fromkeys(str(part["name"]) for part in parts))
    # A refusal has no partition.
    paths = _OF_JOBS if what == "cluster" else ("/job",)
    for name in missing:
        query = {what: name, "limit": 1}
        if name not in known and not any(context.get(path, query)["data"] for path in paths):
            remedy = "have it added to the settings"
            raise not_visible(what, name, option, known, remedy)


def check_resources(
    context: Context, resources: Sequence[str] | None, shown: Collection[object] = ()
) -> None:
    """Check that a partition bills the resources, or credit existed for them. Raises NotFound.

    Args:
        context: the command, which sends the requests.
        resources: the names that the user typed; None: none.
        shown: resources that a row shows; they are not checked.
    """
    missing = [name for name in resources or () if name not in shown]
    if not missing:
        return
    clusters = context.get("/cluster")["data"]
    billed = {str(part["resource"]) for cluster in clusters for part in cluster["partitions"]}
    billed.update(str(name) for cluster in clusters for name in cluster["qos_resources"].values())
    known = sorted(billed | {str(row["resource"]) for row in context.rows("/alloc")})
    for name in missing:
        if name not in known:
            remedy = "list them with: fairbank alloc list"
            raise not_visible("resource", name, "--resource", known, remedy)


def check_category(context: Context, category: str | None) -> None:
    """Check that a category is configured, or a visible allocation has it. Raises NotFound."""
    if category is None:
        return
    clusters = context.get("/cluster")["data"]
    configured = {str(name) for cluster in clusters for name in cluster["categories"]}
    known = sorted(configured | {str(row["category"]) for row in context.rows("/alloc")})
    if category not in known:
        remedy = "list them with: fairbank alloc list"
        raise not_visible("category", category, "--category", known, remedy)


def check_payer(context: Context, allocation: int | None) -> None:
    """Check that an allocation is visible, or a job that it pays for. Raises NotFound."""
    query = {"allocation": allocation, "limit": 1}
    if allocation is not None and not any(context.get(path, query)["data"] for path in _OF_JOBS):
        context.one(f"/alloc/{allocation}", "--alloc")


def not_visible(
    what: str, name: str, field: str, known: Sequence[str], remedy_if_none: str
) -> NotFound:
    """Return the error for a name that does not exist, with the known names.

    Args:
        what: noun for a name, such as "cluster".
        name: the name that the user typed.
        field: the option, for the error.
        known: names that exist and that the user may see. The remedy has the first eight.
        remedy_if_none: the remedy if no name is known.
    """
    remedy = f"one of {plain(', '.join(known[:8]))}" if known else remedy_if_none
    near = did_you_mean(name, known)
    text = f"there is no {what} {plain(name[:64])!r} that you may see{near}"
    return NotFound(text, field=field, remedy=remedy)


def check_group(context: Context, group: str | None) -> None:
    """Check that a visible project has this Unix group. Raises NotFound."""
    query = {**group_query(group), "limit": 1, "removed": "any"}
    if group is not None and not context.get("/project", query)["data"]:
        raise _no_project(context, "group", group, "gname")


def check_accounts(
    context: Context,
    accounts: Sequence[str] | None,
    shown: Collection[object] = (),
    *,
    of_jobs: bool = False,
) -> None:
    """Check that projects without rows exist. Raises NotFound.

    Args:
        context: the command, which sends the requests.
        accounts: the accounts that the user typed; None: none.
        shown: accounts that a row shows; they are not checked.
        of_jobs: the list is of jobs. Projects are accepted if the user sees other jobs of theirs,
            such as a child's jobs that were paid by the user's project.
    """
    for account in accounts or ():
        query = {"account": account, "limit": 1}
        # Staff read the journal of removed projects, too.
        if account in shown or context.get("/project", {**query, "removed": "any"})["data"]:
            continue
        if of_jobs and any(context.get(path, query)["data"] for path in _OF_JOBS):
            continue
        raise _no_project(context, "account", account, "account")


def _no_project(context: Context, what: str, name: str, key: str) -> NotFound:
    is_hadm = context.prog.startswith("sproject")
    remedy = f"list yours with: {'sproject projects' if is_hadm else 'fairbank project list'}"
    near = did_you_mean(name, [str(row[key]) for row in context.rows("/project")])
    text = f"you have no project with the {what} {plain(name[:64])!r}{near}"
    return NotFound(text, field=f"--{what}", remedy=remedy)
