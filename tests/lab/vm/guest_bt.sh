#!/usr/bin/env bash
# Inside the lab's machine (run.sh -m bluetooth): D-Bus, two virtual controllers that hear each other, and a real
# bluetoothd. hci1 advertises as LabBeacon; a program scans on hci0 over BlueZ's D-Bus interface. The signal strength is
# made up.
#
# usage: guest_bt.sh [COMMAND…]   runs the command with all that running; without one it only sets up
set -euo pipefail

waited_for() {
    local tries=40
    until "$@" > /dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "waited in vain for: $*" >&2; cat /run/bluetoothd.log >&2; return 1; }
        sleep 0.2
    done
}

mkdir -p /run/dbus /var/lib/bluetooth
dbus-uuidgen --ensure
[ -S /run/dbus/system_bus_socket ] || dbus-daemon --system --fork --nopidfile
btvirt -l2 > /run/btvirt.log 2>&1 &
waited_for test -e /sys/class/bluetooth/hci1
/usr/libexec/bluetooth/bluetoothd -n > /run/bluetoothd.log 2>&1 &
waited_for sh -c 'busctl --no-pager tree org.bluez | grep -q hci1'

# btmgmt waits for its terminal's input unless it has none.
for setting in "--index 1 power on" "--index 1 le on" "--index 1 connectable on" "--index 1 name LabBeacon" \
    "--index 0 power on" "--index 0 le on" "--index 1 add-adv -c -g -n -u 180d -d 07ffffff01020304 1"; do
    # shellcheck disable=SC2086  # one word an argument
    timeout 10 btmgmt $setting < /dev/null || echo "btmgmt $setting: $?"
done
bluetoothctl list < /dev/null || true
[ $# -eq 0 ] || "$@"
