//! The disk of a new server: empty, a copy of an image, or a layer over it.

use super::settings::{DiskFormat, LibvirtSettings};
use ebbtide_model::message::Start;
use ebbtide_runtime::task;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

const GIB: u64 = 1 << 30;

/// The disk of a server whose flavor has none: enough to note that it was there.
const LEAST: u64 = 1 << 20;

/// Makes the disk anew, whatever was there: it belongs to a server that does not exist yet.
///
/// # Errors
/// What went wrong, in words.
pub(super) async fn make(
    settings: &LibvirtSettings,
    start: &Start,
    disk: PathBuf,
) -> Result<(), String> {
    let size = (start.resources.amount("DISK_GB").saturating_mul(GIB)).max(LEAST);
    let image = settings.image_of(&start.flavor).cloned();
    let name = disk.display().to_string();
    match (settings.disk_format, image) {
        (DiskFormat::Raw, image) => {
            let made = task::blocking_io(move || raw(&disk, image.as_deref(), size)).await;
            made.map_err(|error| format!("cannot make the disk {name}: {error}"))
        }
        (DiskFormat::Qcow2, image) => qcow2(&disk, image.as_deref(), size).await,
    }
}

fn raw(disk: &Path, image: Option<&Path>, size: u64) -> io::Result<()> {
    if let Some(dir) = disk.parent() {
        fs::create_dir_all(dir)?;
    }
    let new = disk.with_extension("new");
    match image {
        Some(image) => drop(fs::copy(image, &new)?),
        None => drop(File::create(&new)?),
    }
    let file = File::options().write(true).open(&new)?;
    // An image that is larger than the flavor's disk is not cut: the guest would find half a file
    // system.
    file.set_len(file.metadata()?.len().max(size))?;
    file.sync_all()?;
    fs::rename(&new, disk)
}

async fn qcow2(disk: &Path, image: Option<&Path>, size: u64) -> Result<(), String> {
    if let Some(dir) = disk.parent() {
        fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    }
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "qcow2"]);
    if let Some(image) = image {
        // The format is not guessed from the bytes: a tenant could have written a header into a raw
        // image.
        let format = if image.extension().is_some_and(|e| e == "qcow2") {
            "qcow2"
        } else {
            "raw"
        };
        command.arg("-F").arg(format).arg("-b").arg(image);
    }
    let output = command
        .arg(disk)
        .arg(size.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| format!("cannot run qemu-img, which makes qcow2 disks: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "qemu-img cannot make {}: {}",
        disk.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}
