//! Distances and durations as a person says them.

/// `850 m`, `1.3 km`, `120 km`.
pub(super) fn distance(metres: f64) -> String {
    if metres < 995.0 {
        format!("{:.0} m", (metres / 10.0).round() * 10.0)
    } else if metres < 99_950.0 {
        format!("{:.1} km", metres / 1000.0)
    } else {
        format!("{:.0} km", metres / 1000.0)
    }
}

/// `40 seconds`, `42 minutes`, `1 hour 5 minutes`, `3 hours`, `2 days 4 hours`.
pub(super) fn duration(millis: i64) -> String {
    let seconds = (millis.max(0) + 500) / 1000;
    if seconds < 60 {
        return counted(seconds, "second");
    }
    let minutes = (seconds + 30) / 60;
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    let (whole, part) = match (days, hours) {
        (0, 0) => (counted(minutes, "minute"), String::new()),
        (0, _) => (counted(hours, "hour"), some(minutes, "minute")),
        _ => (counted(days, "day"), some(hours, "hour")),
    };
    whole + &part
}

fn some(count: i64, unit: &str) -> String {
    if count == 0 { String::new() } else { format!(" {}", counted(count, unit)) }
}

fn counted(count: i64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_distances_read_like_speech() {
        let minute = 60_000;
        let durations = [
            (0, "0 seconds"),
            (1_000, "1 second"),
            (42 * minute, "42 minutes"),
            (59 * minute + 40_000, "1 hour"),
            (65 * minute, "1 hour 5 minutes"),
            (120 * minute + 20_000, "2 hours"),
            (1440 * minute + 61 * minute, "1 day 1 hour"),
        ];
        for (millis, words) in durations {
            assert_eq!(duration(millis), words);
        }
        for (metres, words) in [(304.0, "300 m"), (994.0, "990 m"), (1_260.0, "1.3 km"), (120_400.0, "120 km")] {
            assert_eq!(distance(metres), words);
        }
    }
}
