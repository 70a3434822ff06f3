//! `usage.jsonl`: a record for the billing system of the servers that ran until the driver ended
//! them. The last, partial hour of such a server is not billed.
//!
//! One JSON object a line: `noticed` when a server has its notice, `ending` before the driver asks
//! Nova to end it, `ended` when Nova has. The driver writes each line to disk before it continues.
//! A server that goes on running elsewhere has no `ended` line.

use super::facts;
use crate::driver::DriverError;
use crate::error::AgentError;
use ebbtide_model::message::EvacuationEnd;
use ebbtide_model::{EvacuationId, Seconds, ServerId, Timestamp};
use ebbtide_openstack::compute::Server;
use ebbtide_runtime::task;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What is not billed is the rest above whole hours.
const HOUR: u64 = 3_600;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UsageRecord {
    pub(super) event: UsageEvent,
    pub(super) at: Timestamp,
    pub(super) server_id: ServerId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) evacuation_id: Option<EvacuationId>,
    pub(super) host: String,
    pub(super) project_id: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) flavor: String,
    pub(super) launched_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) how: Option<EvacuationEnd>,
    /// From launch to the moment at which its end was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) running_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) billed_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unbilled_seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum UsageEvent {
    Noticed,
    Ending,
    Ended,
}

/// The file, and the last line about each server.
#[derive(Debug)]
pub(super) struct UsageLog {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    last: BTreeMap<ServerId, UsageRecord>,
}

impl UsageLog {
    pub(super) fn open(state_dir: &Path) -> Result<Self, AgentError> {
        let path = state_dir.join("usage.jsonl");
        let failed = |source| AgentError::Io {
            what: "open the usage record",
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o640)
            .open(&path)
            .map_err(failed)?;
        let text = std::fs::read(&path).map_err(failed)?;
        // A line that a crash cut off was never relied on; it must not swallow the next one.
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        let lines = text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok());
        let last = lines
            .map(|record: UsageRecord| (record.server_id, record))
            .collect();
        Ok(Self {
            inner: Arc::new(Mutex::new(Inner { path, file, last })),
        })
    }

    pub(super) async fn handle_notice_result(
        &self,
        server: &Server,
        host: &str,
        evacuation_id: EvacuationId,
        at: Timestamp,
    ) -> Result<(), DriverError> {
        let server_id = ServerId(server.id);
        if self
            .last(server_id)
            .is_some_and(|last| last.evacuation_id == Some(evacuation_id))
        {
            return Ok(());
        }
        let record = UsageRecord {
            event: UsageEvent::Noticed,
            at,
            server_id,
            evacuation_id: Some(evacuation_id),
            host: host.to_owned(),
            project_id: server.tenant_id.clone(),
            user_id: server.user_id.clone(),
            flavor: server.flavor.original_name.clone(),
            launched_at: facts::launched_at(server),
            how: None,
            running_seconds: None,
            billed_seconds: None,
            unbilled_seconds: None,
        };
        self.write(record).await
    }

    /// Before Nova is asked to end it. Only what was noticed is ours to bill; a repetition keeps
    /// the first moment.
    pub(super) async fn ending(
        &self,
        server: &Server,
        host: &str,
        how: EvacuationEnd,
        at: Timestamp,
    ) -> Result<(), DriverError> {
        let Some(noticed) = self
            .last(ServerId(server.id))
            .filter(|last| last.host == host)
        else {
            return Ok(());
        };
        let again = noticed.event == UsageEvent::Ending && noticed.how == Some(how);
        // What was stopped already does not run into this hour.
        let runs = facts::state(server) == ebbtide_model::message::HostedState::Running;
        if again || noticed.event == UsageEvent::Ended || how == EvacuationEnd::Migrated || !runs {
            return Ok(());
        }
        let running = noticed.launched_at.map(|since| at.millis_since(since));
        let running = running.and_then(|millis| u64::try_from(millis / 1_000).ok());
        let unbilled = running.map(|seconds| seconds % HOUR);
        let record = UsageRecord {
            event: UsageEvent::Ending,
            at,
            how: Some(how),
            running_seconds: running,
            billed_seconds: running.zip(unbilled).map(|(all, free)| all - free),
            unbilled_seconds: unbilled,
            ..noticed
        };
        self.write(record).await
    }

    /// When it has ended; nothing if it was not ended by us, or if that is written already.
    pub(super) async fn ended(
        &self,
        server_id: ServerId,
        how: EvacuationEnd,
        at: Timestamp,
    ) -> Result<(), DriverError> {
        match self.last(server_id) {
            Some(ending) if ending.event == UsageEvent::Ending && ending.how == Some(how) => {
                self.write(UsageRecord {
                    event: UsageEvent::Ended,
                    at,
                    ..ending
                })
                .await
            }
            _ => Ok(()),
        }
    }

    /// Whether we have ended it for good.
    pub(super) fn was_deleted(&self, server_id: ServerId) -> bool {
        let last = self.last(server_id);
        last.is_some_and(|last| {
            last.event == UsageEvent::Ended && last.how == Some(EvacuationEnd::Terminated)
        })
    }

    pub(super) fn unbilled(&self, server_id: ServerId) -> Option<Seconds> {
        let last = self
            .last(server_id)
            .filter(|last| last.event != UsageEvent::Noticed)?;
        last.unbilled_seconds
            .and_then(|seconds| u32::try_from(seconds).ok())
            .map(Seconds)
    }

    fn last(&self, server_id: ServerId) -> Option<UsageRecord> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.last.get(&server_id).cloned()
    }

    async fn write(&self, record: UsageRecord) -> Result<(), DriverError> {
        let inner = Arc::clone(&self.inner);
        let written = task::blocking_io(move || {
            inner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .write(record)
        });
        written.await.map_err(|error| DriverError::Failed {
            what: "write the usage record",
            detail: format!("{error}; free space on the file system of state_dir"),
        })
    }
}

impl Inner {
    fn write(&mut self, record: UsageRecord) -> io::Result<()> {
        let mut line = serde_json::to_vec(&record).map_err(io::Error::other)?;
        line.push(b'\n');
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        };
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(named)?;
        self.last.insert(record.server_id, record);
        Ok(())
    }
}
