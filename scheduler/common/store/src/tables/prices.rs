//! Prices.

use super::Table;
use crate::row::{EncodedRow, Encoder, key, millis, text};
use ebbtide_model::PricePoint;

pub(crate) static PRICES: Table = Table {
    index: 11,
    name: "prices",
    key: &["id"],
    columns: &["id", "flavor_id", "flavor", "created_at", "record"],
};

impl Encoder {
    pub(crate) fn price(&self, point: &PricePoint) -> EncodedRow {
        let id = point.key();
        let columns = vec![
            text(&id),
            text(&point.flavor_id.to_string()),
            key(&PRICES, &id, &point.flavor)?,
            millis(point.at),
        ];
        self.with_record(&PRICES, &id, columns, point)
    }
}
