#!/usr/bin/env bash
# Installs, updates, removes and purges a Debian package of percept in a throw-away copy of this machine (an overlay in
# a mount namespace of its own), and checks what each step leaves
# (package_steps.sh). Needs root.
#
# usage: package.sh [FILE.deb]
#   Without a file it packs the tree that install.sh makes with the maintainer scripts of packaging/debian.
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

[ "$(id -u)" -eq 0 ] || fail "package.sh needs root"

# Inside the namespace: a fresh overlay over the machine's root, and the steps in it.
if [ "${1:-}" = --inside ]; then
    work=$2 old=$3 new=$4
    mount -t tmpfs tmpfs "$work/over"
    mkdir "$work/over/upper" "$work/over/work" "$work/over/root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$work/over/upper,workdir=$work/over/work" "$work/over/root"
    mount --rbind /proc "$work/over/root/proc"
    mount --rbind /dev "$work/over/root/dev"
    cp "$old" "$work/over/root/old.deb"
    cp "$new" "$work/over/root/new.deb"
    cp tests/lab/systemd/package_steps.sh "$work/over/root/steps.sh"
    exec chroot "$work/over/root" bash /steps.sh
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/over"

# pack VERSION: a package without cargo-deb, as near to its own as the parts allow.
pack() {
    local tree=$work/tree-$1
    printf '#!/bin/sh\nexit 0\n' > "$work/percept"
    chmod 755 "$work/percept"
    DESTDIR=$tree PERCEPT_BINARY=$work/percept scripts/install.sh > "$work/said"
    mkdir "$tree/DEBIAN"
    install -m 755 packaging/debian/* "$tree/DEBIAN/"
    echo /etc/percept/percept.toml > "$tree/DEBIAN/conffiles"
    printf 'Package: percept\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: test\n' \
        "$1" > "$tree/DEBIAN/control"
    # Another default in each version, so that an update has a reason to ask.
    echo "# $1" >> "$tree/etc/percept/percept.toml"
    dpkg-deb --root-owner-group --build "$tree" "$work/percept-$1.deb" > "$work/said"
}

if [ -n "${1:-}" ]; then
    old=$(realpath "$1") new=$(realpath "$1")
else
    pack 0.0.1
    pack 0.0.2
    old=$work/percept-0.0.1.deb new=$work/percept-0.0.2.deb
fi
unshare --mount --propagation private tests/lab/systemd/package.sh --inside "$work" "$old" "$new"
