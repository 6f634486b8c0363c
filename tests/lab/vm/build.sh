#!/usr/bin/env bash
# Makes the lab's virtual machine: Debian's own kernel, and a first filesystem with the modules that stand for hardware
# (vivid and v4l2loopback for cameras, snd-aloop for a sound card, hci_vhci for Bluetooth controllers).
# The kernel is downloaded and unpacked, never installed. What is there is not made again.
#
# usage: build.sh        the result is under var/lab/vm, or where PERCEPT_LAB_VM says
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

here=$PWD/tests/lab/vm
vm=${PERCEPT_LAB_VM:-$PWD/var/lab/vm}
stock="virtio_pci 9pnet_virtio 9p overlay vivid snd-aloop uvcvideo algif_skcipher algif_hash cmac ecb hci_vhci uhid"

ensure_packages qemu-system-x86 busybox-static cpio kmod gcc make libc6-dev
[ "$(uname -m)" = x86_64 ] || fail "the lab's machine is an x86-64 one, and this is $(uname -m)"

kernel_package() {
    apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-[0-9]/ { print $2; exit }'
}

# unpack PACKAGE FOLDER: the files of a Debian package, without installing it.
unpack() {
    local package=$1 folder=$2 work
    work=$(mktemp -d "$vm/apt.XXXX")
    (cd "$work" && apt-get -o APT::Sandbox::User=root download -q "$package" > /dev/null && dpkg-deb -x ./*.deb unpacked)
    rm -rf "$folder"
    mv "$work/unpacked" "$folder"
    rm -rf "$work"
}

# Debian's v4l2loopback, compiled for the lab's kernel.
build_loopback() {
    local version=$1 source
    ensure_packages "linux-headers-$version"
    unpack v4l2loopback-dkms "$vm/loopback"
    source=$(dirname "$(find "$vm/loopback/usr/src" -name v4l2loopback.c)")
    make -s -C "/usr/src/linux-headers-$version" M="$source" modules > "$vm/loopback.log" 2>&1 \
        || fail "v4l2loopback does not compile, see $vm/loopback.log"
    install -D "$source/v4l2loopback.ko" "$vm/kernel/lib/modules/$version/extra/v4l2loopback.ko"
}

# Copies a module and all it needs, and writes down their order.
add_module() {
    local version=$1 name=$2 file
    modprobe -d "$vm/kernel" -S "$version" --show-depends "$name" | awk '$1 == "insmod" { print $2 }' | while read -r file; do
        cp -n "$file" "$vm/first/modules/"
        basename "$file"
    done > "$vm/first/modules/$name.order"
}

pack() {
    local version=$1 name
    rm -rf "$vm/first"
    mkdir -p "$vm"/first/{bin,modules,proc,sys,dev,lower,upper,root}
    cp /bin/busybox "$vm/first/bin/busybox"
    cp "$here/init.sh" "$vm/first/init"
    cp "$here/load.sh" "$vm/first/modules/load"
    chmod +x "$vm/first/init" "$vm/first/modules/load"
    for name in $stock v4l2loopback; do add_module "$version" "$name"; done
    (cd "$vm/first" && find . | cpio -o -H newc --quiet | gzip -1) > "$vm/initrd.gz.new"
    mv "$vm/initrd.gz.new" "$vm/initrd.gz"
}

started=$SECONDS
mkdir -p "$vm"
package=$(kernel_package)
[ -n "$package" ] || { as_root apt-get update -qq; package=$(kernel_package); }
version=${package#linux-image-}
if [ "$(cat "$vm/version" 2> /dev/null)" != "$version" ]; then
    say "unpacking $package and compiling v4l2loopback"
    unpack "$package" "$vm/kernel"
    build_loopback "$version"
    depmod -b "$vm/kernel" "$version"
    cp "$vm/kernel/boot/vmlinuz-$version" "$vm/vmlinuz"
    rm -f "$vm/initrd.gz"
    echo "$version" > "$vm/version"
fi
if [ ! -e "$vm/initrd.gz" ] || [ -n "$(find "$here/init.sh" "$here/load.sh" "$here/build.sh" -newer "$vm/initrd.gz")" ]; then
    pack "$version"
fi
say "the lab's machine is ready: kernel $version, $((SECONDS - started)) s"
