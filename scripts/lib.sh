# Shell functions that the scripts beside this file share. Source it; it runs nothing.
# shellcheck shell=bash

# Where the demo's media are; the Makefile may name another place.
export PERCEPT_DEMO_MEDIA=${PERCEPT_DEMO_MEDIA:-$PWD/var/demo/media}

# What a person reads while something long runs.
say() { printf '\033[1m==>\033[0m %s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Runs a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        fail "this step needs root, and there is no sudo: $*"
    fi
}

# Which of the named Debian packages are not installed, one a line.
missing_packages() {
    local name
    for name in "$@"; do
        dpkg-query -W -f '${Status}' "$name" 2> /dev/null | grep -q ' installed$' || echo "$name"
    done
}

# Installs the named Debian packages that are missing; asks apt nothing when none is.
ensure_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    if [ "${#missing[@]}" -eq 0 ]; then return; fi
    command -v apt-get > /dev/null || fail "please install: ${missing[*]} (this machine has no apt-get)"
    say "installing ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# A Rust toolchain on the PATH: with rustup the one that rust-toolchain.toml names, without it any that
# Cargo.toml allows. Installs rustup where there is neither.
ensure_rust() {
    local oldest pinned
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    if [ -d "$HOME/.cargo/bin" ]; then PATH=$HOME/.cargo/bin:$PATH; fi
    if ! command -v rustup > /dev/null; then
        if new_enough "$oldest"; then return; fi
        say "installing Rust with rustup (found: $(rust_version); needed: $oldest)"
        install_rustup
        PATH=$HOME/.cargo/bin:$PATH
    fi
    if rustup toolchain list | grep -q "^$pinned"; then return; fi
    say "installing Rust $pinned"
    if rustup toolchain install "$pinned" --profile minimal --component clippy --component rustfmt; then return; fi
    # Without the network, what is there may still do.
    RUSTUP_TOOLCHAIN=stable new_enough "$oldest" || fail "Rust $oldest or newer is needed and could not be installed"
    say "Rust $pinned cannot be had here: this folder takes $(RUSTUP_TOOLCHAIN=stable rust_version)"
    rustup override set stable
}

rust_version() { rustc --version 2> /dev/null | awk '{ print $2 }' || true; }

# new_enough OLDEST: whether the compiler on the PATH is OLDEST or newer.
new_enough() {
    local have
    have=$(rust_version)
    [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$1" "$have" | sort -V | head -n 1)" = "$1" ]
}

# The Rust project's own installer, checked against the hash beside it; changes only the user's home. Brings no
# toolchain of its own.
install_rustup() {
    local triple folder address=https://static.rust-lang.org/rustup/dist
    case $(uname -m) in
        x86_64) triple=x86_64-unknown-linux-gnu ;;
        # A 64-bit kernel under a 32-bit Raspberry Pi OS says aarch64 as well.
        aarch64) triple=$([ "$(dpkg --print-architecture)" = armhf ] && echo armv7-unknown-linux-gnueabihf || echo aarch64-unknown-linux-gnu) ;;
        armv7l) triple=armv7-unknown-linux-gnueabihf ;;
        *) fail "there is no known Rust for $(uname -m); install Rust yourself and try again" ;;
    esac
    folder=$(mktemp -d)
    curl --proto '=https' --tlsv1.2 -fsSL "$address/$triple/rustup-init" -o "$folder/rustup-init"
    curl --proto '=https' --tlsv1.2 -fsSL "$address/$triple/rustup-init.sha256" | awk '{ print $1 "  rustup-init" }' > "$folder/sum"
    (cd "$folder" && sha256sum --quiet -c sum)
    chmod +x "$folder/rustup-init"
    "$folder/rustup-init" -y --no-modify-path --default-toolchain none
    rm -rf "$folder"
}

# private_apt DIR ARCHITECTURES STATUS: sets APT_CONFIG so that apt-get and apt-cache work on lists of
# their own under DIR: this machine's Debian suites, sources included, at the addresses and with the
# keys of this machine's own settings. Needs no root and leaves the machine's lists alone.
# STATUS is the dpkg status file: the machine's own, or an empty one where nothing counts as installed.
private_apt() {
    local dir=$1 architectures=$2 status=$3 suite name found
    # shellcheck source=/dev/null
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    if [ -z "$suite" ]; then fail "this step takes packages from Debian, and this machine is not one"; fi
    mkdir -p "$dir"/etc/{sources.list.d,preferences.d} "$dir/state/lists/partial" "$dir/cache/archives/partial"
    dir=$(cd "$dir" && pwd)
    rm -f "$dir"/etc/sources.list.d/*
    for name in "$suite" "$suite-updates" "$suite-security"; do
        found=$(apt_source_of_suite "$name" | head -n 1)
        if [ -z "$found" ]; then continue; fi
        cat > "$dir/etc/sources.list.d/$name.sources" <<SOURCES
Types: deb deb-src
URIs: ${found%% *}
Suites: $name
Components: main
Architectures: $architectures
$([ -e "${found##* }" ] && echo "Signed-By: ${found##* }")
SOURCES
    done
    # shellcheck disable=SC2086  # one name a word
    cat > "$dir/conf" <<CONF
Dir::Etc "$dir/etc/";
Dir::Etc::parts "/etc/apt/apt.conf.d";
Dir::Etc::trustedparts "/etc/apt/trusted.gpg.d";
Dir::State "$dir/state";
Dir::State::status "$status";
Dir::Cache "$dir/cache";
APT::Architecture "${architectures%% *}";
APT::Architectures { $(printf '"%s"; ' $architectures)};
APT::Sandbox::User "root";
Acquire::Languages "none";
Debug::NoLocking "true";
CONF
    export APT_CONFIG=$dir/conf
    apt-get update -qq
}

# Lines "URI KEYRING" for a suite, from both forms of apt's source files.
apt_source_of_suite() {
    local wanted=$1 keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    {
        find /etc/apt/sources.list.d -name '*.sources' -exec awk -v want="$wanted" -v keyring="$keyring" '
            function flush() { if (uri != "" && match_suite && enabled) print uri, key; uri = ""; match_suite = 0; enabled = 1; key = keyring }
            BEGIN { enabled = 1; key = keyring }
            /^[[:space:]]*$/ { flush(); next }
            /^URIs:/ { uri = $2 }
            /^Enabled: *no/ { enabled = 0 }
            /^Signed-By: *\// { key = $2 }
            /^Suites:/ { for (i = 2; i <= NF; i++) if ($i == want) match_suite = 1 }
            END { flush() }' {} \;
        find /etc/apt -maxdepth 2 -name '*.list' -exec awk -v want="$wanted" -v keyring="$keyring" '
            $1 != "deb" { next }
            { key = keyring; if (match($0, /signed-by=[^] ]+/)) key = substr($0, RSTART + 10, RLENGTH - 10)
              sub(/\[[^]]*\] */, ""); if ($3 == want) print $2, key }' {} \;
    } 2> /dev/null || true
}

# The built program with the demo's configuration and store.
percept() { "${PERCEPT_PROGRAM:-${CARGO_TARGET_DIR:-target}/debug/percept}" "$@" --config config/demo.toml --data-dir "${data_dir:-var/demo/data}"; }
