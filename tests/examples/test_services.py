"""The game, the lobby and the page, each against what it really needs."""

import signal

import pytest

from tests.examples import arena
from tests.examples.arena import Machine

GRANTS = "/etc/keyplane-postgres/grants.json"
MAPS = "/etc/mygame/maps.json"


def start_game(machine: Machine, dsn: str) -> str:
    """Start the game server and give its address once it listens."""
    port = str(arena.free_port())
    env = {"ADDRESS": arena.ADDRESS, "PORT_GAME": port, "DB_DSN": dsn}
    machine.start("mygame", "python3", "-u", "server.py", "--slots", "32", env=env)
    url = f"http://{arena.ADDRESS}:{port}"
    arena.wait_for(lambda: arena.get(url + "/slots")[0] == 200, "the game server")
    return url


def test_the_game_runs_without_its_database(machine: Machine) -> None:
    """It answers what needs no database, and says that it is not healthy."""
    url = start_game(machine, f"postgresql://nobody@{arena.ADDRESS}:{arena.free_port()}/eu")
    assert arena.value(url + "/slots") == {"slots": 32}
    assert arena.get(url + "/health")[0] == 503
    assert arena.get(url + "/counter", data=b"")[0] == 503
    assert arena.get(url + "/nowhere")[0] == 404


def test_the_game_reads_its_maps_again_on_hup(machine: Machine) -> None:
    """The process stays the same; a file that is no JSON leaves the maps as they were."""
    machine.write(MAPS, (arena.ARENA / "modules/mygame/maps.json").read_text())
    url = start_game(machine, "")
    pid = arena.value(url + "/whoami")["pid"]
    assert "harbour" in arena.value(url + "/maps")["rotation"]
    machine.write(MAPS, '{"rotation": ["bridge"]}')
    machine.running[-1].send_signal(signal.SIGHUP)
    arena.wait_for(lambda: arena.value(url + "/maps") == {"rotation": ["bridge"]}, "new maps")
    machine.write(MAPS, "{")
    machine.running[-1].send_signal(signal.SIGHUP)
    arena.wait_for(lambda: "maps stay as they were" in machine.log(), "the refusal")
    assert arena.value(url + "/maps") == {"rotation": ["bridge"]}
    assert arena.value(url + "/whoami")["pid"] == pid


@pytest.mark.slow
def test_the_game_and_the_lobby_share_one_server(database: Machine) -> None:
    """Each is unhealthy until its grant is there, and counts in its own database."""
    game = start_game(database, arena.dsn(database, "mygame_eu", "eu"))
    lobby_port = str(arena.free_port())
    env = {"ADDRESS": arena.ADDRESS, "PORT": lobby_port}
    env["DB_DSN"] = arena.dsn(database, "lobby_eu", "lobby")
    database.start("lobby", "python3", "-u", "lobby.py", env=env)
    lobby = f"http://{arena.ADDRESS}:{lobby_port}/"
    assert arena.get(game + "/health")[0] == 503
    database.write(GRANTS, arena.grants(("mygame-eu", "eu"), ("lobby-eu", "lobby")))
    arena.wait_for(lambda: arena.get(game + "/health")[0] == 200, "a healthy game")
    arena.wait_for(lambda: arena.get(lobby)[0] == 200, "a healthy lobby")
    assert arena.value(game + "/counter") == {"counter": 0}
    assert arena.value(game + "/counter", data=b"") == {"counter": 1}
    assert arena.value(game + "/counter", data=b"") == {"counter": 2}
    assert arena.get(lobby) == (200, b"")
    assert arena.get(lobby + "it's%20%22me%22", data=b"") == (200, b'it\'s "me"\n')
    assert arena.value(game + "/counter") == {"counter": 2}


def test_the_page_shows_the_file_as_it_is_now(machine: Machine) -> None:
    """A replaced message needs no restart."""
    machine.write("/etc/arena/motd", "first\n")
    port = arena.free_port()
    machine.start("motd", "python3", "-u", "page.py", arena.ADDRESS, str(port))
    url = f"http://{arena.ADDRESS}:{port}/"
    arena.wait_for(lambda: arena.get(url) == (200, b"first\n"), "the page")
    machine.write("/etc/arena/motd", "second\n")
    assert arena.get(url) == (200, b"second\n")
