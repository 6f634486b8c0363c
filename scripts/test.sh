#!/usr/bin/env bash
# Runs every test, or those whose name contains the word given: with cargo-nextest where it is
# installed, else with cargo's own runner.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
ensure_rust

# Receiver logs played through a real gpsd: what it says is what our reading is compared with. CI must have it; elsewhere
# it is done where gpsd's own test player is installed, because Debian's package starts a service.
logs=../shared/data/gps
if [ "${CI:-}" = true ]; then ensure_packages gpsd gpsd-clients python3-gps; fi
if [ -d "$logs" ] && command -v gpsfake > /dev/null && [ ! -d target/gpsd ]; then
    say "playing receiver logs through gpsd (a minute)"
    tests/reference/gpsd.sh "$logs" target/gpsd.part
    mv target/gpsd.part target/gpsd
else
    say "gpsd's own player is not here, or there are no logs: tests that compare with it print SKIPPED"
fi

if cargo nextest --version > /dev/null 2>&1; then
    cargo nextest run --locked --no-tests fail "$@"
    # nextest leaves out the examples in documentation comments.
    if [ $# -eq 0 ]; then cargo test --locked --doc; fi
else
    cargo test --locked "$@"
fi
