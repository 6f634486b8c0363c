//! The questions to BlueZ, as D-Bus calls.

use super::adapter::Adapter;
use super::bus::BusError;
use super::bus::Event;
use super::signals;
use super::signals::ADAPTER;
use super::signals::BLUEZ;
use super::signals::DEVICE;
use super::signals::Properties;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::time::Duration;
use zbus::Connection;
use zbus::MatchRule;
use zbus::Message;
use zbus::Variant;
use zbus::fdo;
use zbus::message::Type;

/// Longest wait for one answer.
const ANSWER_WAIT: Duration = Duration::from_millis(1_500);

/// Messages that wait inside the connection; they are taken at once.
const MESSAGES_MAX: usize = 1_024;

/// Connects to the system bus and asks for BlueZ's signals.
pub(super) async fn connect() -> Result<Connection, BusError> {
    let builder = zbus::connection::Builder::system().method_timeout(ANSWER_WAIT);
    let builder = builder.max_queued(NonZeroUsize::new(MESSAGES_MAX).unwrap_or(NonZeroUsize::MIN));
    let connection = builder.build().await.map_err(error)?;
    let bus = fdo::DBusProxy::new(&connection).await.map_err(error)?;
    for rule in rules().map_err(error)? {
        bus.add_match_rule(rule).await.map_err(|refusal| error(refusal.into()))?;
    }
    Ok(connection)
}

/// Devices that come and change, adapters that change and go, BlueZ that ends.
fn rules() -> zbus::Result<[MatchRule<'static>; 3]> {
    let of_bluez = || MatchRule::builder().msg_type(Type::Signal).sender(BLUEZ);
    Ok([
        of_bluez().interface("org.freedesktop.DBus.ObjectManager").build()?,
        of_bluez().interface("org.freedesktop.DBus.Properties").path_namespace("/org/bluez").build()?,
        MatchRule::builder()
            .msg_type(Type::Signal)
            .sender("org.freedesktop.DBus")
            .interface("org.freedesktop.DBus")
            .member("NameOwnerChanged")
            .arg(0, BLUEZ)
            .build()?,
    ])
}

/// The adapters, and what BlueZ knows of devices already.
pub(super) async fn objects(connection: &Connection) -> Result<(Vec<Adapter>, Vec<Event>), BusError> {
    let builder = fdo::ObjectManagerProxy::builder(connection).destination(BLUEZ).path("/");
    let manager = builder.build().await.map_err(error)?;
    let objects = manager.get_managed_objects().await.map_err(|refusal| error(refusal.into()))?;
    let (mut adapters, mut devices) = (Vec::new(), Vec::new());
    for (path, interfaces) in objects {
        for (interface, properties) in interfaces {
            match interface.as_str() {
                ADAPTER => adapters.extend(signals::adapter(path.as_str(), &properties)),
                DEVICE => devices.extend(signals::device(path.as_str(), &properties).map(remembered)),
                _ => {}
            }
        }
    }
    adapters.sort_by(|one: &Adapter, other| one.path.cmp(&other.path));
    Ok((adapters, devices))
}

/// What BlueZ remembers was not heard.
fn remembered(mut event: Event) -> Event {
    if let Event::Device { facts, .. } = &mut event {
        facts.rssi_dbm = None;
        facts.has_other_data = false;
        facts.manufacturer_data = None;
    }
    event
}

/// Starts a scan that reports every advertisement. The filter has to come first.
pub(super) async fn start(connection: &Connection, adapter: &str) -> Result<(), BusError> {
    let filter: BTreeMap<&str, Variant<'_>> =
        [("Transport", Variant::from("le")), ("DuplicateData", Variant::from(true))].into();
    call(connection, adapter, ADAPTER, "SetDiscoveryFilter", &filter).await?;
    call(connection, adapter, ADAPTER, "StartDiscovery", &()).await.map(drop)
}

/// Ends our scan.
pub(super) async fn stop(connection: &Connection, adapter: &str) -> Result<(), BusError> {
    call(connection, adapter, ADAPTER, "StopDiscovery", &()).await.map(drop)
}

/// All that BlueZ knows of a device.
pub(super) async fn describe(connection: &Connection, adapter: &str, device: [u8; 6]) -> Option<Event> {
    let path = signals::device_path(adapter, device);
    let answer = call(connection, &path, "org.freedesktop.DBus.Properties", "GetAll", &(DEVICE,)).await.ok()?;
    let properties: Properties = answer.body().deserialize().ok()?;
    signals::device(&path, &properties)
}

async fn call<B>(
    connection: &Connection,
    path: &str,
    interface: &str,
    method: &str,
    body: &B,
) -> Result<Message, BusError>
where
    B: serde::Serialize + zbus::DynamicType,
{
    connection.call_method(Some(BLUEZ), path, Some(interface), method, body).await.map_err(error)
}

/// What went wrong, without BlueZ's own text.
fn error(error: zbus::Error) -> BusError {
    if let zbus::Error::MethodError(name, ..) = &error {
        return match name.as_str() {
            "org.bluez.Error.NotReady" => BusError::NotReady,
            "org.bluez.Error.InProgress" => BusError::InProgress,
            "org.bluez.Error.NotAuthorized" | "org.bluez.Error.NotPermitted" => BusError::Denied,
            other => BusError::Other(other.to_owned()),
        };
    }
    if let zbus::Error::FDO(standard) = &error {
        return standard_error(standard);
    }
    if let zbus::Error::InputOutput(io) = &error {
        let is = |kind: ErrorKind| io.kind() == kind;
        let denied = if is(ErrorKind::PermissionDenied) { BusError::Denied } else { BusError::NoBus };
        return if is(ErrorKind::TimedOut) { BusError::Timeout } else { denied };
    }
    match matches!(error, zbus::Error::Address(_) | zbus::Error::Handshake(_)) {
        true => BusError::NoBus,
        false => BusError::Other("something that cannot be read".to_owned()),
    }
}

fn standard_error(error: &fdo::Error) -> BusError {
    if matches!(error, fdo::Error::ServiceUnknown(_) | fdo::Error::NameHasNoOwner(_) | fdo::Error::SpawnFailed(_)) {
        return BusError::NoService;
    }
    if matches!(error, fdo::Error::NoReply(_) | fdo::Error::Timeout(_) | fdo::Error::TimedOut(_)) {
        return BusError::Timeout;
    }
    if matches!(error, fdo::Error::UnknownObject(_) | fdo::Error::UnknownMethod(_) | fdo::Error::UnknownInterface(_)) {
        return BusError::NoAdapter;
    }
    match matches!(error, fdo::Error::AccessDenied(_) | fdo::Error::AuthFailed(_)) {
        true => BusError::Denied,
        false => BusError::Other("a D-Bus error".to_owned()),
    }
}
