#!/usr/bin/env bash
# Replays one hour of mixed sound made from the demo's real sounds, and prints processor seconds and peak memory.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
ensure_packages time
ensure_rust

hour=var/bench/hour.wav
if [ ! -e "$hour" ] || [ scripts/make_hour.py -nt "$hour" ]; then
    mkdir -p var/bench
    /usr/bin/python3 scripts/make_hour.py "$PERCEPT_DEMO_MEDIA" "$hour"
fi
cargo build --locked --release --bin percept
PERCEPT_PROGRAM=${CARGO_TARGET_DIR:-target}/release/percept
data_dir=var/bench/data
rm -rf "$data_dir"

report=var/bench/replay-time.txt
/usr/bin/time -v -o "$report" "$PERCEPT_PROGRAM" --config config/demo.toml --data-dir "$data_dir" replay "$hour" >&2
awk -F': ' '
    /User time/ { seconds += $2 }
    /System time/ { seconds += $2 }
    /Maximum resident/ { peak = $2 / 1024 }
    END { printf "bench replay_hour_cpu %.1f s\nbench replay_hour_peak_memory %.1f MiB\n", seconds, peak }' "$report"
episodes=$(percept episodes --modality audio --format jsonl | wc -l)
echo "bench replay_hour_audio_episodes $episodes count"
