"""A unit that says a value waits for an agent that is about to listen."""

import threading
import time
from pathlib import Path

import pytest

from keyplane.parts import publish_client, unix_socket


def test_an_agent_that_listens_later_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent starts a unit and its socket at the same time."""
    place = tmp_path / "socket"
    monkeypatch.setenv(publish_client.VARIABLE, str(place))
    monkeypatch.delenv("KEYPLANE_ROOT", raising=False)
    heard: list[bytes] = []

    def listen() -> None:
        time.sleep(0.3)
        with unix_socket.listen(place) as server:
            server.settimeout(60)
            client, _ = server.accept()
            with client, client.makefile("rb") as stream:
                while heard[-1:] not in ([b"\r\n"], [b""]):
                    heard.append(stream.readline())
                heard.append(stream.read(1))
                client.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    thread = threading.Thread(target=listen)
    thread.start()
    monkeypatch.setattr(publish_client, "COMES_S", 60.0)
    monkeypatch.setattr(publish_client, "TIMEOUT_S", 60.0)
    publish_client.publish("size", "1")
    thread.join()
    assert heard[0].startswith(b"PUT /size ")
    assert heard[-1] == b"1"


def test_an_agent_that_never_listens_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(publish_client.VARIABLE, str(tmp_path / "socket"))
    monkeypatch.delenv("KEYPLANE_ROOT", raising=False)
    monkeypatch.setattr(publish_client, "COMES_S", 0.1)
    with pytest.raises(publish_client.PublishError, match="no agent takes values"):
        publish_client.publish("size", "1")
