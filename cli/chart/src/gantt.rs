//! Rows of rectangles over time: which machine did what when.

use crate::axis::Axis;
use crate::colour::Colour;
use crate::layer::{Layer, ReferenceLine};
use crate::panel::Panel;

/// One rectangle of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) label: String,
    pub(crate) hollow: bool,
}

impl Span {
    /// From `from` to `to` on the time axis.
    #[must_use]
    pub fn new(from: f64, to: f64) -> Self {
        Self {
            from,
            to,
            label: String::new(),
            hollow: false,
        }
    }

    /// The same with words inside, if there is room for them.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same as a frame only: what was planned and did not happen, waiting, hibernation.
    #[must_use]
    pub fn hollow(mut self) -> Self {
        self.hollow = true;
        self
    }
}

/// The rectangles of one kind, over all rows. Not for use outside; [`Gantt`] makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct BarSeries {
    pub(crate) name: String,
    pub(crate) colour: Colour,
    pub(crate) spans: Vec<(usize, Span)>,
}

/// A chart of rows (machines, slots) with rectangles (tasks) over time. Each kind of rectangle has
/// a name and a colour, which the legend shows. The first row is at the top.
///
/// ```
/// use ebbtide_chart::{Axis, Figure, Gantt, Span};
///
/// let mut chart = Gantt::new(Axis::new("time [h]"), ["c3.4xlarge (spot)", "m4.large
/// (on-demand)"]);
/// let work = chart.kind("task", None);
/// let away = chart.kind("hibernated", None);
/// chart.add(0, work, Span::new(0.0, 2.0).label("t1"));
/// chart.add(0, away, Span::new(2.0, 5.0).hollow());
/// chart.add(1, work, Span::new(2.0, 4.5).label("t2"));
/// chart.mark(6.0, "deadline");
/// let svg = Figure::new("A bag of two tasks").panel(chart.panel()).svg()?;
/// assert!(svg.contains("t2") && svg.contains("deadline"));
/// # Ok::<(), ebbtide_chart::ChartError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gantt {
    time: Axis,
    rows: Vec<String>,
    kinds: Vec<BarSeries>,
    marks: Vec<ReferenceLine>,
}

/// A kind of rectangle, as [`Gantt::kind`] gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarKind(usize);

impl Gantt {
    /// Rows with these names.
    #[must_use]
    pub fn new<S: Into<String>>(time: Axis, rows: impl IntoIterator<Item = S>) -> Self {
        Self {
            time,
            rows: rows.into_iter().map(Into::into).collect(),
            kinds: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// A new kind of rectangle, by default in the next colour of the palette.
    pub fn kind(&mut self, name: impl Into<String>, colour: Option<Colour>) -> BarKind {
        let next = BarKind(self.kinds.len());
        self.kinds.push(BarSeries {
            name: name.into(),
            colour: colour.unwrap_or_else(|| Colour::of_palette(next.0)),
            spans: Vec::new(),
        });
        next
    }

    /// One rectangle more, in row `row` counted from 0. A row that does not exist is not drawn.
    pub fn add(&mut self, row: usize, kind: BarKind, span: Span) {
        if row >= self.rows.len() {
            return;
        }
        if let Some(kind) = self.kinds.get_mut(kind.0) {
            kind.spans.push((row, span));
        }
    }

    /// An upright line with a label: a deadline, an interruption.
    pub fn mark(&mut self, at: f64, label: impl Into<String>) {
        self.marks
            .push(ReferenceLine::vertical(at).reached().label(label));
    }

    /// The panel, high enough for its rows.
    #[must_use]
    pub fn panel(self) -> Panel {
        let height = 110 + 24 * u32::try_from(self.rows.len()).unwrap_or(u32::MAX / 48);
        let mut panel = Panel::new(self.time, Axis::categories("", self.rows))
            .upside_down()
            .height(height);
        // What happened nowhere has no place in the legend.
        for kind in self.kinds.into_iter().filter(|kind| !kind.spans.is_empty()) {
            panel = panel.with(Layer::Rows(kind));
        }
        for mark in self.marks {
            panel = panel.with(mark);
        }
        panel
    }
}
