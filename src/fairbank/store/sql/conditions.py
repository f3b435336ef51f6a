"""Conditions shared by several statements: visibility, ownership, paging; and SQL expressions that
differ between databases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    FunctionElement,
    Select,
    Text,
    and_,
    false,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from fairbank.bank.entry import REGISTRY, Kind
from fairbank.bank.query import Page, Visibility
from fairbank.cluster.job import CANCELLED, COMPLETED
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import Instant
from fairbank.store.schema import allocation, journal, project, run

Condition = ColumnElement[bool]

# Literal, not a bound parameter: a partial index is used only if the statement itself contains its
# condition.
IS_REFUSAL = journal.c.kind == literal_column(f"'{Kind.REFUSAL.value}'")


def is_in(column: ColumnElement[Any], values: Iterable[Any] | None) -> Condition:
    return true() if values is None else column.in_(sorted(values))


def is_visible(visibility: Visibility, of_project: ColumnElement[Any]) -> Condition:
    return true() if visibility.everything else is_in(of_project, visibility.projects)


def is_visible_or_owned(
    visibility: Visibility, of_allocation: ColumnElement[Any], owned: Condition
) -> Condition:
    """Return the condition for rows of visible projects' allocations, and for rows of the user.

    Args:
        visibility: what the user may see.
        of_allocation: the column with the id of the row's allocation.
        owned: the condition for the rows that the user owns. It counts only if `visibility` names a
            user.
    """
    if visibility.everything:
        return true()
    return or_(
        of_projects(of_allocation, visibility.projects),
        false() if visibility.uid is None else owned,
    )


def run_is_visible(visibility: Visibility, columns: Any = run.c) -> Condition:
    """Return the condition for runs of visible projects, runs charged to their allocations, and own
    runs; `columns` are those of the runs, or of sums of them.
    """
    return or_(
        is_visible_or_owned(visibility, columns.allocation, columns.owner == visibility.uid),
        is_visible(visibility, columns.project),
    )


def is_measured(partition: ColumnElement[Any], owner: ColumnElement[Any]) -> Condition:
    """Return the condition for measured use of runs or of their sums: `RunRecord.is_measured`."""
    return and_(partition == literal_column("''"), owner == literal_column(str(OVERFLOW_UID)))


def has_failed(columns: Any) -> Condition:
    """Return the condition for runs of these columns that failed: `RunEnd.is_failure`."""
    ran = or_(columns.outcome != CANCELLED, columns.elapsed_seconds > 0)
    return and_(columns.outcome != COMPLETED, ran)


def entry_is_visible(visibility: Visibility) -> Condition:
    """Return the condition for entries in journals of visible projects or about their runs, own
    refusals, and entries of own jobs or of none in the journals of `own_jobs_of`.
    """
    j = journal.c
    condition = is_visible_or_owned(
        visibility, j.allocation, and_(j.owner == visibility.uid, IS_REFUSAL)
    )
    if visibility.everything:
        return condition
    if projects := visibility.projects:
        condition = or_(condition, and_(_in_their_line(projects), _about_runs_for(projects)))
    if projects := visibility.own_jobs_of:
        own = false() if visibility.uid is None else j.owner == visibility.uid
        of_no_job = and_(j.owner.is_(None), of_projects(j.allocation, projects))
        condition = or_(condition, and_(_in_their_line(projects), or_(own, of_no_job)))
    return condition


def of_projects(of_allocation: ColumnElement[Any], projects: frozenset[int] | None) -> Condition:
    """Return the condition for rows of these projects' allocations; the registry belongs to
    none.
    """
    if projects is None:
        return true()
    theirs = select(allocation.c.id).where(allocation.c.project.in_(sorted(projects)))
    return and_(of_allocation != REGISTRY, of_allocation.in_(theirs)) if projects else false()


def of_entries(projects: frozenset[int] | None) -> Condition:
    """Return the condition for entries about runs of these projects or in their journals."""
    if projects is None:
        return true()
    others = and_(journal.c.run.is_(None), of_projects(journal.c.allocation, projects))
    return and_(_in_their_line(projects), or_(others, _about_runs_for(projects)))


def _in_their_line(projects: frozenset[int]) -> Condition:
    """Return the condition for entries in journals of these projects and their parents. Their runs
    have no others, so the whole journal need not be searched.
    """
    line = (
        select(project.c.id, project.c.parent)
        .where(is_in(project.c.id, projects))
        .cte(recursive=True)
    )
    line = line.union(select(project.c.id, project.c.parent).where(project.c.id == line.c.parent))
    return in_few(
        journal.c.allocation,
        select(allocation.c.id).where(allocation.c.project.in_(select(line.c.id))),
    )


def _about_runs_for(projects: frozenset[int]) -> Condition:
    return (
        select(run.c.id).where(run.c.id == journal.c.run, is_in(run.c.project, projects)).exists()
    )


def equal(column: ColumnElement[Any], value: object) -> Condition:
    return true() if value is None else column == value


def between(column: ColumnElement[Any], since: Instant | None, until: Instant | None) -> Condition:
    """Return the condition `since` <= column < `until`.

    Args:
        column: a time, in seconds since 1970.
        since: the start of the period; None is unbounded.
        until: its end, which is excluded; None is unbounded.
    """
    return and_(
        true() if since is None else column >= since, true() if until is None else column < until
    )


def covers(at: Instant | None) -> Condition:
    a = allocation.c
    return true() if at is None else and_(a.start_at <= at, a.end_at > at)


def in_allocations(
    of_allocation: ColumnElement[Any],
    resource: str | None,
    category: str | None = None,
    active_at: Instant | None = None,
) -> Condition:
    """Return the condition for rows of allocations with this resource, category and time in their
    term. Without any of them it is true for all rows.

    Args:
        of_allocation: the column with the id of the row's allocation.
        resource: resource of the allocation; None: any.
        category: category of the allocation; None: any.
        active_at: a time in the term of the allocation; None: any.
    """
    if resource is None and category is None and active_at is None:
        return true()
    a = allocation.c
    return of_allocation.in_(
        select(a.id).where(
            equal(a.resource, resource), equal(a.category, category), covers(active_at)
        )
    )


def paged(statement: Select[Any], number: ColumnElement[Any], page: Page) -> Select[Any]:
    """Return a statement that selects the rows of one page, ordered by `number`.

    Args:
        statement: selects all rows that match the query, without an order.
        number: the column with the number of a row, with which `page.after` is compared.
        page: the number after which the page begins, its direction and its size.
    """
    if page.after is not None:
        statement = statement.where(
            number < page.after if page.newest_first else number > page.after
        )
    return statement.order_by(number.desc() if page.newest_first else number).limit(page.size)


# --- expressions that differ between databases ---


class JsonMember(FunctionElement[str]):
    """Member of a JSON object as text; NULL if missing."""

    type = Text()
    inherit_cache = True


class Bytewise(FunctionElement[str]):
    """Text that is ordered and compared by bytes, whatever the collation of the database."""

    type = Text()
    inherit_cache = True


class FewIds(FunctionElement[int]):
    """Few ids that a subquery finds. PostgreSQL may expect many and scan the table instead of its
    index.
    """

    type = BigInteger()
    inherit_cache = True


class GpuCount(FunctionElement[int]):
    """Number of GPUs in a TRES text, counted as `core.tres.gpu_count` does."""

    type = BigInteger()
    inherit_cache = True


class IdlePart(FunctionElement[int]):
    """Part of a charge for idle processors: charge, seconds used and seconds given, as
    `bank.efficiency.idle_part` computes it.
    """

    type = BigInteger()
    inherit_cache = True


# Most texts have the number of all GPUs as gres/gpu, which is found ten times as fast. For others
# the parts become rows. CAST reads the digits at the beginning of a text.
_GPUS_IN_SQLITE = """
CASE WHEN instr(',' || lower({0}), ',gres/gpu=')
THEN CAST(substr({0}, instr(',' || lower({0}), ',gres/gpu=') + 9, 9) AS INTEGER)
WHEN instr(lower({0}), 'gpu') THEN (
    SELECT COALESCE(MAX(CASE WHEN name = 'gpu' THEN number END), SUM(number), 0)
    FROM (
        SELECT substr(value, 1, instr(value, '=') - 1) AS name,
               CAST(substr(value, instr(value, '=') + 1, 9) AS INTEGER) AS number
        FROM json_each('[' || replace(json_quote(lower({0})), ',', '","') || ']')
    )
    WHERE name = 'gpu' OR name GLOB 'gpu:*' OR name GLOB 'gres/gpu:*'
) ELSE 0 END
"""
_GPUS_IN_POSTGRESQL = """
(SELECT COALESCE(max(number) FILTER (WHERE type IS NULL), sum(number), 0)::bigint
 FROM (
    SELECT part[1] AS type, ('0' || part[2])::bigint AS number
    FROM regexp_matches(lower({0}), '(?:^|,)(?:gres/)?gpu(:[^=,]*)?=([0-9]{{0,9}})', 'g') AS part
 ) AS parts)
"""
_TEMPLATES: Mapping[type, Mapping[str, str]] = {
    JsonMember: {"sqlite": "json_extract({}, '$.' || {})", "postgresql": "({}::json ->> {})"},
    Bytewise: {"sqlite": "{}", "postgresql": '({} COLLATE "C")'},
    GpuCount: {"sqlite": _GPUS_IN_SQLITE, "postgresql": _GPUS_IN_POSTGRESQL},
    IdlePart: {
        "sqlite": "CAST(CAST({0} AS REAL) * (({2}) - ({1})) / ({2}) + 0.5 AS INTEGER)",
        "postgresql": (
            "floor(CAST({0} AS double precision) * (({2}) - ({1})) / ({2}) + 0.5)::bigint"
        ),
    },
    FewIds: {"sqlite": "{}", "postgresql": "(SELECT unnest(ARRAY{}))"},
}


def _compile(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    parts = [compiler.process(part, **options) for part in element.clauses]
    return _TEMPLATES[type(element)][compiler.dialect.name].format(*parts)


for _kind in _TEMPLATES:
    compiles(_kind)(_compile)


def json_member(details: ColumnElement[Any], member: str) -> JsonMember:
    """Return the expression for a member. `member` is a constant, never input."""
    return JsonMember(details, literal_column(f"'{member}'"))


def bytewise(text: ColumnElement[Any]) -> Bytewise:
    return Bytewise(text)


def in_few(column: ColumnElement[Any], ids: Select[Any]) -> ColumnElement[bool]:
    return column.op("IN", is_comparison=True, return_type=Boolean())(FewIds(ids.scalar_subquery()))
