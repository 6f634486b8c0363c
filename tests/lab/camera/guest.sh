#!/usr/bin/env bash
# Inside the lab's machine (tests/lab/vm/run.sh -m ""): cameras that are plugged in and out. Source it.
#   camera_plug [NUMBER]      a camera (vivid) as /dev/videoNUMBER, 0 if not said
#   camera_unplug             it is gone; waits for whoever holds it, at most 10 s
#   loopback_plug             a camera as /dev/video5 that shows what it is fed with
#   loopback_feed JPEG|GREY|YUYV|NV12|RGB3 WIDTH HEIGHT SECONDS   frames for it, JPEGs padded; in the background
#   loopback_unplug

camera_plug() {
    "$LAB_MODULES/load" vivid n_devs=1 node_types=0x1 input_types=0x0 num_inputs=1 "vid_cap_nr=${1:-0}"
}

# A module that is held cannot be taken out: the device under it is, as a pulled plug does it.
camera_unplug() {
    local device=/sys/bus/platform/drivers/vivid
    if [ -e "$device/vivid.0" ]; then echo vivid.0 > "$device/unbind"; fi
    lab_unload vivid
}

loopback_plug() {
    "$LAB_MODULES/load" v4l2loopback video_nr=5 card_label=LabCam exclusive_caps=0
}

loopback_feed() {
    tests/lab/vm/guest_feed.py /dev/video5 "$@" &
}

loopback_unplug() { lab_unload v4l2loopback; }

lab_unload() {
    local tries=100
    until rmmod "$1" 2> /dev/null; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "$1 is still held" >&2; return 1; }
        sleep 0.1
    done
}
