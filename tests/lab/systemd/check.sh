#!/usr/bin/env bash
# Checks the service file, its user and folders, and what `make install` and `make uninstall` do, without touching the
# running system: everything happens in a temporary folder.
#
# usage: check.sh
#   PERCEPT_BINARY  program to install, default a stand-in
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# Highest exposure that `systemd-analyze security` may find, in tenths.
exposure_max=30

ensure_packages systemd
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${PERCEPT_BINARY:-}" ]; then
    printf '#!/bin/sh\nexit 0\n' > "$work/percept"
    chmod 755 "$work/percept"
    export PERCEPT_BINARY=$work/percept
fi

check_service() {
    local said unit=$work/unit/percept.service
    mkdir -p "$work/unit"
    # The program is not installed here; everything else is checked as it stands.
    sed "s|^ExecStart=/usr/bin/percept|ExecStart=$PERCEPT_BINARY|" systemd/percept.service > "$unit"
    said=$(systemd-analyze verify "$unit" 2>&1) || fail "systemd-analyze verify: $said"
    if [ -n "$said" ]; then fail "systemd-analyze verify is not silent: $said"; fi
    say "systemd-analyze verify: clean"
    if ! systemd-analyze security --no-pager --offline=true --threshold="$exposure_max" "$unit" > "$work/security"; then
        cat "$work/security"
        fail "the service is more exposed than $exposure_max tenths"
    fi
    say "$(tail -n 1 "$work/security")"
}

# What the service must keep doing, whatever is hardened later.
check_promises() {
    local line
    # shellcheck disable=SC2016  # $MAINPID is systemd's
    for line in Type=notify NotifyAccess=main WatchdogSec=60 'ExecStart=/usr/bin/percept run' \
        'ExecReload=/bin/kill -HUP $MAINPID' StateDirectory=percept RuntimeDirectory=percept User=percept \
        'SupplementaryGroups=audio video bluetooth' Restart=always DevicePolicy=closed \
        'DeviceAllow=char-alsa rw' 'DeviceAllow=char-video4linux rw'; do
        grep -qxF "$line" systemd/percept.service || fail "percept.service lacks: $line"
    done
    grep -q '^RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6' systemd/percept.service \
        || fail "percept.service needs D-Bus, gpsd and the upload"
    if grep -Eq '^(PrivateDevices|PrivateNetwork|ProtectClock)=(yes|true)' systemd/percept.service; then
        fail "percept.service hides what percept needs"
    fi
    say "the service file keeps its promises"
}

# check_user ROOT: the user and the folders come out of the two files that were installed into ROOT.
check_user() {
    local root=$1
    systemd-sysusers --root="$root" percept.conf
    grep -q '^percept:.*:/var/lib/percept:' "$root/etc/passwd" || fail "there is no user percept"
    local group
    for group in audio video bluetooth; do
        grep -Eq "^$group:.*[:,]percept(,|\$)" "$root/etc/group" || fail "percept is not in the group $group"
    done
    as_root systemd-tmpfiles --root="$root" --create percept.conf
    expect_mode "$root/var/lib/percept" 750
    expect_mode "$root/etc/percept" 750
    expect_mode "$root/etc/percept/percept.toml" 640
    say "user, groups and folders: as they should be"
}

expect_mode() {
    local mode
    mode=$(as_root stat -c %a "$1") || fail "there is no $1"
    [ "$mode" = "$2" ] || fail "$1 has mode $mode instead of $2"
}

check_install() {
    local root=$work/root file
    DESTDIR=$root scripts/install.sh > "$work/said"
    for file in usr/bin/percept usr/lib/systemd/system/percept.service usr/lib/sysusers.d/percept.conf \
        usr/lib/tmpfiles.d/percept.conf usr/share/doc/percept/LICENSE usr/share/doc/percept/percept.toml \
        usr/share/doc/percept/living-unattended.md etc/percept/percept.toml; do
        [ -e "$root/$file" ] || fail "install.sh did not install $file"
    done
    cmp -s systemd/percept.service "$root/usr/lib/systemd/system/percept.service" \
        || fail "the installed service file differs at the default prefix"
    check_user "$root"

    # The tree belongs to root from here on where this script does not.
    as_root sh -c "echo '# mine' >> '$root/etc/percept/percept.toml'; touch '$root/var/lib/percept/memory.db'"
    as_root env DESTDIR="$root" PERCEPT_BINARY="$PERCEPT_BINARY" scripts/install.sh > "$work/said"
    as_root grep -q '^# mine' "$root/etc/percept/percept.toml" || fail "install.sh overwrote the config"

    as_root env DESTDIR="$root" scripts/uninstall.sh > "$work/said"
    if [ -e "$root/usr/bin/percept" ] || [ -e "$root/usr/share/doc/percept" ]; then fail "uninstall.sh left files"; fi
    as_root test -e "$root/etc/percept/percept.toml" || fail "uninstall.sh took the config"
    as_root test -e "$root/var/lib/percept/memory.db" || fail "uninstall.sh took the store"
    as_root env DESTDIR="$root" PURGE=1 scripts/uninstall.sh > "$work/said"
    if [ -e "$root/etc/percept" ] || [ -e "$root/var/lib/percept" ]; then fail "PURGE=1 left something"; fi
    as_root chown -R "$(id -u)" "$root"
    say "install and uninstall: as they should be"
}

check_prefix() {
    local root=$work/local
    DESTDIR=$root PREFIX=/usr/local scripts/install.sh > "$work/said"
    grep -qx 'ExecStart=/usr/local/bin/percept run' "$root/usr/local/lib/systemd/system/percept.service" \
        || fail "PREFIX did not reach the service file"
    if DESTDIR=$root PREFIX='/a|b' scripts/install.sh > "$work/said" 2>&1; then fail "a wrong PREFIX was taken"; fi
    say "another prefix: as it should be"
}

check_service
check_promises
check_install
check_prefix
