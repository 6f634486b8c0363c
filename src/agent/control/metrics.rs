//! The status as OpenMetrics text.
//!
//! Names follow the conventions of Prometheus: base units, `_total` for counters.

use crate::agent::status::Status;
use crate::sensors::live::State;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

/// The text's media type.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Sensor {
    sensor: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Modality {
    modality: String,
}

type Decimal = Gauge<f64, AtomicU64>;

/// Renders the status.
pub(super) fn text(status: &Status) -> String {
    let mut registry = Registry::with_prefix("percept");
    sensors(status, &mut registry);
    queues(status, &mut registry);
    store(status, &mut registry);
    let uptime = Decimal::default();
    uptime.set(seconds(status.uptime_ms));
    registry.register("uptime_seconds", "Seconds since the agent started", uptime);
    let quality = Gauge::<i64>::default();
    quality.set(status.clock.quality as i64);
    registry.register("clock_quality", "0 unset, 1 rtc, 2 network, 3 gps", quality);
    let resting = Gauge::<i64>::default();
    resting.set(i64::from(status.resting.is_some()));
    registry.register("models_resting", "1 while optional models rest for heat, charge or backlog", resting);
    let stuck = Gauge::<i64>::default();
    stuck.set(i64::try_from(status.stuck.len()).unwrap_or(i64::MAX));
    registry.register("stuck_threads", "Threads that make no progress", stuck);
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => text,
        Err(_) => "# EOF\n".to_owned(),
    }
}

fn sensors(status: &Status, registry: &mut Registry) {
    let (up, silent) = (Family::<Sensor, Gauge<i64>>::default(), Family::<Sensor, Decimal>::default());
    let [captures, hiccups, losses] = [0, 1, 2].map(|_| Family::<Sensor, Counter>::default());
    for sensor in &status.sensors {
        let label = Sensor { sensor: sensor.source.to_string() };
        up.get_or_create(&label).set(i64::from(sensor.state == State::Running));
        if let Some(last_ms) = sensor.last_capture_ms {
            silent.get_or_create(&label).set(seconds(last_ms));
        }
        captures.get_or_create(&label).inc_by(sensor.captures);
        hiccups.get_or_create(&label).inc_by(sensor.hiccups);
        losses.get_or_create(&label).inc_by(sensor.losses);
    }
    registry.register("sensor_up", "1 while the sensor captures", up);
    registry.register("sensor_silent_seconds", "Seconds since its last capture", silent);
    registry.register("sensor_captures", "Readings captured", captures);
    registry.register("sensor_errors", "Errors it survived", hiccups);
    registry.register("sensor_losses", "Times it was lost", losses);
}

fn queues(status: &Status, registry: &mut Registry) {
    let (waiting, dropped) = (Family::<Sensor, Gauge<i64>>::default(), Family::<Sensor, Counter>::default());
    for queue in &status.queues {
        let label = Sensor { sensor: queue.kind.clone() };
        waiting.get_or_create(&label).set(i64::try_from(queue.waiting).unwrap_or(i64::MAX));
        dropped.get_or_create(&label).inc_by(queue.dropped);
    }
    registry.register("readings_waiting", "Readings on their way to perception", waiting);
    registry.register("readings_dropped", "Readings dropped because perception was behind", dropped);
}

fn store(status: &Status, registry: &mut Registry) {
    let episodes = Family::<Modality, Counter>::default();
    for (modality, count) in &status.store.episodes {
        episodes.get_or_create(&Modality { modality: modality.clone() }).inc_by(*count);
    }
    registry.register("episodes", "Episodes written", episodes);
    let counters = [
        ("commits", "Commits", status.store.commits),
        ("coverage_rows", "Coverage rows written", status.store.coverage),
        ("rows_lost", "Rows given up", status.store.rows_lost + status.store.dropped),
    ];
    for (name, help, value) in counters {
        registry.register(name, help, ConstCounter::new(value));
    }
    let trouble = Gauge::<i64>::default();
    trouble.set(i64::from(status.store.trouble.is_some()));
    registry.register("store_trouble", "1 while nothing can be committed", trouble);
    let used = Gauge::<i64>::default();
    used.set(i64::try_from(status.store.used_bytes).unwrap_or(i64::MAX));
    registry.register("store_used_bytes", "Used bytes of database and media", used);
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_finds_sensors_episodes_and_trouble() {
        let mut status = Status::default();
        status.store.episodes.insert("audio".to_owned(), 3);
        status.store.trouble = Some("the disk is full".to_owned());

        let text = text(&status);

        assert!(text.contains("percept_episodes_total{modality=\"audio\"} 3\n"), "{text}");
        assert!(text.contains("percept_store_trouble 1\n"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
