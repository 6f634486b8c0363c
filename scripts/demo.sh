#!/usr/bin/env bash
# Replays the demo sessions into a fresh store and shows what was remembered.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

data_dir=var/demo/data
rm -rf "$data_dir"

say "replaying eleven recorded minutes (var/demo/session/home) and a boat's receiver log (sail.log)"
percept replay var/demo/session/home var/demo/session/sail.log
say "what percept remembers"
percept episodes
say "in numbers"
percept stats
say "the store is $data_dir/memory.db; more: docs/user-guide.md"

# Each modality has to be there: a demo that shows three of four has failed.
for modality in audio visual spatial social; do
    count=$(percept episodes --modality "$modality" --format jsonl | wc -l)
    if [ "$count" -eq 0 ]; then fail "the demo gave no $modality episode"; fi
done
