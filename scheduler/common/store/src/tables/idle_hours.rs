//! What lay idle, by hour and flavor.

use super::Table;
use crate::row::{EncodedRow, Encoder, key, millis, text};
use ebbtide_model::IdleHour;

pub(crate) static IDLE_HOURS: Table = Table {
    index: 12,
    name: "idle_hours",
    key: &["id"],
    columns: &["id", "flavor", "created_at", "record"],
};

impl Encoder {
    pub(crate) fn idle_hour(&self, hour: &IdleHour) -> EncodedRow {
        let id = hour.key();
        let columns = vec![
            text(&id),
            key(&IDLE_HOURS, &id, &hour.flavor)?,
            millis(hour.hour),
        ];
        self.with_record(&IDLE_HOURS, &id, columns, hour)
    }
}
