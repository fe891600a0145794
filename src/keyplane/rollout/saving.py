"""The bytes of one state after another, of which only what is another is encoded anew.

Most of a state is what it began with, and what each machine said last: to encode all of it with
each step would cost the square of the machines.
"""

from dataclasses import fields

import msgspec

from keyplane.model.names import MachineName
from keyplane.rollout.state import VERSION, Seen, State

_STEADY = (
    *("before", "edges", "former", "gives", "guards", "keys", "refuges", "steps", "takes"),
    "unproven",
)
"""What a rollout mostly ends with as it began."""
_FIELDS = tuple(field.name for field in fields(State))


class Saving:
    """Of one rollout. What a state is made of is never changed in place, so the same is the same."""

    def __init__(self) -> None:
        self._steady: dict[str, tuple[object, msgspec.Raw]] = {}
        self._seen: dict[MachineName, tuple[Seen, msgspec.Raw]] = {}

    def encode(self, state: State) -> bytes:
        """Exactly what `state.encode` gives."""
        parts: dict[str, object] = {name: getattr(state, name) for name in _FIELDS}
        for name in _STEADY:
            parts[name] = self._kept(name, parts[name])
        parts["seen"] = {name: self._told(name, said) for name, said in state.seen.items()}
        return msgspec.json.encode({"version": VERSION, "state": parts}, order="sorted")

    def _kept(self, name: str, value: object) -> msgspec.Raw:
        known = self._steady.get(name)
        if known is None or known[0] is not value:
            known = self._steady[name] = (value, _raw(value))
        return known[1]

    def _told(self, machine: MachineName, said: Seen) -> msgspec.Raw:
        known = self._seen.get(machine)
        if known is None or known[0] is not said:
            known = self._seen[machine] = (said, _raw(said))
        return known[1]


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value, order="sorted"))
