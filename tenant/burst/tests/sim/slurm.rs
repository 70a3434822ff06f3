//! Slurm: jobs get nodes, run, end, go back into the queue.

use super::{CLEAN, EXPIRE, Host, Later, Power, Sim};
use ebbtide_burst::slurm::JobState;

impl Sim {
    pub(super) fn slurm(&mut self) {
        let now = self.now;
        for host in &mut self.hosts {
            if let Power::Stopping { until } = host.power
                && until <= now
            {
                host.power = Power::Off;
                host.foreign = false;
            }
        }
        let ready: Vec<String> = (self.hosts.iter())
            .filter(|host| host.power == Power::Up && !host.down)
            .map(|host| host.name.clone())
            .collect();
        let answers: Vec<String> = (self.hosts.iter())
            .filter(|host| !host.cloud || self.alive(&host.name))
            .map(|host| host.name.clone())
            .collect();
        for work in &mut self.work {
            let on = work.job.nodes.first().cloned().unwrap_or_default();
            match work.job.state {
                JobState::Configuring if ready.contains(&on) => {
                    work.job.state = JobState::Running;
                    work.job.start_ms = now;
                    work.since = now;
                }
                JobState::Running if now - work.since >= work.lasts && answers.contains(&on) => {
                    work.job.state = JobState::Completing;
                    work.cleaned = Some((now + CLEAN, JobState::Completed));
                    work.ends += 1;
                }
                JobState::Completing => {
                    if let Some((at, then)) = work.cleaned
                        && at <= now
                    {
                        work.job.state = then;
                        work.job.nodes.clear();
                        work.cleaned = None;
                        if then == JobState::Pending {
                            work.job.reason = "BeginTime".to_owned();
                            work.job.eligible_ms = now + EXPIRE;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// A job loses its nodes.
    pub(super) fn put_back(&mut self, id: u32) {
        let now = self.now;
        for work in self.work.iter_mut().filter(|work| work.job.id == id) {
            // What has ended, or is on its way back, is left alone.
            if !work.job.runs() {
                continue;
            }
            let then = if work.job.requeues {
                work.job.restarts += 1;
                JobState::Pending
            } else {
                JobState::Ended
            };
            work.job.state = JobState::Completing;
            work.cleaned = Some((now + CLEAN, then));
        }
    }

    pub(super) fn empty(&mut self, node: &str) {
        let on = self.work.iter().filter(|work| work.job.is_on(node));
        let ids: Vec<u32> = on.map(|work| work.job.id).collect();
        for id in ids {
            self.put_back(id);
        }
    }

    pub(crate) fn down(&mut self, node: &str, reason: &str) {
        self.empty(node);
        let host = self.host(node);
        host.down = true;
        host.reason = reason.to_owned();
        // Slurm waits no longer for what is said to be down.
        if matches!(host.power, Power::Starting { .. }) {
            host.power = Power::Up;
        }
    }

    /// First what is there; what is away and not drained is started for who waits.
    pub(super) fn schedule(&mut self) {
        let now = self.now;
        for at in 0..self.work.len() {
            let job = &self.work[at].job;
            if job.state != JobState::Pending || job.eligible_ms > now {
                continue;
            }
            let long = job.partition == "long";
            let free = |host: &Host| {
                (!host.cloud || !long)
                    && !host.drain
                    && !host.down
                    && host.silent.is_none()
                    && !self.work.iter().any(|one| one.job.is_on(&host.name))
            };
            let find = |power: Power| {
                let mut hosts = self.hosts.iter();
                hosts.position(|host| host.power == power && free(host))
            };
            let Some(host) = find(Power::Up).or_else(|| find(Power::Off)) else {
                continue;
            };
            let name = self.hosts[host].name.clone();
            let off = self.hosts[host].power == Power::Off;
            if off {
                self.start(&name);
                self.host(&name).foreign = true;
            }
            let work = &mut self.work[at];
            work.job.state = if off {
                JobState::Configuring
            } else {
                JobState::Running
            };
            work.job.nodes = vec![name];
            work.job.reason.clear();
            (work.job.start_ms, work.since) = (now, now);
        }
    }

    pub(super) fn start(&mut self, node: &str) {
        let now = self.now;
        self.host(node).power = Power::Starting { since: now };
        let resume = Later::Resume(node.to_owned());
        self.later.push((now + 500, resume));
    }
}
