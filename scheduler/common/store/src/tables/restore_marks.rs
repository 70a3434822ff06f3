//! The mark of a database that was restored from a backup.

use super::Table;
use crate::row::{EncodedRow, Encoder, millis, text};
use ebbtide_model::record::RestoreMark;

/// The key of the only row.
pub(crate) const RESTORE_MARK: &str = "region";

pub(crate) static RESTORE_MARKS: Table = Table {
    index: 13,
    name: "restore_marks",
    key: &["id"],
    columns: &["id", "created_at", "record"],
};

impl Encoder {
    pub(crate) fn restore_mark(&self, mark: &RestoreMark) -> EncodedRow {
        let columns = vec![text(RESTORE_MARK), millis(mark.at)];
        self.with_record(&RESTORE_MARKS, RESTORE_MARK, columns, mark)
    }
}
