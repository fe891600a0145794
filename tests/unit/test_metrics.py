"""What parts tell of themselves: in the format, under the names that are documented."""

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from keyplane import metrics
from keyplane.parts import metrics_client, metrics_socket
from keyplane.parts.state_dir import StateDir
from keyplane.ports.errors import TransientError
from tests.tidy import tree

ROW = re.compile(r"^\| `(keyplane_\w+)` \| (\w+) \| (.*?) \| (.+) \|$", re.MULTILINE)


def told(part: str) -> set[tuple[str, str, tuple[str, ...], str]]:
    """Name, type, labels and meaning of each metric that a part has."""
    found: set[tuple[str, str, tuple[str, ...], str]] = set()
    for metric in metrics.REGISTRIES[part]._collector_to_names:
        if hasattr(metric, "_labelnames"):
            (family,) = metric.describe()
            name = family.name + ("_total" if family.type == "counter" else "")
            found.add((name, family.type, metric._labelnames, family.documentation))
    return found


@pytest.mark.parametrize("part", metrics.REGISTRIES)
def test_every_metric_is_documented_and_no_other(part: str) -> None:
    text = (tree.ROOT / "docs" / "reference" / "metrics.md").read_text()
    section = text.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    rows = {
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)), what)
        for name, kind, labels, what in ROW.findall(section)
    }
    assert rows == told(part)
    assert rows


@pytest.mark.parametrize("part", metrics.REGISTRIES)
def test_names_keep_the_rules_of_prometheus(part: str) -> None:
    """Base units, `_total` for counters alone; every word a label or a name may be."""
    for name, kind, labels, what in told(part):
        assert re.fullmatch(r"keyplane_[a-z_]+", name)
        assert name.endswith("_total") == (kind == "counter")
        assert not re.search(r"_(ms|milliseconds|kb|mb|minutes)(_|$)", name)
        assert kind != "histogram" or name.endswith("_seconds")
        assert all(re.fullmatch(r"[a-z]+", label) for label in labels)
        assert what.endswith(".")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that stands still now and then."""
    monkeypatch.setattr(metrics_socket, "REQUEST_S", 60.0)
    monkeypatch.setattr(metrics_client, "TIMEOUT_S", 60.0)


async def test_a_socket_tells_what_was_measured_just_now(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    (tmp_path / "run").mkdir()
    looks = 0

    async def measure() -> None:
        nonlocal looks
        looks += 1
        metrics.part_up.labels('odd "name"\\').set(looks)

    serving = asyncio.create_task(
        metrics_socket.serve(state.metrics_socket("supervisor"), "supervisor", measure)
    )
    async with asyncio.timeout(60):
        while metrics_client.parts(state) != ["supervisor"]:
            await asyncio.sleep(0.01)
    for turn in (1, 2):
        text = await asyncio.to_thread(metrics_client.read, state, "supervisor")
        families = {each.name: each for each in text_string_to_metric_families(text)}
        (sample,) = families["keyplane_part_up"].samples
        assert (sample.labels, sample.value) == ({"child": 'odd "name"\\'}, turn)
        assert families["process_resident_memory_bytes"].samples[0].value > 1_000_000
    assert state.metrics_socket("supervisor").stat().st_mode & 0o077 == 0
    metrics.part_up.clear()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_a_part_that_cannot_measure_says_why(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    (tmp_path / "run").mkdir()

    async def measure() -> None:
        raise TransientError("the inventory is locked")

    path = state.metrics_socket("controller")
    serving = asyncio.create_task(metrics_socket.serve(path, "controller", measure))
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.01)
    with pytest.raises(metrics_client.PartSilentError, match="the inventory is locked"):
        await asyncio.to_thread(metrics_client.read, state, "controller")
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    with pytest.raises(metrics_client.PartSilentError, match="does not answer"):
        metrics_client.read(state, "agent:nobody")
