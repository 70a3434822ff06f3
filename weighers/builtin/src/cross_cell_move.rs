//! Keeps moves within the cell that they prefer, where another is allowed at all.
//!
//! - Raw number: 1 in the preferred cell, -1 in another, 0 for every request that prefers none.
//! - Normalised: the preferred cell becomes 1, others 0; hosts that are all alike get 0.
//! - Multiplier: `cross_cell_move_weight_multiplier`, default 1,000,000.0; aggregates may set the
//!   same key in their metadata.
//! - To prefer other cells, make the multiplier negative.
//!
//! Source: Nova, `nova/scheduler/weights/cross_cell.py` (`CrossCellWeigher`, no bounds).

use crate::columns;
use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct CrossCellMove;

impl Weigher for CrossCellMove {
    fn name(&self) -> &str {
        "cross_cell_move"
    }

    fn multiplier_key(&self) -> &str {
        "cross_cell_move_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1_000_000.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::CellPreference]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        columns::map(hosts, Column::CellPreference, out, |preference| preference)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Column(Column::CellPreference)
    }
}
