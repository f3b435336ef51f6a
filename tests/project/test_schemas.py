"""Published JSON Schemas: the present ones only add to them."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.json_schemas import merged
from tools.schemas import __main__ as command
from tools.schemas.comparison import Comparison
from tools.schemas.present import present_schemas
from tools.schemas.published import (
    FILE,
    losses,
    read_published,
    unpublished,
    with_present,
    write_published,
)

ANSWER, REQUEST = Comparison(is_answer=True), Comparison(is_answer=False)
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {**TEXT, "maxLength": 8, "pattern": "a"},
        "held": {"type": ["integer", "null"], "description": "SU-minutes"},
        "state": {"enum": ["open", "closed"]},
        "limit": {"anyOf": [{**NUMBER, "minimum": 1}, {"type": "null"}], "default": 10},
        "tags": {"type": "array", "items": TEXT},
        "sums": {"type": "object", "additionalProperties": NUMBER},
    },
    "required": ["name", "held", "state"],
}


def with_field(name: str, schema: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    """Return the object with another field of this name."""
    others = [other for other in OBJECT["required"] if other != name]
    return {
        **OBJECT,
        "properties": {**OBJECT["properties"], name: schema},
        "required": [*others, *([name] if required else [])],
    }


def without(name: str) -> dict[str, Any]:
    properties = {key: part for key, part in OBJECT["properties"].items() if key != name}
    return {**OBJECT, "properties": properties}


NAME, LIMIT = OBJECT["properties"]["name"], OBJECT["properties"]["limit"]


@pytest.mark.parametrize(
    ("present", "loss"),
    [
        (without("name"), "$.name is missing"),
        (without("tags"), "$.tags is missing"),  # which was optional
        (with_field("name", NUMBER), "$.name may be integer"),
        (with_field("name", {**NAME, "type": ["string", "null"]}), "$.name may be null"),
        (with_field("name", {}), "$.name may be anything"),
        (with_field("name", NAME, required=False), "$.name is optional"),
        (with_field("name", {**NAME, "maxLength": 9}), "$.name has another maxLength"),
        (with_field("name", {**TEXT, "maxLength": 8}), "$.name has another pattern"),
        (with_field("held", {"type": ["integer", "null"]}), "$.held has another unit"),
        (with_field("state", {"enum": ["open"]}), "$.state has other words"),
        (with_field("state", {"enum": ["open", "closed", "new"]}), "$.state has other words"),
        (with_field("state", TEXT), "$.state has other words"),
        (with_field("state", {"type": "null"}), "$.state has other words"),
        (with_field("tags", {"type": "array", "items": NUMBER}), "$.tags[] may be integer"),
        (with_field("tags", {"type": "array"}), "$.tags[] may be anything"),
        (
            with_field("sums", {"type": "object", "additionalProperties": {"type": "number"}}),
            "$.sums[] may be number",
        ),
        (with_field("sums", {"type": "object"}), "$.sums[] may be anything"),
    ],
)
def test_loss_of_an_answer_is_found(present: dict[str, Any], loss: str) -> None:
    assert loss in ANSWER.losses(OBJECT, present)
    nested = ({"type": "array", "items": schema} for schema in (OBJECT, present))
    assert loss.replace("$", "$[]", 1) in ANSWER.losses(*nested)


@pytest.mark.parametrize(
    "present",
    [
        OBJECT,
        with_field("new", NUMBER),
        with_field("tags", OBJECT["properties"]["tags"]),  # always there from now on
        with_field("held", {**NUMBER, "description": "SU-minutes"}),  # never null any more
        with_field("name", {**NAME, "maxLength": 7}),
    ],
)
def test_answer_that_its_readers_can_read_has_no_loss(present: dict[str, Any]) -> None:
    assert ANSWER.losses(OBJECT, present) == []


CLOSED = {**OBJECT, "additionalProperties": False}


@pytest.mark.parametrize(
    ("present", "loss"),
    [
        (with_field("new", NUMBER), "$.new is required"),
        (with_field("tags", OBJECT["properties"]["tags"]), "$.tags is required"),
        (without("tags"), "$.tags is missing"),
        (
            with_field("held", {**NUMBER, "description": "SU-minutes"}),
            "$.held may no longer be null",
        ),
        (with_field("state", {"enum": ["open"]}), "$.state has other words"),
        (with_field("name", {**NAME, "maxLength": 7}), "$.name has another maxLength"),
        (with_field("name", {**NAME, "minLength": 1}), "$.name has another minLength"),
        (with_field("limit", {**LIMIT, "default": 5}), "$.limit has another default"),
        (
            with_field("limit", {"anyOf": [{**NUMBER, "minimum": 2}, {"type": "null"}]}),
            "$.limit has another minimum",
        ),
    ],
)
def test_request_that_is_not_accepted_any_more_is_found(present: dict[str, Any], loss: str) -> None:
    assert loss in REQUEST.losses(CLOSED, {**present, "additionalProperties": False})


@pytest.mark.parametrize(
    "present",
    [
        OBJECT,
        with_field("new", NUMBER, required=False),
        with_field("name", TEXT, required=False),
        with_field("state", {"enum": ["open", "closed", "new"]}),
        with_field("held", {"type": ["integer", "null", "string"], "description": "SU-minutes"}),
    ],
)
def test_request_that_accepts_more_has_no_loss(present: dict[str, Any]) -> None:
    assert REQUEST.losses(CLOSED, {**present, "additionalProperties": False}) == []
    assert "$ has no other fields" in REQUEST.losses(OBJECT, {**present, **CLOSED})


def answers(*names: str) -> st.SearchStrategy[Any]:
    """Return values whose objects have some of these names."""
    return st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.just("a") | st.just(1.5),
        lambda parts: (
            st.lists(parts, max_size=2) | st.dictionaries(st.sampled_from(names), parts, max_size=2)
        ),
        max_leaves=6,
    )


# No place has both objects with fields and objects with data as names.
@given(
    st.tuples(answers("x", "y"), answers("x", "y"))
    | st.tuples(answers("a b", "c d"), answers("a b", "c d"))
)
def test_published_schema_describes_answers_of_a_schema_without_losses(
    values: tuple[Any, Any],
) -> None:
    first, second = values
    published = merged({}, first)
    present = merged(published, second)
    assert jsonschema_rs.is_valid(present, second)
    if not ANSWER.losses(published, present):
        assert jsonschema_rs.is_valid(published, second)


# --- the published file ---


@pytest.fixture(scope="module")
def present() -> dict[str, Any]:
    return present_schemas()


NOTHING: dict[str, Any] = {"release": "0.0.1", "ended": {}, "answers": {}, "requests": {}}


@pytest.fixture(scope="module")
def published(present: dict[str, Any]) -> dict[str, Any]:
    return with_present(NOTHING, present)


def test_nothing_that_was_published_is_lost(present: dict[str, Any]) -> None:
    published = read_published(FILE.read_text())
    assert list(losses(published, present)) == []
    assert list(unpublished(published, present)) == []


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("answers", "fairbank.usage/2"),
        ("answers", "GET /usage 200 fairbank.usage/2"),
        ("answers", "problem"),
        ("requests", "POST /alloc"),
        ("requests", "cluster submit/1"),
    ],
)
def test_removed_schema_is_missing_until_it_is_ended(
    published: dict[str, Any], present: dict[str, Any], kind: str, key: str
) -> None:
    less = {**present, kind: {name: part for name, part in present[kind].items() if name != key}}
    assert list(losses(published, less)) == [f"{key} is missing"]
    assert list(losses({**published, "ended": {key: "0.1.0"}}, less)) == []


def test_lost_field_needs_a_new_version(published: dict[str, Any], present: dict[str, Any]) -> None:
    def renamed(old: str, new: str) -> dict[str, Any]:
        changed = deepcopy(present)
        changed["answers"][new] = changed["answers"].pop(old)
        del changed["answers"][new]["properties"]["data"]
        return changed

    key = "fairbank.usage/2"
    assert f"{key}: $.data is missing" in list(losses(published, renamed(key, key)))
    assert list(losses(published, renamed(key, "fairbank.usage/3"))) == []
    assert list(losses(published, renamed(key, "fairbank.usage/1"))) == [
        f"{key} is missing",
        "fairbank.usage/1: later versions were published",
    ]


def test_field_of_a_route_that_is_required_now_is_found(
    published: dict[str, Any], present: dict[str, Any]
) -> None:
    changed = deepcopy(present)
    changed["requests"]["POST /alloc"]["properties"]["body"]["required"].append("amount")
    changed["requests"]["GET /usage"]["required"].append("query zone")
    assert sorted(losses(published, changed)) == [
        "GET /usage: $.query zone is required",
        "POST /alloc: $.body.amount is required",
    ]


def test_new_schemas_and_a_new_release_are_to_be_published(
    published: dict[str, Any], present: dict[str, Any]
) -> None:
    more = {**present, "answers": {**present["answers"], "fairbank.new/1": TEXT}}
    assert list(unpublished(published, more)) == ["fairbank.new/1 is new"]
    old = {**published, "release": "0.0.1"}
    assert list(unpublished(old, present)) == ["the fields that are new since 0.0.1"]
    assert list(unpublished(with_present(old, more), more)) == []
    assert list(losses(with_present(old, more), present)) == ["fairbank.new/1 is missing"]


def test_published_schemas_are_not_edited_by_hand(published: dict[str, Any]) -> None:
    text = write_published(published)
    assert read_published(text) == published
    lines = text.splitlines(keepends=True)
    for start in ('"fairbank.usage/2"', '"POST /alloc"'):
        (number,) = (n for n, line in enumerate(lines) if line.startswith(start))
        with pytest.raises(ValueError, match="make schemas"):
            read_published("".join(lines[:number] + lines[number + 1 :]))
    with pytest.raises(ValueError, match="make schemas"):
        read_published(text.replace('"maxLength":128', '"maxLength":129', 1))


def test_publishing_refuses_a_loss_and_adds_the_rest(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    present: dict[str, Any],
) -> None:
    file = tmp_path / "published.json"
    now = deepcopy(present)
    monkeypatch.setattr(command, "FILE", file)
    monkeypatch.setattr(command, "present_schemas", lambda: now)
    file.write_text(write_published(NOTHING))
    assert (command.main(["--check"]), command.main([]), command.main(["--check"])) == (1, 0, 0)
    text = file.read_text()
    capsys.readouterr()

    route = now["requests"].pop("GET /usage")
    now["answers"]["fairbank.usage/2"]["properties"]["new"] = TEXT
    assert command.main([]) == 1
    assert capsys.readouterr().out.startswith("GET /usage is missing; ")
    assert command.main(["--end", "POST /alloc"]) == 1
    assert file.read_text() == text
    assert command.main(["--end", "GET /usage"]) == 0
    after = json.loads(file.read_text())
    assert after["ended"].keys() == {"GET /usage"} <= after["requests"].keys()
    assert "new" in after["answers"]["fairbank.usage/2"]["properties"]
    # A route that comes back has to accept what it accepted.
    now["requests"]["GET /usage"] = {**route, "required": ["query zone"]}
    assert command.main(["--check"]) == 1
    file.unlink()
    assert command.main([]) == 1
    assert not file.exists()
