//! A figure: panels beside and below one another.

use crate::draw;
use crate::error::ChartError;
use crate::panel::Panel;

/// Several panels with one title.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) panels: Vec<Panel>,
    pub(crate) columns: usize,
    pub(crate) width: u32,
}

/// The width of a panel if nothing else is said, in pixels.
const WIDTH: u32 = 640;

impl Figure {
    /// A figure without panels yet. The title stands above them, and is what a screen reader says.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            description: String::new(),
            panels: Vec::new(),
            columns: 1,
            width: WIDTH,
        }
    }

    /// The same with a description for those who cannot see it: what the figure shows, in a
    /// sentence.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// The same with one panel more.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The same with `columns` panels beside one another; one if nothing is said.
    #[must_use]
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = columns.max(1);
        self
    }

    /// The same with panels `width` pixels wide; 640 if nothing is said.
    #[must_use]
    pub fn width(mut self, width: u32) -> Self {
        self.width = width.clamp(200, 20_000);
        self
    }

    /// The figure as the text of an SVG file.
    ///
    /// # Errors
    /// [`ChartError`] for a figure without panels and for a given range that no axis can have.
    pub fn svg(&self) -> Result<String, ChartError> {
        draw::figure(self)
    }
}
