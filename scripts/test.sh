#!/usr/bin/env bash
# Runs every test, or those whose name contains the word given: with cargo-nextest where it is
# installed, else with cargo's own runner.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
ensure_rust

if cargo nextest --version > /dev/null 2>&1; then
    cargo nextest run --locked --no-tests fail "$@"
    # nextest leaves out the examples in documentation comments.
    if [ $# -eq 0 ]; then cargo test --locked --doc; fi
else
    cargo test --locked "$@"
fi
