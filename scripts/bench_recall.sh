#!/usr/bin/env bash
# Multi-hop recall: 100 questions of MuSiQue over 1,890 passages, ingested as any program would hand them in.
#
# Prints one line per method, `NAME R@2 = x R@5 = y R@10 = z`: the share of a question's supporting passages among the first
# 2, 5 and 10, in per cent, averaged over all questions. `recall` is what `percept recall` does.
# PERCEPT_MULTIHOP_DATA names the folder with musique_openie.json and musique_train.json.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

data=${PERCEPT_MULTIHOP_DATA:-../shared/data/multihop}
for file in musique_openie.json musique_train.json; do
    if [ ! -f "$data/$file" ]; then
        say "$data/$file is not there. The question set (MuSiQue, CC BY 4.0, with the triples of HippoRAG) is not part of this"
        say "repository: set PERCEPT_MULTIHOP_DATA to the folder with musique_openie.json and musique_train.json."
        exit 1
    fi
done
ensure_rust

folder=var/bench/multihop
rm -rf "$folder"
mkdir -p "$folder"
python3 scripts/multihop_lines.py "$data" "$folder"
cargo build --locked --release --bin percept --bench multihop
target=${CARGO_TARGET_DIR:-target}
"$target/release/percept" --data-dir "$folder/store" ingest --without-vectors "$folder/passages.jsonl"
PERCEPT_BENCH_MULTIHOP="$PWD/$folder" cargo bench --locked --bench multihop
