#!/usr/bin/env bash
# Installs the built program, its service and its documentation.
#
# The paths are those of the Debian package, so that the service file and the documentation hold for both; where the
# package is installed this refuses. An existing /etc/percept/percept.toml is left alone. Nothing is enabled or started:
# a microphone is switched on by a person.
#
# usage: install.sh
#   PREFIX          where program and documentation go, default /usr; /usr/local keeps them apart from the system's
#   DESTDIR         a folder to install into instead of this machine; nothing of the running system is touched then
#   PERCEPT_BINARY  the program, default target/release/percept
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

prefix=${PREFIX:-/usr}
destdir=${DESTDIR:-}
binary=${PERCEPT_BINARY:-${CARGO_TARGET_DIR:-target}/release/percept}

case $prefix in
    /*[!A-Za-z0-9/._-]* | *[!A-Za-z0-9/._-]*) fail "PREFIX=$prefix has a character that a service file cannot take" ;;
    /*) ;;
    *) fail "PREFIX=$prefix must begin with /" ;;
esac
if [ ! -x "$binary" ]; then fail "there is no $binary: 'cargo build --release' first"; fi
if [ -z "$destdir" ]; then
    if [ "$(id -u)" -ne 0 ]; then fail "this needs root: sudo make install (or DESTDIR=FOLDER)"; fi
    if [ -z "$(missing_packages percept)" ]; then
        fail "the Debian package percept is installed: update that, or 'apt remove percept' first"
    fi
fi

# put MODE SOURCE TARGET
put() { install -D -m "$1" "$2" "$destdir$3"; }

put 755 "$binary" "$prefix/bin/percept"
put 644 systemd/percept.service "$prefix/lib/systemd/system/percept.service"
sed -i -e "s|^ExecStart=/usr/bin/|ExecStart=$prefix/bin/|" -e "s|file:/usr/share/|file:$prefix/share/|" \
    "$destdir$prefix/lib/systemd/system/percept.service"
put 644 systemd/sysusers.d/percept.conf "$prefix/lib/sysusers.d/percept.conf"
put 644 systemd/tmpfiles.d/percept.conf "$prefix/lib/tmpfiles.d/percept.conf"
put 644 LICENSE "$prefix/share/doc/percept/LICENSE"
put 644 README.md "$prefix/share/doc/percept/README.md"
for page in living-unattended user-guide schema session-format; do
    put 644 "docs/$page.md" "$prefix/share/doc/percept/$page.md"
done
put 644 config/percept.toml "$prefix/share/doc/percept/percept.toml"
if [ ! -e "$destdir/etc/percept/percept.toml" ]; then put 640 packaging/percept.toml /etc/percept/percept.toml; fi

if [ -n "$destdir" ]; then
    say "installed into $destdir"
    exit 0
fi
if command -v systemd-sysusers > /dev/null; then
    systemd-sysusers "$prefix/lib/sysusers.d/percept.conf"
    systemd-tmpfiles --create "$prefix/lib/tmpfiles.d/percept.conf"
else
    say "there is no systemd-sysusers: please make the user that $prefix/lib/sysusers.d/percept.conf names"
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # An update takes effect at once; a first installation waits for a person.
    systemctl try-restart percept.service
fi
say "installed. Next: 'sudo -u percept percept doctor', then 'sudo systemctl enable --now percept'"
