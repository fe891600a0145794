"""What a shim is told: a unit's spec as arguments and environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keyplane.adapters.linux import accounts, leftovers, limits
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.model.host import ProcessSpec

LOG_BYTES_MAX = 10 * 2**20
LOGS_KEPT = 3
"""Rotated logs beside the one that is written: 40 MiB a unit, some days of a talkative one."""

_PASSED = "KEYPLANE_PASSED_"
_LOADER = ("LD_", "GLIBC_", "MALLOC_")
"""Variables that a dynamically linked shim would obey itself: they are passed under a prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How a machine's units see its files."""

    state: StateRoot
    private_roots: bool
    """Declared paths stand under the state root, and in each unit's own view in their place."""
    environment: Mapping[str, str]
    """What every unit has if it does not say otherwise: `PATH`, for one."""


def environment(placement: Placement, spec: ProcessSpec, mark: Path) -> dict[str, str]:
    account = _account(spec)
    ours = {} if account is None else account.environment
    variables = {**placement.environment, **ours, leftovers.RUN_MARK: str(mark), **spec.env}
    return {
        (_PASSED + name if name.startswith(_LOADER) else name): value
        for name, value in variables.items()
    }


def supervised(placement: Placement, spec: ProcessSpec, directory: Path) -> list[str]:
    """Arguments of the shim that holds the unit's lock and log."""
    kept = limits.keep(limits.parse(spec.limits), directory)
    log = placement.state.log(spec.entry, spec.unit)
    arguments = ["--run", str(directory), "--log", str(log)]
    arguments += ["--log-max", str(LOG_BYTES_MAX), "--log-keep", str(LOGS_KEPT)]
    for group in kept.groups:
        arguments += ["--cgroup", str(group)]
    if kept.memory is not None:
        arguments += ["--memory", str(kept.memory)]
    for note in (*_account_notes(spec), *kept.notes):
        arguments += ["--note", note]
    return [*arguments, *_view(placement, spec, directory), "--", *spec.command]


def once(
    placement: Placement, spec: ProcessSpec, command: tuple[str, ...], timeout_ms: int
) -> list[str]:
    """Arguments of a shim that runs a command as the unit would, and kills it at the timeout."""
    view = _view(placement, spec, placement.state.run)
    return ["--timeout", str(timeout_ms), *view, "--", *command]


def _account(spec: ProcessSpec) -> accounts.Account | None:
    """Whom to become; None to stay as we are."""
    if not accounts.is_root():
        return accounts.own_account()
    return None if spec.user is None else accounts.account(spec.user)


def _account_notes(spec: ProcessSpec) -> tuple[str, ...]:
    if spec.user is None or accounts.is_root():
        return ()
    own = accounts.own_account().name
    if spec.user == own:
        return ()
    return (f"runs as {own}, not as {spec.user}: the agent is not root",)


def _view(placement: Placement, spec: ProcessSpec, mountpoint: Path) -> list[str]:
    arguments: list[str] = []
    account = _account(spec)
    if account is not None and accounts.is_root():
        arguments += ["--uid", str(account.uid), "--gid", str(account.gid)]
        arguments += ["--groups", ",".join(str(group) for group in account.groups)]
    if _has_view(placement, spec):
        arguments += ["--state", str(placement.state.path), "--mountpoint", str(mountpoint)]
        for path in sorted(spec.paths):
            arguments += ["--path", path]
    seen, bare = _working_directory(placement, spec)
    if seen is not None:
        arguments += ["--cwd", seen, "--bare-cwd", bare or seen]
    return arguments


def _has_view(placement: Placement, spec: ProcessSpec) -> bool:
    """A unit that has nothing to be shown sees the host: its start is half as long."""
    return placement.private_roots and bool(spec.paths or spec.archive)


def _working_directory(placement: Placement, spec: ProcessSpec) -> tuple[str | None, str | None]:
    """As the unit sees it in a private root, and where it is without one."""
    state = placement.state
    place = spec.working_directory
    if spec.archive is not None and not (place or "").startswith("/"):
        archive = state.artifacts / spec.archive
        bare = archive if place is None else archive / place
        if not placement.private_roots:
            return str(bare), str(bare)
        return str(Path("/.keyplane/artifacts") / bare.relative_to(state.artifacts)), str(bare)
    if place is None or not _has_view(placement, spec):
        return place, place
    declared = any(Path(place).is_relative_to(path) for path in spec.paths)
    return place, f"{state.root}{place}" if declared else place
