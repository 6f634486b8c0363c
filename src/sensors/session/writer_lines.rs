//! Writes `gps.jsonl` and `bluetooth.jsonl`, and the words gpsd would have used for a report.

use super::folder::UNFINISHED;
use super::writer_sound::finish;
use crate::domain::reading::GpsReport;
use crate::domain::reading::PositionReport;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// Satellites that are written at most.
const SATELLITES_MAX: u32 = 500;

/// A file of JSON lines that is created when its first line comes.
pub(super) struct LineRecorder {
    path: PathBuf,
    mode: u32,
    open: Option<BufWriter<File>>,
}

impl LineRecorder {
    /// `path` is the final name; until [`LineRecorder::close`] the file ends in `.prog`.
    pub(super) fn new(path: PathBuf, mode: u32) -> Self {
        Self { path, mode, open: None }
    }

    fn unfinished(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(UNFINISHED);
        PathBuf::from(name)
    }

    pub(super) fn write(&mut self, line: &Value) -> io::Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let file = File::options().write(true).create_new(true).mode(self.mode).open(self.unfinished())?;
                BufWriter::new(file)
            }
        };
        let written = writeln!(open, "{line}");
        self.open = Some(open);
        written
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.flush()?;
        open.get_ref().sync_data()
    }

    pub(super) fn close(&mut self) -> io::Result<()> {
        self.sync()?;
        match self.open.take() {
            Some(_) => finish(&self.unfinished()),
            None => Ok(()),
        }
    }
}

/// A report in gpsd's words; `None` for a line that was no report.
pub(super) fn gpsd_words(report: &GpsReport) -> Option<Value> {
    match report {
        GpsReport::Position(position) => Some(Value::Object(tpv(position))),
        GpsReport::Satellites { used, seen } => {
            let list = (1..=(*seen).min(SATELLITES_MAX)).map(|number| json!({"PRN": number, "used": number <= *used}));
            Some(json!({"class": "SKY", "satellites": list.collect::<Vec<_>>()}))
        }
        GpsReport::Other(class) => Some(json!({"class": class})),
        GpsReport::Malformed(_) => None,
    }
}

fn tpv(position: &PositionReport) -> Map<String, Value> {
    let mut tpv = Map::new();
    tpv.insert("class".to_owned(), "TPV".into());
    tpv.insert("mode".to_owned(), position.mode.into());
    if let Some(time) = position.time {
        tpv.insert("time".to_owned(), time.to_string().into());
    }
    let numbers = [
        ("lat", position.latitude_deg),
        ("lon", position.longitude_deg),
        ("altMSL", position.altitude_m),
        ("eph", position.accuracy_m),
        ("speed", position.speed_mps),
        ("track", position.course_deg),
    ];
    for (key, number) in numbers {
        if let Some(number) = number.and_then(serde_json::Number::from_f64) {
            tpv.insert(key.to_owned(), Value::Number(number));
        }
    }
    tpv
}
