//! Moments of time in ISO 8601, as microseconds since 1970 in UTC.

/// Reads what `datetime.fromisoformat` reads of the common forms: a date, `T` or a space, hours and
/// minutes, seconds with a fraction, an offset or `Z`. Without an offset the time is UTC. `None` is
/// a ValueError.
#[must_use]
pub fn read(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let bytes = date.as_bytes();
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = digits(&date[0..4])?;
    let month = digits(&date[5..7]).filter(|m| (1..=12).contains(m))?;
    let day = digits(&date[8..10]).filter(|d| (1..=31).contains(d))?;
    let days = days_from_civil(year, month, day);
    if rest.is_empty() {
        return Some(days * DAY);
    }
    let rest = rest.get(1..).filter(|_| rest.is_char_boundary(1))?;
    let (clock, offset) = match rest.find(['Z', '+', '-']) {
        Some(at) => (&rest[..at], offset(&rest[at..])?),
        None => (rest, 0),
    };
    Some(days * DAY + clock_micros(clock)? - offset)
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

fn digits(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    Some(sign * clock_micros(text.get(1..)?)?)
}

fn clock_micros(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hours = digits(parts.next()?).filter(|h| *h < 24)?;
    let minutes = digits(parts.next().unwrap_or("0")).filter(|m| *m < 60)?;
    let seconds = parts.next().unwrap_or("0");
    if parts.next().is_some() {
        return None;
    }
    let (whole, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, "0"));
    let whole = digits(whole).filter(|s| *s < 60)?;
    digits(fraction)?;
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Some((hours * 3600 + minutes * 60 + whole) * SECOND + digits(&micros)?)
}

/// Days since 1970 in the Gregorian calendar: years begin in March here, so that the leap day is
/// the last of a year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_moment_is_read_with_fraction_and_offset() {
        assert_eq!(read("1970-01-01T00:00:00"), Some(0));
        assert_eq!(read("2026-03-01T12:00:00"), Some(1_772_366_400_000_000));
        assert_eq!(read("2026-03-01 12:00:00.25Z"), Some(1_772_366_400_250_000));
        assert_eq!(
            read("2026-03-01T13:00:00+01:00"),
            read("2026-03-01T12:00:00")
        );
        assert_eq!(read("2024-02-29"), Some(1_709_164_800_000_000));
        for bad in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-03-01T25:00:00",
            "2026-03-01T12:00:00.x",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
