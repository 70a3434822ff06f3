//! An axis: its label, its range, where its ticks are and what they say.

use crate::error::ChartError;
use time::OffsetDateTime;

/// How values lie on an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm; only values above zero.
    Logarithmic,
    /// Seconds since 1970 in UTC, shown as dates.
    Date,
    /// Names at 0, 1, 2, …
    Categories(Vec<String>),
}

/// One axis of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Axis {
    /// An even axis as long as the data. The label should name the unit: `"cost [$]"`.
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Linear,
            low: None,
            high: None,
        }
    }

    /// An axis of names; the first lies at 0, the next at 1.
    #[must_use]
    pub fn categories<S: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = S>,
    ) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        Self {
            scale: Scale::Categories(names),
            ..Self::new(label)
        }
    }

    /// The same from `low` to `high`, whatever the data.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        (self.low, self.high) = (Some(low), Some(high));
        self
    }

    /// The same beginning at `low`, whatever the data: bars and costs should begin at zero.
    #[must_use]
    pub fn from(mut self, low: f64) -> Self {
        self.low = Some(low);
        self
    }

    /// The same on a logarithmic scale.
    #[must_use]
    pub fn logarithmic(mut self) -> Self {
        self.scale = Scale::Logarithmic;
        self
    }

    /// The same with its values, seconds since 1970, shown as dates in UTC.
    #[must_use]
    pub fn dates(mut self) -> Self {
        self.scale = Scale::Date;
        self
    }

    /// The axis with its range settled, where the data reach from `data.0` to `data.1`.
    ///
    /// # Errors
    /// [`ChartError::Range`] for a given range that is empty, infinite, or not above zero on a
    /// logarithmic scale.
    pub(crate) fn settle(&self, data: Option<(f64, f64)>) -> Result<FixedAxis, ChartError> {
        let (low, high) = match &self.scale {
            Scale::Categories(names) => (-0.5, names.len().max(1) as f64 - 0.5),
            scale => self.fitted(data, *scale == Scale::Logarithmic),
        };
        let problem = if !low.is_finite() || !high.is_finite() {
            Some("both ends have to be finite")
        } else if low >= high {
            Some("the lower end has to be below the upper one")
        } else if self.scale == Scale::Logarithmic && low <= 0.0 {
            Some("a logarithmic axis has only values above zero")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(ChartError::Range {
                label: self.label.clone(),
                low,
                high,
                problem,
            });
        }
        Ok(FixedAxis {
            scale: self.scale.clone(),
            low,
            high,
        })
    }

    /// The given ends, and where none is given the data's with a little room beyond.
    fn fitted(&self, data: Option<(f64, f64)>, logarithmic: bool) -> (f64, f64) {
        let (least, most) = data.unwrap_or(if logarithmic { (1.0, 10.0) } else { (0.0, 1.0) });
        if logarithmic {
            let room = if most > least {
                (most / least).powf(0.03)
            } else {
                2.0
            };
            return (
                self.low.unwrap_or(least / room),
                self.high.unwrap_or(most * room),
            );
        }
        let (from, to) = (self.low.unwrap_or(least), self.high.unwrap_or(most));
        let room = if to > from {
            (to - from) * 0.04
        } else {
            to.abs().max(1.0) * 0.5
        };
        (
            self.low.unwrap_or(least - room),
            self.high.unwrap_or_else(|| most.max(from) + room),
        )
    }
}

/// An axis with its range known.
#[derive(Debug, Clone)]
pub(crate) struct FixedAxis {
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl FixedAxis {
    /// Where a value lies, 0 at the lower end and 1 at the upper one. Not limited to that.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
            _ => (value - self.low) / (self.high - self.low),
        }
    }

    /// The value at a place; the inverse of [`FixedAxis::place`].
    pub(crate) fn value(&self, place: f64) -> f64 {
        match self.scale {
            Scale::Logarithmic => self.low * (self.high / self.low).powf(place),
            _ => self.low + place * (self.high - self.low),
        }
    }

    /// At most about `most` ticks.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        match &self.scale {
            Scale::Categories(names) => (0..names.len()).map(|i| i as f64).collect(),
            Scale::Linear => multiples(self.low, self.high, nice_step(self.high - self.low, most)),
            Scale::Date => multiples(self.low, self.high, date_step(self.high - self.low, most)),
            Scale::Logarithmic => self.decades(most),
        }
    }

    /// Powers of ten, and 2 and 5 times those where there are few; even ticks where there is not
    /// even one.
    fn decades(&self, most: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let inside = |factors: &[f64]| -> Vec<f64> {
            let powers = (first as i32)..=(last as i32);
            powers
                .flat_map(|p| factors.iter().map(move |f| f * 10_f64.powi(p)))
                .filter(|v| (self.low..=self.high).contains(v))
                .collect()
        };
        let tens = inside(&[1.0]);
        if tens.len() > most.max(2) {
            let every = tens.len().div_ceil(most.max(2));
            return tens.into_iter().step_by(every).collect();
        }
        let more = inside(&[1.0, 2.0, 5.0]);
        if tens.len() >= 4 || more.len() > most {
            return tens;
        }
        if more.len() >= 2 {
            return more;
        }
        multiples(self.low, self.high, nice_step(self.high - self.low, most))
    }

    /// What the tick at `value` says.
    pub(crate) fn words(&self, value: f64, most: usize) -> String {
        match &self.scale {
            Scale::Categories(names) => {
                let name = names.get(value.round().max(0.0) as usize);
                name.cloned().unwrap_or_default()
            }
            Scale::Linear => decimal(value, nice_step(self.high - self.low, most)),
            Scale::Logarithmic => {
                if value != 0.0 && !(1e-4..1e6).contains(&value.abs()) {
                    format!("{value:.0e}")
                } else {
                    decimal(value, 10_f64.powf(value.abs().log10().floor()))
                }
            }
            Scale::Date => date(value, date_step(self.high - self.low, most)),
        }
    }
}

/// The least of 1, 2 and 5 times a power of ten that cuts `span` into at most `most` pieces.
fn nice_step(span: f64, most: usize) -> f64 {
    let raw = span / most.max(1) as f64;
    let power = 10_f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|f| f * power >= raw * 0.999_999);
    factor.unwrap_or(10.0) * power
}

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;

/// The same in seconds for dates: whole minutes, hours, days and weeks; months are thirty days.
fn date_step(span: f64, most: usize) -> f64 {
    let raw = span / most.max(1) as f64;
    let steps = [
        60.0,
        300.0,
        900.0,
        HOUR,
        2.0 * HOUR,
        6.0 * HOUR,
        12.0 * HOUR,
        DAY,
        2.0 * DAY,
        7.0 * DAY,
        14.0 * DAY,
        30.0 * DAY,
        60.0 * DAY,
        90.0 * DAY,
        180.0 * DAY,
        360.0 * DAY,
    ];
    steps
        .into_iter()
        .find(|step| *step >= raw)
        .unwrap_or_else(|| (raw / (360.0 * DAY)).ceil() * 360.0 * DAY)
}

/// The multiples of `step` from `low` to `high`. Reckoned by whole numbers, so 0.1 + 0.2 does not
/// become 0.30000000000000004.
fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    // More than a thousand ticks cannot be wanted; it is a guard against a range without width.
    (first..=last).take(1000).map(|i| i as f64 * step).collect()
}

/// A number with as many decimals as the step between ticks has.
fn decimal(value: f64, step: f64) -> String {
    let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.trim_start_matches(['-', '0', '.']).is_empty() {
        return "0".to_owned();
    }
    text
}

fn date(seconds: f64, step: f64) -> String {
    let Ok(at) = OffsetDateTime::from_unix_timestamp(seconds.round() as i64) else {
        return format!("{seconds:.0}");
    };
    let (year, month, day) = at.to_calendar_date();
    let month = u8::from(month);
    if step >= DAY {
        format!("{year}-{month:02}-{day:02}")
    } else {
        format!("{month:02}-{day:02} {:02}:{:02}", at.hour(), at.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(low: f64, high: f64, most: usize) -> Vec<String> {
        let axis = Axis::new("x").range(low, high).settle(None).unwrap();
        let ticks = axis.ticks(most);
        ticks.iter().map(|v| axis.words(*v, most)).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(words(0.0, 1.0, 5), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(words(0.401, 0.441, 4), ["0.41", "0.42", "0.43", "0.44"]);
        assert_eq!(words(-3.0, 24.0, 6), ["0", "5", "10", "15", "20"]);
    }

    #[test]
    fn dates_are_days_of_the_calendar_in_utc() {
        let axis = Axis::new("t")
            .dates()
            .range(1_259_625_600.0, 1_262_304_000.0);
        let axis = axis.settle(None).unwrap();
        let words: Vec<String> = axis.ticks(5).iter().map(|v| axis.words(*v, 5)).collect();
        assert_eq!(
            words,
            [
                "2009-12-03",
                "2009-12-10",
                "2009-12-17",
                "2009-12-24",
                "2009-12-31"
            ]
        );
    }

    #[test]
    fn a_logarithmic_axis_has_powers_of_ten() {
        let axis = Axis::new("s").logarithmic().range(0.5, 20_000.0);
        let axis = axis.settle(None).unwrap();
        let words: Vec<String> = axis.ticks(8).iter().map(|v| axis.words(*v, 8)).collect();
        assert_eq!(words, ["1", "10", "100", "1000", "10000"]);
        assert!((axis.value(axis.place(37.0)) - 37.0).abs() < 1e-9);
    }

    #[test]
    fn an_impossible_range_is_refused() {
        for axis in [
            Axis::new("x").range(1.0, 1.0),
            Axis::new("x").range(2.0, 1.0),
            Axis::new("x").range(0.0, f64::NAN),
            Axis::new("x").logarithmic().range(0.0, 1.0),
        ] {
            assert_eq!(axis.settle(None).unwrap_err().code(), "EB-CHART-002");
        }
    }

    #[test]
    fn one_value_gets_room_around_it() {
        let axis = Axis::new("x").settle(Some((7.0, 7.0))).unwrap();
        assert!(axis.low < 7.0 && axis.high > 7.0);
        let axis = Axis::new("x").from(0.0).settle(Some((-3.0, -1.0))).unwrap();
        assert!(axis.low.abs() < 1e-12 && axis.high > 0.0);
    }
}
