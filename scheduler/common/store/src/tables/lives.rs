//! Lives of servers that are gone.

use super::Table;
use crate::row::{EncodedRow, Encoder, key, millis, text};
use ebbtide_model::PastLife;

pub(crate) static LIVES: Table = Table {
    index: 10,
    name: "lives",
    key: &["id"],
    columns: &[
        "id",
        "project_id",
        "flavor",
        "created_at",
        "ended_at",
        "record",
    ],
};

impl Encoder {
    pub(crate) fn life(&self, life: &PastLife) -> EncodedRow {
        let id = life.key();
        let columns = vec![
            text(&id),
            key(&LIVES, &id, &life.project_id)?,
            key(&LIVES, &id, &life.flavor)?,
            millis(life.launched_at),
            millis(life.ended_at),
        ];
        self.with_record(&LIVES, &id, columns, life)
    }
}
