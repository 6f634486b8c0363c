#!/usr/bin/env bash
# Removes what install.sh put there. What percept remembered (/var/lib/percept) and its settings (/etc/percept) stay,
# unless PURGE=1; the user percept stays in any case, since files elsewhere may be its.
#
# usage: uninstall.sh   (PREFIX and DESTDIR as given to install.sh; PURGE=1)
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

prefix=${PREFIX:-/usr}
destdir=${DESTDIR:-}

if [ -z "$destdir" ]; then
    if [ "$(id -u)" -ne 0 ]; then fail "this needs root: sudo make uninstall (or DESTDIR=FOLDER)"; fi
    if [ -z "$(missing_packages percept)" ]; then
        fail "percept was installed as a Debian package: 'apt remove percept'"
    fi
    if [ -d /run/systemd/system ] && [ -e "$prefix/lib/systemd/system/percept.service" ]; then
        systemctl disable --now percept.service
    fi
fi

rm -f "$destdir$prefix/bin/percept" \
    "$destdir$prefix/lib/systemd/system/percept.service" \
    "$destdir$prefix/lib/sysusers.d/percept.conf" \
    "$destdir$prefix/lib/tmpfiles.d/percept.conf"
rm -rf "$destdir$prefix/share/doc/percept"
if [ -z "$destdir" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi

if [ "${PURGE:-}" = 1 ]; then
    # A state directory that is a mounted volume is emptied and stays.
    rm -rf --one-file-system "$destdir/etc/percept" "$destdir/var/lib/percept" \
        || say "not all of /var/lib/percept could be removed"
    say "removed, with settings and everything remembered"
else
    say "removed; settings and everything remembered are still in /etc/percept and /var/lib/percept"
fi
