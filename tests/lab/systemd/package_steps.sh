#!/usr/bin/env bash
# The steps of package.sh, inside its throw-away copy of the machine: /old.deb and /new.deb are the packages.
set -euo pipefail

fail() {
    echo "error: $*" >&2
    exit 1
}
installing=(dpkg --force-depends --force-confold -i)

dpkg --force-all --purge percept > /dev/null 2>&1 || true
rm -rf /etc/percept /var/lib/percept

"${installing[@]}" /old.deb
id percept > /dev/null || fail "there is no user percept"
[ "$(stat -c '%U %a' /var/lib/percept)" = "percept 750" ] || fail "/var/lib/percept: $(stat -c '%U %a' /var/lib/percept)"
[ "$(stat -c '%G %a' /etc/percept)" = "percept 750" ] || fail "/etc/percept: $(stat -c '%G %a' /etc/percept)"
[ "$(stat -c '%G %a' /etc/percept/percept.toml)" = "percept 640" ] || fail "percept.toml is readable by others"
[ ! -e /etc/systemd/system/multi-user.target.wants/percept.service ] || fail "it was enabled unasked"
dpkg-query -W -f '${Conffiles}' percept | grep -q /etc/percept/percept.toml || fail "percept.toml is no conffile"

systemctl --quiet enable percept.service
echo '# mine' >> /etc/percept/percept.toml
touch /var/lib/percept/memory.db
"${installing[@]}" /new.deb
grep -q '^# mine' /etc/percept/percept.toml || fail "the update overwrote the config"
[ -e /etc/systemd/system/multi-user.target.wants/percept.service ] || fail "the update disabled the service"
[ "$(stat -c '%G %a' /etc/percept/percept.toml)" = "percept 640" ] || fail "the update opened the config"

dpkg --remove percept
[ ! -e /usr/bin/percept ] || fail "the program is still there"
[ -e /var/lib/percept/memory.db ] || fail "removing took the store"
[ -e /etc/percept/percept.toml ] || fail "removing took the config"
[ ! -L /etc/systemd/system/multi-user.target.wants/percept.service ] || fail "it is still enabled"
dpkg --purge percept
[ ! -e /var/lib/percept ] || fail "purging left the store"
[ ! -e /etc/percept ] || fail "purging left the config"
echo "install, update, remove and purge: as they should be"
