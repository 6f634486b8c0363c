#!/usr/bin/python3
"""Stands in for percept in boot.sh: says what the service lets it do, and behaves as a notify service does.

In: the environment that systemd gives. Out: a line for each expectation that is not met, then one for all.
"""

import grp
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import time

TURN_S = 5


def can_open(path, flags):
    try:
        os.close(os.open(path, flags, 0o600))
    except OSError:
        return False
    return True


def can(action):
    try:
        action()
    except (OSError, PermissionError):
        return False
    return True


def connect_bus():
    socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket")


def connect_loopback():
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()


def expectations():
    rw, ro, new = os.O_RDWR | os.O_NONBLOCK, os.O_RDONLY, os.O_RDWR | os.O_CREAT
    groups = {grp.getgrgid(group).gr_name for group in os.getgroups()}
    executable = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    yield "runs as percept with its groups", {"percept", "audio", "video", "bluetooth"} <= groups, True
    for path in ["/dev/snd/controlC0", "/dev/snd/pcmC0D0c", "/dev/video0"]:
        yield f"opens {path}", can_open(path, rw), True
    for path in ["/proc/asound/cards", "/proc/loadavg", "/proc/pressure/memory", "/etc/percept/percept.toml"]:
        yield f"reads {path}", can_open(path, ro), True
    for path in ["/var/lib/percept/probe", "/run/percept/probe", "/tmp/probe"]:
        yield f"writes {path}", can_open(path, new), True
    for path in ["/dev/mem", "/dev/kmsg", "/root", "/proc/1/environ"]:
        yield f"reads {path}", can_open(path, ro), False
    for path in ["/etc/percept/probe", "/usr/probe", "/var/lib/probe"]:
        yield f"writes {path}", can_open(path, new), False
    yield "reaches D-Bus", can(connect_bus), True
    yield "reaches loopback", can(connect_loopback), True
    yield "hears of devices", can(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)), True
    yield "sends raw packets", can(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)), False
    yield "starts a program", can(lambda: subprocess.run(["/bin/true"], check=True)), True
    yield "sets the clock", can(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time())), False
    yield "makes code", can(lambda: mmap.mmap(-1, 4096, prot=executable)), False
    yield "lowers its priority", can(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5)), True
    yield "leaves a core file", resource.getrlimit(resource.RLIMIT_CORE)[0] != 0, False


def notify(message):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.sendto(message.encode(), os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))


def main():
    wrong = [name for name, found, wanted in expectations() if found != wanted]
    for name in wrong:
        print(f"not as it should be: {name}")
    if sys.argv[1:] == ["run"] and os.environ.get("STATE_DIRECTORY") == "/var/lib/percept" and not wrong:
        print("all as it should be")
    signals = {signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    notify("READY=1\nSTATUS=stand-in")
    while True:
        notify("WATCHDOG=1")
        sys.stdout.flush()
        arrived = signal.sigtimedwait(signals, TURN_S)
        if arrived and arrived.si_signo == signal.SIGTERM:
            return
        if arrived:
            print("reload was asked")


main()
