"""All that was read of a fleet directory: what the planner plans from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from keyplane.model.diagnostic import Diagnostic
from keyplane.model.fleet import FactSnapshot, Fleet
from keyplane.model.interface import Interface
from keyplane.model.module import Json, Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """A fleet's documents, each problem of reading them a row.

    `shipped` and `artifacts` are filled by whoever reads the directory, from what the modules ask.
    """

    fleet: Fleet | None = None
    """None where the fleet document does not parse; the plan then has no entries."""
    modules: Mapping[str, Module] = field(default_factory=dict[str, Module])
    interfaces: Mapping[str, Interface] = field(default_factory=dict[str, Interface])
    facts: Mapping[str, FactSnapshot] = field(default_factory=dict[str, FactSnapshot])
    shipped: Mapping[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    """The bytes of each shipped file, by module name and path relative to the module."""
    artifacts: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The digest (`sha256-…`) of each artifact, by module name and artifact name. An archive's is
    that of its deterministic tar; another's is that of what it would be built from."""
    broken: frozenset[str] = frozenset()
    """Modules that are there but could not be read. A row says so already; an instance of one
    needs no second row."""
    starlark: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """For each module with an `impl`: the Starlark files that it may load, by path."""
    dropped: Mapping[str, Mapping[tuple[str, ...], Json]] = field(
        default_factory=dict[str, Mapping[tuple[str, ...], Json]]
    )
    """For each file: what stands in it and could not be read, by its path, as it is written. A row
    says so already; who names it needs no second row, as with `broken`."""
    diagnostics: tuple[Diagnostic, ...] = ()
