//! Sections that tell both how a sensor is captured and how its readings are understood.
//!
//! A section is one table in the file and two values here: the sensor's own settings and those of its perception.

/// `[microphone]`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Microphone {
    /// How it is captured.
    #[serde(flatten)]
    pub capture: crate::sensors::settings::Microphone,
    /// What is heard in it.
    #[serde(flatten)]
    pub hearing: crate::perception::hearing::Config,
}

/// `[camera]`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Camera {
    /// How it is captured.
    #[serde(flatten)]
    pub capture: crate::sensors::settings::Camera,
    /// What is seen in it.
    #[serde(flatten)]
    pub sight: crate::perception::camera::Config,
}

/// `[gps]`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Gps {
    /// How it is captured.
    #[serde(flatten)]
    pub capture: crate::sensors::gps::Config,
    /// Which fixes are believed.
    #[serde(flatten)]
    pub fix: crate::perception::fix::Config,
}

/// `[bluetooth]`.
pub type Bluetooth = crate::sensors::settings::Bluetooth;
