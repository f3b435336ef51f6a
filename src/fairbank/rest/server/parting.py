"""How a connection ends: nobody who asked something before is left without an answer."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fairbank.rest.server.last_words import CUT_SHORT
from fairbank.rest.server.silence import Patient


class Parting(Patient):
    """uvicorn's HTTP, which gives the answers that are due before it hangs up.

    uvicorn closes at once when it cannot read on, or when the other side says that it sends no more, whatever was asked before.
    """

    _within = False  # a request has begun and not ended
    _boarding: RequestResponseCycle | None = (
        None  # for the express, if its body comes with its head
    )
    _farewell: bytes | None = None  # said when all is answered; nothing is read any more

    def eof_received(self) -> bool:  # type: ignore[override]
        """The other side sends no more, and may wait for answers all the same: True, to stay until they are given."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._within:
            self.hang_up(CUT_SHORT)
        elif self._farewell is None and cycle is not None and not cycle.response_complete:
            cycle.keep_alive, self._farewell = False, b""
        return self._farewell is not None and not self.transport.is_closing()

    def hang_up(self, word: bytes) -> None:
        """Close after a last word, once what was asked before is answered. An answer to what goes wrong now, given or under way, is it."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._farewell is not None or self.transport.is_closing():
            return
        if cycle is not None and cycle.more_body:
            if cycle.response_complete:
                word = b""
            elif cycle.response_started:
                cycle.keep_alive, word = False, b""
            elif self.pipeline:
                self.pipeline.popleft()  # the newest: itself
            else:
                cycle, self._boarding = None, None
        if cycle is None or cycle.response_complete:
            self.transport.write(word)
            self.transport.close()
        else:
            self._farewell = word

    def on_response_complete(self) -> None:
        """The next of those that wait, or the farewell."""
        if self._farewell is not None and not self.pipeline and not self.transport.is_closing():
            self.transport.write(self._farewell)
            self.transport.close()
        super().on_response_complete()
