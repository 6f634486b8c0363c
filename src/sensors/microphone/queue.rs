//! The bounded queue between the sound system's thread and the sensor's.
//!
//! In, at the [`Sink`]: buffers and errors, from a thread that must never wait. Out, at the [`Queue`]: the same in
//! order, and how many frames were thrown away for lack of room. Full of sound: the oldest goes, counted in frames.
//! Full of errors: the newest goes. The lock is held for a push or a pop, never while anybody waits or converts.

use crate::domain::reading::Samples;
use crate::domain::reading::SoundChunk;
use crate::domain::time::Stamp;
use crate::sensors::live::Failure;
use crate::sensors::live::SharedClock;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

/// Longest sound that waits, in milliseconds.
pub(super) const SOUND_MS_MAX: u64 = 4_000;

/// Most bytes of sound that wait, for devices with many channels.
pub(super) const SOUND_BYTES_MAX: usize = 16 << 20;

/// Most errors that wait: enough for the supervision to give the device up.
pub(super) const ERRORS_MAX: usize = 128;

/// An age of a buffer beyond this is no age but a clock that jumped.
const AGE_MAX: Duration = Duration::from_secs(10);

/// What waits.
#[derive(Debug)]
pub(super) enum Item {
    /// A buffer, and when its first frame was captured.
    Sound(Stamp, SoundChunk),
    /// The sound system lost frames of its own.
    Xrun,
    /// An error the stream survives.
    Error(String),
    /// Buffers thrown away here: when the first began, and how much it was.
    Lost(Stamp, Lost),
    /// The stream is over.
    Broken(Failure),
}

/// Frames thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lost {
    /// How many.
    pub frames: u64,
    /// How long they were, in microseconds.
    pub length_us: u64,
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    sound_us: u64,
    sound_bytes: usize,
    errors: usize,
    lost: Option<(Stamp, Lost)>,
    broken: Option<Failure>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    filled: Condvar,
}

/// Both ends.
pub(super) fn pair(clock: SharedClock) -> (Sink, Queue) {
    let shared = Arc::new(Shared::default());
    (Sink { shared: shared.clone(), clock }, Queue { shared })
}

/// Where a stream puts what it hears.
#[derive(Clone)]
pub(super) struct Sink {
    shared: Arc<Shared>,
    clock: SharedClock,
}

impl Sink {
    /// A buffer whose first frame was captured `age` ago, as the sound system reckons.
    pub(super) fn sound(&self, age: Duration, chunk: SoundChunk) {
        let length_us = length_us(&chunk);
        let length = Duration::from_micros(length_us);
        // A buffer cannot be younger than it is long.
        let age = if age > AGE_MAX { length } else { age.max(length) };
        let age_ms = i64::try_from(age.as_millis()).unwrap_or_default();
        let captured_at = self.clock.stamp().plus_millis(-age_ms);
        self.shared.push(|state| state.push_sound(captured_at, length_us, chunk));
    }

    /// The sound system lost frames.
    pub(super) fn xrun(&self) {
        self.shared.push(|state| state.push_error(|| Item::Xrun));
    }

    /// An error the stream survives.
    pub(super) fn error(&self, sentence: &dyn Display) {
        self.shared.push(|state| state.push_error(|| Item::Error(sentence.to_string())));
    }

    /// The stream is over.
    pub(super) fn broken(&self, failure: Failure) {
        self.shared.push(|state| {
            state.broken.get_or_insert(failure);
        });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.lock());
        self.filled.notify_one();
    }
}

impl State {
    fn push_sound(&mut self, captured_at: Stamp, length_us: u64, chunk: SoundChunk) {
        self.sound_us += length_us;
        self.sound_bytes += bytes(&chunk.samples);
        self.items.push_back(Item::Sound(captured_at, chunk));
        while self.sound_us > SOUND_MS_MAX * 1_000 || self.sound_bytes > SOUND_BYTES_MAX {
            if !self.drop_oldest_sound() {
                break;
            }
        }
    }

    fn drop_oldest_sound(&mut self) -> bool {
        let oldest = self.items.iter().position(|item| matches!(item, Item::Sound(..)));
        let Some(Item::Sound(at, chunk)) = oldest.and_then(|index| self.items.remove(index)) else { return false };
        let length_us = self.forget(&chunk);
        let (_, lost) = self.lost.get_or_insert((at, Lost::default()));
        lost.frames += chunk.frame_count() as u64;
        lost.length_us += length_us;
        true
    }

    /// The chunk no longer waits; its length.
    fn forget(&mut self, chunk: &SoundChunk) -> u64 {
        let length_us = length_us(chunk);
        self.sound_us = self.sound_us.saturating_sub(length_us);
        self.sound_bytes = self.sound_bytes.saturating_sub(bytes(&chunk.samples));
        length_us
    }

    fn push_error(&mut self, item: impl FnOnce() -> Item) {
        if self.errors < ERRORS_MAX {
            self.errors += 1;
            self.items.push_back(item());
        }
    }

    fn pop(&mut self) -> Option<Item> {
        // What was thrown away is older than any sound that still waits.
        if let Some((at, lost)) = self.lost.take() {
            return Some(Item::Lost(at, lost));
        }
        let item = self.items.pop_front();
        match &item {
            Some(Item::Sound(_, chunk)) => {
                self.forget(chunk);
            }
            Some(_) => self.errors = self.errors.saturating_sub(1),
            None => return self.broken.clone().map(Item::Broken),
        }
        item
    }
}

/// Where the sensor takes it from.
pub(super) struct Queue {
    shared: Arc<Shared>,
}

impl Queue {
    /// The next thing, waiting at most `timeout`.
    pub(super) fn take(&self, timeout: Duration) -> Option<Item> {
        let is_empty = |state: &mut State| state.items.is_empty() && state.lost.is_none() && state.broken.is_none();
        let waited = self.shared.filled.wait_timeout_while(self.shared.lock(), timeout, is_empty);
        waited.unwrap_or_else(PoisonError::into_inner).0.pop()
    }
}

/// How long a chunk is, in microseconds.
pub(super) fn length_us(chunk: &SoundChunk) -> u64 {
    chunk.frame_count() as u64 * 1_000_000 / u64::from(chunk.sample_rate_hz.max(1))
}

fn bytes(samples: &Samples) -> usize {
    match samples {
        Samples::I16(values) => values.len() * 2,
        Samples::I24(values) | Samples::I32(values) => values.len() * 4,
        Samples::F32(values) => values.len() * 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::ManualClock;
    use crate::domain::time::Timestamp;

    fn queue() -> (Sink, Queue) {
        let now = Stamp { monotonic_ms: 60_000, utc: Timestamp::from_millis(60_000), quality: ClockQuality::Network };
        pair(Arc::new(ManualClock { now }))
    }

    fn tenth(value: i16) -> SoundChunk {
        SoundChunk { sample_rate_hz: 16_000, channel_count: 1, samples: Samples::I16(vec![value; 1_600]) }
    }

    fn everything(queue: &Queue) -> Vec<Item> {
        std::iter::from_fn(|| queue.take(Duration::ZERO)).take(10_000).collect()
    }

    #[test]
    fn a_full_queue_loses_the_oldest_sound_and_counts_its_frames() {
        let (sink, queue) = queue();
        for value in 0..45 {
            sink.sound(Duration::ZERO, tenth(value));
        }

        let items = everything(&queue);

        assert!(matches!(items[0], Item::Lost(_, Lost { frames: 8_000, length_us: 500_000 })), "{:?}", items[0]);
        assert_eq!(items.len(), 1 + 40);
        let Item::Sound(_, chunk) = &items[1] else { panic!("{:?}", items[1]) };
        assert!(matches!(&chunk.samples, Samples::I16(values) if values[0] == 5));
    }

    #[test]
    fn many_channels_are_bounded_by_bytes() {
        let (sink, queue) = queue();
        let values = 64 * 19_200;
        for _ in 0..10 {
            let samples = Samples::F32(vec![0.0; values]);
            sink.sound(Duration::ZERO, SoundChunk { sample_rate_hz: 192_000, channel_count: 64, samples });
        }

        let kept = everything(&queue).iter().filter(|item| matches!(item, Item::Sound(..))).count();

        assert_eq!(kept, SOUND_BYTES_MAX / (values * 4));
    }

    #[test]
    fn ten_thousand_errors_take_the_room_of_a_few_and_the_end_comes_last() {
        let (sink, queue) = queue();
        for _ in 0..10_000 {
            sink.error(&"EIO");
        }
        sink.broken(Failure::unplugged("gone"));
        sink.broken(Failure::unplugged("gone twice"));

        let items: Vec<Item> = std::iter::from_fn(|| queue.take(Duration::ZERO)).take(ERRORS_MAX + 2).collect();

        assert!(items[..ERRORS_MAX].iter().all(|item| matches!(item, Item::Error(_))));
        for item in &items[ERRORS_MAX..] {
            assert!(matches!(item, Item::Broken(failure) if failure.detail == "gone"), "{item:?}");
        }
    }

    #[test]
    fn a_buffer_is_as_old_as_it_is_long_at_least_and_a_nonsensical_age_is_ignored() {
        let (sink, queue) = queue();
        for age_ms in [0, 250, 600_000] {
            sink.sound(Duration::from_millis(age_ms), tenth(0));
        }

        let captured: Vec<i64> = everything(&queue)
            .into_iter()
            .filter_map(|item| if let Item::Sound(at, _) = item { Some(at.monotonic_ms) } else { None })
            .collect();

        assert_eq!(captured, [59_900, 59_750, 59_900]);
    }
}
