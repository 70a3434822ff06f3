//! What the things of a server are called on a host.

use ebbtide_model::ServerId;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The disk in the server's directory.
pub(super) const DISK: &str = "disk";
/// Its memory, while it is hibernated on shared storage.
pub(super) const MEMORY: &str = "memory";
/// What the guest writes on its serial port.
pub(super) const CONSOLE: &str = "console.log";

/// Domains of ours begin so. libvirt's names must be unique on a host, tenants' names are not.
const PREFIX: &str = "ebbtide-";

/// The host's end of the server's virtio channel. It has no directory of its own, because the
/// target host of a migration would lack that directory.
pub(super) fn notice_socket(run_dir: &Path, server_id: ServerId) -> PathBuf {
    run_dir.join(format!("{server_id}.notice"))
}

/// Where the server's metadata is served, beside its network interface.
pub(super) fn metadata_socket(run_dir: &Path, server_id: ServerId) -> PathBuf {
    run_dir.join(format!("{server_id}.metadata"))
}

pub(super) fn domain(server_id: ServerId) -> String {
    format!("{PREFIX}{server_id}")
}

/// The server of a domain; `None` if the domain is not one of ours.
pub(super) fn server_of(domain: &str) -> Option<ServerId> {
    let id = domain.strip_prefix(PREFIX)?.parse().ok().map(ServerId)?;
    // Other spellings of a UUID would be another domain for the same server.
    (self::domain(id) == domain).then_some(id)
}

/// The last 48 bits of a name-based identifier of the server: two servers of one host share them
/// with a chance of 2⁻⁴⁸.
fn short(server_id: ServerId) -> [u8; 6] {
    let mixed = Uuid::new_v5(&server_id.0, b"ebbtide metadata interface");
    let mut short = [0; 6];
    short.copy_from_slice(&mixed.as_bytes()[10..]);
    short
}

/// The host's end of the server's metadata interface. Names of interfaces have at most 15
/// characters.
pub(super) fn tap(server_id: ServerId) -> String {
    let hex: String = short(server_id)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("ebm{hex}")
}

/// The guest's end: a locally administered address in QEMU's range.
pub(super) fn mac(server_id: ServerId) -> String {
    let [_, _, _, a, b, c] = short(server_id);
    format!("52:54:eb:{a:02x}:{b:02x}:{c:02x}")
}
