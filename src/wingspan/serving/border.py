"""The border of the service: who may ask, how much they may send, what is logged. Plain ASGI, before any route."""

import asyncio
import base64
import binascii
import hmac
import json
import logging
import time
import traceback
from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException

from wingspan.serving import Settings
from wingspan.serving.metrics import Metrics

log = logging.getLogger("wingspan.serving")

Scope = dict[str, Any]
Receive = Callable[[], Any]
Send = Callable[[Any], Any]

OPEN = frozenset({"/", "/page.css", "/page.js", "/health", "/ready"})
"""Paths that need no key: the page, which holds nothing, and what tells that the service lives."""
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
        b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
]


MOST_DISCARDED = 64_000_000
"""Bytes of a body over the limit that are read and thrown away, so that its sender reads the answer."""


class Border:
    """Checks the key and the size of a request, counts and logs it. No text, query or header is ever logged."""

    def __init__(self, app: Any, settings: Settings, metrics: Metrics, routes: frozenset[str]) -> None:
        self.app, self.settings, self.metrics, self.routes = app, settings, metrics, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        limit, received, complete = self.settings.body_limit, 0, False
        too_large = f"the body is larger than {limit:,} bytes; send fewer texts at a time"

        async def counted() -> Any:
            nonlocal received, complete
            if complete:  # nothing can come but the news that the client has gone
                return await receive()
            try:
                async with asyncio.timeout(began + self.settings.time_limit - time.monotonic()):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"the body did not come in {self.settings.time_limit:g} s; send it") from None
            complete = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > limit:
                await discard(receive, message)
                raise HTTPException(413, too_large)
            return message

        async def noted(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        headers = {name.lower(): value for name, value in scope["headers"]}
        length = headers.get(b"content-length", b"0")
        try:
            if scope["path"] not in self.routes:
                await refuse(noted, 404, "there is nothing here; /openapi.json lists what there is")
            elif scope["path"] not in OPEN and not self._allowed(scope, headers):
                await refuse(noted, 401, "this service needs its key; send it as `Authorization: Bearer KEY`")
            elif length.isdigit() and int(length[:20]) > limit:
                await discard(receive, {"more_body": True})
                await refuse(noted, 413, too_large)
            else:
                await self.app(scope, counted, noted)
        except Exception as error:  # whatever it is, its message may quote a text, so only its place is logged
            log.error("%s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
            if not status:
                await refuse(noted, 500, "the service failed on this request; its log says where")
        finally:
            seconds = time.monotonic() - began
            route = scope["path"] if scope["path"] in self.routes else "other"
            self.metrics.answered(route, status or 499, seconds)
            quiet = route in OPEN or route == "/metrics"
            log.log(
                logging.DEBUG if quiet else logging.INFO,
                "%s %s %s, %.0f ms, %d bytes received",
                *(scope["method"], route, status or 499, 1000 * seconds, received),
            )

    def _allowed(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether the key is right, compared in constant time; the preflight of a browser carries none."""
        key = self.settings.api_key
        if key is None or (scope["method"] == "OPTIONS" and self.settings.allow_origins):
            return True
        kind, _, value = headers.get(b"authorization", b"").partition(b" ")
        sent = {b"bearer": value.strip(), b"basic": password(value)}.get(kind.lower(), headers.get(b"x-api-key", b""))
        return hmac.compare_digest(sent, key.encode())


def password(value: bytes) -> bytes:
    """The password of HTTP's basic scheme, which Label Studio sends; the user may be anybody."""
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


async def discard(receive: Receive, message: Any) -> None:
    """Reads what follows a message of a body, up to a limit."""
    left = MOST_DISCARDED
    while message.get("more_body") and left > 0:
        message = await receive()
        left -= len(message.get("body", b""))


async def refuse(send: Send, status: int, sentence: str) -> None:
    """An answer of one sentence."""
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
