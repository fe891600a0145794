"""The controller over HTTP. Translates requests; decides nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from keyplane.model.names import MachineName
from keyplane.parts import control_messages as messages
from keyplane.parts import occurrence_messages, rollout_messages, volume_messages
from keyplane.parts.collecting import Collecting
from keyplane.parts.control_client import KEEP_ALIVE_S, RefusedError
from keyplane.parts.controller import Controller
from keyplane.ports.errors import PermanentError, TransientError

T = TypeVar("T")

JSON = "application/json"
LIMIT_MAX = 10_000
"""Rows of one answer: a few megabytes."""


def application(
    controller: Controller, collecting: Collecting, closing: asyncio.Event
) -> Starlette:
    """The routes of one controller; streams of events end once it closes."""

    async def collection(request: Request) -> Response:
        wanted = request.query_params.get("automatic")
        if request.method == "GET":
            return _answer(await collecting.look())
        if wanted is not None:
            who, automatic = peer(request), wanted == "on"
            return _answer(await collecting.set_automatic(automatic=automatic, who=who))
        return _answer(await collecting.let_go(peer(request)))

    async def ready(_: Request) -> Response:
        return _answer(await controller.ready())

    async def status(_: Request) -> Response:
        return _answer(await controller.status())

    async def machines(_: Request) -> Response:
        return _answer(await controller.machines())

    async def machine(request: Request) -> Response:
        return _answer(await controller.machine(MachineName(request.path_params["name"])))

    async def propose(request: Request) -> Response:
        question = await _body(request, messages.Propose)
        return _answer(await controller.propose(question))

    async def apply(request: Request) -> Response:
        order = await _body(request, messages.Apply)
        events = await controller.apply(order, who=peer(request))
        return StreamingResponse(_lines(events, closing), media_type="application/x-ndjson")

    async def say(request: Request) -> Response:
        word = await _body(request, messages.Say)
        word = msgspec.structs.replace(word, who=peer(request))  # nobody says who he is himself
        return _answer(await controller.say(word))

    async def backups(request: Request) -> Response:
        if request.method == "GET":
            return _answer(await controller.volumes.listing())
        asked = await _body(request, volume_messages.BackUp)
        return _answer(await controller.back_up(msgspec.structs.replace(asked, who=peer(request))))

    async def forget(request: Request) -> Response:
        asked = await _body(request, volume_messages.Forget)
        asked = msgspec.structs.replace(asked, who=peer(request))
        return _answer(await controller.volumes.forget(asked))

    async def occurrences(request: Request) -> Response:
        asked = await _body(request, occurrence_messages.OccurrencesAsked)
        return _answer(await controller.people.occurrences(asked))

    async def rollouts(_: Request) -> Response:
        return _answer(await controller.rollouts.rows())

    async def rollout(request: Request) -> Response:
        number = request.path_params["number"]
        return _answer(await controller.rollouts.view(number or None))

    async def act(request: Request) -> Response:
        asked = await _body(request, rollout_messages.RolloutAct)
        asked = msgspec.structs.replace(asked, who=peer(request))
        return _answer(await controller.rollouts.act(asked))

    async def again(request: Request) -> Response:
        asked = await _body(request, rollout_messages.Again)
        events = await controller.rollouts.again(msgspec.structs.replace(asked, who=peer(request)))
        return StreamingResponse(_lines(events, closing), media_type="application/x-ndjson")

    async def follow(_: Request) -> Response:
        events = await controller.follow()
        return StreamingResponse(_lines(events, closing), media_type="application/x-ndjson")

    async def history(request: Request) -> Response:
        return _answer(await controller.past.history(_limit(request)))

    async def shown(request: Request) -> Response:
        name = str(request.path_params["number"])
        number = None if name == "newest" else _number(name)
        return _answer(await controller.past.shown(number))

    async def target(_: Request) -> Response:
        return _answer(await controller.target())

    async def audit(request: Request) -> Response:
        return _answer(await controller.past.audited(_limit(request)))

    return Starlette(
        routes=[
            Route("/v1/ready", ready),
            Route("/v1/status", status),
            Route("/v1/collection", collection, methods=["GET", "POST"]),
            Route("/v1/machines", machines),
            Route("/v1/machines/{name}", machine),
            Route("/v1/revisions", history),
            Route("/v1/revisions/{number}", shown),
            Route("/v1/target", target),
            Route("/v1/audit", audit),
            Route("/v1/proposals", propose, methods=["POST"]),
            Route("/v1/applies", apply, methods=["POST"]),
            Route("/v1/words", say, methods=["POST"]),
            Route("/v1/backups", backups, methods=["GET", "POST"]),
            Route("/v1/backups/forgotten", forget, methods=["POST"]),
            Route("/v1/occurrences", occurrences, methods=["POST"]),
            Route("/v1/rollouts", rollouts),
            Route("/v1/rollouts/{number:int}", rollout),
            Route("/v1/rollouts/acts", act, methods=["POST"]),
            Route("/v1/rollouts/again", again, methods=["POST"]),
            Route("/v1/rollouts/latest/events", follow),
        ],
        exception_handlers={
            RefusedError: _refused,
            TransientError: _unavailable,
            PermanentError: _unavailable,
        },
    )


def peer(request: Request) -> str:
    """Who asks: the account at the other end of the socket, as the kernel has it."""
    # `peer_protocol` says so in place of an address.
    return "unknown" if request.client is None else f"{request.client.host} ({request.client.port})"


def _limit(request: Request) -> int:
    return max(1, min(_number(request.query_params.get("limit", "100")), LIMIT_MAX))


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise RefusedError(messages.Problem(code="bad-request", message=f"`{text}` is no number"))
    return int(text)


async def _body(request: Request, kind: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(await request.body(), type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RefusedError(
            messages.Problem(code="bad-request", message=f"the request cannot be read: {error}")
        ) from error


async def _lines(
    events: AsyncIterator[messages.Event], closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """A line for each; an empty one where there is nothing to say for a while."""
    coming = asyncio.ensure_future(_following(events))
    closed = asyncio.ensure_future(closing.wait())
    try:
        while not closing.is_set():
            done, _ = await asyncio.wait(
                {coming, closed}, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                yield b"\n"
            if coming not in done:
                continue
            event = coming.result()
            if event is None:
                return
            yield msgspec.json.encode(event) + b"\n"
            coming = asyncio.ensure_future(_following(events))
    finally:
        coming.cancel()
        closed.cancel()


async def _following(events: AsyncIterator[messages.Event]) -> messages.Event | None:
    return await anext(events, None)


def _answer(message: msgspec.Struct) -> Response:
    return Response(messages.encode(message), media_type=JSON)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return Response(messages.encode(error.problem), status_code=409, media_type=JSON)


async def _unavailable(_: Request, error: Exception) -> Response:
    problem = messages.Problem(code="unavailable", message=str(error))
    return Response(messages.encode(problem), status_code=503, media_type=JSON)
