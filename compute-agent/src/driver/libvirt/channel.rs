//! The virtio channel `org.ebbtide.notice.0`: lines of text between agent and guest.
//!
//! ```text
//! to the guest     NOTICE
//! {"evacuation_id":"…","action":"stop","grace_seconds":30,"not_before":"2026-11-22T05:00:00Z"}
//!                  WITHDRAWN {"evacuation_id":"…"}
//! from the guest   ACK EVACUATION_ID          it has heard
//!                  RELEASE EVACUATION_ID      it needs no more time
//! ```
//!
//! The connection is kept as long as the notice holds, because the guest may answer at any time. It
//! is made anew after each interruption, and the notice said again: a guest that boots hears it
//! when it is ready to. Lines that are not understood, and floods, are passed over: what comes from
//! a guest is not to be trusted.

use super::records::NoticeNote;
use ebbtide_model::EvacuationId;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// The longest line that a guest may say.
const MAX_LINE: u64 = 1_024;

/// Time between two tries to reach a guest.
const RETRY: Duration = Duration::from_secs(1);

/// What a guest may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestMessage {
    Heard(EvacuationId),
    /// It needs no more time.
    Released(EvacuationId),
}

/// The line that tells a guest of its end.
pub(super) fn notice_line(notice: &NoticeNote) -> String {
    format!("NOTICE {}\n", document(notice))
}

/// What a guest is told of its end, as JSON.
pub(super) fn document(notice: &NoticeNote) -> serde_json::Value {
    json!({
        "evacuation_id": notice.evacuation_id.to_string(),
        "action": notice.behaviour.as_str(),
        "grace_seconds": notice.grace.0,
        "not_before": notice.not_before.to_string(),
    })
}

/// The line that tells a guest that it may stay.
pub(super) fn withdrawn_line(evacuation_id: EvacuationId) -> String {
    format!(
        "WITHDRAWN {}\n",
        json!({ "evacuation_id": evacuation_id.to_string() })
    )
}

/// What a line of the guest means; `None` if nothing.
#[must_use]
pub fn understood(line: &str) -> Option<GuestMessage> {
    let (word, rest) = line.trim().split_once(' ')?;
    let evacuation_id = EvacuationId(rest.trim().parse().ok()?);
    match word {
        "ACK" => Some(GuestMessage::Heard(evacuation_id)),
        "RELEASE" => Some(GuestMessage::Released(evacuation_id)),
        _ => None,
    }
}

/// Says `line` and listens, until the guest has released `evacuation_id`.
pub(super) async fn converse(socket: &Path, line: &str, evacuation_id: EvacuationId) {
    let mut complained = false;
    loop {
        match talk(socket, line, evacuation_id).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) if !complained => {
                complained = true;
                tracing::debug!(socket = %socket.display(), %error, "the guest's channel cannot be reached; trying on");
            }
            Err(_) => {}
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// One connection. True if the guest has released its time.
async fn talk(socket: &Path, line: &str, evacuation_id: EvacuationId) -> std::io::Result<bool> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(line.as_bytes()).await?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut said = Vec::new();
        let read = (&mut reader)
            .take(MAX_LINE)
            .read_until(b'\n', &mut said)
            .await?;
        if read == 0 {
            return Ok(false);
        }
        match understood(&String::from_utf8_lossy(&said)) {
            Some(GuestMessage::Heard(id)) if id == evacuation_id => {
                tracing::info!(%evacuation_id, "the guest has heard its notice");
            }
            Some(GuestMessage::Released(id)) if id == evacuation_id => return Ok(true),
            // An answer to an earlier notice, or noise.
            _ => {}
        }
    }
}

/// Sends `line` once, if a process listens on the socket.
pub(super) async fn send_line(socket: &Path, line: &str) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(line.as_bytes()).await?;
    stream.flush().await
}
