"""Permissions of every role for every operation. Foreign objects look like missing ones, byte by
byte.
"""

from __future__ import annotations

import httpx
import pytest

from tests.rest.operations import FOREIGN, NOBODYS, OWN, operations
from tests.rest.permissions import EXPECTED, ROLES, Asking, cells


def test_table_covers_every_operation_and_role() -> None:
    expected = {
        (operation, whose, role)
        for operation in operations()
        for whose in (OWN, FOREIGN, NOBODYS)
        for role in ROLES
    }
    assert EXPECTED.keys() == expected


@pytest.mark.parametrize("operation", operations())
def test_every_role_gets_the_status_of_the_table(asking: Asking, operation: str) -> None:
    wrong = [
        f"{cell.whose} {cell.role}: {cell.expected} expected, was {outcome}"
        for cell in cells()
        if cell.operation == operation
        and (outcome := asking.outcome(operation, cell.whose, cell.role)) != cell.expected
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


def test_foreign_objects_look_like_missing_ones(asking: Asking) -> None:
    """Byte for byte, but for the number or name that was asked for."""
    assert len(HIDDEN) > 100
    for operation, role in HIDDEN:
        foreign, unknown = (asking.response(operation, whose, role) for whose in (FOREIGN, NOBODYS))
        assert neutral(foreign) == neutral(unknown), (operation, role)


def neutral(response: httpx.Response) -> tuple[int, list[tuple[str, str]], str]:
    """All that the user sees, with what was asked for left out."""
    asked = [part for part in response.request.url.path.split("/") if part.isdigit()][:1] or [
        "bio",
        "nosuch",
    ]
    text = response.text
    for name in asked:
        text = text.replace(name, "X")
    return (
        response.status_code,
        [header for header in response.headers.items() if header[0] != "content-length"],
        text,
    )
