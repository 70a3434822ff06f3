//! Hosts.

use super::Table;
use crate::row::{EncodedRow, Encoder, key, millis};
use ebbtide_model::Host;

pub(crate) static HOSTS: Table = Table {
    index: 0,
    name: "hosts",
    key: &["name"],
    columns: &["name", "created_at", "record"],
};

impl Encoder {
    pub(crate) fn host(&self, host: &Host) -> EncodedRow {
        let columns = vec![
            key(&HOSTS, &host.name, &host.name)?,
            millis(host.created_at),
        ];
        self.with_record(&HOSTS, &host.name, columns, host)
    }
}
