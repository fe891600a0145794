#!/bin/sh
# Runs PostgreSQL for this entry, or says whether it answers:  server.sh run | check
#
# Reads PG_LISTEN (tcp or socket), PG_ADDRESS, PG_PORT and PG_TRUSTED (networks). Declared paths
# stand at their place, or below KEYPLANE_ROOT where the machine cannot show them there.
set -eu

root=${KEYPLANE_ROOT:-}
home=$root/var/lib/keyplane-postgres
cluster=$home/cluster
sockets=$root/run/keyplane-postgres

# The newest server that Debian has here; elsewhere, the one on PATH.
programs=$(for dir in /usr/lib/postgresql/*/bin; do
    [ -x "$dir/postgres" ] && printf '%s\n' "$dir"
done | sort -V | tail -n 1)
[ -n "$programs" ] && PATH=$programs:$PATH

if [ "$PG_LISTEN" = tcp ]; then
    host=$PG_ADDRESS addresses=$PG_ADDRESS socket_dirs=
else
    host=$sockets addresses='' socket_dirs=$sockets
fi

check() {
    exec pg_isready --quiet --host "$host" --port "$PG_PORT" --timeout 3 \
        --username postgres --dbname postgres
}

# Made beside its place and renamed there, so that a crash in between leaves no half cluster.
make_cluster() {
    rm -rf "$home/new"
    initdb --pgdata "$home/new" --username postgres --auth trust \
        --encoding UTF8 --locale C.UTF-8 --no-instructions
    mv "$home/new" "$cluster"
}

write_hba() {
    {
        printf 'local all all trust\n'
        for network in $PG_TRUSTED; do
            printf 'host all all %s trust\n' "$network"
        done
    } >"$cluster/pg_hba.conf.new"
    mv "$cluster/pg_hba.conf.new" "$cluster/pg_hba.conf"
}

# TERM alone would have PostgreSQL wait for every client to leave; INT ends their sessions and
# stops cleanly. Should this shell be killed, the server is told to stop as well.
run() {
    command -v postgres >/dev/null || {
        echo "no PostgreSQL server on this machine: install the package postgresql" >&2
        exit 1
    }
    umask 077
    [ -e "$cluster/PG_VERSION" ] || make_cluster
    write_hba
    setpriv --pdeathsig INT postgres -D "$cluster" \
        -c "listen_addresses=$addresses" -c "port=$PG_PORT" \
        -c "unix_socket_directories=$socket_dirs" \
        -c max_connections=50 -c shared_buffers=32MB &
    server=$!
    trap 'kill -INT "$server" 2>/dev/null || true' TERM INT
    trap 'kill -HUP "$server" 2>/dev/null || true' HUP
    status=0
    # A trapped signal ends the wait early: wait again for as long as the server is there.
    while :; do
        status=0
        wait "$server" || status=$?
        kill -0 "$server" 2>/dev/null || break
    done
    exit "$status"
}

case ${1:-} in
run) run ;;
check) check ;;
*)
    echo "usage: server.sh run | check" >&2
    exit 2
    ;;
esac
