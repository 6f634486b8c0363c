#!/usr/bin/env bash
# Checks every dependency by deny.toml: licences, bans and sources, and advisories where the
# network lets their database be fetched.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

cargo deny --locked check licenses bans sources
if cargo deny --locked fetch db > /dev/null 2>&1; then
    cargo deny --locked check advisories
else
    say "the advisory database cannot be fetched here: advisories were NOT checked"
fi
