//! Things that tests of several modules need.

use crate::journal::Storage;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A storage in memory that outlives its users and can run full, leaving half of what was to be
/// written.
#[derive(Debug, Clone)]
pub(crate) struct SmallDisk {
    inner: Arc<Mutex<Disk>>,
}

#[derive(Debug)]
struct Disk {
    bytes: Vec<u8>,
    limit: usize,
}

impl SmallDisk {
    pub(crate) fn with_room_for(limit: usize) -> Self {
        let bytes = Vec::new();
        Self {
            inner: Arc::new(Mutex::new(Disk { bytes, limit })),
        }
    }

    pub(crate) fn enlarge(&self, limit: usize) {
        self.inner.lock().unwrap().limit = limit;
    }

    /// Nothing more can be written.
    pub(crate) fn fill(&self) {
        let mut disk = self.inner.lock().unwrap();
        disk.limit = disk.bytes.len() + 20;
    }
}

impl Storage for SmallDisk {
    fn path(&self) -> PathBuf {
        PathBuf::from("(a small disk)/journal")
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.inner.lock().unwrap().bytes.clone())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.inner.lock().unwrap();
        let room = disk.limit.saturating_sub(disk.bytes.len()).min(bytes.len());
        disk.bytes.extend_from_slice(&bytes[..room]);
        if room < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.inner.lock().unwrap().bytes.truncate(length);
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.inner.lock().unwrap();
        if bytes.len() > disk.limit {
            return Err(io::ErrorKind::StorageFull.into());
        }
        disk.bytes = bytes.to_vec();
        Ok(())
    }
}
