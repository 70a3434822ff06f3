//! Moving a running server to another host.

use super::settings::Peer;
use super::{LibvirtDriver, look, names};
use crate::driver::DriverError;
use ebbtide_model::ServerId;
use ebbtide_model::message::HostedState;

const WHAT: &str = "move the server to another host";

/// `virsh migrate` with these copies every disk to a host that does not share it.
const COPYING: [&str; 2] = ["--copy-storage-all", "--copy-storage-inc"];

impl LibvirtDriver {
    /// To the first peer that has room.
    pub(super) async fn migrate_to_peer(&self, server_id: ServerId) -> Result<(), DriverError> {
        if self.settings.peers.is_empty() {
            return Err(DriverError::Unsupported {
                driver: super::NAME,
                what: WHAT,
                detail: "no other host is named; add [[driver.libvirt.peers]]".to_owned(),
            });
        }
        let here = self.look(WHAT).await?;
        let Some(domain) = here.servers.get(&server_id) else {
            return self.is_elsewhere(server_id).await;
        };
        if domain.state() != HostedState::Running {
            return Err(DriverError::Unsupported {
                driver: super::NAME,
                what: WHAT,
                detail: format!("server {server_id} does not run"),
            });
        }
        let needs = domain.holds().amount("MEMORY_MB");
        let mut problems = Vec::new();
        for peer in &self.settings.peers {
            match self.room_on(peer).await {
                Ok(room) if room >= needs => match self.move_to(peer, server_id).await {
                    Ok(()) => return Ok(()),
                    // It may have arrived although the answer got lost.
                    Err(error) => match self.look(WHAT).await {
                        Ok(now) if !now.servers.contains_key(&server_id) => {
                            return self.is_elsewhere(server_id).await;
                        }
                        _ => return Err(error),
                    },
                },
                Ok(room) => problems.push(format!("{}: {room} of {needs} MiB free", peer.uri)),
                Err(error) => problems.push(format!("{}: {error}", peer.uri)),
            }
        }
        Err(DriverError::NoRoom {
            detail: problems.join("; "),
        })
    }

    /// Free memory on the peer, in MiB.
    async fn room_on(&self, peer: &Peer) -> Result<u64, DriverError> {
        let there = look(&self.virsh.to(&peer.uri), WHAT).await?;
        let ours = there.servers.values().map(|domain| domain.holds());
        let taken: u64 = ours
            .chain(there.foreign.iter().cloned())
            .map(|holds| holds.amount("MEMORY_MB"))
            .sum();
        let all = peer.memory_mb.unwrap_or(there.memory_mib);
        Ok(all.saturating_sub(taken))
    }

    async fn is_elsewhere(&self, server_id: ServerId) -> Result<(), DriverError> {
        for peer in &self.settings.peers {
            let there = look(&self.virsh.to(&peer.uri), WHAT).await?;
            if there.servers.contains_key(&server_id) {
                return Ok(());
            }
        }
        Err(DriverError::NotFound { server_id })
    }

    async fn move_to(&self, peer: &Peer, server_id: ServerId) -> Result<(), DriverError> {
        let domain = names::domain(server_id);
        let mut words: Vec<String> = ["migrate", "--live", "--persistent", "--undefinesource"]
            .map(str::to_owned)
            .into();
        words.extend(peer.options.iter().cloned());
        if let Some(run_dir) = &peer.run_dir {
            // The guest's sockets are elsewhere on that host.
            for (option, variant) in [("--xml", None), ("--persistent-xml", Some("--inactive"))] {
                let mut dump = vec!["dumpxml", &domain, "--migratable"];
                dump.extend(variant);
                let xml = self.virsh.call(&dump).await;
                let xml = xml.map_err(|refused| refused.about(server_id, WHAT))?;
                let from = format!("'{}/", self.settings.run_dir.display());
                let to = format!("'{}/", run_dir.display());
                let xml = xml.replace(&from, &to);
                let file = self
                    .records
                    .dir_of(server_id)
                    .join(format!("move{option}.xml"));
                let path = file.clone();
                self.noted(WHAT, move |_| std::fs::write(path, xml)).await?;
                words.extend([option.to_owned(), file.display().to_string()]);
            }
        }
        words.extend([domain, peer.uri.clone()]);
        words.extend(peer.migrate_uri.clone());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let moved = self.virsh.wait(&words).await;
        moved.map_err(|refused| refused.about(server_id, WHAT))?;
        self.messengers.forget(server_id);
        // The guest goes on without its notice, wherever its notes are now.
        let copied = peer.options.iter().any(|o| COPYING.contains(&o.as_str()));
        self.noted(WHAT, move |records| {
            if copied {
                return records.remove(server_id);
            }
            records
                .change(server_id, |note| note.notice = None)
                .map(drop)
        })
        .await
    }
}
