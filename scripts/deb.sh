#!/usr/bin/env bash
# Makes Debian packages of percept with cargo-deb: for this machine's architecture, and for 64-bit ARM through cross.sh.
# Prints where they are: under target/debian.
#
# usage: deb.sh [--no-build] [amd64] [arm64]      both unless named
#   --no-build           takes the programs that are there
#   PERCEPT_DEB_PROFILE  cargo profile, default "dist" (link-time optimised, stripped)
#   CARGO_TARGET_DIR     as in cargo, default "target"
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

profile=${PERCEPT_DEB_PROFILE:-dist}
target_dir=${CARGO_TARGET_DIR:-target}
output=$target_dir/debian
# What the package's dependency on libc6 promises; a newer Debian may build for no older one.
glibc_max=2.36

architectures=()
build=yes
for word in "$@"; do
    case $word in
        --no-build) build=no ;;
        amd64 | arm64) architectures+=("$word") ;;
        *) fail "usage: deb.sh [--no-build] [amd64] [arm64]" ;;
    esac
done
if [ "${#architectures[@]}" -eq 0 ]; then architectures=(amd64 arm64); fi

ensure_cargo_deb() {
    if cargo deb --version > /dev/null 2>&1; then return; fi
    say "installing cargo-deb (several minutes)"
    cargo install cargo-deb --locked
}

triple_of() {
    case $1 in
        amd64) echo x86_64-unknown-linux-gnu ;;
        arm64) echo aarch64-unknown-linux-gnu ;;
    esac
}

# Whether cargo builds for this architecture without a cross compiler.
is_native() { [ "$(dpkg --print-architecture)" = "$1" ]; }

# build ARCHITECTURE: leaves the program where program_of says.
build() {
    if is_native "$1"; then
        say "building percept for $1 ($profile)"
        cargo build --locked --bin percept --profile "$profile"
    elif [ "$1" = arm64 ]; then
        PERCEPT_CROSS_PROFILE=$profile scripts/cross.sh build
    else
        fail "a package for $1 is made on a machine of that kind"
    fi
}

# Only cross.sh puts programs into a folder of their triple.
program_of() {
    if is_native "$1" && [ ! -e "$target_dir/$(triple_of "$1")/$profile/percept" ]; then
        echo "$target_dir/$profile/percept"
    else
        echo "$target_dir/$(triple_of "$1")/$profile/percept"
    fi
}

# The newest glibc that the program asks for is not above what the package promises.
check_glibc() {
    local newest
    newest=$(readelf --version-info "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    newest=${newest#GLIBC_}
    if [ "$(printf '%s\n%s\n' "$newest" "$glibc_max" | sort -V | tail -n 1)" != "$glibc_max" ]; then
        fail "$1 needs glibc $newest, the package promises $glibc_max: build on the oldest Debian it is meant for"
    fi
}

package() {
    local program target=()
    program=$(program_of "$1")
    if [ ! -x "$program" ]; then fail "there is no $program"; fi
    check_glibc "$program"
    case $program in
        "$target_dir/$(triple_of "$1")"/*) target=(--target "$(triple_of "$1")") ;;
    esac
    say "packing for $1"
    # The profile has stripped the program; the host's strip would not know an ARM one.
    cargo deb --no-build --no-strip --locked --profile "$profile" "${target[@]}" --output "$output/"
}

ensure_packages dpkg-dev binutils xz-utils
if [ "$build" = yes ]; then ensure_rust; fi
ensure_cargo_deb
mkdir -p "$output"
for architecture in "${architectures[@]}"; do
    if [ "$build" = yes ]; then build "$architecture"; fi
    package "$architecture"
done
for file in "$output"/*.deb; do
    say "$file"
    dpkg-deb --field "$file" Package Version Architecture Depends Recommends Installed-Size
done
