"""Fixtures of the tests of the bank."""

from __future__ import annotations

import pytest

from tests.bank.stories import StoryRunner, play_story
from tests.bank.story_setups import EVERYTHING


@pytest.fixture(scope="module")
def story() -> StoryRunner:
    """Return a story with every kind of request. The tests of a file share it and must not change
    it.
    """
    return play_story(EVERYTHING)
