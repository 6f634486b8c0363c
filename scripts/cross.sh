#!/usr/bin/env bash
# Builds percept for 64-bit ARM (Raspberry Pi) on this machine and tries the result on the demo session.
#
# The standard library for aarch64 comes from rustup where its servers answer, else from Debian
# (scripts/cross_toolchain.sh); CROSS_TOOLCHAIN=debian or =rustup asks for one of them.
# The built program replays the demo session under qemu-user; each audio class and each count of
# episodes must be the one that this machine's own build gives.
#
# usage: cross.sh build | compare
#   PERCEPT_CROSS_PROFILE   cargo profile, default "release"
#   CARGO_TARGET_DIR        as in cargo, default "target"
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

triple=aarch64-unknown-linux-gnu
profile=${PERCEPT_CROSS_PROFILE:-release}
target_dir=${CARGO_TARGET_DIR:-target}
program=$target_dir/$triple/$([ "$profile" = dev ] && echo debug || echo "$profile")/percept

build() {
    ensure_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    ensure_rust
    choose_toolchain
    say "building percept for $triple ($profile)"
    # ring, blake3 and SQLite compile C: they take the compiler from these names.
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
    export AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
    cargo build --locked --bin percept --target "$triple" --profile "$profile"
    file_size=$(stat -c %s "$program")
    say "built $program ($((file_size / 1024 / 1024)) MiB)"
}

# Leaves RUSTC set when the library comes from Debian.
choose_toolchain() {
    local wanted=${CROSS_TOOLCHAIN:-any}
    if [ "$wanted" != debian ] && command -v rustup > /dev/null; then
        if rustup target list --installed | grep -qx "$triple"; then return; fi
        say "adding rustup's standard library for $triple"
        if timeout 300 rustup target add "$triple"; then return; fi
    fi
    if [ "$wanted" = rustup ]; then fail "rustup could not add $triple"; fi
    say "taking the standard library from Debian's rustc-web"
    scripts/cross_toolchain.sh "$target_dir/cross-toolchain"
    # rustup's choice of a toolchain would not know this compiler.
    unset RUSTUP_TOOLCHAIN
    RUSTC=$(cd "$target_dir/cross-toolchain" && pwd)/rustc
    export RUSTC
}

case ${1:-} in
    build) build ;;
    *) fail "usage: cross.sh build | compare" ;;
esac
