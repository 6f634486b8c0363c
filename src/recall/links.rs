//! Which episodes are linked because they are alike (zettelkasten).
//!
//! In: what an episode is near to, and how the others are linked already. Out: who accepts whom.
//!
//! ```text
//! new ──0.91── a  has room                     → linked
//!     ──0.88── b  is full, its weakest is 0.80 → linked, b and its weakest let go of each other
//!     ──0.79── c  is full of stronger ones     → not linked
//! ```
//!
//! A link is undirected, joins two vectors of one model, and is worth at least the cut of its pair of kinds. Two episodes
//! have at most one such link, the strongest, and an episode at most [`LINKS_MAX`].
//! Never: looks for neighbours; the store does.

use crate::domain::episode::EmbeddingKind;
use crate::domain::id::EpisodeId;
use std::collections::BTreeMap;

/// Most links by likeness of one episode.
pub const LINKS_MAX: usize = 5;

/// What an image–text cosine reaches at best: of a picture and its own caption CLIP models say 0.25 to 0.40. It makes links of
/// this pair comparable with those of other pairs, whose cosines go up to 1.
const IMAGE_TEXT_TOP: f64 = 0.40;

/// Which kinds of vectors are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pair {
    /// A picture with a picture.
    ImageImage,
    /// Words with words.
    TextText,
    /// A picture with words.
    ImageText,
    /// A sound with a sound.
    AudioAudio,
}

/// How the reasons of these links begin.
pub const REASON_PREFIX: &str = "similar:";

impl Pair {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ImageImage, Self::TextText, Self::ImageText, Self::AudioAudio];

    /// The pair of two kinds in either order; `None` for kinds that no model puts into one space.
    #[must_use]
    pub const fn of(one: EmbeddingKind, other: EmbeddingKind) -> Option<Self> {
        use EmbeddingKind::Audio;
        use EmbeddingKind::Image;
        use EmbeddingKind::Text;
        match (one, other) {
            (Image, Image) => Some(Self::ImageImage),
            (Text, Text) => Some(Self::TextText),
            (Image, Text) | (Text, Image) => Some(Self::ImageText),
            (Audio, Audio) => Some(Self::AudioAudio),
            (Audio, Image | Text) | (Image | Text, Audio) => None,
        }
    }

    /// The reason of such a link in the store.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ImageImage => "similar:image-image",
            Self::TextText => "similar:text-text",
            Self::ImageText => "similar:image-text",
            Self::AudioAudio => "similar:audio-audio",
        }
    }

    /// The pair of a reason.
    #[must_use]
    pub fn parse(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pair| pair.reason() == reason)
    }

    const fn top(self) -> f64 {
        match self {
            Self::ImageText => IMAGE_TEXT_TOP,
            Self::ImageImage | Self::TextText | Self::AudioAudio => 1.0,
        }
    }
}

/// The least cosine of a link, by pair: the settings of this rule. Cosines are -1 to 1; above 1 a pair is never linked.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cuts {
    /// A picture with a picture.
    pub image_image_min: f64,
    /// Words with words.
    pub text_text_min: f64,
    /// A picture with words.
    pub image_text_min: f64,
    /// A sound with a sound.
    pub audio_audio_min: f64,
}

impl Default for Cuts {
    /// The values of DESIGN section 5.
    fn default() -> Self {
        Self { image_image_min: 0.80, text_text_min: 0.75, image_text_min: 0.20, audio_audio_min: 0.85 }
    }
}

impl Cuts {
    /// The least cosine of this pair.
    #[must_use]
    pub const fn of(&self, pair: Pair) -> f64 {
        match pair {
            Pair::ImageImage => self.image_image_min,
            Pair::TextText => self.text_text_min,
            Pair::ImageText => self.image_text_min,
            Pair::AudioAudio => self.audio_audio_min,
        }
    }

    /// Values that cannot be meant.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let keys = [
            ("image_image_min", self.image_image_min),
            ("text_text_min", self.text_text_min),
            ("image_text_min", self.image_text_min),
            ("audio_audio_min", self.audio_audio_min),
        ];
        let wrong = keys.into_iter().filter(|(_, value)| !(-1.0..=2.0).contains(value));
        wrong
            .map(|(key, value)| format!("{key} = {value} is no cosine: give -1 to 1, or 2 for no such links"))
            .collect()
    }

    /// How strong a link of this cosine is, 0 at its cut to 1 at the best its pair reaches: what links of different pairs are
    /// compared by, because the cosines themselves are not comparable. `None` below the cut.
    #[must_use]
    pub fn strength(&self, pair: Pair, cosine: f64) -> Option<f64> {
        let (cut, top) = (self.of(pair), pair.top());
        if cosine.is_nan() || cosine < cut {
            return None;
        }
        Some(if top > cut { ((cosine - cut) / (top - cut)).min(1.0) } else { 1.0 })
    }
}

/// A link that could be, or is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tie {
    /// The other end.
    pub other: EpisodeId,
    /// Which kinds are alike.
    pub pair: Pair,
    /// Their cosine.
    pub cosine: f64,
    /// See [`Cuts::strength`].
    pub strength: f64,
}

/// What a node says to a tie it is offered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// It has room.
    Accept,
    /// It is full and lets go of this weaker one.
    AcceptInPlaceOf(Tie),
    /// It is full of stronger ones.
    Refuse,
}

/// The ties an episode offers, in the order it offers them: the strongest of each other episode, strongest first, ties by id.
#[must_use]
pub fn offers(near: impl IntoIterator<Item = Tie>) -> Vec<Tie> {
    let mut best: BTreeMap<EpisodeId, Tie> = BTreeMap::new();
    for tie in near {
        let known = best.entry(tie.other).or_insert(tie);
        let is_better = tie.strength.total_cmp(&known.strength).then(known.pair.cmp(&tie.pair)).is_gt();
        if is_better {
            *known = tie;
        }
    }
    let mut offers: Vec<Tie> = best.into_values().collect();
    // Stable, and the map was in the order of ids.
    offers.sort_by(|one, other| other.strength.total_cmp(&one.strength));
    offers
}

/// What a node that is linked as `held` says to a tie of this strength with `id`.
#[must_use]
pub fn answer(held: &[Tie], id: EpisodeId, strength: f64) -> Answer {
    if held.len() < LINKS_MAX {
        return Answer::Accept;
    }
    let weakest =
        held.iter().min_by(|one, other| one.strength.total_cmp(&other.strength).then(other.other.cmp(&one.other)));
    match weakest {
        Some(weakest) if strength.total_cmp(&weakest.strength).then(weakest.other.cmp(&id)).is_gt() => {
            Answer::AcceptInPlaceOf(*weakest)
        }
        _ => Answer::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::DeviceId;
    use crate::domain::id::ExternalId;
    use proptest::prelude::*;

    /// Ids in the order of their number.
    fn ids() -> Vec<EpisodeId> {
        let id = |number: u32| EpisodeId::of_external(&DeviceId::new("d"), &ExternalId::new(number.to_string()));
        let mut ids: Vec<_> = (0..12).map(id).collect();
        ids.sort();
        ids
    }

    fn tie(other: EpisodeId, strength: f64) -> Tie {
        Tie { other, pair: Pair::TextText, cosine: strength, strength }
    }

    #[test]
    fn a_reason_names_its_pair_and_only_kinds_of_one_space_have_one() {
        use EmbeddingKind::Audio;
        use EmbeddingKind::Image;
        use EmbeddingKind::Text;
        for pair in Pair::ALL {
            assert_eq!(Pair::parse(pair.reason()), Some(pair));
            assert!(pair.reason().starts_with(REASON_PREFIX));
        }
        assert_eq!(Pair::of(Image, Text), Pair::of(Text, Image));
        assert_eq!((Pair::of(Audio, Text), Pair::of(Image, Audio)), (None, None));
        assert_eq!(Pair::parse("co_occurrence"), None);
    }

    #[test]
    fn below_its_cut_there_is_no_link_and_pairs_are_compared_by_their_own_range() {
        let cuts = Cuts::default();
        for (pair, cosine, expected) in [
            (Pair::ImageImage, 0.799, None),
            (Pair::ImageImage, 0.80, Some(0.0)),
            (Pair::TextText, 0.875, Some(0.5)),
            (Pair::ImageText, 0.30, Some(0.5)),
            (Pair::ImageText, 0.70, Some(1.0)),
            (Pair::AudioAudio, f64::NAN, None),
        ] {
            let strength = cuts.strength(pair, cosine);

            let is_same = match (strength, expected) {
                (Some(strength), Some(expected)) => (strength - expected).abs() < 1e-9,
                (strength, expected) => strength == expected,
            };
            assert!(is_same, "{pair:?} {cosine}: {strength:?}");
        }
    }

    #[test]
    fn a_cut_that_is_no_cosine_is_named() {
        let wrong = Cuts { image_text_min: f64::NAN, text_text_min: -3.0, ..Cuts::default() };

        assert_eq!(wrong.mistakes().len(), 2);
        assert!(Cuts::default().mistakes().is_empty());
    }

    #[test]
    fn each_other_episode_is_offered_once_the_strongest_first_and_ties_by_id() {
        let ids = ids();
        let picture = Tie { pair: Pair::ImageText, ..tie(ids[0], 0.9) };

        let offered = offers([tie(ids[2], 0.5), tie(ids[0], 0.2), picture, tie(ids[1], 0.5)]);

        assert_eq!(offered, [picture, tie(ids[1], 0.5), tie(ids[2], 0.5)]);
    }

    #[test]
    fn a_full_node_lets_go_of_its_weakest_for_a_stronger_one_only() {
        let ids = ids();
        let held: Vec<Tie> =
            (0..5).map(|number| tie(ids[2 * number + 1], if number == 2 { 0.3 } else { 0.5 })).collect();
        let all_equal: Vec<Tie> = (0..5).map(|number| tie(ids[2 * number + 1], 0.5)).collect();

        for (held, id, strength, expected) in [
            (&held[..4], ids[0], 0.0, Answer::Accept),
            (&held, ids[0], 0.4, Answer::AcceptInPlaceOf(tie(ids[5], 0.3))),
            (&held, ids[0], 0.2, Answer::Refuse),
            (&all_equal, ids[8], 0.5, Answer::AcceptInPlaceOf(tie(ids[9], 0.5))),
            (&all_equal, ids[10], 0.5, Answer::Refuse),
        ] {
            assert_eq!(answer(held, id, strength), expected, "{id} {strength}");
        }
    }

    proptest! {
        #[test]
        fn what_a_node_keeps_does_not_get_weaker(strengths in proptest::collection::vec(0.0_f64..1.0, 0..12)) {
            let mut held: Vec<Tie> = Vec::new();
            for (id, strength) in ids().into_iter().zip(strengths) {
                let before: f64 = held.iter().map(|tie| tie.strength).sum();
                match answer(&held, id, strength) {
                    Answer::Accept => held.push(tie(id, strength)),
                    Answer::AcceptInPlaceOf(weakest) => {
                        held.retain(|tie| tie.other != weakest.other);
                        held.push(tie(id, strength));
                    }
                    Answer::Refuse => {}
                }
                prop_assert!(held.len() <= LINKS_MAX);
                prop_assert!(held.iter().map(|tie| tie.strength).sum::<f64>() >= before);
            }
        }
    }
}
