"""Shows the message file, read anew for each visitor: page.py ADDRESS PORT."""

import os
import signal
import socketserver
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

MESSAGE = Path(os.environ.get("KEYPLANE_ROOT", "") + "/etc/arena/motd")


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.end_headers()
        self.wfile.write(MESSAGE.read_bytes())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Server((sys.argv[1], int(sys.argv[2])), Page) as server:
        print("the page is up")
        server.serve_forever()
