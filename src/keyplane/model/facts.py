"""What a machine says of itself, by name.

Some things are said as one list of names, as there are thousands of them: of each member a fact
can be read by its own name. `kernel.modules` holds what can be read as `kernel.module.NAME`.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

Json = Any

LISTED: Mapping[str, str] = {"kernel.module": "kernel.modules", "command": "commands"}
"""By the beginning of the facts of single members: the fact with the list of them."""


def said_in(fact: str) -> str:
    """The fact by which a machine says this one: itself, or the list in which it stands."""
    return LISTED.get(_split(fact)[0], fact)


class Facts(Mapping[str, Json]):
    """Facts as they are said; each member of a list can be looked up as a fact that is true.

    Where the list was said, one that is not in it is false: it was looked for.
    """

    __slots__ = ("_members", "_said")

    def __init__(self, said: Mapping[str, Json]) -> None:
        self._said = said
        self._members: dict[str, frozenset[str]] = {}

    def __getitem__(self, fact: str) -> Json:
        if fact in self._said:
            return self._said[fact]
        beginning, name = _split(fact)
        if not name or LISTED.get(beginning) not in self._said:
            raise KeyError(fact)
        return name in self._listed(LISTED[beginning])

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)

    def __contains__(self, fact: object) -> bool:
        return isinstance(fact, str) and self.get(fact) is not None

    def _listed(self, fact: str) -> frozenset[str]:
        if fact not in self._members:
            names: Json = self._said[fact]
            listed = cast("list[str]", names) if isinstance(names, list) else []
            self._members[fact] = frozenset(listed)
        return self._members[fact]


def digest(facts: Mapping[str, Json]) -> str:
    """Moves when any of them does."""
    return hashlib.sha256(msgspec.json.encode(dict(facts), order="sorted")).hexdigest()


def _split(fact: str) -> tuple[str, str]:
    """A fact of a member: what such facts begin with, and the member.

    A module's name has one spelling, with `_`.
    """
    for beginning in LISTED:
        if fact.startswith(f"{beginning}."):
            name = fact[len(beginning) + 1 :]
            return beginning, name.replace("-", "_") if beginning == "kernel.module" else name
    return "", ""
