//! Builds recorded sessions for tests, and runs `percept` on them in-process.

use percept::cli::Io;
use percept::domain::time::ClockQuality;
use percept::domain::time::ManualClock;
use percept::domain::time::Stamp;
use percept::domain::time::Timestamp;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// When the scenes of the tests begin, unless they say otherwise: a Monday morning.
pub const STARTED_AT: &str = "2026-11-30T09:00:00+01:00";

/// A session folder under construction, with a data directory beside it.
pub struct Scene {
    root: TempDir,
    gps: String,
    bluetooth: String,
    head: String,
    tail: String,
}

/// What a command did.
#[derive(Debug)]
pub struct Outcome {
    pub code: u8,
    pub out: String,
    pub err: String,
}

impl Scene {
    pub fn new(name: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["session/microphone", "session/camera", "data"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let head = format!(
            "format = 1\nsession_id = \"{name}\"\ndevice_id = \"test-device\"\nboot_id = \"boot-1\"\n\
             started_at = \"{STARTED_AT}\"\nclock_quality = \"network\"\n"
        );
        Self { root, gps: String::new(), bluetooth: String::new(), head, tail: String::new() }
    }

    /// Replaces a line of `session.toml` by its key.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        let lines: Vec<&str> = self.head.lines().filter(|line| !line.starts_with(&format!("{key} ="))).collect();
        self.head = lines.join("\n") + &format!("\n{key} = {value}\n");
        self
    }

    /// Adds tables to the end of `session.toml`.
    pub fn toml(mut self, text: &str) -> Self {
        self.tail.push_str(text);
        self
    }

    /// 16-bit mono sound at 16 kHz.
    pub fn sound(self, offset_ms: u64, samples: &[f32]) -> Self {
        let spec = hound::WavSpec {
            channels: 1,
            sample_rate: 16_000,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut writer = hound::WavWriter::create(self.microphone(offset_ms), spec).unwrap();
        for sample in samples {
            #[expect(clippy::cast_possible_truncation, reason = "clamped to 16 bits")]
            writer.write_sample((sample * 32_767.0).clamp(-32_768.0, 32_767.0) as i16).unwrap();
        }
        writer.finalize().unwrap();
        self
    }

    pub fn microphone(&self, offset_ms: u64) -> PathBuf {
        self.session().join(format!("microphone/{offset_ms}.wav"))
    }

    /// A picture, as PNG.
    pub fn picture(self, offset_ms: u64, picture: &image::RgbImage) -> Self {
        picture.save(self.session().join(format!("camera/{offset_ms}.png"))).unwrap();
        self
    }

    /// A report of the receiver, as gpsd writes it.
    pub fn gps(mut self, at_ms: u64, report: &serde_json::Value) -> Self {
        writeln!(self.gps, "{}", serde_json::json!({"at_ms": at_ms, "report": report})).unwrap();
        self
    }

    /// An advertisement of a device with that address.
    pub fn advertisement(mut self, at_ms: u64, address: &str, rssi_dbm: i32) -> Self {
        let line = serde_json::json!({
            "at_ms": at_ms, "address": address, "address_type": "public", "rssi_dbm": rssi_dbm,
        });
        writeln!(self.bluetooth, "{line}").unwrap();
        self
    }

    pub fn session(&self) -> PathBuf {
        self.root.path().join("session")
    }

    pub fn data_dir(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Writes the text files of the session.
    pub fn write(&self) {
        fs::write(self.session().join("session.toml"), format!("{}{}", self.head, self.tail)).unwrap();
        for (name, text) in [("gps.jsonl", &self.gps), ("bluetooth.jsonl", &self.bluetooth)] {
            let mut lines: Vec<&str> = text.lines().collect();
            // A recorder writes in order of time; scenes are put together sender by sender.
            lines.sort_by_key(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["at_ms"].as_u64()
            });
            if !lines.is_empty() {
                fs::write(self.session().join(name), lines.join("\n") + "\n").unwrap();
            }
        }
    }

    /// Runs `percept ARGS --data-dir …` with the config text given.
    pub fn percept(&self, config: &str, args: &[&str]) -> Outcome {
        let file = self.root.path().join("percept.toml");
        fs::write(&file, config).unwrap();
        let data_dir = self.data_dir();
        let mut words = vec!["percept", "--config", file.to_str().unwrap(), "--data-dir", data_dir.to_str().unwrap()];
        words.extend_from_slice(args);
        percept(&words)
    }

    /// Replays the session and fails the test with what was printed when that fails.
    pub fn replay(&self, config: &str) -> Outcome {
        self.write();
        let session = self.session();
        let outcome = self.percept(config, &["replay", session.to_str().unwrap()]);
        assert_eq!(outcome.code, 0, "{outcome:#?}");
        outcome
    }

    /// The episodes as rows of JSON.
    pub fn episodes(&self, args: &[&str]) -> Vec<serde_json::Value> {
        let mut words = vec!["episodes", "--format", "json"];
        words.extend_from_slice(args);
        let outcome = self.percept("", &words);
        assert_eq!(outcome.code, 0, "{outcome:#?}");
        serde_json::from_str(&outcome.out).unwrap()
    }
}

/// Runs a whole command line in-process, an hour after [`STARTED_AT`].
pub fn percept(words: &[&str]) -> Outcome {
    let utc = Timestamp::parse(STARTED_AT).unwrap().plus_millis(3_600_000);
    let clock = ManualClock { now: Stamp { monotonic_ms: 0, utc, quality: ClockQuality::Network } };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io { out: &mut out, err: &mut err, out_is_terminal: false, err_is_terminal: false, clock: &clock };
    let code = percept::cli::run(words.iter().map(Into::into), &mut io);
    Outcome { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}
