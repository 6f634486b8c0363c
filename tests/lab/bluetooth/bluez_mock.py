#!/usr/bin/python3
"""Changes the mocked BlueZ of bluez_mock.sh. Needs DBUS_SYSTEM_BUS_ADDRESS.

usage: bluez_mock.py ready                               exit code 0 when BlueZ is on the bus
       bluez_mock.py adapter HCI ADDRESS                 adds an adapter with this address, switched on
       bluez_mock.py remove-adapter HCI
       bluez_mock.py power HCI on|off
       bluez_mock.py device HCI ADDRESS NAME             adds a device
       bluez_mock.py rssi HCI ADDRESS DBM [COMPANY HEX]  an advertisement of it, with manufacturer data if wished
       bluez_mock.py remove-device HCI ADDRESS
       bluez_mock.py flood HCI ADDRESS COUNT PER_SECOND  so many advertisements, evenly spaced
       bluez_mock.py discovering HCI                     prints whether it scans
"""

import sys
import time

import dbus

BLUEZ = "org.bluez"
MOCK = "org.freedesktop.DBus.Mock"


def mock(bus, path):
    return dbus.Interface(bus.get_object(BLUEZ, path), MOCK)


def template(bus):
    return dbus.Interface(bus.get_object(BLUEZ, "/org/bluez"), "org.bluez.Mock")


def adapter_path(hci):
    return f"/org/bluez/{hci}"


def device_path(hci, address):
    return f"{adapter_path(hci)}/dev_{address.replace(':', '_').upper()}"


def add_adapter(bus, hci, address):
    """The template takes an address only afterwards, and the change need not be seen: it is done before anybody scans."""
    template(bus).AddAdapter(hci, f"lab-{hci}")
    values = {"Address": dbus.String(address), "Powered": dbus.Boolean(True)}
    mock(bus, adapter_path(hci)).UpdateProperties("org.bluez.Adapter1", values)


def remove_adapter(bus, hci):
    template(bus).RemoveAdapterWithDevices(hci)


def power(bus, hci, wish):
    mock(bus, adapter_path(hci)).UpdateProperties("org.bluez.Adapter1", {"Powered": dbus.Boolean(wish == "on")})


def add_device(bus, hci, address, name):
    template(bus).AddDevice(hci, address, name)


def remove_device(bus, hci, address):
    adapter = dbus.Interface(bus.get_object(BLUEZ, adapter_path(hci)), "org.bluez.Adapter1")
    adapter.RemoveDevice(dbus.ObjectPath(device_path(hci, address)))


def advertise(bus, hci, address, dbm, company=None, data=""):
    device = mock(bus, device_path(hci, address))
    device.UpdateProperties("org.bluez.Device1", {"RSSI": dbus.Int16(int(dbm))})
    if company:
        # Debian's dbusmock cannot keep such a property; the driver needs only to be told of it.
        payload = dbus.ByteArray(bytes.fromhex(data), variant_level=1)
        by_company = dbus.Dictionary({dbus.UInt16(int(company, 0)): payload}, signature="qv", variant_level=1)
        changed = dbus.Dictionary({"ManufacturerData": by_company}, signature="sv")
        arguments = ["org.bluez.Device1", changed, dbus.Array([], signature="s")]
        device.EmitSignal("org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as", arguments)


def flood(bus, hci, address, count, per_second):
    for number in range(int(count)):
        advertise(bus, hci, address, -40 - number % 50)
        time.sleep(1 / float(per_second))


def discovering(bus, hci):
    properties = dbus.Interface(bus.get_object(BLUEZ, adapter_path(hci)), "org.freedesktop.DBus.Properties")
    print("yes" if properties.Get("org.bluez.Adapter1", "Discovering") else "no")


COMMANDS = {
    "adapter": add_adapter,
    "remove-adapter": remove_adapter,
    "power": power,
    "device": add_device,
    "remove-device": remove_device,
    "rssi": advertise,
    "flood": flood,
    "discovering": discovering,
}


def main(arguments):
    bus = dbus.SystemBus()
    if arguments == ["ready"]:
        return 0 if bus.name_has_owner(BLUEZ) else 1
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    COMMANDS[arguments[0]](bus, *arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
