//! A panel: two axes and what lies on them.

use crate::axis::{Axis, FixedAxis, Scale};
use crate::colour::{Colour, PALETTE};
use crate::error::ChartError;
use crate::layer::Layer;

/// One chart of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) layers: Vec<Layer>,
    pub(crate) height: u32,
    pub(crate) upside_down: bool,
}

/// The height of a panel if nothing else is said, in pixels. With the width of 640 it is the shape
/// of a page's half.
const HEIGHT: u32 = 380;

impl Panel {
    /// An empty panel on two axes.
    #[must_use]
    pub fn new(x: Axis, y: Axis) -> Self {
        Self {
            title: String::new(),
            x,
            y,
            layers: Vec::new(),
            height: HEIGHT,
            upside_down: false,
        }
    }

    /// The same with a title.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// The same with one layer more, above those that are there.
    #[must_use]
    pub fn with(mut self, layer: impl Into<Layer>) -> Self {
        self.layers.push(layer.into());
        self
    }

    /// The same with several layers more.
    #[must_use]
    pub fn with_all<L: Into<Layer>>(mut self, layers: impl IntoIterator<Item = L>) -> Self {
        self.layers.extend(layers.into_iter().map(Into::into));
        self
    }

    /// The same, `height` pixels high with title, legend and labels; 380 if nothing is said.
    #[must_use]
    pub fn height(mut self, height: u32) -> Self {
        self.height = height.clamp(120, 20_000);
        self
    }

    /// The same with the y axis growing downwards, as rows of a list do.
    #[must_use]
    pub(crate) fn upside_down(mut self) -> Self {
        self.upside_down = true;
        self
    }

    /// Each layer with its colour: its own, or the next of the palette that no layer asked for.
    pub(crate) fn coloured(&self) -> Vec<(&Layer, Colour)> {
        let asked: Vec<Colour> = self.layers.iter().filter_map(Layer::colour).collect();
        let free: Vec<Colour> = PALETTE.into_iter().filter(|c| !asked.contains(c)).collect();
        let free = if free.is_empty() {
            PALETTE.to_vec()
        } else {
            free
        };
        let mut next = free.into_iter().cycle();
        self.layers
            .iter()
            .map(|layer| {
                let colour = layer.colour().or_else(|| next.next());
                (layer, colour.unwrap_or(Colour::BLACK))
            })
            .collect()
    }

    /// Both axes with their ranges.
    ///
    /// # Errors
    /// [`ChartError::Range`].
    pub(crate) fn settled(&self) -> Result<(FixedAxis, FixedAxis), ChartError> {
        let corners: Vec<(f64, f64)> = self.layers.iter().flat_map(Layer::corners).collect();
        let x = self.x.settle(reach(corners.iter().map(|c| c.0), &self.x))?;
        let y = self.y.settle(reach(corners.iter().map(|c| c.1), &self.y))?;
        Ok((x, y))
    }
}

/// From the least to the greatest of the values that the axis can show.
fn reach(values: impl Iterator<Item = f64>, axis: &Axis) -> Option<(f64, f64)> {
    let logarithmic = axis.scale == Scale::Logarithmic;
    values
        .filter(|v| v.is_finite() && (!logarithmic || *v > 0.0))
        .fold(None, |reach, v| {
            let (low, high) = reach.unwrap_or((v, v));
            Some((low.min(v), high.max(v)))
        })
}
