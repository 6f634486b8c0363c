//! The settings of live sensors: which device, and how it is asked. Plain data, there with and without hardware support.

/// How the microphone is captured.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Microphone {
    /// Whether sound is captured at all.
    pub enabled: bool,
    /// A device's name as `percept devices` prints it; empty: the first real one.
    pub device: String,
    /// Frames per second to ask for; 0: what suits the device.
    pub sample_rate_hz: u32,
    /// Channels the device must have; 0: what it offers.
    pub channels: u16,
    /// Length of a buffer in milliseconds, 10 to 1,000; of a sound server at least 400.
    pub buffer_ms: u32,
}

impl Default for Microphone {
    fn default() -> Self {
        Self { enabled: true, device: String::new(), sample_rate_hz: 0, channels: 0, buffer_ms: 100 }
    }
}

/// How the camera is captured.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Camera {
    /// Whether pictures are captured at all.
    pub enabled: bool,
    /// A device's name as `percept devices` prints it; empty: the first real one.
    pub device: String,
    /// A program that writes MJPEG to its standard output, with its arguments; it takes the place of `device`.
    pub command: String,
    /// Wished width in pixels.
    pub width_px: u32,
    /// Wished height in pixels.
    pub height_px: u32,
    /// Pictures a second, above 0 to 10.
    pub frames_per_s: f64,
}

impl Default for Camera {
    fn default() -> Self {
        Self {
            enabled: true,
            device: String::new(),
            command: String::new(),
            width_px: 640,
            height_px: 480,
            frames_per_s: 1.0,
        }
    }
}

/// How advertisements are heard.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Bluetooth {
    /// Whether advertisements are captured at all.
    pub enabled: bool,
    /// An adapter's name as `percept devices` prints it, or its address; empty: the first one.
    pub adapter: String,
}

impl Default for Bluetooth {
    fn default() -> Self {
        Self { enabled: true, adapter: String::new() }
    }
}

impl Microphone {
    /// Values that cannot be meant, in sentences.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if !(10..=1_000).contains(&self.buffer_ms) {
            mistakes.push(format!("buffer_ms = {}: from 10 to 1000", self.buffer_ms));
        }
        if self.sample_rate_hz != 0 && !(8_000..=768_000).contains(&self.sample_rate_hz) {
            mistakes.push(format!("sample_rate_hz = {}: 0, or from 8000 to 768000", self.sample_rate_hz));
        }
        mistakes
    }
}

impl Camera {
    /// Values that cannot be meant, in sentences.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if !(self.frames_per_s > 0.0 && self.frames_per_s <= 10.0) {
            mistakes.push(format!("frames_per_s = {}: above 0, at most 10", self.frames_per_s));
        }
        if let Err(error) = shell_words::split(&self.command) {
            mistakes.push(format!("command = {:?}: {error}", self.command));
        }
        if !(16..=8_192).contains(&self.width_px) || !(16..=8_192).contains(&self.height_px) {
            mistakes.push(format!("width_px = {}, height_px = {}: from 16 to 8192", self.width_px, self.height_px));
        }
        mistakes
    }
}
