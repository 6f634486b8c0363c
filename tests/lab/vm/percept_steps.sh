#!/usr/bin/env bash
# Inside the lab's machine: one run of percept on its camera, sound card and controllers; the camera is unplugged and comes
# back as another node; then a second camera that delivers MJPEG.
# usage: percept_steps.sh PROGRAM PICTURE.jpg SOUND.wav
set -euo pipefail
program=$1 picture=$2 sound=$3
# shellcheck source=tests/lab/camera/guest.sh
. tests/lab/camera/guest.sh
# shellcheck source=tests/lab/vm/steps_lib.sh
. tests/lab/vm/steps_lib.sh

tests/lab/vm/guest_bt.sh > $work/bluetooth.log 2>&1 || { cat $work/bluetooth.log; fail "bluetoothd did not start"; }
alice=$(busctl get-property org.bluez /org/bluez/hci1 org.bluez.Adapter1 Address | cut -d'"' -f2)
[ -n "$alice" ] || fail "the second controller has no address"
write_config() {
    cat > $work/percept.toml << CONFIG
[models]
yamnet = false
[clip]
model = ""
[microphone]
channels = 0
[camera]
device = "$1"
frames_per_s = 2.0
[visual]
checkpoint_s = 5
[gps]
enabled = false
[[people]]
name = "Alice"
addresses = ["$alice"]
CONFIG
}

write_config ""
percept devices | tee $work/devices
grep -q 'camera:' $work/devices || fail "no camera is listed"
vivid=$(awk '/camera:/ && /vivid/ { print $1; exit }' $work/devices)
write_config "$vivid"
"$program" --config $work/percept.toml --data-dir $work/data run > $work/log 2>&1 &
agent=$!
until_so 90 "the camera (vivid) captures" is camera running
until_so 90 "the sound card (snd-aloop) captures" is microphone running
until_so 90 "the controller hears" is bluetooth running
for _ in 1 2 3; do aplay -q -D plughw:0,1 "$sound" || true; done
until_so 60 "a scene is stored" has visual
until_so 60 "a sound is stored" has audio
until_so 90 "Alice is met" has social

camera_unplug
until_so 60 "the unplugged camera is lost" is camera lost
is microphone running || fail "the microphone went with the camera"
camera_plug 2
until_so 90 "the camera is found again as /dev/video2" is camera running

kill -TERM $agent
wait $agent || fail "ended with $?"
percept stats | tee $work/stats
grep -q 'camera.*unplugged\|camera.*stalled' $work/stats || fail "no coverage row of the camera"
camera_unplug

loopback_plug
loopback_feed "$picture" 640 480 600
until_so 30 "the MJPEG camera is listed" sh -c "$program devices --config $work/percept.toml 2>/dev/null | grep -q LabCam"
mjpeg=$(percept devices | awk '/camera:/ && /LabCam/ { print $1; exit }')
write_config "$mjpeg"
rm -rf $work/data
"$program" --config $work/percept.toml --data-dir $work/data run > $work/log 2>&1 &
agent=$!
until_so 90 "the MJPEG camera captures" is camera running
until_so 60 "a scene in MJPEG is stored" has visual
kill -TERM $agent
wait $agent || fail "ended with $?"
echo "all as it should be"
