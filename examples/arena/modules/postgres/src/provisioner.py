"""Gives each consumer of this PostgreSQL server its login and its database.

The agent writes who the consumers are into the grants file; this polls it and compares digests,
as a watch on a file that is replaced whole would go on looking at the old one. What was applied
is kept with the server's own identity, so that an emptied server is provisioned again.

    provisioner.py           run
    provisioner.py --check   exit 0 if what the file asks is what the server has
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = os.environ.get("KEYPLANE_ROOT", "")
GRANTS = Path(ROOT + "/etc/keyplane-postgres/grants.json")
STATE = Path(ROOT + "/var/lib/keyplane-postgres/provisioned.json")

POLL_S = 0.5  # a new consumer waits this long at most before its login is made
FULL_PASS_S = 30.0  # what somebody changed by hand in the server is put right this often
NAME_MAX_BYTES = 63  # PostgreSQL cuts longer names, and two could become one
OURS = "keyplane consumer"  # the comment on each role that this made
RESERVED = {"postgres", "template0", "template1"}

IDENTITY = "SELECT system_identifier FROM pg_control_system();"

# psql quotes :"x" as a name and :'x' as a string; \gexec runs what the query above it returned.
CONSUMER = r"""
SELECT format('CREATE ROLE %I', :'login')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'login') \gexec
ALTER ROLE :"login" LOGIN;
COMMENT ON ROLE :"login" IS :'ours';
SELECT format('CREATE DATABASE %I OWNER %I', :'wanted', :'login')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'wanted') \gexec
REVOKE CONNECT ON DATABASE :"wanted" FROM PUBLIC;
GRANT ALL ON DATABASE :"wanted" TO :"login";
"""
SCHEMA = 'GRANT ALL ON SCHEMA public TO :"login";'

# Logins that were made here and that nobody has any more: closed, and their data stays.
RETIRE = r"""
SELECT format('ALTER ROLE %I NOLOGIN', rolname)
FROM pg_roles
WHERE rolcanlogin AND shobj_description(oid, 'pg_authid') = :'ours'
  AND rolname NOT IN (SELECT json_array_elements_text(:'logins'::json)) \gexec
"""


class Refused(Exception):
    """The server, or this program, said no; the text says why."""


def find_psql() -> str:
    """The client itself where Debian has it: its wrapper in PATH costs a Perl start each time."""
    return str(max(Path("/usr/lib/postgresql").glob("*/bin/psql"), default="psql"))


PSQL = find_psql()


def ask(script: str, *, database: str = "postgres", **values: str) -> str:
    """Run a script in one session; values go in as psql variables, never as text."""
    over_tcp = os.environ["PG_LISTEN"] == "tcp"
    host = os.environ["PG_ADDRESS"] if over_tcp else ROOT + "/run/keyplane-postgres"
    command = [
        *(PSQL, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"),
        *(f"--variable={name}={value}" for name, value in values.items()),
    ]
    environment = {
        **os.environ,
        **{"PGHOST": host, "PGPORT": os.environ["PG_PORT"], "PGUSER": "postgres"},
        **{
            "PGDATABASE": database,
            "PGCONNECT_TIMEOUT": "3",
            "PGOPTIONS": "-c statement_timeout=20s",
        },
    }
    try:
        done = subprocess.run(
            command, input=script, env=environment, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"psql: {error}") from error
    if done.returncode != 0:
        raise Refused(done.stderr.strip() or f"psql ended with {done.returncode}")
    return done.stdout.strip()


def read_grants() -> tuple[str, list[dict]]:
    """The digest of the grants file and its consumers; no file means that there are none."""
    try:
        raw = GRANTS.read_bytes()
    except FileNotFoundError:
        raw = b'{"consumers":[]}'
    except OSError as error:
        raise Refused(f"{GRANTS}: {error.strerror}") from error
    try:
        consumers = json.loads(raw)["consumers"]
        names = [(each["login"], each["request"]["database"]) for each in consumers]
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{GRANTS} is no list of consumers: {error!r}") from error
    if not all(isinstance(name, str) for pair in names for name in pair):
        raise Refused(f"{GRANTS}: a login or a database that is no string")
    return hashlib.sha256(raw).hexdigest(), consumers


def fault_of(kind: str, name: str) -> str | None:
    if not name or "\0" in name:
        return f"{kind} {name!r} is no name"
    if len(name.encode()) > NAME_MAX_BYTES:
        return f"{kind} {name!r} is longer than {NAME_MAX_BYTES} bytes"
    if name in RESERVED:
        return f"{kind} {name!r} is PostgreSQL's own"
    return None


def apply(consumers: list[dict]) -> list[str]:
    """Make every consumer's login and database; what could not be made, one line for each."""
    faults = []
    for each in consumers:
        login, database = each["login"], each["request"]["database"]
        try:
            fault = fault_of("login", login) or fault_of("database", database)
            if fault:
                raise Refused(fault)
            ask(CONSUMER, login=login, wanted=database, ours=OURS)
            ask(SCHEMA, database=database, login=login)
        except Refused as refused:
            faults.append(f"{each.get('instance', login)}: {refused}")
    ask(RETIRE, ours=OURS, logins=json.dumps([each["login"] for each in consumers]))
    return faults


def read_state() -> dict:
    try:
        return json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}


def write_state(state: dict) -> None:
    fresh = STATE.with_name("provisioned.json.new")
    fresh.write_text(json.dumps(state, sort_keys=True))
    fresh.replace(STATE)


def reconcile(*, due: bool) -> str | None:
    """One pass. Returns what went wrong, or nothing."""
    digest, consumers = read_grants()
    state = read_state()
    if state.get("digest") == digest and not due:
        return None
    wanted = {"digest": digest, "server": ask(IDENTITY)}
    faults = apply(consumers)
    if faults:
        return "; ".join(faults)
    if state != wanted:
        write_state(wanted)
        print(f"provisioned {len(consumers)} consumers, grants {digest[:12]}", flush=True)
    return None


def check() -> int:
    try:
        digest, _ = read_grants()
        state = read_state()
        if state.get("digest") != digest:
            print("what the grants file asks is not applied yet")
            return 1
        if state.get("server") != ask(IDENTITY):
            print("the server is another one than the one that was provisioned")
            return 1
    except Refused as refused:
        print(refused)
        return 1
    return 0


def run() -> None:
    """Poll for ever. A trouble is told when it changes, not at every pass."""
    told = None
    next_full = 0.0
    while True:
        due = time.monotonic() >= next_full
        try:
            trouble = reconcile(due=due)
        except (Refused, OSError) as error:
            trouble = str(error)
        if trouble != told:
            print(trouble or "in order again", flush=True)
            told = trouble
        if trouble:
            next_full = 0.0
        elif due:
            next_full = time.monotonic() + FULL_PASS_S
        time.sleep(POLL_S)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(check() if sys.argv[1:] == ["--check"] else run())
