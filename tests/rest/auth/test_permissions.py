"""Permissions of every role for every operation. Foreign objects look like missing ones, byte by
byte.
"""

from __future__ import annotations

import httpx
import pytest

from tests.rest.operations import FOREIGN, NOBODYS, OWN, operations
from tests.rest.permissions import EXPECTED, ROLES, RoleRequests, cells


def test_table_covers_every_operation_and_role() -> None:
    expected = {
        (operation, whose, role)
        for operation in operations()
        for whose in (OWN, FOREIGN, NOBODYS)
        for role in ROLES
    }
    assert EXPECTED.keys() == expected


@pytest.mark.parametrize("operation", operations())
def test_every_role_gets_the_status_of_the_table(
    role_requests: RoleRequests, operation: str
) -> None:
    wrong = [
        f"{cell.whose} {cell.role}: {cell.expected} expected, was {outcome}"
        for cell in cells()
        if cell.operation == operation
        and (outcome := role_requests.outcome(operation, cell.whose, cell.role)) != cell.expected
    ]
    assert wrong == []


HIDDEN = [
    (operation, role)
    for operation in operations()
    for role in ROLES
    if role not in ("admin", "super")
    if EXPECTED[operation, FOREIGN, role] in ("404", "200:0")
    and EXPECTED[operation, NOBODYS, role] == EXPECTED[operation, FOREIGN, role]
]


def test_foreign_objects_look_like_missing_ones(role_requests: RoleRequests) -> None:
    """The responses are equal, except for the requested number or name."""
    assert len(HIDDEN) > 100
    for operation, role in HIDDEN:
        foreign, unknown = (
            role_requests.response(operation, whose, role) for whose in (FOREIGN, NOBODYS)
        )
        assert without_identifiers(foreign) == without_identifiers(unknown), (operation, role)


def without_identifiers(response: httpx.Response) -> tuple[int, list[tuple[str, str]], str]:
    """Return status, headers and body without the requested number or name."""
    identifiers = [part for part in response.request.url.path.split("/") if part.isdigit()][:1] or [
        "bio",
        "nosuch",
    ]
    text = response.text
    for name in identifiers:
        text = text.replace(name, "X")
    return (
        response.status_code,
        [header for header in response.headers.items() if header[0] != "content-length"],
        text,
    )
