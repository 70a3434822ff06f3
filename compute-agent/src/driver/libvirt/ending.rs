//! Ends servers: by the power button, by force, or with their memory on disk. Every step checks the
//! current state, so a call that was interrupted continues there.

use super::{LibvirtDriver, names};
use crate::driver::DriverError;
use ebbtide_model::ServerId;
use ebbtide_model::message::HostedState;
use ebbtide_runtime::clock;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::Duration;
use tokio::time::{sleep, timeout_at};

/// Time between two looks at a guest that is shutting down.
const LOOK: Duration = Duration::from_millis(300);

/// Time between two presses of the power button: a booting guest does not see the first one.
const PRESS: Duration = Duration::from_secs(3);

/// Maximum number of tries to destroy a domain that libvirt cannot end at once (for example because
/// its process hangs in the kernel).
const DESTROY_TRIES: u32 = 3;

/// Magic bytes of a complete memory image. While libvirt writes the image, it begins with others.
const SAVED: &[u8] = b"LibvirtQemudSave";

/// Whether a guest's memory image is complete.
pub(super) fn has_memory(path: &Path) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut begin = [0; SAVED.len()];
    match file.read_exact(&mut begin) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
        Ok(()) => Ok(begin == SAVED),
    }
}

impl LibvirtDriver {
    /// Lets the guest shut down, and destroys it when the time for that is over. Afterwards it does
    /// not run.
    pub(super) async fn shut_down(
        &self,
        server_id: ServerId,
        what: &'static str,
    ) -> Result<(), DriverError> {
        let patience = self.settings.shutdown_time();
        let deadline = clock::timer() + patience;
        if patience > Duration::ZERO
            && let Ok(done) = timeout_at(deadline, self.press_until_off(server_id, what)).await
        {
            return done;
        }
        self.destroy(server_id, what).await
    }

    async fn press_until_off(
        &self,
        server_id: ServerId,
        what: &'static str,
    ) -> Result<(), DriverError> {
        let domain = names::domain(server_id);
        let looks_per_press = PRESS.as_millis() / LOOK.as_millis();
        let mut look = 0;
        loop {
            if !self.runs(server_id, what).await? {
                return Ok(());
            }
            if look % looks_per_press == 0 {
                let pressed = self
                    .virsh
                    .call(&["shutdown", &domain, "--mode", "acpi"])
                    .await;
                if let Err(refused) = pressed {
                    // It may have ended meanwhile, or be busy: the next look shows it.
                    tracing::debug!(%server_id, ?refused, "the power button could not be pressed");
                }
            }
            look += 1;
            sleep(LOOK).await;
        }
    }

    async fn runs(&self, server_id: ServerId, what: &'static str) -> Result<bool, DriverError> {
        let state = self.domain(server_id, what).await?.state();
        Ok(state == HostedState::Running)
    }

    /// Ends its process. Afterwards it does not run.
    pub(super) async fn destroy(
        &self,
        server_id: ServerId,
        what: &'static str,
    ) -> Result<(), DriverError> {
        let domain = names::domain(server_id);
        let mut tries = 0;
        loop {
            if !self.runs(server_id, what).await? {
                return Ok(());
            }
            tries += 1;
            match self.virsh.call(&["destroy", &domain]).await {
                Ok(_) => {}
                Err(refused) if tries < DESTROY_TRIES => {
                    tracing::debug!(%server_id, ?refused, "not destroyed yet");
                    sleep(LOOK).await;
                }
                Err(refused) => return Err(refused.about(server_id, what)),
            }
        }
    }

    /// Removes a server that does not run, with everything that it has. Files come first: as long
    /// as the domain exists, the agent repeats a call that was interrupted.
    pub(super) async fn remove(
        &self,
        server_id: ServerId,
        what: &'static str,
    ) -> Result<(), DriverError> {
        self.messengers.forget(server_id);
        self.metadata.shut(server_id);
        self.noted(what, move |records| records.remove(server_id))
            .await?;
        let domain = names::domain(server_id);
        let words = [
            "undefine",
            &domain,
            "--managed-save",
            "--snapshots-metadata",
            "--checkpoints-metadata",
            "--nvram",
        ];
        let undefined = self.virsh.call(&words).await;
        for socket in [
            names::notice_socket(&self.settings.run_dir, server_id),
            names::metadata_socket(&self.settings.run_dir, server_id),
        ] {
            // They are usually gone with their processes.
            let _ = std::fs::remove_file(socket);
        }
        let undefined = undefined.map_err(|refused| refused.about(server_id, what));
        if matches!(undefined, Ok(_) | Err(DriverError::NotFound { .. })) {
            // Its token on the storage comes last: nothing can use the token any more.
            self.clear_storage(server_id, None, what).await?;
        }
        undefined.map(drop)
    }

    /// Writes the memory to disk. A server that is stopped stays stopped.
    pub(super) async fn save(&self, server_id: ServerId) -> Result<(), DriverError> {
        let what = "hibernate the server";
        if !self.runs(server_id, what).await? {
            return Ok(());
        }
        let domain = names::domain(server_id);
        // This takes time in proportion to the memory; the agent limits it. If it fails, libvirt
        // resumes the guest.
        let saved = match self.storage_dir(server_id, what).await? {
            Some(dir) => {
                let memory = dir.join(names::MEMORY).display().to_string();
                self.virsh
                    .wait(&["save", &domain, &memory, "--running"])
                    .await
            }
            None => {
                self.virsh
                    .wait(&["managedsave", &domain, "--running"])
                    .await
            }
        };
        if saved.is_ok() || !self.runs(server_id, what).await? {
            return Ok(());
        }
        saved
            .map(drop)
            .map_err(|refused| refused.about(server_id, what))
    }

    /// Removes the notice of a guest that does not run any more, so that it does not find an old
    /// one when it resumes.
    pub(super) async fn forget_notice(
        &self,
        server_id: ServerId,
        what: &'static str,
    ) -> Result<(), DriverError> {
        self.messengers.forget(server_id);
        let forget = self.noted(what, move |records| {
            records.change(server_id, |note| {
                if let Some(notice) = note.notice.take() {
                    note.ended_by = Some(notice.evacuation_id);
                }
            })
        });
        forget.await.map(drop)
    }
}
