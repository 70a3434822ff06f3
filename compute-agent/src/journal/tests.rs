//! What was written is there, whatever happens to the process and the disk.

use super::*;
use crate::protocol::{CommandRef, ServerRecord};
use crate::testing::SmallDisk;
use ebbtide_model::{MessageId, Timestamp};
use proptest::prelude::*;
use std::fs;
use uuid::Uuid;

fn record(n: u8) -> JournalRecord {
    let command = CommandRef {
        id: MessageId(Uuid::from_u128(u128::from(n))),
        time: Timestamp::from_millis(i64::from(n)),
    };
    JournalRecord::Server(ServerRecord {
        server_id: ServerId(Uuid::from_u128(u128::from(n))),
        order: u64::from(n),
        started: Some(command),
        ended: None,
        failed: None,
    })
}

fn open(path: &std::path::Path) -> Result<(Journal, Vec<JournalRecord>), AgentError> {
    Journal::open(Box::new(FileStorage::new(path)), "host-a")
}

#[test]
fn what_was_appended_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = path_in(dir.path());
    let (mut journal, found) = open(&path).unwrap();
    assert!(found.is_empty());
    journal.append(&[record(1), record(2)]).unwrap();
    journal.append(&[record(3)]).unwrap();
    let server_id = ServerId(Uuid::from_u128(2));
    journal
        .append(&[JournalRecord::ForgetServer { server_id }])
        .unwrap();
    drop(journal);
    let (_, found) = open(&path).unwrap();
    assert_eq!(found, [record(1), record(3)]);
}

#[test]
fn crc32_is_the_usual_one() {
    // The check value of the CRC catalogue for CRC-32/ISO-HDLC.
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
}

fn sample() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let path = path_in(dir.path());
    let (mut journal, _) = open(&path).unwrap();
    for n in 1..=5 {
        journal.append(&[record(n)]).unwrap();
    }
    let bytes = fs::read(&path).unwrap();
    (dir, path, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_torn_end_loses_only_the_torn_line_and_can_be_written_on(cut in 0usize..400) {
        let (_dir, path, bytes) = sample();
        let keep = bytes.len().saturating_sub(cut).max(1);
        fs::write(&path, &bytes[..keep]).unwrap();
        let lines = bytes[..keep].iter().filter(|b| **b == b'\n').count();
        let (mut journal, found) = open(&path).unwrap();
        prop_assert_eq!(found.len(), lines.saturating_sub(1));
        journal.append(&[record(9)]).unwrap();
        let (_, found) = open(&path).unwrap();
        prop_assert_eq!(found.len(), lines.saturating_sub(1) + 1);
        prop_assert!(found.contains(&record(9)));
    }

    #[test]
    fn a_byte_that_was_changed_in_the_middle_is_never_overlooked(at in 0usize..10_000, flip in 1u8..=255) {
        let (_dir, path, mut bytes) = sample();
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        let at = at % (last_line - 1);
        bytes[at] ^= flip;
        fs::write(&path, &bytes).unwrap();
        let error = open(&path).unwrap_err();
        prop_assert!(matches!(error.code(), "EB-AGENT-006" | "EB-AGENT-007"), "{error}");
    }
}

/// The blocks of a disk, as far as they can be written one without the other.
const BLOCK: usize = 64;

/// What a file may look like after a power loss during an append: it is as long as the file system
/// has noted, and each block of what was appended is there, or is not.
fn torn(whole: &[u8], acknowledged: usize, length: usize, present: &[bool], hole: u8) -> Vec<u8> {
    let mut image = whole[..length].to_vec();
    for (at, byte) in image.iter_mut().enumerate().skip(acknowledged) {
        let block = at / BLOCK - acknowledged / BLOCK;
        if !present[block % present.len()] {
            *byte = hole;
        }
    }
    image
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_append_that_was_torn_in_any_way_costs_nothing_that_was_acknowledged(
        appends in prop::collection::vec(1u8..6, 0..4), replaced in 0u8..4, last in 1u8..12, cut in 0usize..3_000,
        present in prop::collection::vec(any::<bool>(), 40), hole in prop::sample::select(vec![0u8, b'\n', b' ', b'x']),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = path_in(dir.path());
        let (mut journal, _) = open(&path).unwrap();
        let mut next = 0;
        let mut more = |count: u8| {
            let records: Vec<JournalRecord> = (next..next + count).map(record).collect();
            next += count;
            records
        };
        let mut acknowledged = more(replaced);
        journal.replace(&acknowledged).unwrap();
        for count in appends {
            let records = more(count);
            journal.append(&records).unwrap();
            acknowledged.extend(records);
        }
        let before = fs::read(&path).unwrap().len();
        let unacknowledged = more(last);
        journal.append(&unacknowledged).unwrap();
        drop(journal);
        let whole = fs::read(&path).unwrap();
        let length = whole.len().saturating_sub(cut).max(before);
        fs::write(&path, torn(&whole, before, length, &present, hole)).unwrap();

        let (mut journal, found) = open(&path).unwrap();
        let kept = found.len().checked_sub(acknowledged.len());
        let kept = kept.expect("something acknowledged is lost");
        prop_assert_eq!(&found[..acknowledged.len()], &acknowledged[..]);
        prop_assert_eq!(&found[acknowledged.len()..], &unacknowledged[..kept]);
        // And it is written on, and read again.
        journal.append(&[record(99)]).unwrap();
        drop(journal);
        let (_, again) = open(&path).unwrap();
        prop_assert_eq!(&again[..found.len()], &found[..]);
        prop_assert_eq!(&again[found.len()..], &[record(99)]);
    }

    #[test]
    fn damage_to_what_was_acknowledged_is_refused_however_the_last_append_looks(
        counts in prop::collection::vec(1u8..6, 2..5), at in 0usize..10_000, flip in 1u8..=255,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = path_in(dir.path());
        let (mut journal, _) = open(&path).unwrap();
        journal.replace(&[record(90), record(91)]).unwrap();
        let mut acknowledged = 0;
        for (round, count) in counts.into_iter().enumerate() {
            acknowledged = fs::read(&path).unwrap().len();
            let first = u8::try_from(round).unwrap() * 10;
            let records: Vec<JournalRecord> = (first..first + count).map(record).collect();
            journal.append(&records).unwrap();
        }
        drop(journal);
        let mut bytes = fs::read(&path).unwrap();
        bytes[at % acknowledged] ^= flip;
        fs::write(&path, &bytes).unwrap();
        let error = open(&path).unwrap_err();
        prop_assert!(matches!(error.code(), "EB-AGENT-006" | "EB-AGENT-007"), "{error}");
        prop_assert!(error.code() == "EB-AGENT-007" || error.to_string().contains("move the file away"), "{error}");
    }
}

#[test]
fn a_damaged_newline_before_the_last_append_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = path_in(dir.path());
    let (mut journal, _) = open(&path).unwrap();
    journal.replace(&[record(1)]).unwrap();
    journal.append(&[record(2), record(3)]).unwrap();
    let acknowledged = fs::read(&path).unwrap().len();
    journal.append(&[record(4)]).unwrap();
    drop(journal);
    let whole = fs::read(&path).unwrap();
    for damage in (0..=255).filter(|byte| *byte != b'\n') {
        let mut bytes = whole.clone();
        bytes[acknowledged - 1] = damage;
        fs::write(&path, &bytes).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.code(), "EB-AGENT-006", "{damage}: {error}");
    }
}

#[test]
fn what_was_written_in_one_with_the_header_is_never_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = path_in(dir.path());
    let (mut journal, _) = open(&path).unwrap();
    journal.replace(&[record(1), record(2)]).unwrap();
    drop(journal);
    let bytes = fs::read(&path).unwrap();
    let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in header..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.code(), "EB-AGENT-006", "{length}: {error}");
    }
}

#[test]
fn a_journal_of_the_version_before_is_read_and_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = path_in(dir.path());
    let old = |text: &str| summed(text);
    let mut text = old("{\"ebbtide_agent_journal\":1,\"host\":\"host-a\"}");
    for n in 1..=3 {
        text += &old(&serde_json::to_string(&record(n)).unwrap());
    }
    // Its last line may be torn.
    fs::write(&path, format!("{text}1234abcd {{\"rec\0\0\n")).unwrap();
    let (mut journal, found) = open(&path).unwrap();
    assert_eq!(found, [record(1), record(2), record(3)]);
    journal.append(&[record(4)]).unwrap();
    drop(journal);
    let new = fs::read_to_string(&path).unwrap();
    assert!(new.contains("{\"ebbtide_agent_journal\":2,"), "{new}");
    assert_eq!(open(&path).unwrap().1.len(), 4);
    // Its middle may not.
    fs::write(&path, text.replacen("server", "sewer", 1)).unwrap();
    assert_eq!(open(&path).unwrap_err().code(), "EB-AGENT-006");
}

#[test]
fn what_is_refused_is_not_repeated_whole() {
    let (_dir, path, bytes) = sample();
    let text = String::from_utf8(bytes).unwrap();
    let endless = "x".repeat(1_000_000);
    let record = format!("{{\"record\":\"{endless}\"}}");
    let header = format!("{{\"ebbtide_agent_journal\":1,\"host\":\"{endless}\"}}");
    for lines in [
        format!("{text}{endless} x\n{text}"),
        format!("{text}{}", line(0, &record)),
        summed(&header),
        summed(&endless),
    ] {
        fs::write(&path, lines).unwrap();
        assert!(open(&path).unwrap_err().to_string().len() < 1_000);
    }
}

#[test]
fn a_corrupt_middle_is_named_with_its_line() {
    let (_dir, path, bytes) = sample();
    let text = String::from_utf8(bytes).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = "00000000 {\"record\":\"server\"}";
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = open(&path).unwrap_err().to_string();
    assert!(
        error.contains("is corrupt in line 3: its checksum"),
        "{error}"
    );
}

#[test]
fn the_journal_of_another_host_is_refused() {
    let (_dir, path, _) = sample();
    let error = Journal::open(Box::new(FileStorage::new(&path)), "host-b").unwrap_err();
    assert_eq!(error.code(), "EB-AGENT-007");
    assert!(
        error.to_string().contains("belongs to host \"host-a\""),
        "{error}"
    );
}

#[test]
fn outdated_lines_are_thrown_away_and_the_truth_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = path_in(dir.path());
    let (mut journal, _) = open(&path).unwrap();
    for _ in 0..2_000 {
        journal.append(&[record(1)]).unwrap();
    }
    assert!(journal.is_mostly_garbage(1));
    drop(journal);
    let (journal, found) = open(&path).unwrap();
    assert_eq!(found, [record(1)]);
    assert!(!journal.is_mostly_garbage(1));
    assert!(fs::metadata(&path).unwrap().len() < 1_000);
}

#[test]
fn a_full_disk_is_reported_and_nothing_that_was_written_is_lost() {
    let disk = SmallDisk::with_room_for(600);
    let (mut journal, _) = Journal::open(Box::new(disk.clone()), "host-a").unwrap();
    let mut written = Vec::new();
    let error = loop {
        let n = u8::try_from(written.len()).unwrap() + 1;
        match journal.append(&[record(n)]) {
            Ok(()) => written.push(record(n)),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "EB-AGENT-005");
    assert!(error.to_string().contains("free space"), "{error}");
    assert!(journal.append(&[record(99)]).is_err(), "it is still full");
    disk.enlarge(10_000);
    journal.append(&[record(100)]).unwrap();
    written.push(record(100));
    let (_, found) = Journal::open(Box::new(disk), "host-a").unwrap();
    assert_eq!(found, written);
}
