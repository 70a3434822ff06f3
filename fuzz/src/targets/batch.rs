//! What a tenant hands in, what an operator and the batch service have written: works, settings,
//! books. What is taken can be worked with.

use ebbtide_batch::maps::{BagRun, BagSeen, BagWork, read, settle, unfinished};
use ebbtide_batch::{BatchController, BatchSettings, Book, Work};

/// The settings of the controller that takes what was read.
const SETTINGS: &str = include_str!("../../seeds/batch/batch.toml");
/// The bag whose journal is read.
const BAG: &str = include_str!("../../seeds/batch/bag.toml");

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(error) = BatchSettings::parse(text) {
        assert_eq!(error.code(), "EB-BATCH-001");
    }
    if let Ok(document) = serde_json::from_str(text) {
        match Work::read(&document) {
            Ok(work) => {
                assert!(work.members().count() <= ebbtide_batch::MOST_MEMBERS);
                let settings = BatchSettings::parse(SETTINGS).expect("the seed");
                let controller = BatchController::new(&settings, Book::default());
                let mut controller = controller.expect("the seed");
                if let Ok(entry) = controller.submit(0, document) {
                    let line = serde_json::to_string(&entry).expect("an entry") + "\n";
                    assert_eq!(&Book::parse(&line).expect("a book"), controller.book());
                }
            }
            Err(error) => assert_eq!(error.code(), "EB-BATCH-002"),
        }
    }
    if let Ok(book) = Book::parse(text) {
        for one in book.works.values() {
            let made = ebbtide_batch::report(one, i64::MAX / 2, Default::default(), None, 1_000);
            assert!(made.done <= made.members);
        }
    }
    let settings = BatchSettings::parse(SETTINGS).expect("the seed");
    let refused = ["EB-BATCH-001", "EB-BATCH-002"];
    let settled = read(text).and_then(|bag| settle(&bag, &settings, &Default::default()));
    if let Err(error) = settled {
        assert!(refused.contains(&error.code()));
    }
    if let Ok(entries) = unfinished(text) {
        let bag = read(BAG).and_then(|bag| settle(&bag, &settings, &Default::default()));
        let work = BagWork::new(&bag.expect("the seed"), &settings).expect("the seed");
        let mut run = BagRun::begin(&work, 0, 1_000);
        for entry in &entries {
            if run.apply(entry).is_err() {
                return;
            }
        }
        let seen = BagSeen {
            servers: &[],
            ready: &|_| false,
            done: &|_| None,
            attempt: &|_, _| ebbtide_batch::maps::AttemptSeen::Unknown,
        };
        run.look(1_000, &seen).expect("a journal that was taken");
    }
}
