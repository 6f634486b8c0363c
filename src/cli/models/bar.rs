//! Shows a fetch: a moving bar on a terminal, plain lines elsewhere.

use std::io::Write;

use indicatif::DecimalBytes;
use indicatif::ProgressBar;
use indicatif::ProgressDrawTarget;
use indicatif::ProgressStyle;

use crate::perception::model::fetch::Progress;
use crate::perception::model::fetch::Step;

/// A plain line is written each time this share of a file has arrived, percent.
const PLAIN_STEP_PERCENT: u64 = 10;

/// The state of the display.
pub(super) struct Bar {
    is_terminal: bool,
    bar: Option<ProgressBar>,
    /// Share of the file that the last plain line told, percent.
    told_percent: u64,
}

impl Bar {
    pub(super) fn new(is_terminal: bool) -> Self {
        Self { is_terminal, bar: None, told_percent: 0 }
    }

    /// Shows one step. A display that fails does not stop a fetch.
    pub(super) fn show(&mut self, progress: &Progress<'_>, err: &mut dyn Write) {
        let name = format!("{}/{}", progress.model, progress.file);
        match progress.step {
            Step::Received { bytes, total_bytes } => self.received(&name, bytes, total_bytes, err),
            Step::Present => self.line(&name, "is here", err),
            Step::Copying { from } => self.line(&name, &format!("copying {}", from.display()), err),
            Step::Asking { address, kept_bytes: 0 } => self.line(&name, &format!("fetching {address}"), err),
            Step::Asking { address, kept_bytes } => {
                self.line(&name, &format!("fetching {address} from {} on", DecimalBytes(kept_bytes)), err);
            }
            Step::Checking => self.line(&name, "checking its hash", err),
            Step::Building { from } => self.line(&name, &format!("building from {from}"), err),
            Step::Refused { cause } => self.line(&name, cause, err),
            Step::Ready => self.line(&name, "ready", err),
        }
    }

    fn line(&mut self, name: &str, text: &str, err: &mut dyn Write) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.told_percent = 0;
        let _ = writeln!(err, "{name}: {text}");
    }

    fn received(&mut self, name: &str, bytes: u64, total_bytes: u64, err: &mut dyn Write) {
        if self.is_terminal {
            self.bar.get_or_insert_with(|| moving(name, bytes, total_bytes)).set_position(bytes);
            return;
        }
        let percent = bytes.saturating_mul(100) / total_bytes.max(1);
        if percent >= self.told_percent + PLAIN_STEP_PERCENT {
            self.told_percent = percent;
            let _ = writeln!(err, "{name}: {percent} % of {}", DecimalBytes(total_bytes));
        }
    }
}

fn moving(name: &str, bytes: u64, total_bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {eta}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    bar.with_position(bytes)
}
