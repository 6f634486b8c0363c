#!/usr/bin/env bash
# The real program in the lab's machine: a V4L2 camera (vivid), an MJPEG camera (v4l2loopback), a sound card (snd-aloop)
# and bluetoothd with two virtual controllers. What happens inside is percept_steps.sh and clock_steps.sh.
# usage: percept.sh          PERCEPT_PROGRAM names the program
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
ensure_packages alsa-utils bluez bluez-test-tools dbus systemd python3 v4l-utils
program=${PERCEPT_PROGRAM:-target/debug/percept}
picture=$(find var/demo/session/home/camera -name '*.jpg' | sort | head -n 1)
sound=$PERCEPT_DEMO_MEDIA/root/usr/share/sounds/alsa/Front_Center.wav
program=$(realpath "$program") sound=$(realpath "$sound")
exec tests/lab/vm/run.sh -m "vivid snd-aloop bluetooth" -t 900 \
    "tests/lab/vm/percept_steps.sh $program $(realpath "$picture") $sound && tests/lab/vm/clock_steps.sh $program $sound"
