"""`keyplane metrics`: what the parts count and measure of themselves, for Prometheus."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from keyplane.cli import faults, fleets, reading
from keyplane.parts import metrics_client
from keyplane.parts.state_dir import StateDir

if TYPE_CHECKING:
    from prometheus_client import Metric

PORT_MAX = 65_535


@click.command("metrics")
@click.argument("part", metavar="[PART]", required=False)
@fleets.fleet_option
@reading.as_json
@click.option(
    "--listen", metavar="HOST:PORT", help="Answer Prometheus there, until this is interrupted."
)
def command(part: str | None, directory: Path | None, *, as_json: bool, listen: str | None) -> None:
    """Print the metrics of PART (controller, supervisor, agent:MACHINE), or of all that run.

    Of all, each sample says by `part` whose it is.
    """
    state = fleets.state_of(directory)
    known = metrics_client.parts(state)
    if not known:
        raise faults.UnusableError(
            f"no part of {state.fleet} runs", f"`keyplane up{fleets.argument(state)}` starts them"
        )
    if part is not None and part not in known:
        raise faults.UnusableError(f"no part {part} runs here: there are {', '.join(known)}")
    if listen is not None:
        _listen(state, part, listen)
    elif as_json:
        for line in _json(state, part):
            click.echo(line)
    else:
        click.echo(_text(state, part), nl=False)


def _text(state: StateDir, part: str | None) -> str:
    if part is not None:
        return metrics_client.read(state, part)
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_All(state))  # type: ignore[arg-type]
    return generate_latest(registry).decode()


class _All:
    """Every part's families put together, as one family may have a head only once."""

    def __init__(self, state: StateDir) -> None:
        self._state = state

    def collect(self) -> Iterator["Metric"]:
        found: dict[str, Metric] = {}
        for part, family in _families(self._state, None):
            into = found.setdefault(family.name, _empty(family))
            for sample in family.samples:
                into.samples.append(sample._replace(labels={**sample.labels, "part": part}))
        yield from (found[name] for name in sorted(found))


def _empty(family: "Metric") -> "Metric":
    from prometheus_client import Metric

    return Metric(family.name, family.documentation, family.type, family.unit)


def _families(state: StateDir, part: str | None) -> Iterator[tuple[str, "Metric"]]:
    from prometheus_client.parser import text_string_to_metric_families

    for each in metrics_client.parts(state) if part is None else [part]:
        # One that ends just now is not told of.
        with contextlib.suppress(metrics_client.PartSilentError):
            for family in text_string_to_metric_families(metrics_client.read(state, each)):
                yield each, family


def _json(state: StateDir, part: str | None) -> Iterator[str]:
    for each, family in _families(state, part):
        for sample in family.samples:
            said = {
                "part": each,
                "name": sample.name,
                "labels": sample.labels,
                "value": sample.value,
                "type": family.type,
                "help": family.documentation,
            }
            yield json.dumps(said)


def _listen(state: StateDir, part: str | None, address: str) -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from keyplane.metrics import CONTENT_TYPE

    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal() and int(port[:6]) <= PORT_MAX):
        raise faults.UnusableError(f"--listen {address} is no HOST:PORT, such as 127.0.0.1:9400")

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                status, body = 200, _text(state, part).encode()
            except metrics_client.PartSilentError as error:
                status, body = 503, f"{error}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as it is called
            """Who asked is Prometheus's own business."""

    try:
        server = ThreadingHTTPServer((host.strip("[]"), int(port)), Answers)
    except OSError as error:
        reading.refuse(f"--listen {address}: {error.strerror}")
    with server:
        click.echo(f"metrics at http://{host}:{server.server_port}/metrics", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    sys.exit(0)
