"""PostgreSQL and its provisioner: what the grants file asks is what the server has."""

import signal

import pytest

from tests.examples import arena
from tests.examples.arena import Machine

pytestmark = pytest.mark.slow

GRANTS = "/etc/keyplane-postgres/grants.json"


def test_a_consumer_gets_a_login_and_a_database(database: Machine) -> None:
    """Until then the provisioner is unhealthy; afterwards the login owns what it asked for."""
    database.write(GRANTS, arena.grants(("mygame-eu", "eu"), ("lobby-eu", "lobby")))
    arena.wait_for(lambda: arena.provisioned(database), "both consumers")
    made = arena.sql(database, "mygame_eu", "eu", "CREATE TABLE t (x int); SELECT current_user")
    assert made.stdout.strip() == "mygame_eu", made.stderr
    beside = arena.sql(database, "mygame_eu", "lobby", "SELECT 1")
    assert "permission denied" in beside.stderr


def test_a_consumer_that_leaves_keeps_its_data_and_loses_its_login(database: Machine) -> None:
    """And it finds its data again when it comes back."""
    with_it, without = arena.grants(("mygame-eu", "eu")), arena.grants()
    database.write(GRANTS, with_it)
    arena.wait_for(lambda: arena.provisioned(database), "the consumer")
    assert arena.sql(database, "mygame_eu", "eu", "CREATE TABLE kept (x int)").returncode == 0
    database.write(GRANTS, without)
    arena.wait_for(lambda: arena.provisioned(database), "no consumer")
    assert "not permitted to log in" in arena.sql(database, "mygame_eu", "eu", "SELECT 1").stderr
    database.write(GRANTS, with_it)
    arena.wait_for(lambda: arena.provisioned(database), "the consumer again")
    assert arena.sql(database, "mygame_eu", "eu", "TABLE kept").returncode == 0


def test_names_are_quoted_and_refused_ones_hold_back_nobody_else(database: Machine) -> None:
    """A quote in a name is a character of it; a name of PostgreSQL's own is refused and told."""
    odd = 'it\'s; a "name"'
    database.write(
        GRANTS, arena.grants(("thief", "postgres"), ("mygame-eu", odd), ("long", "x" * 64))
    )
    arena.wait_for(lambda: "longer than 63 bytes" in database.log(), "the refusals")
    assert "thief: database 'postgres' is PostgreSQL's own" in database.log()
    assert not arena.provisioned(database)
    listed = arena.sql(database, "mygame_eu", "template1", "SELECT datname FROM pg_database")
    assert odd in listed.stdout.splitlines(), listed.stderr


def test_a_server_that_was_emptied_is_not_called_provisioned(database: Machine) -> None:
    """The state file names the cluster that it speaks of."""
    provisioner = database.running[1]
    provisioner.terminate()  # it would put right what is written here
    provisioner.wait(timeout=arena.DEADLINE_S)
    state = database.path("/var/lib/keyplane-postgres/provisioned.json")
    honest = state.read_text()
    assert arena.provisioned(database)
    state.write_text(honest.replace('"server": "', '"server": "1'))
    assert not arena.provisioned(database)


def test_the_server_ends_with_term_and_keeps_what_it_had(database: Machine) -> None:
    """TERM ends it although a client is connected, and a new start needs no new cluster."""
    server = database.running[0]
    owner = arena.postgres_account()
    client = ("psql", "-d", arena.dsn(database, "postgres", "postgres"))
    sleeper = database.start("postgres", *client, "-c", "SELECT pg_sleep(60)")
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)'"
    arena.wait_for(
        lambda: arena.sql(database, "postgres", "postgres", asleep).stdout.strip() == "1",
        "the sleeping client",
    )
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=arena.DEADLINE_S) == 0
    assert sleeper.wait(timeout=arena.DEADLINE_S) != 0
    database.start("postgres", "sh", "server.sh", "run", user=owner)
    arena.wait_for(lambda: arena.provisioned(database), "the server again")
    assert database.log().count("syncing data to disk") == 1  # what initdb says


def test_over_a_socket_nothing_listens_on_the_network(machine: Machine) -> None:
    """The same module on a socket: its dsn works on the machine, and its port is closed."""
    arena.start_database(machine, listen="socket")
    machine.write(GRANTS, arena.grants(("mygame-eu", "eu")))
    arena.wait_for(lambda: arena.provisioned(machine), "the consumer")
    inside = arena.sql(machine, "mygame_eu", "eu", "SELECT 1")
    assert inside.stdout.strip() == "1", inside.stderr
    assert arena.get(f"http://{arena.ADDRESS}:{machine.env['PG_PORT']}/")[0] == 0
