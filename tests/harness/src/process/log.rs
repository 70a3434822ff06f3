//! What a process prints: copied into a file by a thread, so that others can be told of new lines
//! without polling.

use super::no_log;
use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

/// How much of the end of a log goes into messages, in lines and in bytes.
const TAIL_LINES: usize = 30;
const TAIL_BYTES: u64 = 8192;

/// How long to wait for the last lines of a process that has ended. The pipe is empty at once
/// unless a descendant holds it open, and such a one is killed with the group.
const DRAIN: Duration = Duration::from_secs(2);

/// How far the copying is.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Bytes written to the file since the process started.
    bytes: u64,
    /// All writing ends of the pipe are closed.
    ended: bool,
}

/// The captured output of one process; or none.
#[derive(Debug)]
pub(super) struct Log(Option<CapturedLog>);

#[derive(Debug)]
struct CapturedLog {
    path: PathBuf,
    /// Where this process's part of the file begins: a restarted server appends to the log of its
    /// former life.
    start: u64,
    progress: watch::Receiver<Progress>,
}

impl Log {
    /// No capturing.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Begins to append to `path` what is written into the returned pipe.
    pub(super) fn capture(path: &Path) -> Result<(Self, PipeWriter)> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(Error::io("open the log", path))?;
        let start = file
            .seek(SeekFrom::End(0))
            .map_err(Error::io("find the end of", path))?;
        let (mut reader, writer) = std::io::pipe().map_err(Error::io("make a pipe for", path))?;
        let (tell, progress) = watch::channel(Progress::default());
        let copy = move || {
            let mut buffer = vec![0; 65536];
            loop {
                match reader.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => {
                        // A full disk must not stop the reading: the process would block on a full
                        // pipe.
                        let _ = file.write_all(&buffer[..count]);
                        tell.send_modify(|progress| progress.bytes += count as u64);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            tell.send_modify(|progress| progress.ended = true);
        };
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(copy)
            .map_err(Error::io("start a thread for", path))?;
        let log = Self(Some(CapturedLog {
            path: path.to_owned(),
            start,
            progress,
        }));
        Ok((log, writer))
    }

    /// The file.
    pub(super) fn path(&self) -> Option<&Path> {
        self.0.as_ref().map(|captured| captured.path.as_path())
    }

    /// Waits until everything is copied that an ended process has written.
    pub(super) async fn drained(&self) {
        if let Some(captured) = &self.0 {
            let mut progress = captured.progress.clone();
            let ended = progress.wait_for(|progress| progress.ended);
            // Too late or never: what is there is looked at.
            let _ = tokio::time::timeout(DRAIN, ended).await;
        }
    }

    /// A search through this process's part of the file.
    pub(super) fn scan(&self) -> Result<Scan> {
        let Some(captured) = &self.0 else {
            return Err(Error::io("read", &no_log())(std::io::Error::other(
                "the process writes to the terminal",
            )));
        };
        let file = File::open(&captured.path).map_err(Error::io("read", &captured.path))?;
        let mut reader = BufReader::new(file);
        reader
            .seek(SeekFrom::Start(captured.start))
            .map_err(Error::io("read", &captured.path))?;
        Ok(Scan {
            path: captured.path.clone(),
            reader,
            partial: Vec::new(),
            progress: captured.progress.clone(),
        })
    }

    /// The last lines.
    pub(super) fn tail(&self) -> String {
        let Some(captured) = &self.0 else {
            return no_log().display().to_string();
        };
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&captured.path)?;
            let length = file.metadata()?.len();
            let from = captured.start.max(length.saturating_sub(TAIL_BYTES));
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<&str> = text.lines().collect();
                lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
            }
            Err(error) => format!("({}: {error})", captured.path.display()),
        }
    }
}

/// A search that goes on where it stopped.
#[derive(Debug)]
pub(super) struct Scan {
    path: PathBuf,
    reader: BufReader<File>,
    /// The beginning of a line whose end is not yet written.
    partial: Vec<u8>,
    progress: watch::Receiver<Progress>,
}

impl Scan {
    /// The next complete line that contains one of `texts`, if it is there yet.
    pub(super) fn find(&mut self, texts: &[&str]) -> Result<Option<String>> {
        // What comes from here on counts as new for `more`.
        let ended = self.progress.borrow_and_update().ended;
        loop {
            self.reader
                .read_until(b'\n', &mut self.partial)
                .map_err(Error::io("read", &self.path))?;
            let complete =
                self.partial.last() == Some(&b'\n') || (ended && !self.partial.is_empty());
            if !complete {
                return Ok(None);
            }
            let line = String::from_utf8_lossy(&self.partial)
                .trim_end_matches(['\n', '\r'])
                .to_owned();
            self.partial.clear();
            if texts.iter().any(|text| line.contains(text)) {
                return Ok(Some(line));
            }
        }
    }

    /// Waits until more is written; for ever when nothing more will come.
    pub(super) async fn more(&mut self) {
        if self.progress.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
