"""The game server: HTTP on its own address, its counter in a database, its peers in a mesh.

    GET  /slots     how many players fit, from the command line
    GET  /maps      the map rotation, from its configuration file, read again on HUP
    GET  /counter   the counter in the database; POST adds one to it
    GET  /health    200 while the database answers
    GET  /whoami    this process, and the addresses of its database and its peer

It starts without its database too, and is unhealthy until that answers.
"""

import argparse
import http.server
import json
import os
import signal
import socketserver
import subprocess
import sys
from pathlib import Path

MAPS = Path(os.environ.get("KEYPLANE_ROOT", "") + "/etc/mygame/maps.json")
DSN = os.environ.get("DB_DSN", "")
PEER = os.environ.get("PEER_ADDR", "")

# Two first requests at once would both make the table; the lock lets one of them.
TABLE = """
DO $$ BEGIN
  PERFORM pg_advisory_xact_lock(1);
  CREATE TABLE IF NOT EXISTS counters (name text PRIMARY KEY, value bigint NOT NULL);
END $$;
"""
READ = "SELECT coalesce((SELECT value FROM counters WHERE name = :'name'), 0);"
ADD = """
INSERT INTO counters VALUES (:'name', 1)
ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value;
"""


class DatabaseDown(Exception):
    """The database did not answer, or refused; the text is its own."""


def client() -> str:
    """Debian's psql without its wrapper, where there is one."""
    return str(max(Path("/usr/lib/postgresql").glob("*/bin/psql"), default="psql"))


def query(script: str, **values: str) -> str:
    """Run a script through psql, which does the quoting of the values that it is given."""
    variables = [f"--variable={name}={value}" for name, value in values.items()]
    command = [client(), "-XqAt", "--variable=ON_ERROR_STOP=1", *variables, f"--dbname={DSN}"]
    environment = {**os.environ, "PGCONNECT_TIMEOUT": "2"}
    try:
        done = subprocess.run(
            command, input=script, env=environment, capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DatabaseDown(str(error)) from error
    if done.returncode:
        raise DatabaseDown(done.stderr.strip())
    return done.stdout.strip()


class Game:
    """What the handlers read."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.maps: object = None

    def load_maps(self) -> None:
        """A file that cannot be read leaves the maps as they were."""
        try:
            self.maps = json.loads(MAPS.read_text())
        except (OSError, ValueError) as error:
            print(f"maps stay as they were: {error}")
        else:
            print(f"maps loaded: {json.dumps(self.maps)}")

    def counter(self, script: str) -> dict:
        return {"counter": int(query(TABLE + script, name="visits"))}


class Handler(http.server.BaseHTTPRequestHandler):
    game: Game

    def do_GET(self) -> None:
        game = self.game
        answers = {
            "/slots": lambda: {"slots": game.slots},
            "/maps": lambda: game.maps,
            "/counter": lambda: game.counter(READ),
            "/health": lambda: {"database": query("SELECT 'answers';")},
            "/whoami": lambda: {"pid": os.getpid(), "dsn": DSN, "peer": PEER, "slots": game.slots},
        }
        self.answer(answers.get(self.path))

    def do_POST(self) -> None:
        self.answer((lambda: self.game.counter(ADD)) if self.path == "/counter" else None)

    def answer(self, make) -> None:
        try:
            status, body = (200, make()) if make else (404, {"error": "no such page"})
        except DatabaseDown as down:
            status, body = 503, {"error": str(down)}
        raw = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Health checks would fill the log."""


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Not http.server's own: that one asks the resolver for a name of its address."""

    allow_reuse_address = True
    daemon_threads = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--slots", type=int, required=True)
    game = Game(parser.parse_args().slots)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, lambda *_: game.load_maps())
    game.load_maps()
    Handler.game = game
    address = (os.environ["ADDRESS"], int(os.environ["PORT_GAME"]))
    with Server(address, Handler) as server:
        print(f"listening on {address[0]}:{address[1]}, {game.slots} slots, peer {PEER}")
        server.serve_forever()


if __name__ == "__main__":
    main()
