//! Removes old records from the database. If the operator wants to keep them, it first writes them
//! to files.
//!
//! Files are `DIRECTORY/servers-2026-11-22.jsonl` and so on, one record a line, by the day of
//! archiving. A record is deleted only after its file has been synchronised; if the scheduler dies
//! between the two, the record is written twice.

use crate::Tasks;
use crate::lease::HeldLease;
use ebbtide_model::record::REMEMBER_GONE;
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::{PurgeKind, Store, StoreError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between searches for old rows.
const EVERY: Duration = Duration::from_secs(10);
/// Rows of a kind in one transaction: few enough that commits are hardly delayed.
const ROWS: u64 = 512;

/// What to do with old records.
#[derive(Debug, Clone)]
pub(crate) struct ArchivePolicy {
    /// How long a record stays in the database after its end.
    pub(crate) keep: Seconds,
    /// Where records are written before they are deleted.
    pub(crate) directory: Option<PathBuf>,
}

/// Starts the archive task. Only the scheduler on duty does the work.
pub(crate) fn start(store: Store, duty: HeldLease, policy: ArchivePolicy, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("archive", async move {
        while pause(&stop, EVERY).await {
            for kind in PurgeKind::ALL {
                // In small steps until nothing is left, so that archiving keeps up with any load.
                while duty.present().is_some() && !stop.is_cancelled() {
                    match some(&store, *kind, &policy).await {
                        Ok(ROWS) => {}
                        Ok(_) => break,
                        Err(why) => {
                            tracing::warn!("old {kind} stay in the database: {why}");
                            break;
                        }
                    }
                }
            }
        }
    });
}

async fn some(store: &Store, kind: PurgeKind, policy: &ArchivePolicy) -> Result<u64, String> {
    let now = clock::now();
    // A repeated request for a server that has just gone must not create another one, even after a
    // restart of the scheduler.
    let keep = match kind {
        PurgeKind::Servers => policy.keep.max(REMEMBER_GONE),
        PurgeKind::Evacuations
        | PurgeKind::Decisions
        | PurgeKind::Lives
        | PurgeKind::Prices
        | PurgeKind::IdleHours => policy.keep,
    };
    let before = now.minus(keep);
    let told = |error: StoreError| format!("{}: {error}", error.code());
    let Some(directory) = policy.directory.clone() else {
        return store.purge_some(kind, before, ROWS).await.map_err(told);
    };
    let old = store.old(kind, before, ROWS).await.map_err(told)?;
    let ids: Vec<String> = old.iter().map(|record| record.id.clone()).collect();
    if ids.is_empty() {
        return Ok(0);
    }
    let path = file(&directory, kind, now);
    let shown = path.display().to_string();
    let mut text = String::new();
    for record in &old {
        text.push_str(&record.json);
        text.push('\n');
    }
    let written =
        ebbtide_runtime::task::blocking_io(move || append(&directory, &path, &text)).await;
    written.map_err(|error| format!("EB-SERVICE-011: {shown}: {error}"))?;
    store.forget(kind, &ids, before).await.map_err(told)?;
    Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX))
}

fn file(directory: &Path, kind: PurgeKind, now: Timestamp) -> PathBuf {
    let day: String = now.to_string().chars().take(10).collect();
    directory.join(format!("{kind}-{day}.jsonl"))
}

fn append(directory: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .mode(0o640)
        .open(path)?;
    let before = file.metadata()?.len();
    let written = end_torn_line(&mut file, before)
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_data());
    if written.is_err() {
        // Remove a partial write (full disk), because readers take each line for a complete record.
        // If this fails too, the next write ends the partial line.
        let _ = file.set_len(before);
    }
    written
}

/// Ends the partial line of a scheduler that died while it wrote, so that the next record starts on
/// a new line. The record of the partial line is written again.
fn end_torn_line(file: &mut std::fs::File, length: u64) -> std::io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    match last {
        [b'\n'] => Ok(()),
        _ => file.write_all(b"\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_torn_does_not_spoil_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("servers.jsonl");
        append(dir.path(), &path, "{\"a\":1}\n").unwrap();
        std::fs::write(&path, "{\"a\":1}\n{\"b\":").unwrap();
        append(dir.path(), &path, "{\"b\":2}\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"a\":1}\n{\"b\":\n{\"b\":2}\n");
    }
}
