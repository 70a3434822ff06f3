//! How single values look: times, spans, amounts, states, bars.

use crate::listing::TableCell;
pub use crate::listing::Tone;
use std::collections::HashMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Text in a tone, by ANSI escapes.
#[must_use]
pub fn paint(text: &str, tone: Tone) -> String {
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Good => "32",
        Tone::Warn => "33",
        Tone::Bad => "31",
        Tone::Dim => "90",
        Tone::Strong => "36",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// The tone of a state of a host, server or evacuation.
#[must_use]
pub fn tone_of(state: &str) -> Tone {
    match state {
        "up" | "active" | "evacuated" | "spared" | "reserved" => Tone::Good,
        "waiting" | "building" | "evacuating" | "claimed" | "notified" | "draining"
        | "deleting" | "disabled" | "starting" | "returning" | "warned" => Tone::Warn,
        "down" | "error" | "failed" => Tone::Bad,
        "preempted" | "stopped" | "hibernated" | "deleted" | "gone" => Tone::Dim,
        _ => Tone::Plain,
    }
}

/// A state, in its colour.
#[must_use]
pub fn state(word: &str) -> TableCell {
    TableCell::new(word).tone(tone_of(word))
}

/// A word where there is one, a dash for people where there is none.
#[must_use]
pub fn optional(word: &str) -> TableCell {
    if word.is_empty() {
        TableCell::new("-").value("").tone(Tone::Dim)
    } else {
        TableCell::new(word)
    }
}

/// Yes or no.
#[must_use]
pub fn yes(value: bool) -> TableCell {
    TableCell::new(if value { "yes" } else { "no" }).value(value)
}

/// A span: `45s`, `3m12s`, `2h05m`, `3d04h`. Not negative.
#[must_use]
pub fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A span that may have a fraction, as ages in decisions have.
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped first.
pub fn span_f64(seconds: f64) -> String {
    if seconds.is_finite() {
        span(seconds.clamp(0.0, 1e12) as u64)
    } else {
        "?".to_owned()
    }
}

/// A point of time as seen from now: `3m12s ago`, `in 25s`. Something else than RFC 3339 is shown
/// as it is.
#[must_use]
pub fn relative(rfc3339: &str, now: OffsetDateTime) -> String {
    match OffsetDateTime::parse(rfc3339, &Rfc3339) {
        Ok(moment) => {
            let seconds = (now - moment).whole_seconds();
            if seconds < 0 {
                format!("in {}", span(seconds.unsigned_abs()))
            } else {
                format!("{} ago", span(seconds.unsigned_abs()))
            }
        }
        Err(_) => rfc3339.to_owned(),
    }
}

/// A point of time for a table; the exact one for `--output value`.
#[must_use]
pub fn when(rfc3339: &str, now: OffsetDateTime) -> TableCell {
    if rfc3339.is_empty() {
        return optional("");
    }
    TableCell::new(relative(rfc3339, now)).value(rfc3339)
}

/// The time of day of an event: `20:37:05`.
#[must_use]
pub fn time_of_day(rfc3339: &str) -> String {
    match OffsetDateTime::parse(rfc3339, &Rfc3339) {
        Ok(at) => format!("{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second()),
        Err(_) => rfc3339.to_owned(),
    }
}

/// A number without needless decimals: `11`, `0.25`, `-1.333`.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let text = format!("{value:.3}");
    let trimmed = text.trim_end_matches('0').trim_end_matches('.');
    if trimmed == "-0" {
        "0".to_owned()
    } else {
        trimmed.to_owned()
    }
}

/// A map as `key=value, …`, sorted.
#[must_use]
pub fn pairs<V: ToString, S: std::hash::BuildHasher>(map: &HashMap<String, V, S>) -> String {
    let mut pairs: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{key}={}", value.to_string()))
        .collect();
    pairs.sort();
    pairs.join(", ")
}

/// One of something, several of it.
#[must_use]
pub fn plural(count: usize, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}

/// A bar of `width` characters over `capacity`: each part takes its share, the rest is dotted. A
/// part that is not nothing gets at least one character, so that nothing is invisible.
#[must_use]
pub fn bar(parts: &[(u64, char, Tone)], capacity: u64, width: usize) -> Vec<(String, Tone)> {
    let mut left = width;
    let mut drawn = Vec::new();
    for &(amount, glyph, tone) in parts {
        if amount == 0 || capacity == 0 {
            continue;
        }
        let share = u128::from(amount) * width as u128 / u128::from(capacity);
        let length = usize::try_from(share).unwrap_or(width).max(1).min(left);
        left -= length;
        drawn.push((glyph.to_string().repeat(length), tone));
    }
    drawn.push(("·".repeat(left), Tone::Dim));
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn spans_are_read_at_a_glance() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (192, "3m12s"),
            (7_500, "2h05m"),
            (273_600, "3d04h"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn times_are_told_from_now() {
        let now = datetime!(2026-11-20 20:40:12 UTC);
        assert_eq!(relative("2026-11-20T20:37:00Z", now), "3m12s ago");
        assert_eq!(relative("2026-11-20T20:40:37Z", now), "in 25s");
        assert_eq!(relative("yesterday", now), "yesterday");
    }

    #[test]
    fn numbers_have_no_needless_decimals() {
        for (value, text) in [
            (11.0, "11"),
            (0.25, "0.25"),
            (-4.0 / 3.0, "-1.333"),
            (-0.0, "0"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_bar_is_as_wide_as_asked_and_hides_nothing() {
        let width = |parts: &[(String, Tone)]| {
            parts
                .iter()
                .map(|(text, _)| text.chars().count())
                .sum::<usize>()
        };
        for (normal, preemptible, capacity) in
            [(0, 0, 0), (1, 1, 1_000_000), (5, 5, 10), (20, 9, 10)]
        {
            let drawn = bar(
                &[(normal, '█', Tone::Good), (preemptible, '▒', Tone::Warn)],
                capacity,
                20,
            );
            assert_eq!(width(&drawn), 20, "{normal} {preemptible} {capacity}");
        }
        assert_eq!(bar(&[(1, '█', Tone::Good)], 1_000_000, 20)[0].0, "█");
    }
}
