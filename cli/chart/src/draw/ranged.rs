//! A settled axis as plotters wants it: plotters' own coordinates would choose other ticks for each
//! kind of range.

use crate::axis::FixedAxis;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// One axis for plotters.
#[derive(Debug, Clone)]
pub(super) struct TickedAxis {
    pub(super) axis: FixedAxis,
    pub(super) ticks: usize,
    pub(super) upside_down: bool,
}

impl Ranged for TickedAxis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let place = self.axis.place(*value);
        // The caller has limited the values to the range; this clamp keeps rounding errors inside
        // the plot.
        let place = if place.is_finite() {
            place.clamp(0.0, 1.0)
        } else {
            0.0
        };
        let place = if self.upside_down { 1.0 - place } else { place };
        limit.0 + (f64::from(limit.1 - limit.0) * place).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _hint: H) -> Vec<f64> {
        self.axis.ticks(self.ticks)
    }

    fn range(&self) -> Range<f64> {
        self.axis.low..self.axis.high
    }
}

impl ValueFormatter<f64> for TickedAxis {
    fn format_ext(&self, value: &f64) -> String {
        self.axis.words(*value, self.ticks)
    }
}
