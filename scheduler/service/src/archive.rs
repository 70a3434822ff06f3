//! What is long over leaves the database: into files if the operator wants to keep it, and then it is deleted.
//!
//! Files are `DIRECTORY/servers-2026-11-22.jsonl` and so on, one record a line, by the day on which it was archived. A record is deleted only once
//! it is in a file that was synchronised; if the scheduler dies between the two, it is there twice.

use crate::clock;
use crate::duty::Duty;
use crate::task::{Tasks, pause};
use ebbtide_model::record::REMEMBER_GONE;
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_store::{Kind, Store, StoreError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often old rows are looked for.
const EVERY: Duration = Duration::from_secs(10);
/// Rows of a kind that are dealt with in one transaction: short enough that commits hardly notice.
const ROWS: u64 = 512;

/// What to do with what is over.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// How long it stays.
    pub(crate) keep: Seconds,
    /// Where it is written before it is deleted.
    pub(crate) directory: Option<PathBuf>,
}

/// Starts looking; whoever is on duty does it.
pub(crate) fn start(store: Store, duty: Duty, policy: Policy, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("archive", async move {
        while pause(&stop, EVERY).await {
            for kind in Kind::ALL {
                // In small pieces until there is nothing left, so that it keeps up with whatever ends.
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

async fn some(store: &Store, kind: Kind, policy: &Policy) -> Result<u64, String> {
    let now = clock::now();
    // Whoever repeats a request for a server that has just gone must not get another one, also after a restart.
    let keep = match kind {
        Kind::Servers => policy.keep.max(REMEMBER_GONE),
        Kind::Evacuations | Kind::Decisions | Kind::Lives | Kind::Prices => policy.keep,
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
    let written = crate::task::blocking(move || append(&directory, &path, &text)).await;
    written.map_err(|error| format!("EB-SERVICE-011: {shown}: {error}"))?;
    store.forget(kind, &ids, before).await.map_err(told)?;
    Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX))
}

fn file(directory: &Path, kind: Kind, now: Timestamp) -> PathBuf {
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
        // Half of it, on a full disk: whoever reads the file takes lines for whole. If this fails, too, the next one ends that line.
        let _ = file.set_len(before);
    }
    written
}

/// What a scheduler that died while it wrote has left becomes a line of its own, so that the next record is whole. Its own is written again.
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
