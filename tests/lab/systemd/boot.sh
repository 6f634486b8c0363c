#!/usr/bin/env bash
# Boots a virtual machine with systemd as its first process and runs the service in it: install, start, ready, reload,
# kill and restart, a hang that the watchdog ends, stop within 5 s, uninstall. Its root is this machine's, read-only under an overlay, so what is built
# here runs there; a test pattern (vivid) is its camera and a loopback (snd-aloop) its sound card.
#
# usage: boot.sh [PROGRAM]
#   PROGRAM   an executable percept; without one a stand-in that reports what the service lets it do (probe.py)
#   LAB_DIR   where kernel and initial file system are kept, default var/lab/systemd
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

here=$PWD
lab=${LAB_DIR:-var/lab/systemd}
modules=(virtio_pci 9pnet_virtio 9p overlay vivid snd-aloop)

ensure_packages qemu-system-x86 busybox-static cpio kmod systemd-sysv udev dbus python3
mkdir -p "$lab"
lab=$(cd "$lab" && pwd)

# Debian's own kernel, unpacked beside an initial file system that mounts the host's root and hands over to systemd.
make_boot_files() {
    local package release file module
    package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-6/ { print $2; exit }')
    release=${package#linux-image-}
    if [ -e "$lab/made-$release" ]; then return; fi
    say "unpacking $package"
    rm -rf "$lab/kernel" "$lab/first"
    (cd "$lab" && apt-get download -q "$package" && dpkg-deb -x "$package"_*.deb kernel && rm -f ./*.deb)
    cp "$lab/kernel/boot/vmlinuz-$release" "$lab/vmlinuz"
    depmod -b "$lab/kernel" "$release"
    mkdir -p "$lab"/first/{bin,m,proc,sys,dev,lower,over,root}
    cp /bin/busybox "$lab/first/bin/busybox"
    for module in "${modules[@]}"; do
        modprobe -d "$lab/kernel" -S "$release" --show-depends "$module" | awk '$1 == "insmod" { print $2 }'
    done | awk '!seen[$0]++' | while read -r file; do
        cp "$file" "$lab/first/m/"
        basename "$file"
    done > "$lab/first/m/order"
    cat > "$lab/first/init" <<'INIT'
#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc proc /proc; $B mount -t sysfs sys /sys; $B mount -t devtmpfs dev /dev
for m in $($B cat /m/order); do
    case $m in vivid.ko) o="n_devs=1 node_types=0x1 input_types=0x0 num_inputs=1" ;; *) o= ;; esac
    $B insmod /m/$m $o
done
o=trans=virtio,version=9p2000.L,msize=512000
$B mount -t 9p -o ro,cache=loose,$o host /lower
$B mount -t tmpfs tmpfs /over; $B mkdir /over/u /over/w
$B mount -t overlay -o lowerdir=/lower,upperdir=/over/u,workdir=/over/w overlay /root
$B mkdir -p /root/out; $B mount -t 9p -o rw,$o out /root/out
for d in proc sys dev; do $B mount -o move /$d /root/$d; done
$B mount -t tmpfs tmpfs /root/run
$B cp /root/out/lab.service /root/out/lab.target /root/etc/systemd/system/
exec $B switch_root /root /lib/systemd/systemd --unit=lab.target
INIT
    chmod +x "$lab/first/init"
    (cd "$lab/first" && find . | cpio -o -H newc --quiet | gzip -1) > "$lab/initrd.gz"
    touch "$lab/made-$release"
}

# What the machine does once it is up, in a folder that both sides see.
make_orders() {
    if [ -n "${1:-}" ]; then
        install -m 755 "$1" "$out/percept"
        touch "$out/is-real"
    else
        install -m 755 tests/lab/systemd/probe.py "$out/percept"
    fi
    cp tests/lab/systemd/boot_steps.sh "$out/steps.sh"
    cat > "$out/lab.target" <<'UNIT'
[Unit]
Requires=sysinit.target dbus.socket lab.service
After=sysinit.target dbus.socket
UNIT
    cat > "$out/lab.service" <<UNIT
[Unit]
After=sysinit.target dbus.socket
DefaultDependencies=no
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
WorkingDirectory=$here
ExecStart=/bin/bash /out/steps.sh
StandardOutput=file:/out/log
StandardError=inherit
UNIT
}

run_machine() {
    local share=security_model=none masks
    # What a first boot does for a machine that stays; this one does not.
    masks=$(printf ' systemd.mask=%s' systemd-hwdb-update.service ldconfig.service systemd-journal-catalog-update.service \
        systemd-update-done.service systemd-remount-fs.service systemd-sysusers.service systemd-random-seed.service)
    say "booting (one to five minutes)"
    timeout -k 5 600 qemu-system-x86_64 -M pc -accel tcg,thread=multi -cpu qemu64,+rdrand -smp 1 -m 1024 \
        -nodefaults -no-user-config -display none -no-reboot -serial file:"$out/console" \
        -kernel "$lab/vmlinuz" -initrd "$lab/initrd.gz" \
        -append "console=ttyS0 quiet mitigations=off nokaslr panic=-1 rdinit=/init systemd.show_status=no$masks" \
        -fsdev "local,id=host,path=/,$share,readonly=on,multidevs=remap" -device virtio-9p-pci,fsdev=host,mount_tag=host \
        -fsdev "local,id=out,path=$out,$share" -device virtio-9p-pci,fsdev=out,mount_tag=out < /dev/null
}

make_boot_files
out=$(mktemp -d "$lab/out.XXXX")
trap 'rm -rf "$out"' EXIT
make_orders "${1:-}"
run_machine || true
cat "$out/log" || true
if ! grep -qx 'all steps done' "$out/log"; then
    tail -n 20 "$out/console" || true
    fail "the service did not do all steps in the virtual machine"
fi
