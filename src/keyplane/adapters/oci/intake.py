"""Where machines put what their volumes hold: one PUT for each, for an order that is open.

What is taken in is named by its digest, and the machine tells that digest with its report, on the
bus: who could put something else in here would have put in what nobody asks for.
"""

from collections.abc import Awaitable, Callable

import nacl.exceptions
import nacl.signing
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keyplane.adapters.oci import upload
from keyplane.adapters.oci.layout import Layout
from keyplane.ports.errors import PortError

Key = Callable[[str], nacl.signing.VerifyKey | None]
"""The key of a machine; None for one that has none here."""
Expected = Callable[[str, str, int], Awaitable[bool]]
"""Whether (machine, entry, number) is an order that is open."""


def routes(layout: Layout, key: Key, expected: Expected) -> list[Route]:
    async def put(request: Request) -> Response:
        machine, number = request.path_params["machine"], request.path_params["number"]
        entry, path = (request.query_params.get(name, "") for name in ("entry", "path"))
        known = key(machine)
        text = upload.signed(machine, entry, path, number)
        if known is None or not _is_signed(known, text, request.headers.get(upload.SIGNATURE, "")):
            return _problem(403, f"this is not signed by machine {machine}")
        if not await expected(machine, entry, number):
            return _problem(403, f"nobody asked {machine} for the volumes of {entry}")
        try:
            digest = await layout.take_in(request.stream())
        except PortError as error:
            return _problem(503, str(error))
        except ClientDisconnect:
            return _problem(400, "it was cut off")
        return JSONResponse({"digest": digest}, status_code=201)

    return [Route("/v1/volumes/{machine}/{number:int}", put, methods=["PUT"])]


def _is_signed(key: nacl.signing.VerifyKey, text: bytes, signature: str) -> bool:
    try:
        key.verify(text, bytes.fromhex(signature))
    except (nacl.exceptions.BadSignatureError, ValueError):
        return False
    return True


def _problem(status: int, text: str) -> Response:
    return JSONResponse({"problem": text}, status_code=status)
