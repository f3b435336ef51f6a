"""Fields and remedies of refusals and errors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairbank
from fairbank.bank.refusals import Facts, Reason, Refusal
from fairbank.core import errors as errors
from fairbank.rest.app import ROUTES
from fairbank.rest.problems import field_of, fields_of, fields_of_body, problem_of_refusal
from fairbank.rest.schemas.report import AnyReport
from tests.rest.responses import WHY, refused
from tests.rest.world import SUPERUSER, World, report

HANDLERS = {each.fn.__name__: each for each in ROUTES}
EVERYWHERE = frozenset().union(*(fields_of(each) for each in ROUTES))


@pytest.mark.parametrize("reason", Reason)
def test_every_refusal_names_a_field_and_a_remedy(reason: Reason) -> None:
    assert set(reason.info.request_fields) <= EVERYWHERE | fields_of_body(AnyReport)
    about = {"allocation": 1, "project": 1, "owner": 1, "resource": "cpu", "run": "alpha/1@0.0"}
    refusal = Refusal(reason=reason, **about)  # type: ignore[arg-type]
    problem = problem_of_refusal(refusal, fields=EVERYWHERE | fields_of_body(AnyReport))
    assert problem.field in reason.info.request_fields
    assert problem.remedy
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


# --- on the wire ---


def test_unknown_or_removed_parent_is_refused_by_its_field(world: World) -> None:
    gone = world.ask("POST", "/project", SUPERUSER, json={"gname": "gone", "gid": 78}).json()[
        "data"
    ]["id"]
    assert world.ask("DELETE", f"/project/{gone}", SUPERUSER).status_code == 200
    new = {"gname": "new", "gid": 79}
    for method, path, body in (("POST", "/project", new), ("PATCH", "/project/1", {})):
        problem = refused(
            world, SUPERUSER, method, path, 404, "parent", json={**body, "parent": 99_999}
        )
        assert problem["remedy"] == "list them: fairbank project list"
        problem = refused(
            world, SUPERUSER, method, path, 409, "parent", json={**body, "parent": gone}
        )
        assert problem["detail"] == f"the project was removed: parent {gone}."
        assert (
            problem["remedy"]
            == f"restore it first, by staff: fairbank project set {gone} --restore"
        )


def test_unknown_target_of_a_transfer_is_refused_by_its_field(old_world: World) -> None:
    path = f"/alloc/{old_world.own['allocation']}/transfer"
    refused(old_world, SUPERUSER, "POST", path, 404, "to", json={"to": 999, "amount": 1, **WHY})
    refused(
        old_world,
        SUPERUSER,
        "POST",
        f"{path}?dry-run=true",
        404,
        "to",
        json={"to": 999, "amount": 1, **WHY},
    )
    refused(
        old_world,
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
    assert [(each["status"], each["field"]) for each in rows] == [
        (402, "account"),
        (404, "account"),
    ]


# --- in the code ---

KINDS = {
    name
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.FairbankError)
} - {"Busy"}
# What is about all of the request, or about who asks, has no field.
FIELDLESS = {"Unauthenticated", "Forbidden", "Unavailable", "Corrupt", "FairbankError"}
WHOLE = (
    "the request ended", "the body is", "the request changes nothing", "fault.message",
    "bytes are too many", "MUNGE cannot encode",
    "connections over the Unix socket", "this secret is in use", "the body cannot be read",
)  # fmt: skip


def made() -> Iterator[tuple[str, str, set[str | None], str]]:
    """Return the place, class, keywords and message of each error that the source raises."""
    root = Path(fairbank.__file__).parent
    for path in sorted(
        each
        for room in ("bank", "core", "cluster", "service", "rest")
        for each in (root / room).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in KINDS
                and node.args
            ):
                given = {each.arg for each in node.keywords}
                yield (
                    f"{path.relative_to(root)}:{node.lineno}",
                    node.func.id,
                    given,
                    ast.unparse(node.args[0]),
                )


def test_every_error_in_the_source_has_a_remedy() -> None:
    assert [place for place, _, given, _ in made() if "remedy" not in given] == []


def test_every_error_in_the_source_names_its_field() -> None:
    nameless = [
        f"{place} {text}"
        for place, kind, given, text in made()
        if "field" not in given
        and kind not in FIELDLESS
        and not any(each in text for each in WHOLE)
    ]
    assert nameless == []
