"""Generated requests, valid and invalid, against a real server: every response matches the
document.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from fairbank.rest.app import document
from tests.rest.served import served
from tests.rest.world import grant, report
from tests.support.account import Account

pytestmark = pytest.mark.slow

schema = schemathesis.openapi.from_dict(document())
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    ignored_auth,
    unsupported_method,
    allow_header_conformance,
]
DECOYS = 6  # generated numbers are mapped to 1..6, so that requests find objects


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, dict[str, str]]]:
    """Return the address of the server, and the header of a superuser's token that no generated
    request revokes.
    """
    folder = Account.ourselves().own_folder("fb-st-")
    try:
        with served(folder) as running:
            for number in range(1, DECOYS + 1):
                assert running.unix.post(
                    "/project", json={"gname": f"p{number}", "gid": 100 + number}
                ).is_success
                assert running.unix.post(
                    "/alloc",
                    json=grant(
                        account=f"p{number}", resource="cpu", start="2020-01-01", end="2090-01-01"
                    ),
                ).is_success
                assert running.unix.post(
                    "/job", json=report(number, account=f"p{number}", resource="cpu", amount=60)
                ).is_success
                assert running.unix.post(
                    "/token", json={"label": "decoy", "scopes": ["read"]}
                ).is_success
            scopes = ["read", "write", "agent:alpha"]
            secret = running.unix.post(
                "/token", json={"label": "schemathesis", "scopes": scopes}
            ).json()["data"]["secret"]
            yield str(running.tcp.base_url), {"Authorization": f"Bearer {secret}"}
            assert '"trace"' not in running.log.read_text()
    finally:
        shutil.rmtree(folder)


@schema.parametrize()
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_response_matches_the_document(
    case: schemathesis.Case[Any], server: tuple[str, dict[str, str]]
) -> None:
    url, headers = server
    for name, value in (case.path_parameters or {}).items():
        if name != "uid" and isinstance(value, int) and value > 0:
            case.path_parameters[name] = 1 + value % DECOYS
    case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)
