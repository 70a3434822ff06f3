//! Gives guests their notices: what the driver writes for a guest, and the tasks that talk to it.

use super::records::{NoticeNote, Records};
use super::settings::LibvirtSettings;
use super::virsh::Virsh;
use super::{agent, channel, names};
use ebbtide_model::{EvacuationId, ServerId};
use ebbtide_runtime::task::{self, Task};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the driver tries the channel to withdraw a notice.
const FAREWELL: Duration = Duration::from_secs(5);

/// Maximum time between two tries of the guest agent.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A task for each guest that has a notice.
#[derive(Debug)]
pub(super) struct NoticeTasks {
    records: Arc<Records>,
    virsh: Virsh,
    run_dir: PathBuf,
    channel: bool,
    agent_file: String,
    underway: Mutex<BTreeMap<ServerId, (EvacuationId, Task)>>,
}

impl NoticeTasks {
    pub(super) fn new(settings: &LibvirtSettings, records: Arc<Records>, virsh: Virsh) -> Self {
        Self {
            records,
            virsh,
            run_dir: settings.run_dir.clone(),
            channel: settings.notice.channel,
            agent_file: settings.notice.agent_file.clone(),
            underway: Mutex::new(BTreeMap::new()),
        }
    }

    fn underway(&self) -> MutexGuard<'_, BTreeMap<ServerId, (EvacuationId, Task)>> {
        self.underway.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to give a guest this notice; without effect if that is under way already.
    pub(super) fn send(&self, server_id: ServerId, notice: &NoticeNote) {
        let mut underway = self.underway();
        if underway
            .get(&server_id)
            .is_some_and(|(id, _)| *id == notice.evacuation_id)
        {
            return;
        }
        let told = self.notify(server_id, notice.clone());
        let task = task::spawn("notice to a guest", told);
        underway.insert(server_id, (notice.evacuation_id, task));
    }

    fn notify(
        &self,
        server_id: ServerId,
        notice: NoticeNote,
    ) -> impl Future<Output = ()> + Send + 'static {
        let socket = names::notice_socket(&self.run_dir, server_id);
        let (records, file) = (Arc::clone(&self.records), self.agent_file.clone());
        let (virsh, channel) = (self.virsh.clone(), self.channel);
        async move {
            let by_agent = async {
                if !file.is_empty() {
                    let text = channel::document(&notice).to_string();
                    write(&virsh, server_id, &file, &text).await;
                }
            };
            let by_channel = async {
                if channel {
                    let line = channel::notice_line(&notice);
                    channel::converse(&socket, &line, notice.evacuation_id).await;
                    release(records, server_id, notice.evacuation_id).await;
                }
            };
            futures::future::join(by_agent, by_channel).await;
        }
    }

    /// Withdraws a guest's notice.
    pub(super) fn take_back(&self, server_id: ServerId, evacuation_id: EvacuationId) {
        let socket = names::notice_socket(&self.run_dir, server_id);
        let (virsh, channel, file) = (self.virsh.clone(), self.channel, self.agent_file.clone());
        let told = async move {
            let line = channel::withdrawn_line(evacuation_id);
            if channel {
                let said = tokio::time::timeout(FAREWELL, channel::send_line(&socket, &line)).await;
                if let Err(problem) = said
                    .map_err(|e| e.to_string())
                    .and_then(|s| s.map_err(|e| e.to_string()))
                {
                    tracing::debug!(%server_id, problem, "the guest's channel does not take the word that it may stay");
                }
            }
            if !file.is_empty() {
                let text = serde_json::json!({ "evacuation_id": evacuation_id.to_string(), "withdrawn": true });
                let text = text.to_string();
                let written = write(&virsh, server_id, &file, &text);
                // A guest agent that never received the notice need not receive its withdrawal.
                let _ = tokio::time::timeout(FAREWELL, written).await;
            }
        };
        // Replaces the notice's task, whose connection must be closed: a guest's port has one
        // reader.
        let unknown = EvacuationId(uuid::Uuid::nil());
        let mut underway = self.underway();
        underway.remove(&server_id);
        underway.insert(
            server_id,
            (unknown, task::spawn("a notice taken back", told)),
        );
    }

    /// Stops talking to a guest.
    pub(super) fn forget(&self, server_id: ServerId) {
        self.underway().remove(&server_id);
    }

    /// Removes finished tasks that are not needed as a sign that they were done.
    pub(super) fn tidy(&self, alive: impl Fn(ServerId) -> bool) {
        self.underway().retain(|server_id, _| alive(*server_id));
    }
}

/// Lets the guest agent write a file, and retries: a booting guest has no guest agent yet. The
/// pauses grow, because many guests never have one.
async fn write(virsh: &Virsh, server_id: ServerId, file: &str, text: &str) {
    let mut pause = Duration::from_secs(1);
    while let Err(problem) = agent::write_file(virsh, server_id, file, text).await {
        tracing::debug!(%server_id, problem, "the guest agent was not reached");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Records that a guest releases the rest of its time. A failure is logged, and the guest keeps its
/// full time.
async fn release(records: Arc<Records>, server_id: ServerId, evacuation_id: EvacuationId) {
    if let Err(error) = note_release(records, server_id, evacuation_id).await {
        tracing::warn!(%server_id, %error, "an early release cannot be noted");
    }
}

/// Records the release if it is about the guest's current notice. True if it is.
pub(super) async fn note_release(
    records: Arc<Records>,
    server_id: ServerId,
    evacuation_id: EvacuationId,
) -> std::io::Result<bool> {
    let noted = task::blocking_io(move || {
        let mut fits = false;
        records.change(server_id, |note| {
            if let Some(notice) = note
                .notice
                .as_mut()
                .filter(|n| n.evacuation_id == evacuation_id)
            {
                notice.released = true;
                fits = true;
            }
        })?;
        Ok(fits)
    });
    let fits = noted.await?;
    if fits {
        tracing::info!(%server_id, %evacuation_id, "the guest needs no more time");
    }
    Ok(fits)
}
