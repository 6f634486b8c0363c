//! Modality and decay: the exact tables of DESIGN 3.1.

/// What an episode is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    /// A scene.
    Visual,
    /// A sound.
    Audio,
    /// A person.
    Social,
    /// A place or a way.
    Spatial,
    /// Work on source code, handed in from outside.
    Code,
    /// Any other tool's result, handed in from outside.
    ToolResult,
    /// Words alone.
    Text,
    /// A summary of other episodes.
    Gist,
}

/// How fast an episode fades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecayClass {
    /// Half-life one hour; removed three hours after capture.
    Session,
    /// Half-life 24 hours.
    Daily,
    /// Half-life 30 days.
    Procedural,
    /// Never fades.
    Permanent,
}

const HOUR_MS: i64 = 3_600_000;

impl Modality {
    /// All modalities, in the order of the table in DESIGN section 3.
    pub const ALL: [Self; 8] =
        [Self::Visual, Self::Audio, Self::Social, Self::Spatial, Self::Code, Self::ToolResult, Self::Text, Self::Gist];

    /// The name stored in the database and taken on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Visual => "visual",
            Self::Audio => "audio",
            Self::Social => "social",
            Self::Spatial => "spatial",
            Self::Code => "code",
            Self::ToolResult => "tool_result",
            Self::Text => "text",
            Self::Gist => "gist",
        }
    }

    /// The modality of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|modality| modality.as_str() == name)
    }

    /// Importance (0–10) when the caller gives none.
    #[must_use]
    pub const fn default_importance(self) -> u8 {
        match self {
            Self::Social => 9,
            Self::Visual | Self::Gist => 7,
            Self::Audio => 6,
            Self::Spatial | Self::Code | Self::ToolResult | Self::Text => 5,
        }
    }

    /// Decay class when the caller gives none.
    #[must_use]
    pub const fn default_decay(self) -> DecayClass {
        match self {
            Self::Social => DecayClass::Permanent,
            Self::Visual | Self::Spatial | Self::Gist => DecayClass::Procedural,
            Self::Audio | Self::Code | Self::ToolResult | Self::Text => DecayClass::Daily,
        }
    }
}

impl DecayClass {
    /// All classes, fastest first.
    pub const ALL: [Self; 4] = [Self::Session, Self::Daily, Self::Procedural, Self::Permanent];

    /// The name stored in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Daily => "daily",
            Self::Procedural => "procedural",
            Self::Permanent => "permanent",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// Half-life in milliseconds; `None` for an episode that never fades.
    #[must_use]
    pub const fn half_life_ms(self) -> Option<i64> {
        match self {
            Self::Session => Some(HOUR_MS),
            Self::Daily => Some(24 * HOUR_MS),
            Self::Procedural => Some(30 * 24 * HOUR_MS),
            Self::Permanent => None,
        }
    }

    /// `2^(−age / half-life)`, in 0–1; an age below zero (a future timestamp) counts as 0.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "ages stay far below 2^53 ms")]
    pub fn recency(self, age_ms: i64) -> f64 {
        self.half_life_ms().map_or(1.0, |half_life_ms| (-(age_ms.max(0) as f64) / half_life_ms as f64).exp2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recency_after_seven_days_is_the_table_of_the_design() {
        let week_ms = 7 * 24 * HOUR_MS;
        let expected = [
            (Modality::Social, 9, 1.0),
            (Modality::Visual, 7, 0.8507),
            (Modality::Spatial, 5, 0.8507),
            (Modality::Audio, 6, 0.0078),
            (Modality::ToolResult, 5, 0.0078),
            (Modality::Code, 5, 0.0078),
            (Modality::Text, 5, 0.0078),
            (Modality::Gist, 7, 0.8507),
        ];

        for (modality, importance, recency) in expected {
            assert_eq!(modality.default_importance(), importance, "{modality:?}");
            assert!((modality.default_decay().recency(week_ms) - recency).abs() < 1e-4, "{modality:?}");
        }
    }

    #[test]
    fn a_future_timestamp_counts_as_the_present() {
        assert!((DecayClass::Session.recency(-5) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn names_parse_back() {
        for modality in Modality::ALL {
            assert_eq!(Modality::parse(modality.as_str()), Some(modality));
        }
        for class in DecayClass::ALL {
            assert_eq!(DecayClass::parse(class.as_str()), Some(class));
        }
    }
}
