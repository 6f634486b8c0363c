#!/usr/bin/env bash
# Measures percept and the Python programs that do the same work, one after the other on one thread,
# and prints how they compare.
#
# Every bench and every program under benches/peers prints lines `bench NAME VALUE UNIT`. A peer's NAME is the
# bench's name with the peer's behind it: yamnet_window beside yamnet_window_onnxruntime.
# PERCEPT_BENCH_MILLION=1 adds the million vectors: half an hour, and 7 GB under var/bench.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
ensure_rust

results=var/bench/results.txt
mkdir -p var/bench
: > "$results"
# One thread for every numeric library there is.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 RAYON_NUM_THREADS=1
# Some machines force an old OpenBLAS kernel, which slows numpy down: the peers get their best.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

say "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $(rustc --version)"
say "percept's benches"
cargo bench --locked --bench log_mel --bench yamnet --bench clip --bench vectors --bench search --bench recall | tee >(grep '^bench ' >> "$results")
for peer in benches/peers/*.py; do
    say "peer: $peer"
    if ! var/bench/venv/bin/python "$peer" | tee >(grep '^bench ' >> "$results"); then say "$peer could not run: left out"; fi
done
say "replay of one hour of mixed sound"
scripts/bench_replay.sh | tee >(grep '^bench ' >> "$results")

say "percept's time as a share of its peer's (below 1 is faster)"
awk '
    { value[$2] = $3; unit[$2] = $4; order[NR] = $2 }
    END {
        for (i = 1; i <= NR; i++) for (j = 1; j <= NR; j++) {
            name = order[i]; peer = order[j]
            if (index(peer, name "_") == 1 && unit[name] == unit[peer] && value[peer] > 0)
                printf "  %-48s %10.3f %-3s  %-24s %10.3f  ratio %.2f\n", \
                    name, value[name], unit[name], substr(peer, length(name) + 2), value[peer], value[name] / value[peer]
        }
    }' "$results"
