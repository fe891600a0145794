"""The lobby: GET / lists who waits, a name on each line; POST /NAME adds one.

Its database does all the work, so a list that can be read is what makes it healthy.
"""

import os
import signal
import socketserver
import subprocess
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler

DSN = os.environ.get("DB_DSN", "")

# Two first visitors at once would both make the table; the lock lets one of them.
TABLE = """
DO $$ BEGIN
  PERFORM pg_advisory_xact_lock(1);
  CREATE TABLE IF NOT EXISTS waiting (name text UNIQUE);
END $$;
"""
LIST = "SELECT name FROM waiting ORDER BY name;"
JOIN = "INSERT INTO waiting VALUES (:'player') ON CONFLICT DO NOTHING;"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.run(LIST, "")

    def do_POST(self) -> None:
        self.run(JOIN + LIST, urllib.parse.unquote(self.path[1:]))

    def run(self, script: str, player: str) -> None:
        """The client quotes the player's name; nothing here builds SQL out of it."""
        done = subprocess.run(
            ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-v", f"player={player}", "-d", DSN],
            input=TABLE + script,
            capture_output=True,
            text=True,
            env={**os.environ, "PGCONNECT_TIMEOUT": "2"},
        )
        fine = done.returncode == 0
        self.send_response(200 if fine else 503)
        self.end_headers()
        self.wfile.write((done.stdout if fine else done.stderr).encode())

    def log_message(self, *_: object) -> None:
        """Health checks would fill the log."""


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with Server((os.environ["ADDRESS"], int(os.environ["PORT"])), Handler) as server:
    print("the lobby is open")
    server.serve_forever()
