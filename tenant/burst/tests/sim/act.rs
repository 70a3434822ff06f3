//! What the controller's actions do.

use super::{Later, Power, SUSPEND, Sim};
use ebbtide_burst::slurm::JobState;
use ebbtide_burst::{Action, RESTING};

impl Sim {
    pub(crate) fn act(&mut self, action: &Action) {
        let now = self.now;
        match action {
            Action::PowerUp { node } => {
                let host = self.host(node);
                if host.power == Power::Off && !host.down {
                    self.start(node);
                }
            }
            Action::Open { node } => {
                let host = self.host(node);
                host.drain = false;
                host.reason.clear();
            }
            Action::Drain { node, reason } => {
                let host = self.host(node);
                host.drain = true;
                host.reason.clone_from(reason);
            }
            Action::Rest { node } => {
                let host = self.host(node);
                host.drain = true;
                host.reason = RESTING.to_owned();
            }
            Action::Down { node, reason } => self.down(node, reason),
            Action::PowerDown { node } => {
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
            Action::Delete { instance } => self.delete(instance),
            Action::Signal { .. } => {}
            Action::Requeue { job } => self.put_back(*job),
            Action::StartNow { job } => {
                let waits = |state| state == JobState::Pending;
                let work = self.work.iter_mut();
                for work in work.filter(|one| one.job.id == *job && waits(one.job.state)) {
                    work.job.eligible_ms = now;
                    work.job.reason.clear();
                }
            }
            Action::Label { node, label } => self.host(node).comment.clone_from(&label.comment),
        }
    }
}
