//! What the controller's actions do.

use super::{Later, Power, SUSPEND, Sim};
use ebbtide_burst::slurm::JobState;
use ebbtide_burst::{BurstAction, RESTING};

impl Sim {
    pub(crate) fn act(&mut self, action: &BurstAction) {
        let now = self.now;
        match action {
            BurstAction::PowerUp { node } => {
                let host = self.host(node);
                if host.power == Power::Off && !host.down {
                    self.start(node);
                }
            }
            BurstAction::Open { node } => {
                let host = self.host(node);
                host.drain = false;
                host.reason.clear();
            }
            BurstAction::Drain { node, reason } => {
                let host = self.host(node);
                host.drain = true;
                host.reason.clone_from(reason);
            }
            BurstAction::Rest { node } => {
                let host = self.host(node);
                host.drain = true;
                host.reason = RESTING.to_owned();
            }
            BurstAction::Down { node, reason } => self.down(node, reason),
            BurstAction::PowerDown { node } => {
                let again = self.again;
                let host = self.host(node);
                let away = host.power == Power::Off && !host.down && !again;
                if away || matches!(host.power, Power::Stopping { .. }) {
                    return;
                }
                self.empty(node);
                let host = self.host(node);
                host.power = Power::Stopping {
                    until: now + SUSPEND,
                };
                // Slurm forgets both.
                (host.down, host.drain, host.silent) = (false, false, None);
                host.reason.clear();
                let suspend = Later::Suspend(node.clone());
                self.later.push((now + 500, suspend));
            }
            BurstAction::Delete { instance } => self.delete(instance),
            BurstAction::Signal { .. } => {}
            BurstAction::Requeue { job } => self.put_back(*job),
            // No launch fails here, and priorities do not age.
            BurstAction::Release { .. } | BurstAction::KeepPlace { .. } => {}
            BurstAction::StartNow { job } => {
                let waits = |state| state == JobState::Pending;
                let work = self.work.iter_mut();
                for work in work.filter(|one| one.job.id == *job && waits(one.job.state)) {
                    work.job.eligible_ms = now;
                    work.job.reason.clear();
                }
            }
            BurstAction::Label { node, label } => {
                self.host(node).comment.clone_from(&label.comment)
            }
        }
    }
}
