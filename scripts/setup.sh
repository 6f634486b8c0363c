#!/usr/bin/env bash
# Installs what is missing for each part named, and says what it does. Does nothing twice.
#
# usage: setup.sh PART...
#   build   compiler, linker and Rust
#   models  model files that the demo's configuration names (needs the built program)
#   demo    the demo session, made of real media out of Debian packages
#   audit   cargo-deny
#   bench   a Python environment with the programs percept is measured beside
#   peers   what the tests compare percept with, made by those programs
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

set_up_build() {
    ensure_packages gcc g++ libc6-dev make pkg-config curl ca-certificates git mold libasound2-dev libclang-dev clang
    ensure_rust
}

set_up_models() {
    say "fetching models"
    # Without a model percept goes on without that observation; the program says which.
    percept models fetch || say "not every model could be had: the rest goes on without it"
}

set_up_demo() {
    ensure_packages python3 sox libsox-fmt-base xz-utils
    scripts/demo_media.sh "$PERCEPT_DEMO_MEDIA"
    # Made again when the script that makes it changed.
    local made=var/demo/session/made
    if [ -e "$made" ] && [ "$made" -nt scripts/make_demo_session.py ]; then return; fi
    say "making the demo session"
    /usr/bin/python3 scripts/make_demo_session.py "$PERCEPT_DEMO_MEDIA" var/demo/session
    touch "$made"
}

set_up_audit() {
    if cargo deny --version > /dev/null 2>&1; then return; fi
    say "installing cargo-deny (several minutes)"
    cargo install cargo-deny --locked
}

set_up_bench() {
    ensure_packages python3-venv time
    local environment=var/bench/venv
    if [ -e "$environment/complete" ] && [ "$environment/complete" -nt benches/peers/requirements.txt ]; then return; fi
    say "making a Python environment for the benches' peers"
    rm -rf "$environment"
    /usr/bin/python3 -m venv "$environment"
    "$environment/bin/pip" install --progress-bar off -r benches/peers/requirements.txt
    touch "$environment/complete"
}

set_up_peers() {
    ensure_packages python3-venv
    local folder=var/peers
    local made=$folder/pagerank.jsonl
    if [ -e "$made" ] && [ "$made" -nt tests/peers/requirements.txt ] && [ "$made" -nt tests/peers/pagerank.py ]; then return; fi
    say "making a Python environment for the tests' peers"
    rm -rf "$folder"
    /usr/bin/python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --progress-bar off -r tests/peers/requirements.txt
    "$folder/venv/bin/python" tests/peers/pagerank.py > "$made.part"
    mv "$made.part" "$made"
}

for part in "$@"; do
    case $part in
        build | models | demo | audit | bench | peers) "set_up_$part" ;;
        *) fail "setup.sh knows no part '$part'" ;;
    esac
done
