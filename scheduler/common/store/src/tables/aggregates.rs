//! Host aggregates.

use super::Table;
use crate::row::{EncodedRow, Encoder, text};
use ebbtide_model::Aggregate;

pub(crate) static AGGREGATES: Table = Table {
    index: 1,
    name: "aggregates",
    key: &["id"],
    columns: &["id", "record"],
};

impl Encoder {
    pub(crate) fn aggregate(&self, aggregate: &Aggregate) -> EncodedRow {
        let id = aggregate.id.to_string();
        self.with_record(&AGGREGATES, &id, vec![text(&id)], aggregate)
    }
}
