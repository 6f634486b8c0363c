#!/bin/bash
# BlueZ's D-Bus interface, mocked on a private system bus.
#
# usage: bluez_mock.sh start DIR | bluez_mock.sh stop DIR | bluez_mock.sh bluez-stop DIR | bluez_mock.sh bluez-start DIR
# After start: `. DIR/env` sets DBUS_SYSTEM_BUS_ADDRESS, and bluez_mock.py adds adapters and devices and changes them.
# bluez-stop and bluez-start end BlueZ and start it anew, without adapters, on the same bus.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../../scripts/lib.sh
. "$here/../../../scripts/lib.sh"

start() {
    local dir
    ensure_packages dbus python3-dbus python3-dbusmock python3-gi
    mkdir -p "$1"
    dir=$(cd "$1" && pwd)
    rm -f "$dir/bus"
    write_config "$dir" > "$dir/bus.conf"
    dbus-daemon --config-file="$dir/bus.conf" --nofork --nopidfile > "$dir/bus.log" 2>&1 < /dev/null &
    echo $! > "$dir/bus.pid"
    for _ in $(seq 50); do
        if [ -S "$dir/bus" ]; then break; fi
        sleep 0.1
    done
    echo "export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$dir/bus" > "$dir/env"
    start_bluez "$dir"
}

# A bus on which everybody may do everything.
write_config() {
    cat << CONFIG
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=$1/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_type="signal"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
CONFIG
}

start_bluez() {
    # shellcheck source=/dev/null
    . "$1/env"
    /usr/bin/python3 -m dbusmock --system --template bluez5 > "$1/bluez.log" 2>&1 < /dev/null &
    echo $! > "$1/bluez.pid"
    for _ in $(seq 100); do
        if /usr/bin/python3 "$here/bluez_mock.py" ready 2> /dev/null; then return; fi
        sleep 0.1
    done
    cat "$1/bluez.log" >&2
    fail "the mocked BlueZ does not come up"
}

stop_one() {
    if [ -e "$1" ]; then kill "$(cat "$1")" 2> /dev/null || true; fi
    rm -f "$1"
}

case ${1:-} in
    start) start "${2:?DIR}" ;;
    stop) stop_one "${2:?DIR}/bluez.pid" && stop_one "$2/bus.pid" ;;
    bluez-stop) stop_one "${2:?DIR}/bluez.pid" ;;
    bluez-start) start_bluez "${2:?DIR}" ;;
    *) fail "usage: bluez_mock.sh start|stop|bluez-stop|bluez-start DIR" ;;
esac
