#!/usr/bin/env bash
# Runs a command in the lab's machine, as root, on this machine's own files (read-only, under a layer in memory).
#
# usage: run.sh [-m "MODULES"] [-t SECONDS] [-o DIR] COMMAND
#   -m  modules that stand for hardware, of: vivid v4l2loopback snd-aloop hci_vhci uhid uvcvideo and the algorithms that
#       bluetoothd wants (algif_skcipher algif_hash cmac ecb); default: vivid. `bluetooth` stands for those five.
#   -t  longest run, default 300 s
#   -o  keep what the command writes to /out, the log and the console there
# COMMAND is read by bash. Inside: /run/lab/modules/load MODULE [OPTION…] plugs hardware in, rmmod unplugs it; the folder
# of this script is the same as outside. The options of modules: PERCEPT_LAB_VIVID, _V4L2LOOPBACK, _SND_ALOOP.
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

modules=vivid limit_s=300 keep=
while getopts m:t:o: option; do
    case $option in
        m) modules=$OPTARG ;;
        t) limit_s=$OPTARG ;;
        o) keep=$OPTARG ;;
        *) fail "usage: run.sh [-m MODULES] [-t SECONDS] [-o DIR] COMMAND" ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || fail "usage: run.sh [-m MODULES] [-t SECONDS] [-o DIR] COMMAND"
modules=${modules/bluetooth/algif_skcipher algif_hash cmac ecb hci_vhci}

vm=${PERCEPT_LAB_VM:-$PWD/var/lab/vm}
tests/lab/vm/build.sh
out=$(mktemp -d "$vm/out.XXXX")
trap 'rm -rf "$out"' EXIT
printf 'cd %q\n%s\n' "$PWD" "$1" > "$out/command"
cat > "$out/settings" << SETTINGS
lab_modules="$modules"
lab_options_vivid="${PERCEPT_LAB_VIVID-n_devs=1 node_types=0x1 input_types=0x0 num_inputs=1 vid_cap_nr=0}"
lab_options_v4l2loopback="${PERCEPT_LAB_V4L2LOOPBACK-video_nr=5 card_label=LabCam exclusive_caps=0}"
lab_options_snd_aloop="${PERCEPT_LAB_SND_ALOOP-index=0}"
SETTINGS
: > "$out/log"

started=$SECONDS
tail -n +1 -f "$out/log" &
shows=$!
# Emulated, not virtualised: the same everywhere, and it needs no device of the host's.
timeout -k 5 "$limit_s" qemu-system-x86_64 -M pc -accel tcg,thread=multi -cpu qemu64,+rdrand,+ssse3,+sse4.1,+sse4.2,+popcnt \
    -smp 1 -m 1536 -nodefaults -no-user-config -display none -no-reboot -serial "file:$out/console" \
    -kernel "$vm/vmlinuz" -initrd "$vm/initrd.gz" \
    -append "console=ttyS0 quiet loglevel=4 mitigations=off nokaslr panic=-1 random.trust_cpu=on rdinit=/init" \
    -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap -device virtio-9p-pci,fsdev=host,mount_tag=host \
    -fsdev local,id=out,path="$out",security_model=none -device virtio-9p-pci,fsdev=out,mount_tag=out < /dev/null || true
# What was written last still has to be shown.
sleep 0.5
kill "$shows"
wait "$shows" 2> /dev/null || true

code=$(cat "$out/code" 2> /dev/null || echo 99)
if [ "$code" = 99 ]; then
    echo "the machine did not come to an end; its console:" >&2
    tail -n 20 "$out/console" >&2
fi
say "the lab's machine ran for $((SECONDS - started)) s (booted after $(cat "$out/booted" 2> /dev/null || echo '?') s), code $code"
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    cp -r "$out/." "$keep/"
fi
exit "$code"
