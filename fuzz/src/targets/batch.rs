//! What a tenant hands in, what an operator and the batch service have written: works, settings,
//! books. What is taken can be worked with.

use ebbtide_batch::{BatchController, BatchSettings, Book};
use serde_json::Value;

/// The settings of the controller that takes what was read.
const SETTINGS: &str = include_str!("../../seeds/batch/batch.toml");
/// A bag with more tasks takes seconds to plan.
const MANY: u64 = 50;

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(error) = BatchSettings::parse(text) {
        assert_eq!(error.code(), "EB-BATCH-001");
    }
    let settings = BatchSettings::parse(SETTINGS).expect("the seed");
    if let Ok(document) = serde_json::from_str(text)
        && tasks(&document) <= MANY
    {
        let controller = BatchController::new(&settings, Book::default());
        let mut controller = controller.expect("the seed");
        match controller.check(0, document, &Default::default(), &[]) {
            Ok(checked) => {
                let members = checked.book.work.members().count();
                assert!(members <= ebbtide_batch::MOST_MEMBERS);
                let entry = controller.accept(checked).expect("it was checked");
                let line = serde_json::to_string(&entry).expect("an entry") + "\n";
                assert_eq!(&Book::parse(&line).expect("a book"), controller.book());
            }
            Err(error) => assert!(["EB-BATCH-002", "EB-BATCH-003"].contains(&error.code())),
        }
    }
    if let Ok(book) = Book::parse(text) {
        for one in book.works.values() {
            let made = ebbtide_batch::report(one, i64::MAX / 2, Default::default(), None, 1_000);
            assert!(made.done <= made.members);
        }
        if let Err(error) = BatchController::new(&settings, book) {
            assert_eq!(error.code(), "EB-BATCH-002");
        }
    }
}

/// About how many tasks a bag has.
fn tasks(document: &Value) -> u64 {
    let tasks = document["tasks"].as_array().into_iter().flatten();
    let count = |task: &Value| {
        let listed = task["durations"].as_array().map_or(1, Vec::len) as u64;
        task["count"].as_u64().unwrap_or(1).max(listed)
    };
    tasks.map(count).fold(0, u64::saturating_add)
}
