"""Fixtures of the tests of the bank."""

from __future__ import annotations

import pytest

from tests.bank.beginnings import EVERYTHING
from tests.bank.story import Teller, tell


@pytest.fixture(scope="module")
def told() -> Teller:
    """Return a story in which everything has happened once. All tests of a file share it and do not
    change it.
    """
    return tell(EVERYTHING)
