#!/usr/bin/env bash
# A Rust toolchain of this machine that builds for aarch64, without rustup's servers.
#
# Unpacks Debian's newest rustc for this machine and the matching aarch64 standard library (package
# rustc-web) into DIR. Nothing is installed, and the machine's own package lists are not touched.
# Leaves DIR/rustc, a compiler that cargo takes through the variable RUSTC. A second call returns at once.
#
# usage: cross_toolchain.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

dir=${1:?usage: cross_toolchain.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if [ -e "$dir/complete" ]; then exit 0; fi

say "reading Debian's package lists for this machine and arm64"
mkdir -p "$dir/root" "$dir/deb"
touch "$dir/no-packages"
private_apt "$dir/apt" "$(dpkg --print-architecture) arm64" "$dir/no-packages"
version=$(apt-cache policy rustc-web | awk '/Candidate:/ { print $2 }')
if [ -z "$version" ] || [ "$version" = "(none)" ]; then
    fail "this Debian has no package rustc-web; 'rustup target add aarch64-unknown-linux-gnu' is the other way"
fi
short=$(echo "$version" | cut -d. -f1,2)
llvm=$(apt-cache depends libstd-rust-web-"$short" | awk '/Depends: libllvm/ { print $2; exit }')

say "downloading rustc $version and its aarch64 library (about 130 MB)"
cd "$dir/deb"
rm -f ./*.deb
# shellcheck disable=SC2086  # no word where this rustc has its own LLVM
apt-get download -q \
    "rustc-web=$version" "libstd-rust-web-$short=$version" "libstd-rust-web-dev=$version" \
    "libstd-rust-web-dev:arm64=$version" $llvm
for package in ./*.deb; do dpkg-deb -x "$package" "$dir/root"; done
rm -f ./*.deb

libraries=$dir/root/usr/lib/$(gcc -print-multiarch)
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$libraries" "$dir/root/usr/bin/rustc" > "$dir/rustc"
chmod +x "$dir/rustc"
"$dir/rustc" -V
touch "$dir/complete"
