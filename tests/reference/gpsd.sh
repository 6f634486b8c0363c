#!/bin/sh
# Plays receiver logs through a real gpsd and keeps what it says: one session folder for each log.
#
# usage: gpsd.sh LOGS_DIR OUT_DIR [PORT]
# Writes OUT_DIR/<log>/session.toml, OUT_DIR/<log>/gps.jsonl and, as a bare file, OUT_DIR/<log>.gpsd.json.
# tests/it/session_gps.rs reads them (PERCEPT_GPSD_OUT, or target/gpsd). About five seconds for each log.
#
# Needs gpsd, gpsd-clients and python3-gps (Debian; seen working with 3.22). gpsd's answers depend on the
# day they are asked: it takes a date of more than 1,024 weeks ago for a rollover and moves it forward.
set -eu
logs=$1
out=$2
port=${3:-29470}
mkdir -p "$out"
watch='?WATCH={"enable":true,"json":true};'
for log in "$logs"/*.log; do
    name=$(basename "$log" .log)
    # Debian's own python3, which has the gps module; a pyenv in front of it does not.
    PATH=/usr/sbin:/usr/bin:/sbin:/bin timeout 120 /usr/bin/python3 "$(command -v gpsfake)" \
        -1 -q -c 0.01 -P "$port" -r "$watch" -p "$log" </dev/null 2>/dev/null >"$out/$name.gpsd.json.part"
    mv "$out/$name.gpsd.json.part" "$out/$name.gpsd.json"
    rm -rf "${out:?}/$name"
    mkdir "$out/$name"
    printf 'format = 1\nsession_id = "%s"\nstarted_at = "2026-05-01T00:00:00Z"\n' "$name" >"$out/$name/session.toml"
    grep '^{' "$out/$name.gpsd.json" | awk '{ printf "{\"at_ms\":%d,\"report\":%s}\n", NR * 100, $0 }' >"$out/$name/gps.jsonl"
    echo "$name: $(wc -l <"$out/$name/gps.jsonl") reports"
done
