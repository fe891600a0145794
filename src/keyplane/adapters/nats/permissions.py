"""Who may touch which subjects. Everything that is not allowed here is refused by the server.

No machine may create anything by `$JS.API`: whoever can create a consumer can have it deliver to any
subject. It may ask for the last word of just the exports that its units read, and never of one that
it says itself: the answer goes to whatever subject the asker names, with bytes that the provider
chose.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, assert_never

from keyplane.adapters.nats import subjects
from keyplane.model import reaction
from keyplane.model.names import MachineName

LOGIN_S_MAX = 15
"""A client that has not said who it is by then is cut. The default of two seconds cuts honest ones
when thousands come back at once."""


@dataclass(frozen=True, slots=True)
class Controller:
    """All controllers of a control plane are one principal."""


@dataclass(frozen=True, slots=True)
class Machine:
    name: MachineName


Principal = Controller | Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The allowed subjects, each way; neither list is ever empty, as NATS reads that as all."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A principal, known to the server by its public NKEY."""

    principal: Principal
    public_key: str
    says: tuple[str, ...] = ()
    """The exports that a machine publishes."""
    reads: tuple[str, ...] = ()
    """The exports of other machines that its units read."""


def inbox_of(principal: Principal) -> str:
    match principal:
        case Controller():
            return subjects.CONTROLLER_INBOX
        case Machine(name):
            return subjects.inbox(name)
        case _:
            assert_never(principal)


def permissions_of(user: User) -> Permissions:
    principal = user.principal
    match principal:
        case Controller():
            return Permissions(
                publish=(
                    subjects.ALL_HINTS,
                    "_INBOX.*.>",
                    subjects.CREATE_BUCKET,
                    subjects.UPDATE_BUCKET,
                ),
                subscribe=(
                    subjects.ALL_ASKS,
                    subjects.ALL_REPORTS,
                    subjects.ALL_FACTS,
                    subjects.ALL_BEATS,
                    f"{subjects.CONTROLLER_INBOX}.>",
                ),
            )
        case Machine(name):
            foreign = [export for export in user.reads if export not in user.says]
            return Permissions(
                publish=(
                    subjects.ask(name),
                    subjects.report(name),
                    subjects.facts(name),
                    subjects.beat(name),
                    *_subjects(subjects.value, _own(name, user.says)),
                    *_subjects(subjects.stored_value, foreign),
                ),
                subscribe=(
                    subjects.hint(name),
                    f"{subjects.inbox(name)}.>",
                    *_subjects(subjects.value, foreign),
                ),
            )
        case _:
            assert_never(principal)


def _own(machine: MachineName, exports: Iterable[str]) -> list[str]:
    """Nobody says an export of another machine, whatever was asked for it."""
    return [export for export in exports if reaction.machine_of(export) == machine]


def _subjects(of: Callable[[str], str | None], exports: Iterable[str]) -> list[str]:
    found = (of(export) for export in exports)
    return sorted({subject for subject in found if subject is not None})


def authorization(users: tuple[User, ...]) -> dict[str, Any]:
    """The server's `authorization` block."""
    return {
        "timeout": LOGIN_S_MAX,
        "users": [
            {
                "nkey": user.public_key,
                "permissions": {
                    "publish": {"allow": list(allowed.publish)},
                    "subscribe": {"allow": list(allowed.subscribe)},
                },
            }
            for user in users
            for allowed in [permissions_of(user)]
        ],
    }
