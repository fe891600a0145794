"""Each cell of principal × subject, and attacks, tried against a real server with bare clients.

Each refusal is shown to be the permissions' doing: without them the same act succeeds.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors
import pytest
from nats.js.api import ConsumerConfig, StreamConfig

from keyplane.adapters.nats import keys, subjects
from keyplane.adapters.nats.controller_bus import NatsControllerBus
from keyplane.adapters.nats.permissions import Controller, Machine, Principal
from keyplane.adapters.nats.server import EmbeddedServer
from keyplane.model.names import MachineName
from keyplane.ports.bus import BusServerError
from tests.contract.bus_world import ALPHA, BETA, BUSY_S, Fleet, Raw, raw_client, tampered_server

CONTROLLER = Controller()
MACHINE = Machine(ALPHA)

OWN, READ, HIDDEN = (
    "alpha.vpn.node.peer.address",
    "beta.vpn.node.peer.address",
    "beta.vault.main.door.code",
)
VALUES = (OWN, READ, HIDDEN, "alpha.vpn.node.peer.other")
"""What alpha says, what it reads, what of beta's it does not read, and one that nobody declared."""

SUBJECTS = [
    *(
        f"kp.{kind}.{name}"
        for kind in ("ask", "report", "facts", "beat", "hint")
        for name in (ALPHA, BETA)
    ),
    *(f"kp.{kind}.*" for kind in ("ask", "report", "facts", "beat", "hint")),
    "kp.ask.alpha.more",
    "kp.other",
    "_INBOX.alpha.x",
    "_INBOX.alpha.x.y",
    "_INBOX.beta.x",
    "_INBOX.CONTROLLER.x",
    "_INBOX.alpha",
    "_INBOX.>",
    "kp.>",
    ">",
    "$JS.API.INFO",
    "$JS.API.STREAM.CREATE.S",
    "$JS.API.STREAM.PURGE.S",
    "$JS.API.CONSUMER.CREATE.S.c",
    "$JS.API.CONSUMER.MSG.NEXT.S.c",
    "$JS.API.DIRECT.GET.S",
    "$JS.API.>",
    "$JS.ACK.S.c.1",
    "$KV.B.key",
    *(f"$KV.DYN.{value}" for value in VALUES),
    *(f"$JS.API.DIRECT.GET.KV_DYN.$KV.DYN.{value}" for value in VALUES),
    "$KV.DYN.>",
    "$KV.DYN.beta.vpn.node.peer.*",
    "$JS.API.DIRECT.GET.KV_DYN",
    *(f"$JS.API.STREAM.{act}.KV_DYN" for act in ("CREATE", "UPDATE", "INFO", "PURGE", "DELETE")),
    "$JS.API.STREAM.MSG.GET.KV_DYN",
    "$JS.API.STREAM.MSG.DELETE.KV_DYN",
    "$JS.API.CONSUMER.CREATE.KV_DYN",
    "$O.B.C.x",
    "$SYS.REQ.SERVER.PING",
    "$SYS.>",
]

MAY_PUBLISH: dict[Principal, set[str]] = {
    MACHINE: {
        "kp.ask.alpha",
        "kp.report.alpha",
        "kp.facts.alpha",
        "kp.beat.alpha",
        f"$KV.DYN.{OWN}",
        f"$JS.API.DIRECT.GET.KV_DYN.$KV.DYN.{READ}",
    },
    CONTROLLER: {
        "kp.hint.alpha",
        "kp.hint.beta",
        "_INBOX.alpha.x",
        "_INBOX.alpha.x.y",
        "_INBOX.beta.x",
        "_INBOX.CONTROLLER.x",
        "$JS.API.STREAM.CREATE.KV_DYN",
        "$JS.API.STREAM.UPDATE.KV_DYN",
    },
}
MAY_SUBSCRIBE: dict[Principal, set[str]] = {
    MACHINE: {"kp.hint.alpha", "_INBOX.alpha.x", "_INBOX.alpha.x.y", f"$KV.DYN.{READ}"},
    CONTROLLER: {
        *(
            f"kp.{kind}.{who}"
            for kind in ("ask", "report", "facts", "beat")
            for who in ("alpha", "beta")
        ),
        *(f"kp.{kind}.*" for kind in ("ask", "report", "facts", "beat")),
        "_INBOX.CONTROLLER.x",
    },
}


def is_pattern(subject: str) -> bool:
    return subject.endswith(("*", ">"))


def instance_of(subject: str) -> str:
    """A subject that the pattern matches, and the test's own principals do not listen at."""
    return subject.replace("*", "gamma").replace(">", "one.two")


@dataclass
class Scene:
    """A server with a controller at work, bare clients of both machines, and a watcher."""

    url: str
    fleet: Fleet
    alpha: Raw
    beta: Raw
    watcher: Raw
    """May do everything: it prepares, and sees what really came about."""
    recorded: list[tuple[MachineName, bytes]] = field(default_factory=list)


@asynccontextmanager
async def scene(root: Path, *, permitted: bool) -> AsyncIterator[Scene]:
    """`permitted` keeps the permissions that we compose; else everybody may do everything."""
    fleet = Fleet(root)
    watcher_key = keys.ensure_bus_key(root / "keys" / "watcher")

    def change(configuration: dict[str, Any]) -> None:
        users = configuration["authorization"]["users"]
        if not permitted:
            for user in users:
                del user["permissions"]
        users.append({"nkey": watcher_key.public})

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(tampered_server(fleet, change))
        clients = [
            await stack.enter_async_context(raw_client(url, seed))
            for seed in (fleet.seed(Machine(ALPHA)), fleet.seed(Machine(BETA)), watcher_key.seed)
        ]
        alpha, beta, watcher = clients
        made = Scene(url, fleet, alpha, beta, watcher)
        controller = NatsControllerBus(seed=fleet.seed(CONTROLLER), locate=lambda: url)

        async def on_ask(machine: MachineName, payload: bytes) -> bytes:
            return b"SECRET of " + machine.encode()

        async def on_report(machine: MachineName, payload: bytes) -> None:
            made.recorded.append((machine, payload))

        async def on_beat(machine: MachineName, payload: bytes) -> None:
            pass

        serving = asyncio.create_task(
            controller.serve(
                on_ask=on_ask, on_report=on_report, on_facts=on_report, on_beat=on_beat
            )
        )
        try:
            await made.beta.subscribe("kp.hint.beta")
            await made.beta.subscribe("_INBOX.beta.>")
            await until_served(made)
            yield made
        finally:
            await controller.close()
            await serving


async def until_served(made: Scene) -> None:
    """Facts are subscribed to after asks and reports: once some are recorded, all are served."""
    async with asyncio.timeout(60):
        while not made.recorded:
            await made.beta.publish("kp.facts.beta", b"", reply="_INBOX.beta.ready")
    made.beta.received.clear()
    made.recorded.clear()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path, permitted=True) as made:
        yield made


@pytest.mark.parametrize("principal", [MACHINE, CONTROLLER], ids=["machine", "controller"])
async def test_publish_cells(stage: Scene, principal: Principal) -> None:
    """What is allowed arrives; all else is refused with the subject's name, and does not."""
    await stage.watcher.subscribe(">")
    async with raw_client(stage.url, stage.fleet.seed(principal)) as raw:
        arrived: set[str] = set()
        for subject in SUBJECTS:
            if is_pattern(subject):
                continue
            raw.violations.clear()
            token = f"cell {subject}".encode()
            await raw.publish(subject, token)
            came = await stage.watcher.saw(lambda message, token=token: message.data == token)
            refused = f'for publish to "{subject.lower()}"' in " ".join(raw.violations)
            assert came is not refused, subject
            if came:
                arrived.add(subject)
    assert arrived == MAY_PUBLISH[principal]


@pytest.mark.parametrize("principal", [MACHINE, CONTROLLER], ids=["machine", "controller"])
async def test_subscribe_cells(stage: Scene, principal: Principal) -> None:
    """What is allowed is delivered; all else is refused with the subject's name, and is not."""
    delivered: set[str] = set()
    for subject in SUBJECTS:
        for queue in ("", "controller"):
            async with raw_client(stage.url, stage.fleet.seed(principal)) as raw:
                await raw.subscribe(subject, queue=queue)
                token = f"cell {subject} {queue}".encode()
                for _ in range(20 if queue else 1):  # a queue gives its own members some of them
                    await stage.watcher.client.publish(instance_of(subject), token)
                await stage.watcher.settle()
                came = await raw.saw(lambda message, token=token: message.data == token)
                refused = f'for subscription to "{subject.lower()}"' in " ".join(raw.violations)
                assert came is not refused, subject
                assert came is (subject in MAY_SUBSCRIBE[principal]), (subject, queue)
                if came:
                    delivered.add(subject)
    assert delivered == MAY_SUBSCRIBE[principal]


async def prepare_stream(stage: Scene) -> None:
    """A stream with one message and a pull consumer, as the build queue will have them."""
    context = stage.watcher.client.jetstream(timeout=BUSY_S)
    await context.add_stream(StreamConfig(name="WORK", subjects=["work.>"], allow_direct=True))
    await context.add_consumer("WORK", ConsumerConfig(durable_name="pull"))
    await context.publish("work.one", b"BOOTY")


async def asked(raw: Raw, subject: str, body: Any, reply: str) -> None:
    await raw.publish(
        subject, body if isinstance(body, bytes) else json.dumps(body).encode(), reply=reply
    )


async def has_booty(stage: Scene, raw: Raw) -> bool:
    """Whether the message of the stream came there, under whatever subject."""
    return await came(
        raw,
        lambda: any(b"BOOTY" in message.data for message in raw.received),
        refused=stage.alpha,
    )


async def came(raw: Raw, holds: Callable[[], bool], *, refused: Raw) -> bool:
    """Whether it comes about: waited for, unless the server refused the act that would do it.

    Then it is looked for through a few round trips more; a refusal does not excuse a leak.
    """
    deadline = asyncio.get_running_loop().time() + 60
    while not refused.violations and asyncio.get_running_loop().time() < deadline:
        await raw.settle()
        if holds():
            return True
    for _ in range(5):
        await raw.settle()
    return holds()


async def consumer_that_delivers_to_another(stage: Scene) -> bool:
    await prepare_stream(stage)
    config = {"deliver_subject": "kp.hint.beta", "ack_policy": "none", "name": "evil"}
    body = {"stream_name": "WORK", "config": config, "action": ""}
    await asked(stage.alpha, "$JS.API.CONSUMER.CREATE.WORK.evil", body, "_INBOX.alpha.r")
    return await has_booty(stage, stage.beta)


async def durable_consumer_that_delivers_to_another(stage: Scene) -> bool:
    await prepare_stream(stage)
    config = {"deliver_subject": "kp.hint.beta", "ack_policy": "none", "durable_name": "evil"}
    body = {"stream_name": "WORK", "config": config}
    await asked(stage.alpha, "$JS.API.CONSUMER.DURABLE.CREATE.WORK.evil", body, "_INBOX.alpha.r")
    return await has_booty(stage, stage.beta)


async def pull_with_anothers_reply(stage: Scene) -> bool:
    await prepare_stream(stage)
    await asked(stage.alpha, "$JS.API.CONSUMER.MSG.NEXT.WORK.pull", b"1", "_INBOX.beta.stolen")
    return await has_booty(stage, stage.beta)


async def pull_of_its_own(stage: Scene) -> bool:
    await prepare_stream(stage)
    await stage.alpha.subscribe("_INBOX.alpha.>")
    await asked(stage.alpha, "$JS.API.CONSUMER.MSG.NEXT.WORK.pull", b"1", "_INBOX.alpha.stolen")
    return await has_booty(stage, stage.alpha)


async def direct_get(stage: Scene) -> bool:
    await prepare_stream(stage)
    await stage.alpha.subscribe("_INBOX.alpha.>")
    await asked(stage.alpha, "$JS.API.DIRECT.GET.WORK", {"seq": 1}, "_INBOX.alpha.r")
    return await has_booty(stage, stage.alpha)


async def direct_get_with_anothers_reply(stage: Scene) -> bool:
    await prepare_stream(stage)
    await asked(stage.alpha, "$JS.API.DIRECT.GET.WORK.work.one", b"", "_INBOX.beta.r")
    return await has_booty(stage, stage.beta)


async def stream_over_everybodys_reports(stage: Scene) -> bool:
    body = {"name": "EVIL", "subjects": ["kp.report.*"], "retention": "limits"}
    await told(stage, "$JS.API.STREAM.CREATE.EVIL", body)
    return await has_stream(stage, "EVIL")


async def bucket(stage: Scene) -> bool:
    body = {"name": "KV_EVIL", "subjects": ["$KV.EVIL.>"], "max_msgs_per_subject": 1}
    await told(stage, "$JS.API.STREAM.CREATE.KV_EVIL", body)
    return await has_stream(stage, "KV_EVIL")


async def purge(stage: Scene) -> bool:
    await prepare_stream(stage)
    await told(stage, "$JS.API.STREAM.PURGE.WORK", b"")
    information = await stage.watcher.client.jetstream(timeout=BUSY_S).stream_info("WORK")
    return information.state.messages == 0


async def stream_deletion(stage: Scene) -> bool:
    await prepare_stream(stage)
    await told(stage, "$JS.API.STREAM.DELETE.WORK", b"")
    return not await has_stream(stage, "WORK")


async def told(stage: Scene, subject: str, body: Any) -> None:
    """The server was told to do it, and did or refused."""
    await stage.alpha.subscribe("_INBOX.alpha.>")
    await asked(stage.alpha, subject, body, "_INBOX.alpha.r")
    await came(stage.alpha, lambda: bool(stage.alpha.received), refused=stage.alpha)


async def has_stream(stage: Scene, name: str) -> bool:
    try:
        await stage.watcher.client.jetstream(timeout=BUSY_S).stream_info(name)
    except nats.js.errors.NotFoundError:
        return False
    return True


async def write_into_a_stream(stage: Scene) -> bool:
    await prepare_stream(stage)
    await told(stage, "work.two", b"forged")
    information = await stage.watcher.client.jetstream(timeout=BUSY_S).stream_info("WORK")
    return information.state.messages == 2


async def listen_to(stage: Scene, subject: str) -> bool:
    await stage.alpha.subscribe(subject)
    await stage.watcher.publish("_INBOX.beta.answer", b"BOOTY")
    await stage.watcher.publish("kp.hint.beta", b"BOOTY")
    return await came(
        stage.alpha,
        lambda: any(b"BOOTY" in message.data for message in stage.alpha.received),
        refused=stage.alpha,
    )


async def listen_to_everything(stage: Scene) -> bool:
    return await listen_to(stage, ">")


async def listen_to_all_of_ours(stage: Scene) -> bool:
    return await listen_to(stage, "kp.>")


async def listen_to_all_inboxes(stage: Scene) -> bool:
    return await listen_to(stage, "_INBOX.>")


async def listen_to_all_machines_inboxes(stage: Scene) -> bool:
    return await listen_to(stage, "_INBOX.*.answer")


async def take_asks_in_the_controllers_place(stage: Scene) -> bool:
    await stage.alpha.subscribe("kp.ask.*", queue="controller")
    for _ in range(30):
        await stage.beta.client.publish("kp.ask.beta", b"", reply="_INBOX.beta.r")
    await stage.beta.settle()
    return await came(stage.alpha, lambda: bool(stage.alpha.received), refused=stage.alpha)


async def report_as_another(stage: Scene) -> bool:
    await asked(stage.alpha, "kp.report.beta", b"forged", "_INBOX.beta.r")
    return await came(stage.alpha, lambda: (BETA, b"forged") in stage.recorded, refused=stage.alpha)


async def tell_facts_of_another(stage: Scene) -> bool:
    await asked(stage.alpha, "kp.facts.beta", b"forged facts", "_INBOX.beta.r")
    return await came(
        stage.alpha, lambda: (BETA, b"forged facts") in stage.recorded, refused=stage.alpha
    )


async def hint_as_the_controller(stage: Scene) -> bool:
    await stage.alpha.publish("kp.hint.beta", b"")
    return await came(
        stage.beta,
        lambda: any(message.subject == "kp.hint.beta" for message in stage.beta.received),
        refused=stage.alpha,
    )


async def answer_as_the_controller(stage: Scene) -> bool:
    await stage.alpha.publish("_INBOX.beta.forged", b"")
    return await came(
        stage.beta,
        lambda: any(message.subject == "_INBOX.beta.forged" for message in stage.beta.received),
        refused=stage.alpha,
    )


async def trace_to_anothers_subject(stage: Scene) -> bool:
    """The server writes a trace of a message wherever its header says."""
    headers = {"Nats-Trace-Dest": "_INBOX.beta.trace"}
    await stage.alpha.publish("kp.beat.alpha", b"", headers=headers)
    return await came(
        stage.beta,
        lambda: any(message.subject == "_INBOX.beta.trace" for message in stage.beta.received),
        refused=stage.alpha,
    )


ATTACKS = [
    consumer_that_delivers_to_another,
    durable_consumer_that_delivers_to_another,
    pull_with_anothers_reply,
    pull_of_its_own,
    direct_get,
    direct_get_with_anothers_reply,
    stream_over_everybodys_reports,
    bucket,
    purge,
    stream_deletion,
    write_into_a_stream,
    listen_to_everything,
    listen_to_all_of_ours,
    listen_to_all_inboxes,
    listen_to_all_machines_inboxes,
    take_asks_in_the_controllers_place,
    report_as_another,
    tell_facts_of_another,
    hint_as_the_controller,
    answer_as_the_controller,
    trace_to_anothers_subject,
]
Attack = Callable[[Scene], Awaitable[bool]]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
async def test_attack(tmp_path: Path, attack: Attack) -> None:
    """Fails with our permissions; without them the very same succeeds."""
    async with scene(tmp_path / "guarded", permitted=True) as stage:
        assert not await attack(stage)
    async with scene(tmp_path / "open", permitted=False) as stage:
        assert await attack(stage)


@pytest.mark.parametrize("kind", ["ask", "report"])
@pytest.mark.parametrize("reply", ["kp.hint.beta", "_INBOX.beta.x"])
async def test_a_request_with_anothers_reply_is_not_answered(
    stage: Scene, monkeypatch: pytest.MonkeyPatch, kind: str, reply: str
) -> None:
    """A machine cannot have the controller write where it may not write itself.

    The server does not look at reply subjects: the controller does, and this fails if it stops.
    """

    async def reaches_beta(number: int) -> bool:
        """Looked for once the controller has answered a request that came after."""
        stage.beta.received.clear()
        await asked(stage.alpha, f"kp.{kind}.alpha", b"stolen", reply)
        last = f"_INBOX.alpha.{number}"
        await asked(stage.alpha, f"kp.{kind}.alpha", b"", last)
        await came(
            stage.alpha,
            lambda: any(message.subject == last for message in stage.alpha.received),
            refused=stage.alpha,
        )
        return await stage.beta.saw(lambda message: message.subject == reply)

    await stage.alpha.subscribe("_INBOX.alpha.>")
    assert not await reaches_beta(1)
    assert (ALPHA, b"stolen") not in stage.recorded
    monkeypatch.setattr(subjects, "is_answerable", lambda reply, machine: True)
    assert await reaches_beta(2)


@pytest.mark.parametrize("reply", ["kp.hint.beta", "_INBOX.beta.x"])
async def test_nobody_served_is_told_to_the_asker_alone(tmp_path: Path, reply: str) -> None:
    """The server's own word that nobody listens does not go to a reply of another's either."""
    async with AsyncExitStack() as stack:
        fleet = Fleet(tmp_path)
        url = await stack.enter_async_context(tampered_server(fleet, lambda _: None))
        alpha, beta = [
            await stack.enter_async_context(raw_client(url, fleet.seed(Machine(machine))))
            for machine in (ALPHA, BETA)
        ]
        await beta.subscribe("kp.hint.beta")
        await beta.subscribe("_INBOX.beta.>")
        await alpha.subscribe("_INBOX.alpha.>")
        await asked(alpha, "kp.ask.alpha", b"", reply)
        await asked(alpha, "kp.ask.alpha", b"", "_INBOX.alpha.x")
        assert await came(alpha, lambda: len(alpha.received) == 1, refused=alpha)
        assert alpha.received[0].subject == "_INBOX.alpha.x"
        assert not await beta.saw(lambda _: True)


@pytest.mark.parametrize(
    ("reply", "answerable"),
    [
        ("_INBOX.alpha.x", True),
        ("_INBOX.alpha.x.y", True),
        ("_INBOX.alpha", False),
        ("_INBOX.alpha.", False),
        ("_INBOX.alpha..x", False),
        ("_INBOX.alpha.>", False),
        ("_INBOX.alpha.*.x", False),
        ("_INBOX.alphabet.x", False),
        ("_INBOX.beta.x", False),
        ("_INBOX.beta._INBOX.alpha.x", False),
        ("_inbox.alpha.x", False),
        ("kp.hint.alpha", False),
        ("", False),
    ],
)
def test_what_is_answerable(reply: str, answerable: bool) -> None:
    assert subjects.is_answerable(reply, ALPHA) is answerable


async def test_a_stranger_is_not_let_in(tmp_path: Path) -> None:
    """A key that the server was not told of, and no key at all."""
    fleet = Fleet(tmp_path)
    stranger = keys.ensure_bus_key(tmp_path / "stranger")

    async def is_let_in(url: str, seed: str | None) -> bool:
        try:
            async with raw_client(url, seed):  # type: ignore[arg-type]  # no key is tried too
                return True
        except (nats.errors.Error, OSError):
            return False

    async with tampered_server(fleet, lambda _: None) as url:
        assert await is_let_in(url, fleet.seed(MACHINE))
        assert not await is_let_in(url, stranger.seed)
        assert not await is_let_in(url, None)


def test_a_bus_without_users_is_refused(tmp_path: Path) -> None:
    """The server reads an empty list as letting everybody in."""
    with pytest.raises(BusServerError, match="let everybody in"):
        EmbeddedServer(directory=tmp_path).prepare([])
