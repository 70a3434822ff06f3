//! What was written is there, whatever happens to the process and the disk.

use super::*;
use crate::protocol::{CommandRef, ServerRecord};
use crate::testing::SmallDisk;
use ebbtide_model::{MessageId, Timestamp};
use proptest::prelude::*;
use std::fs;
use uuid::Uuid;

fn record(n: u8) -> Record {
    let command = CommandRef {
        id: MessageId(Uuid::from_u128(u128::from(n))),
        time: Timestamp::from_millis(i64::from(n)),
    };
    Record::Server(ServerRecord {
        server_id: ServerId(Uuid::from_u128(u128::from(n))),
        order: u64::from(n),
        started: Some(command),
        ended: None,
        failed: None,
    })
}

fn open(path: &std::path::Path) -> Result<(Journal, Vec<Record>), AgentError> {
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
        .append(&[Record::ForgetServer { server_id }])
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

#[test]
fn what_is_refused_is_not_repeated_whole() {
    let (_dir, path, bytes) = sample();
    let text = String::from_utf8(bytes).unwrap();
    let endless = "x".repeat(1_000_000);
    let record = format!("{{\"record\":\"{endless}\"}}");
    let header = format!("{{\"ebbtide_agent_journal\":1,\"host\":\"{endless}\"}}");
    for lines in [
        format!("{text}{endless} x\n{text}"),
        format!("{text}{}", line(&record)),
        line(&header),
        line(&endless),
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
