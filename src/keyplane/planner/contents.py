"""Which contents a kept plan names, counted so that each goes with the last that names it."""

from collections.abc import Iterable, Mapping

from keyplane.planner.program import Family
from keyplane.planner.resolve import Resolved


class Contents:
    def __init__(self, current: Mapping[str, bytes]) -> None:
        self._current = current
        self._counts: dict[str, int] = {}
        self._come: dict[str, bytes] = {}
        self._gone = False
        self._entries: dict[str, dict[str, tuple[str, ...]]] = {}
        """By role, then machine: the digests of what is its own."""

    def count(self, contents: Mapping[str, bytes]) -> None:
        """A step of planning names these."""
        for digest, content in contents.items():
            if digest not in self._counts:
                self._come[digest] = content
            self._counts[digest] = self._counts.get(digest, 0) + 1

    def drop(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self._counts[digest] -= 1
            if not self._counts[digest]:
                del self._counts[digest]
                self._gone = True

    def of_entries(self, family: Family, resolved: Resolved) -> None:
        """The entries of a family name these, in place of what they named before."""
        role = family.assignment.id
        if not resolved.contents and role not in self._entries:
            return
        its = self._entries.setdefault(role, {})
        for machine, closure, rest in zip(
            family.machines, resolved.closures, resolved.rests, strict=True
        ):
            named = (*closure.contents, *rest.contents)
            before = its.get(machine, ())
            if named != before:
                self.count(closure.contents)
                self.count(rest.contents)
                self.drop(before)
                its[machine] = named

    def current(self) -> Mapping[str, bytes]:
        """By digest; the same as the last time where nothing came or went."""
        if self._gone or self._come.keys() - self._current.keys():
            self._current = {
                digest: content
                for digest, content in {**self._current, **self._come}.items()
                if digest in self._counts
            }
        self._come = {}
        self._gone = False
        return self._current
