"""What the tests of the bank share."""

from __future__ import annotations

import pytest

from tests.bank.beginnings import EVERYTHING
from tests.bank.story import Teller, tell


@pytest.fixture(scope="module")
def told() -> Teller:
    """Everything has happened once. One for a whole file, whose tests leave it as they find it."""
    return tell(EVERYTHING)
