"""JSON of the commands: answers, and problem documents of errors (docs/reference/json.md)."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from fairbank.bank.audit import Finding
from fairbank.core.health import HealthCheck
from tests.cli.conftest import Run
from tests.cli.fakes import FakeServices
from tests.cli.site import CPU, FOLD, GPU, JORGE
from tests.cli.test_conventions import READING
from tests.support.golden import GOLDEN
from tests.support.json_contract import check_json, unknown_numbers
from tests.support.json_schemas import FOLDER, check_shared_schema, merged, schema_file
from tools.reference.route_schemas import route_schemas

PLANNING = {
    "simulate": "simulate week.swf --grant 50 --json",
    "whatif": "whatif week.swf --grant 50 --add-procs 8 --json",
    "replay": "replay week.swf --json",
}


def json_of(text: str) -> Any:
    document = json.loads(text)
    check_json(document)
    if "schema" in document:
        schema = json.loads(schema_file(document["schema"]).read_text())
        jsonschema_rs.validate(schema, document)
    return document


@pytest.mark.parametrize("name", [*READING, ""])
def test_amounts_of_every_command_are_whole_su_minutes_with_a_text(
    fairbank: Run, name: str
) -> None:
    services = FakeServices(
        findings=(Finding(7, "its link is wrong", 12), Finding(0, "a row was added")),
        checks=(HealthCheck("the store opens", True), HealthCheck("no agent", False, "add one")),
    )
    result = fairbank(*name.split(), *READING.get(name, ()), "--json", services=services)
    assert result.code == (8 if name in ("audit verify", "doctor") else 0), result
    assert json_of(result.out)["data"] or name == "token list", "nothing was checked"


WAITING = GOLDEN / "slurm-22.05" / "waiting"


@pytest.mark.parametrize(
    ("words", "empty"),
    [
        ("usage -S 2026-07-01 --limit 1", "group"),  # "(others)"
        ("usage -S 2026-07-01 --by job --limit 1", "group"),
        ("usage -S 2026-07-01 --by month --limit 1", "group"),
        ("eff 702001", "cpu_used"),
        ("eff 812344", "cpu_given"),
        ("jobs --running -a", "outcome"),
        ("balance --as 61003", "my_cap"),
        ("statement 2 -l --limit all -S 2026-01-01", "details"),
        ("quote -A bio_fold -p idle-std,gpu-v100 -c 8 -t 60", "allocation"),
        (f"prio --from {WAITING}", "tres"),
        (f"queue --from {WAITING}", "likely_start"),
    ],
    ids=lambda value: value.replace(str(WAITING), "waiting").replace(" ", "_"),
)
def test_schema_describes_answers_whose_fields_are_empty(
    fairbank: Run, words: str, empty: str
) -> None:
    """The field that has no value in some rows is named beside the command."""
    result = fairbank(*words.split(), "--json")
    assert result.code in (0, 5), result
    document = json_of(result.out)
    assert any(not value for value in values_of(document, empty)), document


def values_of(document: Any, name: str) -> list[Any]:
    """Return the values of all fields of this name."""
    if isinstance(document, list):
        return [value for part in document for value in values_of(part, name)]
    if not isinstance(document, dict):
        return []
    own = [document[name]] if name in document else []
    return own + values_of(list(document.values()), name)


@pytest.mark.parametrize("verb", ["projects --detail", "allocations", "jobs", "failures"])
def test_amounts_of_sproject_are_whole_su_minutes_with_a_text(hadm: Run, verb: str) -> None:
    json_of(hadm(*verb.split(), "--json").out)


@pytest.mark.parametrize("words", PLANNING.values(), ids=PLANNING)
def test_amounts_of_simulations_are_whole_su_minutes_with_a_text(run: Run, words: str) -> None:
    json_of(run(words).out)


def test_overview_as_json_has_all_its_parts(fairbank: Run) -> None:
    document = json_of(fairbank("--json", "--as", JORGE).out)
    assert (document["schema"], document["bank"]) == ("fairbank.overview/1", "fairbank")
    overview = document["data"]
    assert overview["uid"] == JORGE
    assert {row["id"] for row in overview["balances"]} == {CPU, GPU, FOLD}
    assert {row["state"] for row in overview["running"]} == {"held"}
    assert [row["reason"] for row in overview["refused"]] == ["INSUFFICIENT_CREDIT"]


# --- schemas ---

ANSWER: dict[str, Any] = {"schema": "fairbank.x/1", "data": [{"held": 3, "name": None}]}


def test_schema_learns_fields_and_types_and_loses_none() -> None:
    first = merged({}, ANSWER)
    assert merged(first, ANSWER) == first
    wider = merged(first, {**ANSWER, "data": [{"held": None, "name": "a", "new": [1]}]})
    (row,) = (wider["properties"]["data"]["items"],)
    assert row["properties"] == {
        "held": {"type": ["integer", "null"], "description": "SU-minutes"},
        "name": {"type": ["null", "string"]},
        "new": {"type": "array", "items": {"type": "integer"}},
    }
    assert row["required"] == ["held", "name"]


@pytest.mark.parametrize(
    "row",
    [{"name": None}, {"held": 1.5, "name": None}, {"held": 3, "name": None, "new": 1}],
    ids=["removed", "other type", "new"],
)
def test_answer_that_its_schema_does_not_describe_is_found(row: dict[str, Any]) -> None:
    schema = merged({}, ANSWER)
    assert merged(schema, {**ANSWER, "data": [row]}) != schema


def test_route_and_commands_have_one_version_of_a_schema() -> None:
    check_shared_schema({"schema": "fairbank.activity/1", "data": []})  # of a route only
    check_shared_schema({"schema": "fairbank.usage/2", "data": []})
    for other in ("fairbank.usage/1", "fairbank.usage/3"):
        with pytest.raises(AssertionError, match="fairbank.usage-2.json"):
            check_shared_schema({"schema": other, "data": []})


def test_every_field_has_a_type_besides_null() -> None:
    """Else its first value would need a new version of the schema."""
    texts = {path.name: path.read_text() for path in FOLDER.glob("*")}
    assert [name for name, text in texts.items() if '"type": "null"' in text] == []


def test_every_published_schema_is_one_and_names_itself() -> None:
    for path in sorted(FOLDER.glob("*")):
        schema = json.loads(path.read_text())
        jsonschema_rs.meta.validate(schema)
        assert path == schema_file(schema["title"])


def test_whole_numbers_are_known_to_be_amounts_or_not() -> None:
    """A new field with a whole number is an amount, with a display text, or stands in the list of
    the others.
    """
    schemas = [json.loads(path.read_text()) for path in FOLDER.glob("*")]
    assert unknown_numbers([*schemas, json.loads(route_schemas())]) == set()
    assert unknown_numbers({"properties": {"dues": {"type": ["integer", "null"]}}}) == {"dues"}


# --- errors ---


@pytest.mark.parametrize(
    ("words", "code", "problem", "remedy"),
    [
        ("balance --bogus", 2, ("invalid input", 400, "--bogus"), "fairbank balance --help"),
        ("nosuch", 2, ("invalid input", 400, None), "fairbank --help"),
        ("alloc show 999", 3, ("not found", 404, "ALLOC"), "list yours with: fairbank alloc list"),
        ("deposit 1 5 --reason x --as 61002", 4, ("forbidden", 403, None), "ask a superuser"),
        (
            "balance --server unix:/nowhere",
            6,
            ("unavailable", 503, "--server"),
            "start the bank with: fairbank serve; ",
        ),
        (
            "withdraw 2 10k --reason test --yes",
            5,
            ("refused", 402, None),
            "withdraw at most 262 SU",
        ),
    ],
)
def test_errors_under_json_are_problem_documents_on_stdout(
    fairbank: Run, words: str, code: int, problem: tuple[str, int, str | None], remedy: str
) -> None:
    plain = fairbank(*words.split())
    result = fairbank(*words.split(), "--json")
    assert (plain.code, plain.out) == (code, "")
    assert result.code == code
    document = json_of(result.out)
    title, status, field = problem
    assert document["type"] == f"/problem/{title.replace(' ', '-')}"
    assert (document["title"], document["status"], document.get("field")) == (title, status, field)
    # An error of the words comes before the bank is asked.
    has_answered = code in (3, 4, 5)
    assert document.get("bank") == ("fairbank" if has_answered else None)
    assert ("\n  bank: fairbank\n" in plain.err) == has_answered
    # The sentence for people stays on stderr.
    assert document["detail"].split()[0] in result.err
    assert document["remedy"].startswith(remedy)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("jobs --limit x", "--limit"),
        ("jobs -M", "--clusters"),
        ("jobs --csv", "--json"),
        ("jobs --nosuch", "--nosuch"),
        ("eff", "JOBID"),
        ("eff x", "JOBID"),
        ("alloc freeze 2", "--reason"),
        ("deposit x 5 --reason test", "ALLOC"),
        ("queue --watch 1", "--watch"),
        ("usage --by nothing", "--by"),
    ],
)
def test_option_that_cannot_be_read_is_the_field_of_its_problem(
    fairbank: Run, words: str, field: str
) -> None:
    result = fairbank(*words.split(), "--json")
    problem = json_of(result.out)
    assert (result.code, problem["title"], problem["field"]) == (2, "invalid input", field)
    assert problem["remedy"].endswith(" --help")
    assert f"\n  field: {field}\n" in result.err


def test_refusal_under_json_has_its_amounts(fairbank: Run) -> None:
    refusal = json_of(fairbank("withdraw", GPU, "10k", "--reason", "x", "--yes", "--json").out)[
        "refusal"
    ]
    assert refusal["requested"] == 10_000 * 60
    assert refusal["requested"] - refusal["available"] == refusal["shortfall"]
    assert refusal["display"]["requested"] == "10000"
    assert refusal["remedies"] == ["withdraw at most 262 SU"]


def test_bug_under_json_is_a_problem_document(fairbank: Run) -> None:
    services = FakeServices(error=ZeroDivisionError("a\x1b[31m"))  # type: ignore[arg-type]
    result = fairbank("doctor", "--json", services=services)
    assert (result.code, json_of(result.out)["status"]) == (1, 500)
    assert "\x1b" not in result.out


def test_errors_of_sproject_are_problem_documents_too(hadm: Run) -> None:
    result = hadm("jobs", "-A", "nosuch", "--json")
    assert (result.code, json_of(result.out)["title"]) == (3, "not found")
