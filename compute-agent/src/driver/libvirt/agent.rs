//! The QEMU guest agent: a file in the guest that says what will happen, for guests that have
//! nothing of ours.
//!
//! The commands are those of qemu-ga's protocol (guest-file-open, -write, -close). What the guest
//! answers is not to be trusted; only whether it answers matters.

use super::names;
use super::virsh::{Virsh, VirshRefusal};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ebbtide_model::ServerId;
use serde_json::{Value, json};

/// Seconds for each answer of the guest agent.
const PATIENCE: &str = "3";

/// Replaces the content of a file in the guest.
///
/// # Errors
/// Why it could not be done; most often that no guest agent runs.
pub(super) async fn write_file(
    virsh: &Virsh,
    server_id: ServerId,
    path: &str,
    content: &str,
) -> Result<(), String> {
    let open = json!({ "execute": "guest-file-open", "arguments": { "path": path, "mode": "w" } });
    let handle = send_request(virsh, server_id, &open).await?;
    let handle = handle
        .as_i64()
        .ok_or_else(|| format!("the guest agent opened {path} with the handle {handle}"))?;
    let bytes = STANDARD.encode(content);
    let write = json!({ "execute": "guest-file-write", "arguments": { "handle": handle, "buf-b64": bytes } });
    let written = send_request(virsh, server_id, &write).await;
    let close = json!({ "execute": "guest-file-close", "arguments": { "handle": handle } });
    // Also after a failure: the guest's handles are few.
    let closed = send_request(virsh, server_id, &close).await;
    written.and(closed).map(drop)
}

async fn send_request(
    virsh: &Virsh,
    server_id: ServerId,
    command: &Value,
) -> Result<Value, String> {
    let domain = names::domain(server_id);
    let command = command.to_string();
    let words = [
        "qemu-agent-command",
        &domain,
        &command,
        "--timeout",
        PATIENCE,
    ];
    let answer = virsh.call(&words).await.map_err(|refused| match refused {
        VirshRefusal::Gone => "the domain is gone".to_owned(),
        VirshRefusal::Because(detail) => detail,
    })?;
    returned(&answer)
}

/// What the guest agent returned, from what virsh printed; nothing is [`Value::Null`].
///
/// # Errors
/// What is wrong with it.
pub fn returned(answer: &str) -> Result<Value, String> {
    let answer: Value = serde_json::from_str(answer.trim())
        .map_err(|error| format!("the guest agent's answer is not JSON: {error}"))?;
    Ok(answer.get("return").cloned().unwrap_or(Value::Null))
}
