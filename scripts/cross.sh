#!/usr/bin/env bash
# Builds percept for 64-bit ARM (Raspberry Pi) on this machine and tries the result on the demo session.
#
# The standard library for aarch64 comes from rustup where its servers answer, else from Debian
# (scripts/cross_toolchain.sh); CROSS_TOOLCHAIN=debian or =rustup asks for one of them.
# "compare" replays the demo with this machine's own build, and with the ARM build under qemu:
# both have to give the same episodes with the same sound classes.
#
# usage: cross.sh build | compare
#   PERCEPT_CROSS_PROFILE   cargo profile, default "release"
#   CARGO_TARGET_DIR        as in cargo, default "target"
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

triple=aarch64-unknown-linux-gnu
sysroot=/usr/aarch64-linux-gnu
profile=${PERCEPT_CROSS_PROFILE:-release}
target_dir=${CARGO_TARGET_DIR:-target}
# Absolute: pkg-config puts it in front of paths that cargo uses elsewhere.
libraries=$(realpath -m "$target_dir")/cross-libraries
program=$target_dir/$triple/$([ "$profile" = dev ] && echo debug || echo "$profile")/percept

is_arm() { [ "$(uname -m)" = aarch64 ]; }

build() {
    ensure_rust
    if ! is_arm; then
        ensure_packages gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross clang libclang-dev pkg-config
        choose_toolchain
        fetch_libraries
        # ring, blake3 and SQLite compile C, usearch C++: they take the compilers from these names.
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
        export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
        export CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
        export AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
        # cpal links ALSA's library, nokhwa reads the kernel's headers for V4L2.
        export PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR=$libraries
        export PKG_CONFIG_LIBDIR=$libraries/usr/lib/aarch64-linux-gnu/pkgconfig
        export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="--sysroot=$sysroot -I$sysroot/include"
    fi
    say "building percept for $triple ($profile)"
    cargo build --locked --bin percept --target "$triple" --profile "$profile"
    say "built $program ($(($(stat -c %s "$program") / 1024 / 1024)) MiB)"
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

# Debian's ALSA library for arm64, unpacked beside the build and installed nowhere.
fetch_libraries() {
    if [ -e "$libraries/complete" ]; then return; fi
    say "fetching ALSA's library for arm64"
    rm -rf "$libraries"
    mkdir -p "$libraries/deb"
    (
        touch "$libraries/no-packages"
        private_apt "$libraries/apt" "arm64" "$libraries/no-packages"
        cd "$libraries/deb"
        # Debian 13 renamed the library.
        runtime=$(apt-cache depends libasound2-dev | awk '/Depends: libasound2/ { print $2; exit }')
        apt-get download -q libasound2-dev "$runtime"
        for package in ./*.deb; do dpkg-deb -x "$package" "$libraries"; done
    )
    touch "$libraries/complete"
}

# Prints the emulator's name, installing it where it is missing.
emulator() {
    local name package
    for name in qemu-aarch64-static qemu-aarch64; do
        if command -v "$name"; then return; fi
    done
    # Debian 13 renamed the package.
    for package in qemu-user-static qemu-user; do
        if [ -n "$(apt-cache policy "$package" | awk '/Candidate: [0-9]/')" ]; then break; fi
    done
    ensure_packages "$package" >&2
    command -v qemu-aarch64-static || command -v qemu-aarch64 || fail "no qemu for aarch64 was found"
}

compare() {
    local sessions=(var/demo/session/home var/demo/session/sail.log)
    say "replaying the demo with this machine's build"
    data_dir=var/cross/native
    remember "${sessions[@]}"
    say "replaying the demo with the ARM build"
    local wrapper=$program
    if ! is_arm; then
        wrapper=var/cross/percept-arm
        printf '#!/bin/sh\nexec %s -L %s -E LD_LIBRARY_PATH=%s %s "$@"\n' "$(emulator)" "$sysroot" \
            "$libraries/usr/lib/aarch64-linux-gnu" "$program" > "$wrapper"
        chmod +x "$wrapper"
    fi
    data_dir=var/cross/arm
    PERCEPT_PROGRAM=$wrapper remember "${sessions[@]}"
    python3 scripts/same_episodes.py var/cross/native/episodes.jsonl var/cross/arm/episodes.jsonl
}

# Replays into a fresh store and writes its episodes beside it.
remember() {
    rm -rf "$data_dir"
    mkdir -p "$data_dir"
    percept replay "$@"
    percept episodes --format jsonl > "$data_dir/episodes.jsonl"
}

case ${1:-} in
    build) build ;;
    compare) compare ;;
    *) fail "usage: cross.sh build | compare" ;;
esac
