//! The agent's journal: the input as it stands, and each line as JSON with its correct checksum,
//! because a fuzzer does not find valid checksums. A second read returns the same records, also
//! after an append and after a replacement.

use ebbtide_agent::journal::{Journal, Storage};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A file in memory.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn with<T>(&self, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Storage for Memory {
    fn path(&self) -> PathBuf {
        PathBuf::from("journal")
    }
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.with(|bytes| bytes.clone()))
    }
    fn append(&mut self, more: &[u8]) -> io::Result<()> {
        self.with(|bytes| bytes.extend_from_slice(more));
        Ok(())
    }
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.with(|bytes| bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX)));
        Ok(())
    }
    fn replace(&mut self, all: &[u8]) -> io::Result<()> {
        self.with(|bytes| *bytes = all.to_vec());
        Ok(())
    }
}

pub(super) fn run(bytes: &[u8]) {
    open(bytes.to_vec());
    let mut signed = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let json = line.strip_suffix(b"\n").unwrap_or(line);
        let mut sum = flate2::Crc::new();
        sum.update(json);
        signed.extend_from_slice(format!("{:08x} ", sum.sum()).as_bytes());
        signed.extend_from_slice(line);
    }
    open(signed);
}

fn open(bytes: Vec<u8>) {
    let file = Memory(Arc::new(Mutex::new(bytes)));
    let (mut journal, records) = match Journal::open(Box::new(file.clone()), "host-a") {
        Ok(found) => found,
        Err(error) => {
            assert!(
                matches!(error.code(), "EB-AGENT-006" | "EB-AGENT-007"),
                "{error}"
            );
            assert!(error.to_string().len() < 1_000, "an endless error");
            return;
        }
    };
    let again = || {
        Journal::open(Box::new(file.clone()), "host-a")
            .expect("its own file")
            .1
    };
    assert_eq!(again(), records);
    journal.append(&records).expect("there is room");
    assert_eq!(again(), records);
    journal.replace(&records).expect("there is room");
    assert_eq!(again(), records);
}
