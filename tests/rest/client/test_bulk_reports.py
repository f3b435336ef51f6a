"""Reports in one request: what is no list of their answers."""

from __future__ import annotations

import pytest

from fairbank.core.errors import Unavailable
from fairbank.rest.client import Client, Json, parse_address
from fairbank.rest.client.bulk_reports import post_reports


class ClientOfAnother(Client):
    """Client of something that answers every request with the same data."""

    def __init__(self, data: Json) -> None:
        super().__init__(parse_address("unix:/none"))
        self._data = data

    def post(self, path: str, body: Json, key: str | None = None) -> dict[str, Json]:
        return {"data": self._data}


@pytest.mark.parametrize(
    "data", [None, {}, [], [{"status": 201}, {"status": 201}], [{"status": "fine"}]]
)
def test_invalid_answer_counts_as_unavailable(data: Json) -> None:
    """The outage policy decides whether such a job starts."""
    with pytest.raises(Unavailable, match="what answers is not a bank: ") as error:
        post_reports(ClientOfAnother(data), [b"{}"], field="server")
    assert (error.value.field, error.value.remedy) == ("server", "name the bank's address")
