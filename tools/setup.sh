#!/bin/sh
# Makes this checkout ready to run: what is missing on the machine, the environment in .venv, and
# the project in it. Needs python3 3.11 or newer, and a Debian or Ubuntu for what else is missing.
#
# Says before it installs anything, changes nothing that is there, and is quick the second time.
#   PYTHON=/path/to/python3 chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "setup: $*"; }
fail() {
    printf '%s\n' "setup: $*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if have "$candidate" &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$(command -v "$candidate")
        break
    fi
done
[ -n "$python" ] || fail "needs Python 3.11 or newer: apt-get install python3"

# --- what the machine has to have -----------------------------------------------------------------

missing=
need() { missing="$missing $*"; }

# ensurepip is what Debian parts from Python; the package is named after an interpreter that is
# not the default one.
case $python in
*/python3.*) venv_package=${python##*/}-venv ;;
*) venv_package=python3-venv ;;
esac
"$python" -c 'import ensurepip, venv' 2>/dev/null || need "$venv_package"

# The shim that processes run under is compiled when the project is installed.
compiles() { printf '#include <stdlib.h>\n' | cc -E - >/dev/null 2>&1; }
compiles || need gcc libc6-dev

has_postgres() { ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; }
has_postgres || need postgresql
have ip || need iproute2
have setpriv || need util-linux
have make || need make

if [ -n "$missing" ]; then
    missing=${missing# }
    have apt-get || fail "this machine has no apt-get; please install what Debian calls: $missing"
    root=
    if [ "$(id -u)" != 0 ]; then
        have sudo || fail "as root, please run: apt-get update && apt-get install $missing"
        root=sudo
    fi
    say "missing on this machine: $missing"
    say "installing it: ${root:+sudo }apt-get install --no-install-recommends $missing"
    case " $missing " in
    *" postgresql "*)
        # Debian starts a cluster on port 5432 as it installs; nobody here asked for that one.
        if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
            say "and telling Debian not to start a database of its own:" \
                "create_main_cluster = false in /etc/postgresql-common/createcluster.conf"
            $root mkdir -p /etc/postgresql-common
            printf 'create_main_cluster = false\n' |
                $root tee /etc/postgresql-common/createcluster.conf >/dev/null
        fi
        ;;
    esac
    $root apt-get update -q
    # shellcheck disable=SC2086  # a list of package names
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
        -o Dpkg::Options::=--force-confold $missing
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python cannot make environments; PYTHON=/usr/bin/python3 chooses Debian's own"
fi

# --- the environment, by what the lock file says --------------------------------------------------

# pip reads the machine's own configuration for where packages come from; nothing here names it.
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

digest_of() { cat "$@" | sha256sum | cut -d ' ' -f 1; }

environment="$("$python" -V) $(digest_of requirements.lock)"
stamp=.venv/.environment
if [ "$(cat "$stamp" 2>/dev/null)" != "$environment" ]; then
    # Another lock file, another environment: what it no longer names must not linger.
    if [ -e "$stamp" ]; then fresh=--clear; else fresh=; fi
    say "installing the packages of requirements.lock into .venv"
    "$python" -m venv $fresh .venv
    .venv/bin/python -m pip install -qq --require-hashes -r requirements.lock
    printf '%s\n' "$environment" >"$stamp"
fi

# Installed from this folder, so that an edit counts at once; what is compiled is made anew when
# its sources change.
sources=$(git ls-files -co --exclude-standard 'src/*.c' 'src/*.h' 2>/dev/null ||
    find src -name '*.[ch]' | sort)
# shellcheck disable=SC2086,SC2046  # lists of paths without spaces
project=$(digest_of pyproject.toml $(ls hatch_build.py 2>/dev/null) $sources)
stamp=.venv/.project
if [ "$(cat "$stamp" 2>/dev/null)" != "$project" ]; then
    say "installing keyplane into .venv"
    .venv/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
    printf '%s\n' "$project" >"$stamp"
fi

# Compiled once, where the environment keeps Python from writing bytecode: each command starts in
# half the time.
.venv/bin/python -m compileall -q src
