//! One log line for a burst of equal errors.

/// The same sentence is told again at most this often.
const AGAIN_MS: i64 = 60_000;

/// Remembers what was last told.
#[derive(Debug, Default)]
pub struct Burst {
    told: Option<(String, i64)>,
}

impl Burst {
    /// Whether this sentence is worth a line: another one than before, or the same after a minute.
    pub fn admits(&mut self, sentence: &str, now_ms: i64) -> bool {
        if let Some((told, at_ms)) = &self.told
            && told == sentence
            && now_ms - at_ms < AGAIN_MS
        {
            return false;
        }
        self.told = Some((sentence.to_owned(), now_ms));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_a_hundred_times_a_second_for_an_hour_is_told_once_a_minute() {
        let mut burst = Burst::default();

        let told = (0..360_000).filter(|hundredth| burst.admits("read: EIO", hundredth * 10)).count();

        assert_eq!(told, 60);
    }
}
