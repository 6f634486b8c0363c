//! The rows of SCENARIOS, Bluetooth, that concern the driver: a scripted BlueZ, a clock moved by hand.

use super::bus::Event;
use super::facts::Facts;
use super::*;
use crate::domain::coverage::CoverageReason;
use crate::domain::reading::AddressType;
use crate::domain::reading::Advertisement;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use crate::sensors::live::LiveSensor;
use crate::sensors::live::State;
use crate::sensors::live::hand_clock::HandClock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

const ADDRESS: [u8; 6] = [0, 0x1A, 0x7D, 0xDA, 0x71, 0x13];
const HCI0: &str = "/org/bluez/hci0";
const HCI1: &str = "/org/bluez/hci1";

/// BlueZ as the test wants it.
#[derive(Default)]
struct World {
    adapters: Vec<Adapter>,
    /// Answers to come; without one, yes.
    starts: VecDeque<Result<(), BusError>>,
    stops: VecDeque<Result<(), BusError>>,
    connections: VecDeque<Result<(), BusError>>,
    /// What was asked, in order.
    asked: Vec<String>,
    events: VecDeque<Event>,
    lost: u64,
}

#[derive(Clone)]
struct FakeBus(Arc<Mutex<World>>);

impl FakeBus {
    fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }
}

impl Bus for FakeBus {
    fn adapters(&mut self) -> Result<Vec<Adapter>, BusError> {
        self.with(|world| Ok(world.adapters.clone()))
    }

    fn start(&mut self, adapter: &str) -> Result<(), BusError> {
        self.with(|world| {
            world.asked.push(format!("start {adapter}"));
            world.starts.pop_front().unwrap_or(Ok(()))
        })
    }

    fn stop(&mut self, adapter: &str) -> Result<(), BusError> {
        self.with(|world| {
            world.asked.push(format!("stop {adapter}"));
            world.stops.pop_front().unwrap_or(Ok(()))
        })
    }

    fn describe(&mut self, adapter: &str, _device: [u8; 6]) {
        self.with(|world| world.asked.push(format!("describe a device of {adapter}")));
    }

    fn next(&mut self, _timeout: Duration) -> Option<Event> {
        self.with(|world| world.events.pop_front())
    }

    fn lost(&mut self) -> u64 {
        self.with(|world| std::mem::take(&mut world.lost))
    }
}

struct Bench {
    clock: HandClock,
    bus: FakeBus,
    sensor: LiveSensor,
}

fn adapter(path: &str, address: [u8; 6]) -> Adapter {
    Adapter { path: path.to_owned(), address, is_powered: true, is_discovering: false }
}

fn bench(wish: &str) -> Bench {
    let clock = HandClock::new();
    let shared: SharedClock = Arc::new(clock.clone());
    let bus = FakeBus(Arc::new(Mutex::new(World { adapters: vec![adapter(HCI0, ADDRESS)], ..World::default() })));
    let edge = bus.clone();
    let connect: Connect = Box::new(move || {
        let answer = edge.with(|world| world.connections.pop_front());
        answer.unwrap_or(Ok(())).map(|()| Box::new(edge.clone()) as Box<dyn Bus>)
    });
    let config = Config { enabled: true, adapter: wish.to_owned() };
    let driver = BluetoothDriver::with_bus(&config, shared.clone(), connect);
    Bench { clock, bus, sensor: LiveSensor::new(Box::new(driver), shared, LIMITS) }
}

impl Bench {
    /// Polls until nothing is left at this moment.
    fn drain(&mut self) -> Vec<Reading> {
        let mut readings = Vec::new();
        let mut pending = 0;
        // A poll that opens, closes or starts anew gives nothing and leaves more to do.
        while pending < 3 {
            match self.sensor.poll(Duration::ZERO) {
                Poll::Reading(reading) => readings.push(reading),
                Poll::Pending | Poll::Ended => pending += 1,
            }
        }
        readings
    }

    /// Lets time pass in steps of 100 ms; everything that came.
    fn run_ms(&mut self, ms: i64) -> Vec<Reading> {
        let mut readings = self.drain();
        for _ in 0..ms / 100 {
            self.clock.pass_ms(100);
            readings.extend(self.drain());
        }
        readings
    }

    fn heard(&self, device: [u8; 6], rssi_dbm: i16) {
        let facts = Facts { address_type: Some(AddressType::Random), rssi_dbm: Some(rssi_dbm), ..Facts::default() };
        self.tell(Event::Device { adapter: HCI0.to_owned(), device, facts });
    }

    fn tell(&self, event: Event) {
        self.bus.with(|world| world.events.push_back(event));
    }

    fn asked(&self) -> Vec<String> {
        self.bus.with(|world| std::mem::take(&mut world.asked))
    }

    fn state(&self) -> State {
        self.sensor.health().get().state
    }
}

fn advertisements(readings: &[Reading]) -> Vec<&Advertisement> {
    let only = |reading: &Reading| matches!(reading.payload, Payload::Advertisement(_));
    let heard = readings.iter().filter(|reading| only(reading));
    heard
        .map(|reading| {
            let Payload::Advertisement(advertisement) = &reading.payload else { panic!("filtered above") };
            advertisement
        })
        .collect()
}

fn losses(readings: &[Reading]) -> Vec<(i64, CoverageReason, String)> {
    let mut losses = Vec::new();
    for reading in readings {
        if let Payload::Loss(loss) = &reading.payload {
            losses.push((reading.captured_at.monotonic_ms, loss.reason, loss.detail.clone()));
        }
    }
    losses
}

#[test]
fn sentinels_come_through_as_they_are_and_the_strongest_signal_of_a_second_is_told() {
    let mut bench = bench("");
    let mut strengths = Vec::new();

    for rssi_dbm in [-60, -62, 127, 0, 79, -61] {
        bench.heard([1; 6], rssi_dbm);
        let readings = bench.run_ms(1_500);
        strengths.extend(advertisements(&readings).iter().map(|heard| heard.rssi_dbm));
    }
    for rssi_dbm in [-60, 127, 0, 79, -55, -61] {
        bench.heard([1; 6], rssi_dbm);
    }
    let readings = bench.run_ms(1_500);

    assert_eq!(strengths, [-60, -62, 127, 0, 79, -61].map(Some));
    assert_eq!(advertisements(&readings).iter().map(|heard| heard.rssi_dbm).collect::<Vec<_>>(), [Some(-55)]);
}

#[test]
fn two_thousand_advertisements_a_second_become_one_for_each_device_and_second() {
    let mut bench = bench("");
    let mut told = 0;

    for tenth in 0..600_i16 {
        for number in 0..200_u8 {
            bench.heard([9, 9, 9, 9, 9, number % 20], -40 - tenth % 30);
        }
        let readings = bench.run_ms(100);
        told += advertisements(&readings).len();
    }

    // A window opens with the first advertisement after the last one closed.
    assert!((20 * 50..=20 * 60).contains(&told), "{told}");
    assert_eq!(bench.sensor.health().get().hiccups, 0);
}

#[test]
fn fifty_thousand_addresses_seen_once_are_told_once_each() {
    let mut bench = bench("");
    let mut told = 0;

    for number in 0..50_000_u32 {
        let [_, b, c, d] = number.to_be_bytes();
        bench.heard([0x3F, 0, 0, b, c, d], -70);
        if number % 1_000 == 999 {
            told += advertisements(&bench.run_ms(1_100)).len();
        }
    }

    // The bounds of what is remembered have tests of their own, beside the code.
    assert_eq!(told, 50_000);
}

#[test]
fn what_the_queue_lost_is_counted() {
    let mut bench = bench("");
    bench.heard([1; 6], -60);
    bench.bus.with(|world| world.lost = 77);

    bench.run_ms(1_500);

    let health = bench.sensor.health().get();
    assert_eq!(health.hiccups, 1);
    assert!(health.last_error.is_some_and(|error| error.starts_with("77 advertisements")));
}

#[test]
fn a_scan_that_falls_silent_is_started_anew_although_bluez_makes_difficulties() {
    let mut bench = bench("");
    bench.heard([1; 6], -60);
    bench.run_ms(2_000);
    bench.bus.with(|world| {
        world.stops.push_back(Err(BusError::InProgress));
        world.starts.extend([Err(BusError::NotReady), Err(BusError::NotReady), Err(BusError::NotReady)]);
    });
    bench.asked();

    let silence = bench.run_ms(58_000);
    let ladder = bench.run_ms(8_000);
    let asked = bench.asked();
    bench.heard([1; 6], -61);
    let after = bench.run_ms(1_500);

    let detail = "no advertisement for 60 s: the scan was started anew".to_owned();
    assert_eq!(losses(&[silence, ladder].concat()), [(0, CoverageReason::Stalled, detail)]);
    let start = format!("start {HCI0}");
    assert_eq!(asked, [format!("stop {HCI0}"), start.clone(), start.clone(), start.clone(), start]);
    assert_eq!(advertisements(&after).len(), 1);
    assert_eq!(bench.state(), State::Running);
}

#[test]
fn an_adapter_that_stays_unready_is_lost_and_opened_again() {
    let mut bench = bench("");
    bench.bus.with(|world| world.starts.extend((0..4).map(|_| Err(BusError::NotReady))));

    let readings = bench.run_ms(10_000);

    assert_eq!(losses(&readings).iter().map(|loss| loss.1).collect::<Vec<_>>(), [CoverageReason::Unusable]);
    assert_eq!(bench.asked().len(), 5);
}

#[test]
fn a_long_scan_is_renewed_and_nothing_is_claimed_to_be_lost() {
    let mut bench = bench("");
    bench.drain();
    bench.asked();

    let mut readings = Vec::new();
    for _ in 0..61 {
        bench.heard([1; 6], -60);
        readings.extend(bench.run_ms(10_000));
    }

    assert_eq!(bench.asked(), [format!("stop {HCI0}"), format!("start {HCI0}")]);
    assert!(losses(&readings).is_empty());
}

#[test]
fn silence_that_no_restart_ends_opens_everything_anew() {
    let mut bench = bench("");

    let readings = bench.run_ms(245_000);

    let losses = losses(&readings);
    assert!(losses.len() >= 4, "{losses:?}");
    assert!(losses.iter().all(|loss| loss.1 == CoverageReason::Stalled), "{losses:?}");
    let starts = bench.asked().iter().filter(|asked| asked.starts_with("start")).count();
    assert!(starts >= 5, "{starts}");
}

#[test]
fn an_adapter_that_comes_back_as_hci1_is_found_by_its_address() {
    let mut bench = bench("00:1A:7D:DA:71:13");
    bench.heard([1; 6], -60);
    bench.run_ms(2_000);
    let source = bench.sensor.source().clone();

    bench.bus.with(|world| world.adapters = vec![adapter(HCI0, [7; 6])]);
    bench.tell(Event::AdapterGone { adapter: HCI0.to_owned() });
    let gone = bench.run_ms(5_000);
    bench.bus.with(|world| world.adapters.push(adapter(HCI1, ADDRESS)));
    bench.asked();
    bench.run_ms(10_000);

    let gone = losses(&gone);
    assert!(gone.iter().all(|loss| loss.1 == CoverageReason::Unplugged));
    assert!(gone.iter().all(|loss| !loss.2.to_uppercase().contains("1A:7D")), "{gone:?}");
    assert_eq!(bench.asked(), [format!("start {HCI1}")]);
    assert_eq!(*bench.sensor.source(), source);
    assert!(source.as_str().starts_with("bluetooth:") && source.as_str().len() == "bluetooth:".len() + 8);
}

#[test]
fn a_bluez_that_ends_is_connected_to_again() {
    for event in [Event::ServiceGone, Event::Closed] {
        let mut bench = bench("");
        bench.heard([1; 6], -60);
        bench.run_ms(2_000);
        bench.bus.with(|world| world.connections.extend([Err(BusError::NoService), Err(BusError::NoService)]));

        bench.tell(event);
        let gone = losses(&bench.run_ms(5_000));
        bench.heard([1; 6], -60);
        let back = bench.run_ms(2_000);

        assert_eq!(gone.len(), 3);
        assert_eq!(advertisements(&back).len(), 1);
        assert_eq!(bench.state(), State::Running);
    }
}

#[test]
fn a_switched_off_adapter_is_told_with_what_to_do() {
    let mut bench = bench("");
    bench.run_ms(1_000);
    bench.tell(Event::Power { adapter: HCI1.to_owned(), is_powered: false });
    assert!(losses(&bench.run_ms(1_000)).is_empty());

    bench.bus.with(|world| world.adapters[0].is_powered = false);
    bench.tell(Event::Power { adapter: HCI0.to_owned(), is_powered: false });
    let off = losses(&bench.run_ms(3_000));
    bench.bus.with(|world| world.adapters[0].is_powered = true);
    bench.heard([1; 6], -60);
    let on = bench.run_ms(6_000);

    assert!(off.len() > 1);
    for (_, reason, detail) in off {
        assert_eq!(reason, CoverageReason::Unusable);
        assert!(detail.contains("bluetoothctl power on"), "{detail}");
    }
    assert_eq!(advertisements(&on).len(), 1);
}

#[test]
fn a_device_nobody_told_of_is_asked_for_and_another_adapters_devices_are_not_ours() {
    let mut bench = bench("");
    bench.drain();
    bench.asked();
    let facts = || Facts { rssi_dbm: Some(-60), ..Facts::default() };

    bench.tell(Event::Device { adapter: HCI1.to_owned(), device: [1; 6], facts: facts() });
    bench.tell(Event::Device { adapter: HCI0.to_owned(), device: [2; 6], facts: facts() });
    let readings = bench.run_ms(1_500);

    assert!(readings.is_empty());
    assert_eq!(bench.asked(), [format!("describe a device of {HCI0}")]);
}

#[test]
fn a_wish_that_is_no_adapter_is_told_without_quoting_it() {
    let mut bench = bench("hci0");

    let told = losses(&bench.drain());

    assert_eq!(told[0].1, CoverageReason::Unusable);
    assert_eq!(mistakes(&Config { enabled: true, adapter: "hci0".to_owned() }).len(), 1);
    assert_eq!(mistakes(&Config::default()), Vec::<String>::new());
}
