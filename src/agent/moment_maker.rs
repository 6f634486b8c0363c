//! Makes moments out of what the stages deliver: of each meeting, and of modalities that begin together.
//!
//! In: drafts on their way to the store, and what is noticed at the time. Out: products: the drafts themselves, a
//! meeting's draft with its moment in it, and the moments of coincidences. Never: I/O, the clock.

use crate::agent::pipeline::Product;
use crate::agent::senses::Senses;
use crate::agent::surroundings::Surroundings;
use crate::domain::episode::Draft;
use crate::domain::episode::Metadata;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::domain::id::ModelId;
use crate::domain::id::Ordinals;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::time::Stamp;
use crate::episodes::coincidence;
use crate::episodes::coincidence::Coincidences;
use crate::episodes::coincidence::Start;
use crate::episodes::moment::Moment;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// Which sensor a moment of several sensors is filed under.
const SOURCE: &str = "moment:coincidence";

/// Which sensor a moment that the user asked for is filed under.
const ASKED: &str = "moment:asked";

/// Meetings and starts remembered; the oldest are forgotten first.
const REMEMBERED_MAX: usize = 1_024;

type Key = (i64, Modality, SourceId, u32);

/// Makes moments.
#[derive(Debug)]
pub struct MomentMaker {
    surroundings: Surroundings,
    coincidences: Coincidences,
    meetings: BTreeMap<Key, Moment>,
    started: BTreeMap<Key, ()>,
    ordinals: Ordinals,
    products: VecDeque<Product>,
}

impl MomentMaker {
    /// Nothing noticed yet.
    #[must_use]
    pub fn new(config: coincidence::Config, clip_model: Option<ModelId>) -> Self {
        Self {
            surroundings: Surroundings::new(clip_model),
            coincidences: Coincidences::new(config),
            meetings: BTreeMap::new(),
            started: BTreeMap::new(),
            ordinals: Ordinals::default(),
            products: VecDeque::new(),
        }
    }

    /// Takes note of what the senses notice right now.
    pub fn notice(&mut self, senses: &mut Senses) {
        senses.describe(&mut self.surroundings);
    }

    /// Takes a draft on its way to the store.
    pub fn handle_draft(&mut self, draft: Draft) -> Product {
        if draft.modality == Modality::Social {
            return self.handle_meeting(draft);
        }
        self.handle_start(&draft);
        Product::Episode(Box::new(self.located(draft)))
    }

    /// Adds what was heard or seen where, when the place is known.
    fn located(&self, mut draft: Draft) -> Draft {
        let parts = parts_of(&draft);
        let Some(place) = self.surroundings.place().filter(|_| draft.modality != Modality::Spatial) else {
            return draft;
        };
        let heard = parts.sound_class.map(|class| (NodeKind::Sound, class, "heard_at", "heard at"));
        let seen = parts.objects.into_iter().next().map(|label| (NodeKind::Object, label, "seen_at", "seen at"));
        for (kind, name, relation, words) in heard.into_iter().chain(seen) {
            let sentence = format!("{name} {words} {place}");
            let location = Node::new(NodeKind::Location, place);
            draft.facts.push(Fact::triple(Node::new(kind, name), relation, location, sentence, draft.start.utc));
        }
        draft
    }

    /// A meeting's moment is its only row: what was noticed at arrival stays, what was missing then may join at departure.
    fn handle_meeting(&mut self, draft: Draft) -> Product {
        let key = key_of(&draft);
        let person = draft.metadata.get("person").and_then(|name| name.as_str()).map(str::to_owned);
        let mut moment = self.meetings.remove(&key).unwrap_or(Moment { person, ..Moment::default() });
        coincidence::fill(&mut moment, &self.surroundings.moment(draft.end));
        remember(&mut self.meetings, key, moment.clone());
        let row = moment.draft(draft.source, draft.start, draft.end, draft.ordinal, draft.metadata);
        Product::Moment(Box::new(row), Box::new(moment))
    }

    fn handle_start(&mut self, draft: &Draft) {
        // A count of devices says how many were there, not that something began.
        if draft.tool_name == "bluetooth_scan" || self.started.contains_key(&key_of(draft)) {
            return;
        }
        remember(&mut self.started, key_of(draft), ());
        let parts = parts_of(draft);
        self.coincidences.handle_start(Start { modality: draft.modality, at: draft.start, parts });
        self.take_moment();
    }

    /// Tells the time.
    pub fn handle_timeout(&mut self, now: Stamp) {
        self.coincidences.handle_timeout(now);
        self.take_moment();
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.coincidences.poll_timeout()
    }

    /// Settles what is still waiting.
    pub fn finish(&mut self) {
        self.coincidences.finish();
        self.take_moment();
    }

    /// A moment that was asked for: what is noticed now, and what the user adds.
    pub fn capture(&mut self, now: Stamp, added: Moment) {
        let mut moment = added;
        coincidence::fill(&mut moment, &self.surroundings.moment(now));
        let ordinal = self.ordinals.next(now.utc);
        let row = moment.draft(SourceId::new(ASKED), now, now, ordinal, Metadata::new());
        self.products.push_back(Product::Moment(Box::new(row), Box::new(moment)));
    }

    fn take_moment(&mut self) {
        if let Some((at, moment)) = self.coincidences.poll_moment() {
            let ordinal = self.ordinals.next(at.utc);
            let row = moment.draft(SourceId::new(SOURCE), at, at, ordinal, Metadata::new());
            self.products.push_back(Product::Moment(Box::new(row), Box::new(moment)));
        }
    }

    /// The next moment of a coincidence.
    pub fn poll_product(&mut self) -> Option<Product> {
        self.products.pop_front()
    }
}

fn key_of(draft: &Draft) -> Key {
    (draft.start.monotonic_ms, draft.modality, draft.source.clone(), draft.ordinal)
}

fn remember<T>(kept: &mut BTreeMap<Key, T>, key: Key, value: T) {
    kept.insert(key, value);
    if kept.len() > REMEMBERED_MAX {
        kept.pop_first();
    }
}

/// What an episode contributes to a moment it begins with.
fn parts_of(draft: &Draft) -> Moment {
    let text = |key: &str| draft.metadata.get(key).and_then(|value| value.as_str()).map(str::to_owned);
    let number = |key: &str| draft.metadata.get(key).and_then(serde_json::Value::as_f64);
    let labels = draft.metadata.get("labels").and_then(|value| value.as_array());
    let label = |value: &serde_json::Value| value.get("label").and_then(|label| label.as_str()).map(str::to_owned);
    Moment {
        sound_class: text("sound_class"),
        has_image: draft.modality == Modality::Visual,
        objects: labels.map(|labels| labels.iter().filter_map(label).collect()).unwrap_or_default(),
        image_embedding: draft.embeddings.iter().find(|_| draft.modality == Modality::Visual).cloned(),
        location: text("place"),
        position_deg: number("latitude_deg").zip(number("longitude_deg")),
        ..Moment::default()
    }
}
