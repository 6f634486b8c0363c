//! Proof that a thread makes progress: the watchdog is fed only while every heart beats.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

/// The heart of one thread.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// A heart that has not beaten.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Beats once.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Watches hearts.
#[derive(Debug)]
pub struct Watch {
    hearts: Vec<Watched>,
    patience_ms: i64,
}

#[derive(Debug)]
struct Watched {
    name: String,
    heart: Heartbeat,
    count: u64,
    since_ms: i64,
}

impl Watch {
    /// Watches nobody yet. A heart that has not beaten for `patience_ms` is stuck.
    #[must_use]
    pub fn new(patience_ms: i64) -> Self {
        Self { hearts: Vec::new(), patience_ms }
    }

    /// Watches one more heart from `now_ms` (monotonic) on.
    pub fn add(&mut self, name: &str, heart: Heartbeat, now_ms: i64) {
        let count = heart.count();
        self.hearts.push(Watched { name: name.to_owned(), heart, count, since_ms: now_ms });
    }

    /// Who has not beaten for too long.
    pub fn stuck(&mut self, now_ms: i64) -> Vec<String> {
        let patience_ms = self.patience_ms;
        let mut stuck = Vec::new();
        for watched in &mut self.hearts {
            let count = watched.heart.count();
            if count != watched.count {
                (watched.count, watched.since_ms) = (count, now_ms);
            } else if now_ms - watched.since_ms > patience_ms {
                stuck.push(watched.name.clone());
            }
        }
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heart_that_stops_is_named_and_one_that_beats_again_is_not() {
        let (alive, dying) = (Heartbeat::new(), Heartbeat::new());
        let mut watch = Watch::new(30_000);
        watch.add("microphone", alive.clone(), 0);
        watch.add("camera", dying.clone(), 0);
        alive.beat();
        assert_eq!(watch.stuck(30_000), Vec::<String>::new());

        alive.beat();
        assert_eq!(watch.stuck(30_001), ["camera"]);

        dying.beat();
        assert_eq!(watch.stuck(30_002), Vec::<String>::new());
    }
}
