"""A fleet of two machines, of which people stop, break and occupy things by hand."""

from pathlib import Path

FLEET = """
fleet = "hands"
[machines.alpha]
address = "127.78.0.1"
local = true
[machines.beta]
address = "127.78.0.2"
local = true
[instances.web]
module = "web"
settings.main.greeting = "hello"
placement.every.main = { machines = ["alpha"] }
[instances.other]
module = "web"
settings.main.greeting = "other"
settings.main.name = "other"
placement.every.main = { machines = ["beta"] }
"""
MODULE = """
module = "web"
version = "1.0"
[roles.main.settings]
greeting = { type = "string" }
name = { type = "string", default = "web" }
[roles.main.listens]
http = { protocol = "tcp" }
[roles.main.resources.motd]
type = "file"
path = "/etc/${settings.name}/motd"
text = "${settings.greeting}"
[roles.main.resources.spool]
type = "directory"
path = "/srv/${settings.name}"
[roles.main.units.server]
kind = "process"
command = ["python3", "-u", "-c", "${settings.program}"]
stopTimeout = "3s"
[roles.main.units.server.env]
GREETING = "${settings.greeting}"
ADDRESS = "${machine.address}"
PORT = "${alloc.ports.http}"
[roles.main.units.server.health]
tcp = "${machine.address}:${alloc.ports.http}"
interval = "200ms"
"""
PROGRAM = """
import http.server, os, signal, sys
print("life", os.getpid())
if os.environ["GREETING"] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = os.environ["GREETING"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
place = os.environ["ADDRESS"], int(os.environ["PORT"])
if os.environ["GREETING"] == "broken":
    sys.exit("this one cannot start")
http.server.ThreadingHTTPServer(place, Answer).serve_forever()
"""


def write(directory: Path) -> None:
    module = directory / "modules" / "web"
    module.mkdir(parents=True)
    (directory / "fleet.toml").write_text(FLEET)
    program = "'''" + PROGRAM + "'''"
    text = MODULE.replace(
        'name = { type = "string", default = "web" }',
        'name = { type = "string", default = "web" }\n'
        f'[roles.main.settings.program]\ntype = "string"\ndefault = {program}',
    )
    (module / "module.toml").write_text(text)
