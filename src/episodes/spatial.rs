//! Remembers where the device was: one episode per stay, one per trip, and how many devices were near.
//!
//! In: [`PlaceObservation`]s and [`CrowdCount`]s. Out: [`Draft`]s of kind spatial. A stay is drafted
//! when it has become one, so that a power cut does not lose it, and again, as the same row, when it ends.
//! Never: a position in a log line, I/O, the clock.

mod crowd;
mod words;

use crate::domain::episode::Draft;
use crate::domain::episode::Metadata;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::domain::id::Ordinals;
use crate::domain::modality::Modality;
use crate::domain::observation::place::Bounds;
use crate::domain::observation::place::PlaceObservation;
use crate::domain::observation::place::Stay;
use crate::domain::observation::place::Trip;
use crate::domain::observation::presence::CrowdCount;
use crate::domain::time::Stamp;
use crowd::CrowdWindow;
use serde_json::Value;
use std::collections::VecDeque;

/// How long an episode of a device count is.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Seconds an episode of the device count stands for, at most.
    pub crowd_s_max: f64,
    /// Seconds after which a lasting change of the count begins another episode.
    pub crowd_s_min: f64,
    /// How much the count must change for that: this many devices …
    pub crowd_step_min: u32,
    /// … and this share of the count (0–1 and above).
    pub crowd_step_share_min: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { crowd_s_max: 3600.0, crowd_s_min: 600.0, crowd_step_min: 3, crowd_step_share_min: 0.5 }
    }
}

impl Config {
    /// What is wrong with the values, one sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let keys = [
            ("crowd_s_max", self.crowd_s_max),
            ("crowd_s_min", self.crowd_s_min),
            ("crowd_step_share_min", self.crowd_step_share_min),
        ];
        let is_wrong = |value: f64| !(value.is_finite() && value > 0.0);
        let wrong = keys.into_iter().filter(|(_, value)| is_wrong(*value));
        let mut mistakes: Vec<String> =
            wrong.map(|(key, value)| format!("{key} = {value} must be a number above 0")).collect();
        if self.crowd_s_min > self.crowd_s_max {
            mistakes.push("crowd_s_min must not be above crowd_s_max".to_owned());
        }
        mistakes
    }
}

/// Builds the episodes of places and of devices near by.
#[derive(Debug)]
pub struct SpatialBuilder {
    device: Node,
    current_place: Option<String>,
    ordinals: Ordinals,
    /// Ordinal of the stay that goes on.
    stay_ordinal: Option<u32>,
    crowd: CrowdWindow,
    drafts: VecDeque<Draft>,
}

impl SpatialBuilder {
    /// A builder for the device that the graph calls `device`.
    #[must_use]
    pub fn new(config: &Config, device: &str) -> Self {
        Self {
            device: Node::new(NodeKind::Device, device),
            current_place: None,
            ordinals: Ordinals::default(),
            stay_ordinal: None,
            crowd: CrowdWindow::new(config),
            drafts: VecDeque::new(),
        }
    }

    /// Takes the next observation of places.
    pub fn handle_observation(&mut self, observation: &PlaceObservation) {
        match observation {
            PlaceObservation::StayBegan(stay) => {
                let ordinal = self.ordinals.next(stay.start.utc);
                self.stay_ordinal = Some(ordinal);
                self.current_place = Some(stay.place.name.clone());
                self.drafts.push_back(self.stay(stay, ordinal, false));
            }
            PlaceObservation::StayEnded(stay) => {
                let ordinal = self.stay_ordinal.take().unwrap_or_else(|| self.ordinals.next(stay.start.utc));
                self.current_place = None;
                self.drafts.push_back(self.stay(stay, ordinal, true));
            }
            PlaceObservation::Trip(trip) => {
                let ordinal = self.ordinals.next(trip.start.utc);
                self.drafts.push_back(travelled(trip, ordinal));
            }
        }
    }

    /// Takes the next count of unknown devices.
    pub fn handle_crowd(&mut self, count: &CrowdCount) {
        self.crowd.handle_count(count);
        self.take_crowd_drafts();
    }

    /// Lets time pass: a count that no other has followed for long is complete.
    pub fn handle_timeout(&mut self, now: Stamp) {
        self.crowd.handle_timeout(now);
        self.take_crowd_drafts();
    }

    /// When [`Self::handle_timeout`] has something to do next, in monotonic milliseconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.crowd.poll_timeout()
    }

    /// The next draft.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.drafts.pop_front()
    }

    /// Ends what is open: there will be no more observations.
    pub fn finish(&mut self) {
        self.crowd.close();
        self.take_crowd_drafts();
    }

    /// The place the device is staying at.
    #[must_use]
    pub fn current_place(&self) -> Option<&str> {
        self.current_place.as_deref()
    }

    fn take_crowd_drafts(&mut self) {
        self.drafts.extend(std::iter::from_fn(|| self.crowd.poll_draft()));
    }

    fn stay(&self, stay: &Stay, ordinal: u32, is_over: bool) -> Draft {
        let name = &stay.place.name;
        let content = if is_over {
            format!("Stayed at {name} for {}", words::duration(stay.end.millis_since(stay.start)))
        } else {
            format!("Staying at {name}")
        };
        let located_at = Fact {
            valid_to: is_over.then_some(stay.end.utc),
            ..Fact::triple(
                self.device.clone(),
                "located_at",
                Node::new(NodeKind::Location, name),
                format!("{} is at {name}", self.device.text),
                stay.start.utc,
            )
        };
        Draft {
            modality: Modality::Spatial,
            source: stay.source.clone(),
            start: stay.start,
            end: stay.end,
            ordinal,
            tool_name: "gps_location",
            content,
            metadata: stay_metadata(stay, is_over),
            embeddings: Vec::new(),
            facts: vec![located_at],
            media: Vec::new(),
        }
    }
}

fn stay_metadata(stay: &Stay, is_over: bool) -> Metadata {
    object([
        ("kind", "stay".into()),
        ("place", stay.place.name.clone().into()),
        ("place_kind", stay.place.kind.as_str().into()),
        ("latitude_deg", rounded(stay.centre.latitude_deg, 6)),
        ("longitude_deg", rounded(stay.centre.longitude_deg, 6)),
        ("radius_m", rounded(stay.radius_m, 1)),
        ("duration_s", seconds(stay.end.millis_since(stay.start))),
        ("unobserved_s", seconds(stay.unobserved_ms)),
        ("fix_count", stay.fix_count.into()),
        ("is_over", is_over.into()),
    ])
}

fn travelled(trip: &Trip, ordinal: u32) -> Draft {
    let (from, to) = (&trip.from.name, &trip.to.name);
    let length = words::distance(trip.distance_m);
    let duration = words::duration(trip.end.millis_since(trip.start));
    let content = if from == to {
        format!("Travelled {length} from {from} and back in {duration}")
    } else {
        format!("Travelled {length} from {from} to {to} in {duration}")
    };
    Draft {
        modality: Modality::Spatial,
        source: trip.source.clone(),
        start: trip.start,
        end: trip.end,
        ordinal,
        tool_name: "gps_location",
        content,
        metadata: object([
            ("kind", "trip".into()),
            ("from_place", from.clone().into()),
            ("to_place", to.clone().into()),
            ("distance_m", rounded(trip.distance_m, 0)),
            ("bounds", bounds(&trip.bounds)),
            ("duration_s", seconds(trip.end.millis_since(trip.start))),
            ("unobserved_s", seconds(trip.unobserved_ms)),
        ]),
        embeddings: Vec::new(),
        facts: Vec::new(),
        media: Vec::new(),
    }
}

fn bounds(bounds: &Bounds) -> Value {
    Value::Object(object([
        ("south_deg", rounded(bounds.south_deg, 6)),
        ("west_deg", rounded(bounds.west_deg, 6)),
        ("north_deg", rounded(bounds.north_deg, 6)),
        ("east_deg", rounded(bounds.east_deg, 6)),
    ]))
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Metadata {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A finite number with that many decimals; what is not finite becomes null.
fn rounded(value: f64, decimals: i32) -> Value {
    let scale = 10.0_f64.powi(decimals);
    Value::from((value * scale).round() / scale)
}

/// Milliseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "durations stay far below 2^53 ms")]
fn seconds(millis: i64) -> Value {
    rounded(millis as f64 / 1000.0, 3)
}

#[cfg(test)]
mod tests;
