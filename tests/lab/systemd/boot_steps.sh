#!/usr/bin/env bash
# The steps of boot.sh, inside the virtual machine, as root, in the checkout's folder.
set -euo pipefail

show() { systemctl show --value --property "$1" percept.service; }

# What the service said belongs to every failure.
fail() {
    journalctl --unit percept.service --no-pager --output cat || true
    echo "error: $*"
    exit 1
}

# wait_for PROPERTY VALUE
wait_for() {
    local turn
    for turn in $(seq 360); do
        if [ "$(show "$1")" = "$2" ]; then return; fi
        # A pause that ends early when the machine is asked to stop.
        timeout 0.5 tail -f /dev/null || true
    done
    fail "$1 is $(show "$1") after $((turn / 2)) s, not $2"
}

echo "up after $(cut -d. -f1 /proc/uptime) s"
PERCEPT_BINARY=/out/percept scripts/install.sh
[ "$(show UnitFileState)" = disabled ] || fail "it is $(show UnitFileState) after a first installation"

systemctl start percept.service || fail "it does not start"
echo "ready: $(show StatusText)"
for folder in /var/lib/percept /run/percept; do
    [ "$(stat -c '%U:%G %a' "$folder")" = "percept:percept 750" ] || fail "$folder: $(stat -c '%U:%G %a' "$folder")"
done

before=$(show MainPID)
systemctl reload percept.service
[ "$(show MainPID)" = "$before" ] || fail "a reload restarted it"

kill -9 "$before"
wait_for NRestarts 1
wait_for ActiveState active
echo "killed and back"

# Stopped, as by a debugger or a driver that never returns: the watchdog notices, and what was missed is written down.
if [ -e /out/is-real ]; then
    kill -STOP "$(show MainPID)"
    wait_for NRestarts 2
    wait_for ActiveState active
    timeout 40 tail -f /dev/null || true
    /out/percept stats --data-dir /var/lib/percept | tee /out/stats
    grep -q 'not.running' /out/stats || { cat /var/lib/percept/last-run.json; /out/percept status --format json --data-dir /var/lib/percept; fail "no coverage row tells of the time it was stopped"; }
    echo "hung, restarted by the watchdog"
fi

start=$(cut -d. -f1 /proc/uptime)
systemctl stop percept.service
seconds=$(($(cut -d. -f1 /proc/uptime) - start))
[ "$(show Result)" = success ] || fail "it ended with $(show Result)"
echo "stopped within $seconds s of this slow machine"

journalctl --unit percept.service --no-pager --output cat > /out/journal
if [ ! -e /out/is-real ]; then
    grep -q 'all as it should be' /out/journal || fail "the service allows too much or too little"
    grep -q 'reload was asked' /out/journal || fail "SIGHUP did not arrive"
fi
scripts/uninstall.sh
[ ! -e /usr/bin/percept ] || fail "uninstall.sh left the program"
[ -d /var/lib/percept ] || fail "uninstall.sh took the state"
echo "all steps done"
