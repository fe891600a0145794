"""Keys on disk: made once, kept, private."""

import stat
from pathlib import Path

import pytest

from keyplane.adapters.nats import keys
from keyplane.ports.bus import BusKeyError

MAKERS = [keys.ensure_bus_key, keys.ensure_signing_key]


@pytest.mark.parametrize("ensure", MAKERS)
def test_a_key_is_made_once(tmp_path: Path, ensure) -> None:
    """In a private file of a private directory, with nothing left beside it."""
    path = tmp_path / "keys" / "mine"
    made = ensure(path)
    assert ensure(path) == made
    assert ensure(tmp_path / "keys" / "other") != made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(each.name for each in path.parent.iterdir()) == ["mine", "other"]


@pytest.mark.parametrize("ensure", MAKERS)
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, ensure) -> None:
    """With the command that helps, if nobody read it yet."""
    path = tmp_path / "mine"
    ensure(path)
    path.chmod(0o640)
    with pytest.raises(BusKeyError, match=f"open to others .mode 0640.: chmod 600 {path}"):
        ensure(path)


@pytest.mark.parametrize("ensure", MAKERS)
@pytest.mark.parametrize("content", [b"", b"torn", b"\xff\x00", b"SU" + b"A" * 56, b"00" * 31])
def test_a_torn_key_is_said(tmp_path: Path, ensure, content: bytes) -> None:
    """And is never replaced: whoever knows its other half would be locked out."""
    path = tmp_path / "mine"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(BusKeyError, match=str(path)):
        ensure(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("ensure", MAKERS)
def test_a_place_that_cannot_be_written_is_said(tmp_path: Path, ensure) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BusKeyError, match=r"Not a directory|File exists"):
        ensure(tmp_path / "file" / "mine")


def test_a_verify_key_is_read_as_it_was_printed(tmp_path: Path) -> None:
    key = keys.ensure_signing_key(tmp_path / "mine").verify_key
    assert keys.parse_verify_key(keys.print_verify_key(key)) == key
    with pytest.raises(BusKeyError, match="64 hex digits"):
        keys.parse_verify_key("abc")
