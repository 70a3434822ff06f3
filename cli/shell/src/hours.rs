//! Times of tenants' plans: read as `5h`, `90s`, `1h30m`, shown as `1 h 30 min`. Inside they are
//! hours, as in `ebbtide-lifetime`.

use std::str::FromStr;

const UNITS: [(&str, f64); 4] = [
    ("d", 24.0),
    ("h", 1.0),
    ("m", 1.0 / 60.0),
    ("s", 1.0 / 3600.0),
];

/// A time of zero or more hours.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Hours(pub f64);

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no time: 5h, 90s, 1m, 1h30m, 2d, or 0");
        let mut rest = text.trim();
        if rest == "0" {
            return Ok(Self(0.0));
        }
        if rest.is_empty() {
            return Err(wrong());
        }
        let mut hours = 0.0;
        while !rest.is_empty() {
            let end = rest
                .find(|c: char| !(c.is_ascii_digit() || c == '.'))
                .ok_or_else(|| {
                    format!("{}; it needs a unit: {text}h, {text}m or {text}s", wrong())
                })?;
            let value: f64 = rest[..end].parse().map_err(|_| wrong())?;
            let (unit, size) = UNITS
                .iter()
                .find(|(unit, _)| rest[end..].starts_with(unit))
                .ok_or_else(wrong)?;
            hours += value * size;
            rest = &rest[end + unit.len()..];
        }
        if hours.is_finite() {
            Ok(Self(hours))
        } else {
            Err(wrong())
        }
    }
}

/// The provider's maximum lifetime: a time above zero, or `none`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Maximum(pub f64);

impl FromStr for Maximum {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(f64::INFINITY));
        }
        match text.parse::<Hours>()? {
            Hours(hours) if hours > 0.0 => Ok(Self(hours)),
            _ => Err("the maximum lifetime has to be above zero, or none".to_owned()),
        }
    }
}

impl std::fmt::Display for Hours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(hours) = *self;
        if !hours.is_finite() {
            return f.write_str("never");
        }
        let seconds = hours * 3600.0;
        if seconds < 59.95 {
            return if seconds == 0.0 || seconds >= 10.0 {
                write!(f, "{seconds:.0} s")
            } else {
                write!(f, "{seconds:.1} s")
            };
        }
        let minutes = hours * 60.0;
        if minutes < 59.95 {
            // A decimal where there is something to say.
            return if (minutes - minutes.round()).abs() < 0.05 {
                write!(f, "{minutes:.0} min")
            } else {
                write!(f, "{minutes:.1} min")
            };
        }
        let minutes = minutes.round();
        let (whole, rest) = ((minutes / 60.0).floor(), minutes % 60.0);
        if rest == 0.0 {
            write!(f, "{whole:.0} h")
        } else {
            write!(f, "{whole:.0} h {rest:.0} min")
        }
    }
}

/// Minutes, whole where they are whole up to the last bits.
#[must_use]
pub fn minutes_of(hours: f64) -> f64 {
    let minutes = hours * 60.0;
    if (minutes - minutes.round()).abs() < 1e-6 {
        minutes.round()
    } else {
        minutes
    }
}

/// Intervals of hours, each in minutes as text.
#[must_use]
pub fn in_minutes(intervals: &[f64]) -> Vec<String> {
    let one = |hours: &f64| match minutes_of(*hours) {
        minutes if minutes.fract() == 0.0 => format!("{minutes:.0}"),
        minutes => format!("{minutes:.2}"),
    };
    intervals.iter().map(one).collect()
}

/// `15, 18, 22`; three or more equal ones as `27 × 10.95, 4.23`.
#[must_use]
pub fn interval_list(intervals: &[f64]) -> String {
    let texts = in_minutes(intervals);
    let parts = texts.chunk_by(|a, b| a == b).map(|same| match same {
        [one] => one.clone(),
        [one, another] => format!("{one}, {another}"),
        many => format!("{} × {}", many.len(), many[0]),
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, hours) in [
            ("5h", 5.0),
            ("90m", 1.5),
            ("1h30m", 1.5),
            ("36s", 0.01),
            ("0", 0.0),
            ("2d", 48.0),
            ("0.5h", 0.5),
        ] {
            let read: Hours = text.parse().unwrap();
            assert!((read.0 - hours).abs() < 1e-12, "{text}");
        }
        for text in ["", "5", "h", "-5h", "5x", "1h30", "nan", "1e3h", "5 h"] {
            assert!(text.parse::<Hours>().is_err(), "{text}");
        }
        assert_eq!("none".parse(), Ok(Maximum(f64::INFINITY)));
        assert!("0".parse::<Maximum>().is_err());
    }

    #[test]
    fn times_are_shown_as_people_say_them() {
        for (hours, text) in [
            (5.0, "5 h"),
            (1.5, "1 h 30 min"),
            (0.25, "15 min"),
            (0.01, "36 s"),
            (0.0, "0 s"),
            (0.999_99, "1 h"),
            (f64::INFINITY, "never"),
        ] {
            assert_eq!(Hours(hours).to_string(), text);
        }
    }

    #[test]
    fn equal_intervals_are_written_once() {
        let minute = 1.0 / 60.0;
        let intervals = [11.0 * minute, 11.0 * minute, 11.0 * minute, 4.25 * minute];
        assert_eq!(interval_list(&intervals), "3 × 11, 4.25");
        assert_eq!(interval_list(&[15.0 * minute, 18.0 * minute]), "15, 18");
    }
}
