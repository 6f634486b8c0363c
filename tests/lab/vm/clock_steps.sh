#!/usr/bin/env bash
# Inside the lab's machine: a board without a clock starts in 1970, hears a sound, and is set right while it runs.
# usage: clock_steps.sh PROGRAM SOUND.wav
set -euo pipefail
# shellcheck disable=SC2034  # for steps_lib.sh
program=$1 sound=$2
# shellcheck source=tests/lab/vm/steps_lib.sh
. tests/lab/vm/steps_lib.sh
right=$(date +%s)

cat > $work/percept.toml << CONFIG
[models]
yamnet = false
[clip]
model = ""
[microphone]
channels = 0
[camera]
enabled = false
[gps]
enabled = false
[bluetooth]
enabled = false
CONFIG
rm -rf $work/data
quality() { percept status --format jsonl 2> /dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["clock"]["quality"])'; }
clock_is() { [ "$(quality)" = "$1" ]; }

date -s @600 > /dev/null
"$program" --config $work/percept.toml --data-dir $work/data run > $work/log 2>&1 &
agent=$!
until_so 90 "the sound card captures in 1970" is microphone running
clock_is unset || fail "the clock counts as $(quality) in 1970"
aplay -q -D plughw:0,1 "$sound" || true
until_so 60 "a sound is stored" has audio
percept episodes --format jsonl > $work/before

# The battery-backed clock of this machine makes it `rtc`; on a board without one it would be NTP's word.
date -s "@$((right + 300))" > /dev/null
aplay -q -D plughw:0,1 "$sound" || true
until_so 60 "the status says so" clock_is rtc
aplay -q -D plughw:0,1 "$sound" || true
corrected() {
    percept episodes --format jsonl > $work/after
    python3 - $work/before $work/after "$right" << 'CHECK'
import json, sys
rows = lambda path: {row["id"]: row for row in map(json.loads, open(path))}
before, after, right = rows(sys.argv[1]), rows(sys.argv[2]), int(sys.argv[3])
if not before or not set(before) <= set(after): sys.exit(1)
for id, row in after.items():
    start, end = row["timestamp"] / 1000, row["ended_at"] / 1000
    # Everything happened in the minutes around the moment it was set.
    if not right - 600 < start < right + 3600 or end < start: sys.exit(1)
if any(row["timestamp"] > 86_400_000 for row in before.values()): sys.exit("the first rows were not of 1970")
CHECK
}
until_so 60 "the rows of 1970 moved to the right time, with their ids" corrected
kill -TERM $agent
wait $agent || fail "ended with $?"
percept stats | grep -q 'clock.unset' || { percept stats; fail "no coverage row says that the clock was unset"; }
date -s "@$right" > /dev/null
echo "the clock's steps are done"
