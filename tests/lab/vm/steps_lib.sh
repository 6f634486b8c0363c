# shellcheck shell=bash
# What the steps inside the lab's machine share. $program is percept; its config, data and log are under $work.
work=/tmp/percept
mkdir -p $work
export PERCEPT_LOG=info

fail() {
    echo "FAIL $*"
    tail -n 40 $work/log || true
    exit 1
}

percept() { "$program" --config $work/percept.toml --data-dir $work/data "$@"; }

# until_so SECONDS WORDS COMMAND…: asks once a second; the machine is emulated and slow.
until_so() {
    local seconds=$1 words=$2
    shift 2
    until "$@"; do
        seconds=$((seconds - 1))
        if [ "$seconds" -le 0 ]; then
            percept status || true
            fail "never so: $words"
        fi
        sleep 1
    done
    echo "ok   $words"
}

# state KIND: what the sensor of that kind is doing.
state() {
    percept status --format jsonl 2> /dev/null | python3 -c '
import json, sys
text = sys.stdin.read()
for sensor in json.loads(text)["sensors"] if text else []:
    if sensor["source"].startswith(sys.argv[1] + ":"): print(sensor["state"])' "$1"
}
is() { [ "$(state "$1")" = "$2" ]; }
has() { percept episodes --modality "$1" --format jsonl | grep -q .; }
