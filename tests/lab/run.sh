#!/usr/bin/env bash
# The lab: live sensors without hardware. Runs every part, or those named; what this machine lacks is skipped by name, and
# in CI a skip is a failure.
#
# usage: run.sh [PART…]   parts: systemd agent mcp vm
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

export PERCEPT_PROGRAM=${PERCEPT_PROGRAM:-$(realpath "${CARGO_TARGET_DIR:-target}")/debug/percept}
lab=tests/lab
passed=0 failed=0 skipped=0

count() {
    local name=$1
    shift
    say "lab: $name"
    if "$@"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED $name"
    fi
}

skip() {
    skipped=$((skipped + 1))
    echo "SKIPPED $1: $2"
}

part_systemd() {
    if ! command -v systemd-analyze > /dev/null && [ "$(id -u)" -ne 0 ]; then
        skip systemd "systemd-analyze is not here"
        return
    fi
    count "systemd unit" $lab/systemd/check.sh
}

part_agent() {
    ensure_packages pulseaudio pulseaudio-utils libasound2-plugins alsa-utils gpsd gpsd-clients python3-gps \
        dbus python3-dbus python3-gi sox libsox-fmt-base util-linux procps
    count "four live paths" /usr/bin/python3 $lab/agent/live.py
}

part_mcp() {
    ensure_packages python3 python3-venv
    local environment=var/lab/mcp-venv wanted=$lab/mcp/requirements.txt
    if ! [ "$environment/complete" -nt "$wanted" ]; then
        say "making a Python environment with the official MCP client"
        rm -rf "$environment"
        /usr/bin/python3 -m venv "$environment"
        if ! "$environment/bin/pip" install --quiet --progress-bar off -r "$wanted"; then
            skip mcp "the official SDK's client could not be installed"
            return
        fi
        touch "$environment/complete"
    fi
    count "percept mcp and the official client" "$environment/bin/python" $lab/mcp/client.py
}

part_vm() {
    if [ "$(uname -m)" != x86_64 ]; then
        skip vm "the lab's machine is an x86-64 one, and this is $(uname -m)"
        return
    fi
    count "cameras, sound card and controllers in a virtual machine" $lab/vm/percept.sh
}

for part in "${@:-systemd agent mcp vm}"; do
    for name in $part; do "part_$name"; done
done
if [ "${CI:-}" = true ] && [ "$skipped" -gt 0 ]; then failed=$((failed + skipped)); fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
