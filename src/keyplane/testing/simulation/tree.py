"""A fleet's text in memory: read, planned and packed without a disk."""

import hashlib
from collections.abc import Callable, Collection, Mapping

from keyplane.documents import reading
from keyplane.documents.evaluation import Call, Fault, Value
from keyplane.documents.text import Unreadable
from keyplane.model.names import MachineName
from keyplane.parts import by_facts
from keyplane.parts.control_messages import Text
from keyplane.parts.planning import Base, Planned, Planning
from keyplane.ports.inventory import StoredPlan
from keyplane.ports.store import Pack


class TextTree:
    """Files by path, read as `documents.reading.Tree`. An archive is the digest of its listing."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def names(self, folder: str) -> tuple[str, ...]:
        start = f"{folder.rstrip('/')}/" if folder else ""
        below = (path[len(start) :] for path in self._files if path.startswith(start))
        return tuple(sorted({path.split("/")[0] for path in below}))

    def read(self, path: str) -> bytes | Unreadable | None:
        return self._files.get(path)

    def shipped(self, folder: str, path: str) -> bytes | Unreadable:
        return self._files.get(f"{folder}/{path}", Unreadable(f"there is no file {path}"))

    def digest(self, folder: str, path: str, without: Collection[str] = ()) -> str | Unreadable:
        packed = self.packed(folder, path, without)
        return f"sha256-{hashlib.sha256(packed).hexdigest()}" if packed else Unreadable("empty")

    def packed(self, folder: str, path: str, without: Collection[str] = ()) -> bytes:
        start = f"{folder}/{path}/"
        below = sorted(each[len(start) :] for each in self._files if each.startswith(start))
        return b"".join(
            f"{each}\0".encode() + self._files[start + each]
            for each in below
            if each not in without
        )


class RememberedPlanning(Planning):
    """Plans what it planned before from the same as before only once.

    The planner is pure, and most of the time of a run would be its.
    """

    def __init__(self) -> None:
        super().__init__(read=self._read_once, archive=archive)
        self._readings: dict[bytes, reading.Reading] = {}
        self._plans: dict[object, Planned] = {}

    def forget(self) -> None:
        """The numbers of rollouts begin again: what was planned says nothing any more."""
        self._plans.clear()

    def plan(  # noqa: PLR0913, PLR0917  # as its base has it
        self,
        text: Text,
        target: StoredPlan | None,
        base: Base,
        known: Collection[MachineName],
        facts: by_facts.Known,
        cordoned: Mapping[str, bool] | None = None,
    ) -> Planned:
        generation = None if target is None else target.plan.generation
        # How far the last rollout has come says what the base is made of.
        said = tuple((name, facts[name].planned_digest) for name in sorted(facts))
        asked = (_digest(text.files), generation, base.seen, frozenset(known), said, repr(cordoned))
        if asked not in self._plans:
            self._plans[asked] = super().plan(text, target, base, known, facts, cordoned)
        return self._plans[asked]

    def _read_once(self, files: Mapping[str, bytes]) -> reading.Reading:
        digest = _digest(files)
        if digest not in self._readings:
            self._readings[digest] = reading.read(TextTree(files), {}, _no_starlark)
        return self._readings[digest]


def _digest(files: Mapping[str, bytes]) -> bytes:
    return hashlib.sha256(repr(sorted(files.items())).encode()).digest()


def archive(files: Mapping[str, bytes], folder: str, path: str) -> Pack:
    def send(sink: Callable[[bytes], object]) -> None:
        sink(TextTree(files).packed(folder, path))

    return send


def _no_starlark(call: Call) -> Value | Fault:
    raise AssertionError(f"{call.file}: no document of the simulation is computed")
