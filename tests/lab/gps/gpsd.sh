#!/bin/bash
# A real gpsd fed with a recorded receiver log, over and over.
#
# usage: gpsd.sh start LOG PORT DIR [SECONDS_A_SENTENCE] | gpsd.sh stop DIR
# After start, gpsd answers on 127.0.0.1:PORT; DIR keeps its process id and output. Needs the packages named below, and
# takes Debian's own python3: another one in front of it has no gps module.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../../scripts/lib.sh
. "$here/../../../scripts/lib.sh"

start() {
    local log=$1 port=$2 dir=$3 interval=${4:-0.05}
    ensure_packages gpsd gpsd-clients python3-gps
    mkdir -p "$dir"
    PATH=/usr/sbin:/usr/bin:/sbin:/bin setsid /usr/bin/python3 /usr/bin/gpsfake -q -n -c "$interval" -P "$port" "$log" \
        < /dev/null > "$dir/gpsfake.log" 2>&1 &
    echo $! > "$dir/gpsfake.pid"
    for _ in $(seq 100); do
        if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then return; fi
        sleep 0.1
    done
    cat "$dir/gpsfake.log" >&2
    fail "gpsd does not answer on port $port"
}

# gpsfake may survive SIGTERM, and then its gpsd does too.
stop() {
    local pid children
    pid=$(cat "$1/gpsfake.pid")
    children=$(ps -o pid= --ppid "$pid" || true)
    kill "$pid" 2> /dev/null || true
    for _ in $(seq 20); do
        kill -0 "$pid" 2> /dev/null || break
        sleep 0.1
    done
    # shellcheck disable=SC2086  # one process id a word
    kill -9 "$pid" $children 2> /dev/null || true
    rm -f "$1/gpsfake.pid"
}

case ${1:-} in
    start) shift && start "$@" ;;
    stop) shift && stop "$@" ;;
    *) fail "usage: gpsd.sh start LOG PORT DIR [SECONDS_A_SENTENCE] | stop DIR" ;;
esac
