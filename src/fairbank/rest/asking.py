"""A request as our handlers see it: who asks, the house, and a body that was read strictly."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.exceptions import HTTPException, InternalServerException

from fairbank.rest.desk import Desk
from fairbank.rest.house import House
from fairbank.rest.problems import malformed
from fairbank.service.askers import Asker
from fairbank.values.trouble import Malformed

_JSON = (b"application/json", b'application/json; charset="utf-8"', b"application/json; charset=utf-8", b"application/json;charset=utf-8")


class Asking(Request[Asker, None, State]):
    """The framework's request, with our words."""

    @property
    def house(self) -> House:
        return cast("House", self.app.state.house)

    @property
    def desk(self) -> Desk:
        return cast("Desk", self.app.state.desk)

    @property
    def asker(self) -> Asker:
        """Who signed in; the guard has seen to it on every route that is not open."""
        return cast("Asker", self.scope["user"])

    async def body(self) -> bytes:
        """The whole body. Raises Malformed when the client leaves in the middle of it; too large a body is answered with 413."""
        try:
            return await super().body()
        except InternalServerException as gone:
            raise Malformed("the request ended in the middle of its body", remedy="send it again, whole") from gone

    async def json(self) -> Any:
        """The body as what the handler's `data` is annotated with. The framework calls this; it would itself take "5" for 5."""
        if not any(name == b"content-type" and value.lower() in _JSON for name, value in self.scope["headers"]):
            raise HTTPException(status_code=415)
        field = self.route_handler.parsed_data_field
        return read_json(await self.body(), Any if field is None else field.annotation)


def read_json(body: bytes | msgspec.Raw, kind: Any) -> Any:
    """JSON as a value of `kind`. Raises Malformed, naming the field."""
    try:
        return _decoder(kind).decode(body)
    except msgspec.ValidationError as bad:
        raise malformed(bad) from bad
    except msgspec.DecodeError as bad:
        raise Malformed(f"the body is not JSON: {bad}", remedy="send one whole JSON object in UTF-8") from bad
    except UnicodeDecodeError as bad:
        raise Malformed("the body is not UTF-8", remedy="send one whole JSON object in UTF-8") from bad
    except RecursionError as bad:
        raise Malformed("the body is nested too deeply", remedy="send one JSON object, as /docs describes it") from bad


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
