#!/bin/sh
# Writes requirements.lock: every package that the project and its development need, by version
# and digest, for every Python from 3.11 on. No registry is named in it.
#   tools/lock.sh            only what pyproject.toml asks anew
#   tools/lock.sh --upgrade  the newest of everything
set -eu
cd "$(dirname "$0")/.."

# The resolver stays at one version, so that the same question gets the same file.
uv_version=0.13.9
uv=.tools/uv-$uv_version/bin/uv
[ -x "$uv" ] || .venv/bin/python -m pip install -qq --target ".tools/uv-$uv_version" "uv==$uv_version"

# It does not read pip's configuration: where that names another registry, it is told.
index=$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)
[ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"

touch requirements.lock
"$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --group dev \
    --no-header --no-emit-index-url --no-emit-find-links "$@" -o requirements.lock pyproject.toml
