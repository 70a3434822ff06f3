//! Flavors.

use super::Table;
use crate::row::{EncodedRow, Encoder, text};
use ebbtide_model::Flavor;

pub(crate) static FLAVORS: Table = Table {
    index: 2,
    name: "flavors",
    key: &["id"],
    columns: &["id", "record"],
};

impl Encoder {
    pub(crate) fn flavor(&self, flavor: &Flavor) -> EncodedRow {
        let id = flavor.id.to_string();
        self.with_record(&FLAVORS, &id, vec![text(&id)], flavor)
    }
}
