//! The region: instances come, have notice, die.

use super::{Later, Power, Server, Sim};
use ebbtide_burst::{PoolServer, Status};

impl Sim {
    fn server(&mut self, node: &str, status: Status) {
        let id = format!("i{:05}", self.next);
        self.next += 1;
        let ready = self.now + 3_000 + self.weather.slow;
        self.servers.push(Server {
            shown: PoolServer {
                id,
                created_ms: self.now,
                node: node.to_owned(),
                status,
                launched_ms: None,
                deadline_ms: None,
                ended_ms: None,
                taken: false,
                reason: "no valid host".to_owned(),
            },
            ready,
            boots: !self.weather.broken,
            gone: None,
        });
    }

    /// A second one for the same node, as when Slurm asked twice at once.
    pub(crate) fn duplicate(&mut self, at: usize) {
        if let Some(node) = self.there(at).map(|one| one.shown.node.clone()) {
            self.server(&node, Status::Coming);
        }
    }

    /// The resume program.
    pub(super) fn resume(&mut self, node: &str) {
        let there = |one: &Server| one.shown.node == node && one.shown.status.is_there();
        if self.weather.broke || self.weather.refuses {
            self.down(node, "ebbtide-batch: no valid host");
        } else if self.servers.iter().any(there) {
            // Asked twice, a node has one instance.
        } else {
            let fails = self.weather.fails;
            let status = if fails {
                Status::Failed
            } else {
                Status::Coming
            };
            self.server(node, status);
        }
    }

    /// The suspend program.
    pub(super) fn suspend(&mut self, node: &str) {
        if self.weather.away {
            return;
        }
        let ids: Vec<String> = (self.servers.iter())
            .filter(|one| one.shown.node == node)
            .map(|one| one.shown.id.clone())
            .collect();
        for id in ids {
            self.delete(&id);
        }
    }

    pub(super) fn delete(&mut self, id: &str) {
        let gone = self.now + 500 + self.weather.slow;
        for one in self.servers.iter_mut().filter(|one| one.shown.id == id) {
            one.shown.status = Status::Going;
            one.gone.get_or_insert(gone);
        }
    }

    pub(super) fn region(&mut self) {
        let now = self.now;
        for one in &mut self.servers {
            if one.shown.status == Status::Coming && now + 1_000 >= one.ready {
                one.shown.status = Status::Active;
                one.shown.launched_ms = Some(now);
            }
            if one.shown.status == Status::Leaving
                && one.shown.deadline_ms.is_some_and(|at| at <= now)
            {
                one.gone = Some(now);
            }
        }
        self.servers
            .retain(|one| one.gone.is_none_or(|at| at > now));
        for at in 0..self.hosts.len() {
            let host = &self.hosts[at];
            if !host.cloud {
                continue;
            }
            let answers = self.alive(&host.name) && host.deaf_until <= now;
            let host = &mut self.hosts[at];
            match host.power {
                Power::Starting { .. } if answers => {
                    host.power = Power::Up;
                    host.down = false;
                    host.silent = None;
                }
                Power::Starting { since } if now - since > RESUME_OVER => {
                    host.power = Power::Up;
                    host.silent = Some(now);
                    let name = host.name.clone();
                    self.down(&name, "ResumeTimeout reached");
                    self.later.push((now + 500, Later::Suspend(name)));
                }
                Power::Up if answers => host.silent = None,
                Power::Up => {
                    let since = *host.silent.get_or_insert(now);
                    if now - since > super::SLURMD && !host.down {
                        let name = host.name.clone();
                        self.down(&name, "Not responding");
                    }
                }
                _ => {}
            }
        }
    }

    /// One of the instances that are there.
    pub(crate) fn there(&mut self, at: usize) -> Option<&mut Server> {
        let all = self.servers.iter_mut();
        let mut there: Vec<&mut Server> = all.filter(|one| one.shown.status.is_there()).collect();
        if there.is_empty() {
            return None;
        }
        let at = at % there.len();
        Some(there.swap_remove(at))
    }
}

const RESUME_OVER: i64 = super::RESUME;
