//! What lies on a panel's axes: lines, points, bars, bands, rules.

use crate::colour::Colour;
use crate::gantt::BarSeries;

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dash {
    /// In one piece.
    #[default]
    Solid,
    /// In strokes.
    Dashed,
    /// In dots.
    Dotted,
}

/// The shape of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PointShape {
    /// A filled circle.
    #[default]
    Circle,
    /// A filled triangle.
    Triangle,
    /// A cross of two strokes.
    Cross,
    /// A filled square.
    Square,
}

/// A line through points, or steps from one to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct LineLayer {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) colour: Option<Colour>,
    pub(crate) width: u32,
    pub(crate) dash: Dash,
    pub(crate) steps: bool,
    pub(crate) marks: Option<PointShape>,
}

impl LineLayer {
    /// A line through `points`, (x, y) in this order. An empty name keeps it out of the legend.
    #[must_use]
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            colour: None,
            width: 2,
            dash: Dash::Solid,
            steps: false,
            marks: None,
        }
    }

    /// The same as steps: a value holds until the next point, as prices and empirical distributions
    /// do.
    #[must_use]
    pub fn steps(mut self) -> Self {
        self.steps = true;
        self
    }

    /// The same in this colour.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = Some(colour);
        self
    }

    /// The same, `width` pixels strong.
    #[must_use]
    pub fn width(mut self, width: u32) -> Self {
        self.width = width;
        self
    }

    /// The same dashed or dotted.
    #[must_use]
    pub fn dash(mut self, dash: Dash) -> Self {
        self.dash = dash;
        self
    }

    /// The same with a mark at every point: lines can be told apart without colours then.
    #[must_use]
    pub fn marks(mut self, shape: PointShape) -> Self {
        self.marks = Some(shape);
        self
    }
}

/// Points on their own.
#[derive(Debug, Clone, PartialEq)]
pub struct PointLayer {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) colour: Option<Colour>,
    pub(crate) shape: PointShape,
    pub(crate) size: u32,
}

impl PointLayer {
    /// Points at (x, y).
    #[must_use]
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            colour: None,
            shape: PointShape::Circle,
            size: 3,
        }
    }

    /// The same in this colour.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = Some(colour);
        self
    }

    /// The same in this shape.
    #[must_use]
    pub fn shape(mut self, shape: PointShape) -> Self {
        self.shape = shape;
        self
    }

    /// The same with `size` pixels from the middle to the rim.
    #[must_use]
    pub fn size(mut self, size: u32) -> Self {
        self.size = size;
        self
    }
}

/// Bars from zero. Several such layers of one panel stand side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct BarLayer {
    pub(crate) name: String,
    pub(crate) bars: Vec<(f64, f64)>,
    pub(crate) labels: Vec<String>,
    pub(crate) colour: Option<Colour>,
    pub(crate) width: f64,
}

impl BarLayer {
    /// A bar of height y at every x; on an axis of categories x is 0, 1, 2, …
    #[must_use]
    pub fn new(name: impl Into<String>, bars: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            bars,
            labels: Vec::new(),
            colour: None,
            width: 0.8,
        }
    }

    /// The same with a text above each bar, usually its value. The y axis should reach a tenth
    /// beyond the highest bar.
    #[must_use]
    pub fn labels(mut self, labels: Vec<String>) -> Self {
        self.labels = labels;
        self
    }

    /// The same where all bars at one x together are `width` wide, in units of the x axis; 0.8 if
    /// nothing is said.
    #[must_use]
    pub fn width(mut self, width: f64) -> Self {
        self.width = width;
        self
    }

    /// The same in this colour.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = Some(colour);
        self
    }
}

/// A shaded area between two lines: confidence intervals, availability, shares.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    pub(crate) name: String,
    pub(crate) edges: Vec<(f64, f64, f64)>,
    pub(crate) colour: Option<Colour>,
    pub(crate) solid: bool,
}

impl Band {
    /// The area from `low` to `high` along (x, low, high).
    #[must_use]
    pub fn new(name: impl Into<String>, edges: Vec<(f64, f64, f64)>) -> Self {
        Self {
            name: name.into(),
            edges,
            colour: None,
            solid: false,
        }
    }

    /// The same in its full colour: shares of a whole, one on top of the other.
    #[must_use]
    pub fn solid(mut self) -> Self {
        self.solid = true;
        self
    }

    /// The same in this colour.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = Some(colour);
        self
    }
}

/// A thin straight line over the whole panel: a bid, a deadline, a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceLine {
    pub(crate) at: f64,
    pub(crate) vertical: bool,
    pub(crate) reached: bool,
    pub(crate) label: String,
    pub(crate) colour: Option<Colour>,
}

impl ReferenceLine {
    /// An upright line at `x`.
    #[must_use]
    pub fn vertical(x: f64) -> Self {
        Self {
            at: x,
            vertical: true,
            reached: false,
            label: String::new(),
            colour: None,
        }
    }

    /// A level line at `y`.
    #[must_use]
    pub fn horizontal(y: f64) -> Self {
        Self {
            vertical: false,
            ..Self::vertical(y)
        }
    }

    /// The same, and the axis reaches at least to it. Without this a limit far away is left out and
    /// does not make the data small.
    #[must_use]
    pub fn reached(mut self) -> Self {
        self.reached = true;
        self
    }

    /// The same with words beside it.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same in this colour; grey if nothing is said.
    #[must_use]
    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = Some(colour);
        self
    }
}

/// One layer of a panel; made from the kinds above by [`From`].
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// A line or steps.
    Line(LineLayer),
    /// Points.
    Points(PointLayer),
    /// Bars.
    Bars(BarLayer),
    /// A shaded area.
    Band(Band),
    /// A straight line over the panel.
    Rule(ReferenceLine),
    /// Rectangles in rows, from a [`crate::Gantt`].
    #[doc(hidden)]
    Rows(BarSeries),
}

macro_rules! layers {
    ($($variant:ident($kind:ident)),* $(,)?) => {
        $(impl From<$kind> for Layer {
            fn from(layer: $kind) -> Self {
                Self::$variant(layer)
            }
        })*
    };
}
layers!(
    Line(LineLayer),
    Points(PointLayer),
    Bars(BarLayer),
    Band(Band),
    Rule(ReferenceLine)
);

impl Layer {
    /// What the legend says; empty for nothing.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Line(layer) => &layer.name,
            Self::Points(layer) => &layer.name,
            Self::Bars(layer) => &layer.name,
            Self::Band(layer) => &layer.name,
            Self::Rule(_) => "",
            Self::Rows(layer) => &layer.name,
        }
    }

    /// The colour that was asked for. Rules have one always, so that they take none of the
    /// palette's.
    pub(crate) fn colour(&self) -> Option<Colour> {
        match self {
            Self::Line(layer) => layer.colour,
            Self::Points(layer) => layer.colour,
            Self::Bars(layer) => layer.colour,
            Self::Band(layer) => layer.colour,
            Self::Rule(layer) => Some(layer.colour.unwrap_or(Colour::GREY)),
            Self::Rows(layer) => Some(layer.colour),
        }
    }

    /// All points that have to be seen, NaN where it does not matter.
    pub(crate) fn corners(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Line(layer) => layer.points.clone(),
            Self::Points(layer) => layer.points.clone(),
            Self::Bars(layer) => layer
                .bars
                .iter()
                .flat_map(|(x, y)| {
                    let half = layer.width / 2.0;
                    [(x - half, 0.0), (x + half, *y)]
                })
                .collect(),
            Self::Band(layer) => layer
                .edges
                .iter()
                .flat_map(|(x, low, high)| [(*x, *low), (*x, *high)])
                .collect(),
            Self::Rule(layer) if layer.reached && layer.vertical => vec![(layer.at, f64::NAN)],
            Self::Rule(layer) if layer.reached => vec![(f64::NAN, layer.at)],
            Self::Rule(_) => Vec::new(),
            Self::Rows(layer) => layer
                .spans
                .iter()
                .flat_map(|(row, span)| [(span.from, *row as f64), (span.to, *row as f64)])
                .collect(),
        }
    }
}
