"""Fields and remedies of refusals and errors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import fairbank
from fairbank.bank.policy import GrantCategory, GrantRange
from fairbank.bank.refusals import Facts, Reason, Refusal, remedies
from fairbank.cluster.run_report import RunReport
from fairbank.core import errors as errors
from fairbank.core.time import iso
from fairbank.rest.app import ROUTES
from fairbank.rest.problems import field_of, fields_of, fields_of_body, problem_of_refusal
from tests.rest.responses import WHY, refused
from tests.rest.world import (
    DAY,
    LATE_REPORTS_POLICY,
    NOW,
    SUPERUSER,
    World,
    create_world,
    grant,
    report,
)

HANDLERS = {route.fn.__name__: route for route in ROUTES}
ALL_FIELDS = frozenset().union(*(fields_of(route) for route in ROUTES))


@pytest.mark.parametrize("reason", Reason)
def test_every_refusal_names_a_field_and_a_remedy(reason: Reason) -> None:
    assert set(reason.info.request_fields) <= ALL_FIELDS | fields_of_body(RunReport)
    about = {"allocation": 1, "project": 1, "owner": 1, "resource": "cpu", "run": "alpha/1@0.0"}
    refusal = Refusal(reason=reason, **about)  # type: ignore[arg-type]
    problem = problem_of_refusal(refusal, fields=ALL_FIELDS | fields_of_body(RunReport))
    assert problem.field in reason.info.request_fields
    assert problem.remedy == remedies(refusal)[0]
    assert "{" not in problem.remedy


@pytest.mark.parametrize(
    ("reason", "blamed", "route", "field"),
    [
        (Reason.EXISTS, "gid", "enter_project", "gid"),
        (Reason.EXISTS, "account", "amend_project", "account"),
        (Reason.IDENTITY_LOCKED, "account", "amend_project", "account"),
        (Reason.UNKNOWN_PROJECT, None, "enter_project", "parent"),
        (Reason.UNKNOWN_PROJECT, None, "set_member", "project"),
        (Reason.KEY_REUSED, None, "transfer", "Idempotency-Key"),
        (Reason.KEY_REUSED, None, "report_run", "key"),
        (Reason.TIMESTAMP_IN_FUTURE, "submitted", "report_run", "submitted"),
        (Reason.NOT_ENOUGH, None, "undo_entry", "entry"),
        (Reason.NOT_ENOUGH, None, "withdraw", "amount"),
        (Reason.SAME_ALLOCATION, None, "show_job", None),
    ],
)
def test_field_of_a_refusal_is_a_field_of_the_request(
    reason: Reason, blamed: str | None, route: str, field: str | None
) -> None:
    facts: Facts | None = {"field": blamed} if blamed else None
    assert field_of(Refusal(reason=reason, facts=facts), fields_of(HANDLERS[route])) == field


# --- over HTTP ---


def test_unknown_or_removed_parent_is_refused_by_its_field(world: World) -> None:
    removed = world.ask("POST", "/project", SUPERUSER, json={"gname": "gone", "gid": 78}).json()[
        "data"
    ]["id"]
    assert world.ask("DELETE", f"/project/{removed}", SUPERUSER).status_code == 200
    new = {"gname": "new", "gid": 79}
    for method, path, body in (("POST", "/project", new), ("PATCH", "/project/1", {})):
        problem = refused(
            world, SUPERUSER, method, path, 404, "parent", json={**body, "parent": 99_999}
        )
        assert problem["remedy"] == "list them: fairbank project list"
        problem = refused(
            world, SUPERUSER, method, path, 409, "parent", json={**body, "parent": removed}
        )
        assert problem["detail"] == f"the project was removed: parent {removed}."
        assert (
            problem["remedy"]
            == f"restore it first, by staff: fairbank project set {removed} --restore"
        )


def test_unknown_target_of_a_transfer_is_refused_by_its_field(shared_world: World) -> None:
    path = f"/alloc/{shared_world.own['allocation']}/transfer"
    refused(shared_world, SUPERUSER, "POST", path, 404, "to", json={"to": 999, "amount": 1, **WHY})
    refused(
        shared_world,
        SUPERUSER,
        "POST",
        f"{path}?dry-run=true",
        404,
        "to",
        json={"to": 999, "amount": 1, **WHY},
    )
    refused(
        shared_world,
        SUPERUSER,
        "POST",
        "/alloc/999/transfer",
        404,
        "allocation",
        json={"to": 1, "amount": 1, **WHY},
    )


def test_refused_report_of_a_batch_names_its_field(world: World) -> None:
    sent = {"reports": [report(91, amount=10**9), report(92, account="nobody")]}
    rows = world.ask("POST", "/job/bulk", SUPERUSER, json=sent).json()["data"]
    assert [(row["status"], row["field"]) for row in rows] == [(402, "account"), (404, "account")]


SHORT = {"end": iso(NOW + 100 * DAY)}
LATER = {"start": iso(NOW + 400 * DAY), "end": iso(NOW + 500 * DAY)}
CATEGORIES = {
    "research": GrantCategory(),
    "startup": GrantCategory(resources={"cpu": GrantRange(highest=100)}, longest_days=30),
    "staff": GrantCategory(granters=frozenset({1})),
}


def test_refused_grant_or_change_names_a_field_that_was_sent() -> None:
    policy = msgspec.structs.replace(LATE_REPORTS_POLICY, categories=CATEGORIES)
    with create_world(policy=policy) as world:
        gpu = world.ask("POST", "/alloc", SUPERUSER, json=grant()).json()["data"]["id"]
        unused, used = world.own["later"], world.own["allocation"]
        for allocation, status, field, terms in (
            (unused, 403, "category", {"category": "startup"}),  # too long
            (unused, 403, "credit_limit", {"category": "startup", "credit_limit": 60, **SHORT}),
            (unused, 403, "category", {"category": "startup", **SHORT}),  # too high
            (used, 409, "category", {"category": "startup"}),
            (used, 409, "resource", {"resource": "gpu"}),
            (gpu, 403, "category", {"category": "startup"}),  # another resource
            (gpu, 409, "resource", {"resource": "cpu"}),  # two of one resource
        ):
            path = f"/alloc/{allocation}"
            refused(world, SUPERUSER, "PATCH", path, status, field, json={**terms, **WHY})
        for field, new in (
            ("resource", {"category": "startup"}),
            ("category", {"category": "staff"}),
            ("end", {"category": "startup", "resource": "cpu", **LATER}),
        ):
            refused(world, SUPERUSER, "POST", "/alloc", 403, field, json=grant(**new))


# --- errors in the source ---

KINDS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.FairbankError)
} - {"Busy"}
# Errors about the complete request or about the user have no field.
FIELDLESS = {"Unauthenticated", "Forbidden", "Unavailable", "Corrupt", "FairbankError"}
GENERAL_ERRORS = (
    "the request ended", "the body is", "the request changes nothing", "fault.message",
    "bytes are too many", "MUNGE cannot encode",
    "connections over the Unix socket", "this secret is in use", "the body cannot be read",
)  # fmt: skip


def raised_errors() -> Iterator[tuple[str, str, set[str | None], str]]:
    """Yield the place, class, keywords and message of each error that the source raises."""
    root = Path(fairbank.__file__).parent
    for path in sorted(
        path
        for package in ("bank", "core", "cluster", "service", "rest")
        for path in (root / package).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in KINDS
                and node.args
            ):
                keywords = {keyword.arg for keyword in node.keywords}
                yield (
                    f"{path.relative_to(root)}:{node.lineno}",
                    node.func.id,
                    keywords,
                    ast.unparse(node.args[0]),
                )


def test_every_error_in_the_source_has_a_remedy() -> None:
    assert [place for place, _, keywords, _ in raised_errors() if "remedy" not in keywords] == []


def test_every_error_in_the_source_names_its_field() -> None:
    nameless = [
        f"{place} {text}"
        for place, kind, keywords, text in raised_errors()
        if "field" not in keywords
        and kind not in FIELDLESS
        and not any(phrase in text for phrase in GENERAL_ERRORS)
    ]
    assert nameless == []
