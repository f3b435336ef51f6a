"""Invalid addresses, parameters and methods."""

from __future__ import annotations

import httpx
import pytest

from fairbank.core.usage_groups import UsageBy
from fairbank.rest.app import document
from tests.rest.operations import operations
from tests.rest.responses import WHY, refused
from tests.rest.world import AGENT, MEMBER, PI, SUPERUSER, World

ODD_NUMBERS = ["1e3", "1.0", "%2B1", "%201", "1%20", "1_0", "0x1", "%d9%a1", ".5", "1,5", ""]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/alloc?limit=0", "limit"),
        ("/alloc?limit=1001", "limit"),
        ("/alloc?limit=ten", "limit"),
        ("/alloc?limit=1&limit=2", "limit"),
        ("/alloc?after=-1", "after"),
        ("/alloc?after=99999999999999999999", "after"),
        ("/alloc?project=0", "project"),
        ("/alloc?gid=-1", "gid"),
        ("/alloc?state=open", "state"),
        ("/balance?state=", "state"),
        ("/job?state=ACTIVE", "state"),
        ("/alloc?active-at=" + "1" * 41, "active-at"),
        ("/alloc?account=" + "a" * 256, "account"),
        ("/balance?all=maybe", "all"),
        ("/alloc?active-at=yesterday", "active-at"),
        ("/alloc?acount=chem", "acount"),
        ("/job?order=upwards", "order"),
        ("/job?since=x", "since"),
        ("/job?job_id=4294967296", "job_id"),
        ("/usage?by=colour", "by"),
        ("/usage?by=month&after=x", "after"),
        ("/usage?after=-1", "after"),
        ('/usage?after=["x","cpu","c"]', "after"),
        ('/usage?after=[99999999999999999999,"cpu","c"]', "after"),
        ('/usage?by=qos&after=[1,"cpu","c"]', "after"),
        ('/usage?by=qos&after=["x\\u0000","cpu","c"]', "after"),
        ('/usage?order=largest&after=[1,"cpu","c"]', "after"),
        ("/usage?order=smallest", "order"),
        ("/health?x=1", "x"),
        *((f"/alloc?limit={odd}", "limit") for odd in ODD_NUMBERS),
        ("/alloc?gname=%ff", "gname"),
        ("/alloc?gname=%ed%a0%80", "gname"),
    ],
)
def test_invalid_parameter_is_refused(shared_world: World, path: str, field: str) -> None:
    refused(shared_world, MEMBER, "GET", path, 400, field)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/alloc?state=bogus", "planned, active, frozen, ended, removed"),
        ("/balance?state=bogus", "planned, active, frozen, ended, removed"),
        ("/job?state=bogus", "held, charged, released, lapsed"),
        *(
            (f"{path}?order=bogus", "newest, oldest")
            for path in (
                *("/job", "/failure", "/activity", "/entry", "/credit", "/predebit"),
                "/alloc/1/statement",
            )
        ),
        ("/job?outcome=bogus", "completed, failed"),
        ("/predebit?status=bogus", "executing, completed"),
        ("/job?status=bogus", "executing, completed"),
        ("/entry?about=bogus", "credit, terms, caps"),
        ("/usage?order=bogus", "group, largest"),
        ("/usage?by=bogus", ", ".join(dimension.value for dimension in UsageBy)),
    ],
)
def test_unknown_word_in_a_parameter_is_refused(shared_world: World, path: str, words: str) -> None:
    problem = refused(
        shared_world, MEMBER, "GET", path, 400, path.partition("?")[2].partition("=")[0]
    )
    assert problem["remedy"] == f"one of {words}"


def test_all_parameters_with_words_are_tested() -> None:
    routes = {
        (path, parameter["name"])
        for path, item in document()["paths"].items()
        for parameter in item.get("get", {}).get("parameters", ())
        if "enum" in parameter["schema"]
    }
    assert routes == {
        *((path, "state") for path in ("/alloc", "/balance", "/job")),
        *(
            (path, "order")
            for path in (
                *("/job", "/failure", "/activity", "/entry", "/credit", "/predebit"),
                "/alloc/{allocation}/statement",
            )
        ),
        *((path, "status") for path in ("/job", "/predebit")),
        ("/project", "removed"),
        ("/job", "outcome"),
        ("/entry", "about"),
        ("/usage", "by"),
        ("/usage", "order"),
    }


def text_filters() -> list[tuple[str, str]]:
    return [
        (path, parameter["name"])
        for path, item in document()["paths"].items()
        for parameter in item.get("get", {}).get("parameters", ())
        if parameter["in"] == "query"
        and parameter["schema"].get("items", parameter["schema"])["type"] == "string"
    ]


@pytest.mark.parametrize("text", ["%00", "a%00b", "%0a", "%1b", "%e2%80%ae"])
@pytest.mark.parametrize(("path", "name"), text_filters())
def test_unprintable_characters_in_a_filter_are_refused(
    shared_world: World, path: str, name: str, text: str
) -> None:
    address = path.replace("{allocation}", "1").replace("{entry}", "1")
    refused(shared_world, SUPERUSER, "GET", f"{address}?{name}={text}", 400, name)


@pytest.mark.parametrize(
    ("query", "field", "remedy"),
    [
        ("owner_uid=1&owner_uid=-1", "owner_uid", "from 0 to "),
        (f"owner_uid={10**30}", "owner_uid", "from 0 to "),
        ("owner_uid=1&owner_uid=1e3", "owner_uid", "write digits"),
        (f"account=chem&account={'x' * 300}", "account", "at most "),
        ("account=chem&account=a%00b", "account", "write printable text"),
        ("&".join(["resource=cpu"] * 201), "resource", "give it at most 200 times"),
        ("by=user&by=day", "by", "give it once"),
    ],
)
def test_each_of_several_values_is_checked(
    shared_world: World, query: str, field: str, remedy: str
) -> None:
    problem = refused(shared_world, SUPERUSER, "GET", f"/usage?{query}", 400, field)
    assert problem["remedy"].startswith(remedy)


ROUTES_WITH_PERIOD = [
    "/job",
    "/failure",
    "/activity",
    "/entry",
    "/credit",
    "/predebit",
    "/usage",
    "/share",
    "/alloc/1/statement",
    "/centre",
]


@pytest.mark.parametrize("path", ROUTES_WITH_PERIOD)
def test_period_that_ends_before_it_begins_is_refused(shared_world: World, path: str) -> None:
    problem = refused(
        shared_world, SUPERUSER, "GET", f"{path}?since=2026-11-02&until=2026-11-01", 400, "until"
    )
    assert (
        problem["detail"] == "the period ends before it begins: until 2026-11-01T00:00:00Z, since"
        " 2026-11-02T00:00:00Z"
    )
    assert problem["remedy"] == "a period is since <= t < until: exchange the two"
    empty = shared_world.ask("GET", f"{path}?since=2026-11-02&until=2026-11-02", SUPERUSER)
    # A machine has no utilisation in no time.
    assert empty.status_code == (400 if path == "/centre" else 200)


def test_all_routes_with_a_period_are_tested() -> None:
    routes = {
        path
        for method, path in operations().values()
        if method == "GET" and {"since", "until"} <= parameters(path)
    }
    assert routes == {path.replace("/1/", "/{allocation}/") for path in ROUTES_WITH_PERIOD}


def parameters(path: str) -> set[str]:
    return {
        parameter["name"] for parameter in document()["paths"][path]["get"].get("parameters", ())
    }


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nosuch", 404),
        ("/alloc/1/nosuch", 404),
        ("/alloc/x", 404),
        ("/alloc/1.0", 404),
        *(
            (f"/alloc/{odd}", 400)
            for odd in ("+1", "%2b1", "%201", "1%20", "1_0", "01", "%d9%a1", "-01")
        ),
        ("/alloc/1%2fstatement", 404),
        ("/alloc%2F1", 404),
        ("/alloc/" + "9" * 5_000, 404),
        ("/alloc/-1", 400),
        ("/alloc/0", 400),
        ("/alloc/99999999999999999999", 400),
        ("/ALLOC", 404),
        ("/alloc/..%2f..%2fetc%2fpasswd", 404),
        ("/docs/..%2f..%2fapp.py", 404),
        ("/docs/LICENSE", 404),
        ("/%00", 404),
    ],
)
def test_invalid_address_is_refused(shared_world: World, path: str, status: int) -> None:
    answer = shared_world.ask("GET", path, MEMBER)
    assert (answer.status_code, answer.json()["status"]) == (status, status)


@pytest.mark.parametrize("hosts", [["a", "b"], ["a", "a"], ["a b/c"]])
@pytest.mark.parametrize(("method", "path"), [("GET", "/alloc"), ("POST", "/job")])
def test_request_must_have_one_host(
    shared_world: World, method: str, path: str, hosts: list[str]
) -> None:
    headers = [("Host", host) for host in hosts]
    request = shared_world.client.build_request(method, path)
    request.headers = httpx.Headers([*headers, ("X-Test-Uid", str(AGENT))])
    answer = shared_world.client.send(request)
    assert (answer.status_code, answer.json()["field"]) == (400, "Host")


def test_request_may_have_one_idempotency_key(shared_world: World) -> None:
    path = f"/alloc/{shared_world.own['allocation']}/deposit"
    request = shared_world.client.build_request("POST", path, json={"amount": 1, **WHY})
    request.headers = httpx.Headers(
        [
            *request.headers.multi_items(),
            ("X-Test-Uid", str(SUPERUSER)),
            *[("Idempotency-Key", "a")] * 2,
        ]
    )
    answer = shared_world.client.send(request)
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT"])
def test_unsupported_method_is_refused_with_allow(shared_world: World, method: str) -> None:
    answer = shared_world.ask(method, "/alloc", MEMBER)
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (
        405,
        {"GET", "HEAD", "OPTIONS", "POST"},
    )
    assert method in answer.json()["detail"]
    assert answer.headers["allow"] in answer.json()["remedy"]


def test_options_lists_the_methods_for_authenticated_users(shared_world: World) -> None:
    path = f"/project/{shared_world.own['project']}/member/7"
    answer = shared_world.ask("OPTIONS", path, MEMBER)
    assert (answer.status_code, answer.headers["allow"]) == (204, "DELETE, OPTIONS, PUT")
    assert shared_world.ask("OPTIONS", path).status_code == 401


def test_client_text_creates_no_header_or_log_line(shared_world: World) -> None:
    problem = refused(
        shared_world,
        PI,
        "POST",
        "/quote",
        400,
        "account",
        json={
            "account": "x\r\nSet-Cookie: a=b",
            "cluster": "alpha",
            "partition": "std",
            "tres": "cpu=1",
            "time_limit": 1,
        },
    )
    assert "\r" not in problem["detail"]
    assert "\n" not in problem["detail"]
