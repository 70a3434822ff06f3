//! Server groups.

use super::Table;
use crate::row::{EncodedRow, Encoder, text};
use ebbtide_model::ServerGroup;

pub(crate) static GROUPS: Table = Table {
    index: 3,
    name: "server_groups",
    key: &["id"],
    columns: &["id", "record"],
};

impl Encoder {
    pub(crate) fn group(&self, group: &ServerGroup) -> EncodedRow {
        let id = group.id.to_string();
        self.with_record(&GROUPS, &id, vec![text(&id)], group)
    }
}
