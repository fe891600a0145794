"""All of a fleet is killed while an archive is packed; `keyplane up` then goes on from there."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from keyplane.adapters.oci.layout import Layout
from keyplane.model.names import Digest
from tests.e2e import code_fleet
from tests.e2e.fleet import BUSY, Fleet, Network, Ran, wait_for
from tests.e2e.test_boundaries import HOOK
from tests.e2e.test_store import layer_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOISE = 3_000_000
"""Bytes of an archive's largest file: it is packed in several pieces."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Not up yet."""
    directory = tmp_path_factory.mktemp("packed") / "fleet"
    source = code_fleet.write(directory)
    (source / "noise").write_bytes(random.Random(1).randbytes(NOISE))
    network = Network()
    fleet = Fleet(directory, network)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HOOK))
        patch.setenv("KEYPLANE_TEST_BOUNDARIES", str(directory))
        try:
            yield fleet
        finally:
            try:
                fleet.close()
            finally:
                network.close()


def store(fleet: Fleet) -> Path:
    return fleet.directory / ".keyplane" / "store"


def halves(fleet: Fleet) -> list[Path]:
    """Temporary files of packers."""
    return list((store(fleet) / "tmp").iterdir())


def blobs(fleet: Fleet) -> set[str]:
    return {path.name for path in (store(fleet) / "blobs" / "sha256").iterdir()}


def named(fleet: Fleet) -> set[str]:
    """All blobs that are reached from the index."""
    layout = Layout(store(fleet))
    found = layout._reached_now()
    assert all(layout.blob(f"sha256:{digits}") for digits in found)
    return found


def killed(fleet: Fleet, boundary: str, *words: str, victims: str = "all") -> Ran:
    """Run a command, in the midst of which all of the fleet is killed, the command too."""
    armed = fleet.directory / "controller.armed"
    draft = armed.with_suffix(".new")
    draft.write_text(f"{boundary}\n{victims}")
    draft.replace(armed)
    child = fleet.start(*words)
    out, err = child.communicate(timeout=300)
    assert not armed.exists(), f"{boundary} was not come to\n{out}\n{err}"
    if victims == "all":
        wait_for(lambda: not parts(fleet), "all parts are dead")
    return Ran(child.returncode, out, BUSY.sub("", err))


def parts(fleet: Fleet) -> dict[int, str]:
    return {pid: line for pid, line in fleet.holders().items() if "keyplane.parts" in line}


def works(fleet: Fleet, version: str) -> None:
    """One process runs of the whole archive, and the store holds what it names, whole."""
    wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, "all is well")
    ((_, (pid, _)),) = fleet.start_ids().items()
    content = Path(f"/proc/{pid}/cwd")
    assert version in (content / "run.sh").read_text()
    assert (content / "noise").stat().st_size == NOISE
    assert halves(fleet) == []
    assert blobs(fleet) == named(fleet)
    archives = fleet.run("collection", "--json").json["archives"]
    layout = Layout(store(fleet))
    assert all(layer_of(layout, Digest(each["digest"])).stat().st_size for each in archives)
    assert content.resolve().name in {each["digest"] for each in archives}


def test_the_first_up_is_killed_in_the_midst_of_a_pack(fleet: Fleet) -> None:
    """Half an archive is there, and nothing names it; `up` packs it anew, and nothing is left."""
    killed(fleet, "after write\n2", "up", ".", "--yes")
    assert len(halves(fleet)) == 1
    assert blobs(fleet) == set()
    assert not (store(fleet) / "index.json").exists()
    assert fleet.run("status", exit_status=None).exit != 0

    fleet.run("up", ".", "--yes")

    works(fleet, "version 0")


def test_what_a_killed_apply_had_packed_and_nobody_wants_any_more_goes(fleet: Fleet) -> None:
    """Its layer was in its place already; the next life takes it away, and packs nothing."""
    before, process = blobs(fleet), fleet.start_ids()
    fleet.edit("modules/code/src/run.sh", "version 0", "version 1")
    killed(fleet, "after finish\n1", "apply", "--yes")
    assert len(blobs(fleet) - before) == 1
    fleet.edit("modules/code/src/run.sh", "version 1", "version 0")

    fleet.run("up", ".", "--yes")

    works(fleet, "version 0")
    assert blobs(fleet) == before
    assert fleet.start_ids() == process  # killed were the parts, not what they had started


def test_a_controller_that_dies_in_the_midst_of_a_pack_is_asked_again(fleet: Fleet) -> None:
    """By the one command that was waiting for it: its next life does all of it."""
    fleet.edit("modules/code/src/run.sh", "version 0", "version 2")
    ran = killed(fleet, "before write\n3", "apply", "--yes", victims="self")
    assert (ran.exit, ran.err.strip()) == (
        0,
        "the controller went away; asking it again once it is back",
    )
    works(fleet, "version 2")


def test_nothing_of_the_kill_is_left_in_the_machine_or_the_state(fleet: Fleet) -> None:
    state = fleet.directory / ".keyplane"
    left = [path for path in state.rglob("*") if path.suffix == ".new" or ".new-" in path.name]
    assert left == []
