//! Charts as SVG text, for `--plot` and `--svg` of the commands.
//!
//! A [`Figure`] holds panels; a [`Panel`] has two axes and layers on them: [`LineLayer`],
//! [`PointLayer`], [`BarLayer`], [`Band`], [`ReferenceLine`]; a [`Gantt`] makes a panel of rows of
//! rectangles. Everything is plain data until [`Figure::svg`], which gives a `String` and touches
//! neither clock nor disk: the same figure is the same text, byte for byte, on every machine.
//!
//! ```
//! use ebbtide_chart::{
//!     Axis, Band, Dash, Figure, LineLayer, Panel, ReferenceLine,
//! };
//!
//! let chance = Axis::new("chance of interruption").range(0.0, 1.0);
//! let data = LineLayer::new("data", vec![(0.0, 0.0), (6.0, 0.4), (24.0, 0.7)]);
//! let panel = Panel::new(Axis::new("age [h]"), chance)
//!     .title("n1-highcpu-16")
//!     .with(Band::new("95 %", vec![(0.0, 0.0, 0.1), (24.0, 0.6, 0.8)]))
//!     .with(LineLayer::new("model", vec![(0.0, 0.05), (24.0, 0.7)]))
//!     .with(data.steps().dash(Dash::Dashed))
//!     .with(ReferenceLine::vertical(18.0).label("T*"));
//! let svg = Figure::new("Lifetimes").panel(panel).svg()?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), ebbtide_chart::ChartError>(())
//! ```
//!
//! Layers with a name appear in the legend, which stands above the plot and never hides data. A
//! layer without a colour takes the next of [`PALETTE`] that no other asked for, which colour-blind
//! readers can tell apart. Points that are no numbers interrupt a line; what lies outside of a
//! given range is cut off at its border.

mod axis;
mod colour;
mod draw;
mod error;
mod figure;
mod gantt;
mod layer;
mod panel;

pub use axis::{Axis, Scale};
pub use colour::{Colour, PALETTE};
pub use error::ChartError;
pub use figure::Figure;
pub use gantt::{BarKind, Gantt, Span};
pub use layer::{Band, BarLayer, Dash, Layer, LineLayer, PointLayer, PointShape, ReferenceLine};
pub use panel::Panel;
