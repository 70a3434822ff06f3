//! Compares the restored records with what the hosts have. Changes nothing.

use super::{ReconcileAction, ReconcileStep, Reconciliation, RestoredRegion};
use crate::{Disagreement, Region, orphaned_start};
use ebbtide_model::message::{HostedFacts, HostedServer, HostedState, Message};
use ebbtide_model::record::OutboxMessage;
use ebbtide_model::{
    Evacuation, EvacuationId, Flavor, MessageId, Server, ServerId, ServerStatus, Timestamp, names,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a step does to the region.
#[derive(Debug, Clone)]
pub(super) enum Work {
    Adopt(Box<Adoption>),
    /// The server runs on the host.
    Run(ReportedServer),
    /// The server is stopped or hibernated on the host.
    Keep(ReportedServer),
    Close(ServerId),
    /// The owner's deletion: sent again to the host that has the server, or done if none has it.
    Delete(ServerId, Option<String>),
    /// The evacuation is over: its victim lives, on this host, or unknown where.
    Spared(EvacuationId, Option<ReportedServer>),
    /// The evacuation is over: its victim is gone, or is kept in this place.
    Evacuated(EvacuationId, Option<ReportedServer>),
    /// The agent withdraws a notice that no record knows.
    Withdraw(ReportedServer, EvacuationId),
    Discard(MessageId),
    Disable(String),
    Look,
}

/// A server on a host, as its agent says.
#[derive(Debug, Clone)]
pub(super) struct ReportedServer {
    pub(super) server: ServerId,
    pub(super) host: String,
    pub(super) state: HostedState,
    pub(super) facts: Option<HostedFacts>,
}

/// A server that gets a record.
#[derive(Debug, Clone)]
pub(super) struct Adoption {
    pub(super) place: ReportedServer,
    pub(super) facts: HostedFacts,
    pub(super) flavor: Flavor,
}

/// A step, and what it does.
#[derive(Debug, Clone)]
pub(super) struct PlannedStep {
    pub(super) shown: ReconcileStep,
    pub(super) work: Work,
}

impl PlannedStep {
    fn new(
        action: ReconcileAction,
        subject: String,
        host: &str,
        why: impl Into<String>,
        work: Work,
    ) -> Self {
        Self {
            shown: ReconcileStep {
                action,
                subject,
                host: host.to_owned(),
                why: why.into(),
                next: String::new(),
            },
            work,
        }
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.shown.next = next.into();
        self
    }
}

/// Everything that the hosts have, by server.
type ReportedServers = BTreeMap<ServerId, Vec<ReportedServer>>;

impl Region {
    /// What [`ReconcileRegion`](super::ReconcileRegion) would do now.
    #[must_use]
    pub fn reconciliation(&self, now: Timestamp, without: &BTreeSet<String>) -> Reconciliation {
        let Some(held) = &self.restored else {
            return Reconciliation {
                hosts: self.hosts.len(),
                ..Reconciliation::default()
            };
        };
        let mut steps: Vec<ReconcileStep> = self
            .reconcile_steps(held, now, without)
            .into_iter()
            .map(|step| step.shown)
            .collect();
        steps.sort();
        let hosts = self.hosts.iter();
        let heard = hosts.filter(|(_, entry)| entry.last_heartbeat().is_some());
        Reconciliation {
            mark: Some(held.mark),
            hosts: self.hosts.len(),
            compared_hosts: heard.count(),
            steps,
            obstacles: self.obstacles(held, now, without),
        }
    }

    /// Why the region may not be reconciled now.
    pub(super) fn obstacles(
        &self,
        held: &RestoredRegion,
        now: Timestamp,
        without: &BTreeSet<String>,
    ) -> Vec<Disagreement> {
        let mut found = Vec::new();
        // A host that registered after the backup is known once its agent was heard.
        let listens_until = held.since.plus(self.late());
        if now < listens_until {
            found.push(Disagreement {
                code: "EB-AUDIT-110",
                subject: "region".to_owned(),
                what: format!(
                    "this scheduler has listened to the agents since {}, which is not long enough to have heard all",
                    held.since
                ),
                next: "try again in half of region.host_down_seconds",
            });
        }
        for (name, entry) in self.hosts.iter() {
            if without.contains(name) {
                continue;
            }
            if entry.is_contested(now) {
                found.push(Disagreement {
                    code: "EB-REGION-007",
                    subject: format!("host {name}"),
                    what: "two agents speak for it".to_owned(),
                    next: "stop the wrong one",
                });
            } else if !self.is_heard(name, now) && self.servers.on(name).next().is_some() {
                found.push(Disagreement {
                    code: "EB-AUDIT-103",
                    subject: format!("host {name}"),
                    what: format!(
                        "its agent has not been heard since the restore; the backup has {} servers there",
                        self.servers.on(name).count()
                    ),
                    next: "start its agent; if the host is lost for good: --without-host",
                });
            }
        }
        found
    }

    fn is_heard(&self, host: &str, now: Timestamp) -> bool {
        let down_after = self.config.host_down_seconds.as_millis();
        self.hosts.get(host).is_some_and(|entry| {
            entry.last_heartbeat().is_some() && entry.is_reachable(now, down_after)
        })
    }

    /// All steps, in the order in which they are done: servers find their places before what
    /// speaks of them ends.
    pub(super) fn reconcile_steps(
        &self,
        held: &RestoredRegion,
        now: Timestamp,
        without: &BTreeSet<String>,
    ) -> Vec<PlannedStep> {
        let mut places = ReportedServers::new();
        for (host, entry) in self
            .hosts
            .iter()
            .filter(|(name, _)| !without.contains(*name))
        {
            let hosted = entry.last_heartbeat().map_or(&[][..], |(_, hosted)| hosted);
            for server in hosted {
                let place = place_of(host, server);
                places.entry(place.server).or_default().push(place);
            }
        }
        let mut steps = Vec::new();
        for id in self.evacuations.active() {
            if let Some(evacuation) = self.evacuations.get(&id) {
                steps.push(self.evacuation_step(evacuation, &places, without));
            }
        }
        for server in self.servers.values() {
            self.server_steps(server, &places, without, now, &mut steps);
        }
        let unknown = places
            .iter()
            .filter(|(id, _)| !self.servers.contains_key(id));
        let mut full: BTreeSet<&str> = BTreeSet::new();
        for (id, places) in unknown {
            // Remains of a start that is being deleted have a record of their own.
            let remains = |p: &&ReportedServer| {
                self.servers
                    .contains_key(&orphaned_start::id_of(*id, &p.host))
            };
            for place in places.iter().filter(|p| !remains(p)) {
                let step = self.unknown_step(place, places.len() > 1);
                if matches!(step.work, Work::Look) && place.state == HostedState::Running {
                    full.insert(&place.host);
                }
                steps.push(step);
                self.withdraw_step(place, &mut steps);
            }
        }
        for host in full {
            let enabled = self.hosts.get(host).is_some_and(|entry| {
                entry.host.disabled_reason.is_none() && entry.host.reclaim.is_none()
            });
            if enabled {
                let why = "a server runs here that the region cannot count";
                steps.push(
                    PlannedStep::new(
                        ReconcileAction::Disable,
                        format!("host {host}"),
                        host,
                        why,
                        Work::Disable(host.to_owned()),
                    )
                    .next("`ebbtide host enable` once that server is adopted or gone"),
                );
            }
        }
        steps.extend(held.outbox.iter().map(discard_step));
        steps
    }

    /// What becomes of an evacuation that was under way at the time of the backup. It is over: the
    /// host says how.
    fn evacuation_step(
        &self,
        evacuation: &Evacuation,
        places: &ReportedServers,
        without: &BTreeSet<String>,
    ) -> PlannedStep {
        let id = evacuation.id;
        let subject = format!("evacuation {id}");
        let of = evacuation.victim_id;
        let host = &evacuation.host;
        let there = places.get(&of).map_or(&[][..], Vec::as_slice);
        let running = there.iter().find(|p| p.state == HostedState::Running);
        let (action, why, work) = match (running.or_else(|| there.first()), without.contains(host))
        {
            (Some(place), _) if place.state == HostedState::Running => (
                ReconcileAction::Spare,
                format!(
                    "its victim {of} runs on {}; what needed the capacity then is placed or gone by now",
                    place.host
                ),
                Work::Spared(id, Some(place.clone())),
            ),
            (Some(place), _) => (
                ReconcileAction::Leave,
                format!("its victim {of} is {} by now", word(place.state)),
                Work::Evacuated(id, Some(place.clone())),
            ),
            (None, true) => (
                ReconcileAction::Spare,
                format!(
                    "the host of its victim {of} is not asked; nothing may end it for a claim of the backup"
                ),
                Work::Spared(id, None),
            ),
            (None, false) => (
                ReconcileAction::Leave,
                format!("its victim {of} is on no host any more"),
                Work::Evacuated(id, None),
            ),
        };
        PlannedStep::new(action, subject, host, why, work)
    }

    fn server_steps(
        &self,
        server: &Server,
        places: &ReportedServers,
        without: &BTreeSet<String>,
        now: Timestamp,
        steps: &mut Vec<PlannedStep>,
    ) {
        if orphaned_start::is_orphaned_start(server) {
            return self.remains_step(server, places, without, steps);
        }
        let subject = || format!("server {}", server.id);
        let there = places.get(&server.id).map_or(&[][..], Vec::as_slice);
        let running: Vec<&ReportedServer> = there
            .iter()
            .filter(|p| p.state == HostedState::Running)
            .collect();
        for place in &running {
            self.withdraw_step(place, steps);
        }
        let place = running.first().copied().or_else(|| there.first());
        let host = server.host.as_deref().unwrap_or_default();
        let leaves = server
            .evacuation_id
            .is_some_and(|id| self.evacuations.is_active(&id));
        let step = |action, why: String, work| {
            let at = place.map_or(host, |place| place.host.as_str());
            PlannedStep::new(action, subject(), at, why, work)
        };
        steps.push(match (server.status, place) {
            _ if running.len() > 1 => step(
                ReconcileAction::Look,
                format!("{} hosts run it", running.len()),
                Work::Look,
            )
            .next("find out which one is right, and end the other on its host"),
            // The caller starts such servers, and no agent knows them.
            (ServerStatus::Reserved, None) => return,
            (ServerStatus::Evacuating, _) if leaves => return,
            (ServerStatus::Deleting, Some(place)) => step(
                ReconcileAction::Delete,
                "its owner had deleted it before the backup, and the host still has it".to_owned(),
                Work::Delete(server.id, Some(place.host.clone())),
            ),
            (ServerStatus::Deleting, None) if without.contains(host) => return,
            (ServerStatus::Deleting, None) => step(
                ReconcileAction::Delete,
                "its owner had deleted it before the backup, and no host has it".to_owned(),
                Work::Delete(server.id, None),
            ),
            (ServerStatus::Active, Some(place))
                if place.state == HostedState::Running && place.host == host =>
            {
                return;
            }
            (_, Some(place)) if place.state == HostedState::Running => step(
                ReconcileAction::Run,
                format!(
                    "it runs on {}; the backup has it as {}",
                    place.host,
                    at_host(server)
                ),
                Work::Run(place.clone()),
            ),
            (status, Some(place)) if is_kept(status, place.state) && place.host == host => return,
            (_, Some(place)) => step(
                ReconcileAction::Keep,
                format!(
                    "it is {} on {}; the backup has it as {}",
                    word(place.state),
                    place.host,
                    at_host(server)
                ),
                Work::Keep(place.clone()),
            ),
            (ServerStatus::Error, None) => return,
            // Its agent may be silent with the server running. A claim that waits does not run.
            (ServerStatus::Waiting | ServerStatus::Building, None) => step(
                ReconcileAction::Close,
                close_text(server),
                Work::Close(server.id),
            ),
            (_, None) if without.contains(host) || !self.is_heard(host, now) => return,
            (_, None) => step(
                ReconcileAction::Close,
                close_text(server),
                Work::Close(server.id),
            ),
        });
    }

    /// What becomes of the possible remains of a start that was given up before the backup.
    fn remains_step(
        &self,
        remains: &Server,
        places: &ReportedServers,
        without: &BTreeSet<String>,
        steps: &mut Vec<PlannedStep>,
    ) {
        let host = remains.host.as_deref().unwrap_or_default();
        let id = orphaned_start::id_of(remains.id, host);
        let there = places.get(&id).map_or(&[][..], Vec::as_slice);
        let here = there.iter().any(|place| place.host == host);
        if without.contains(host) {
            return;
        }
        // If the server runs here and nowhere else, the region takes it as it is.
        let again = here && there.len() > 1;
        let why = match here {
            true if again => "a start here was given up, and the server runs elsewhere, too",
            true => "a start here was given up, and the server runs here and nowhere else",
            false => "a start here was given up, and nothing is left of it",
        };
        steps.push(PlannedStep::new(
            ReconcileAction::Delete,
            format!("server {}", remains.id),
            host,
            why,
            Work::Delete(remains.id, again.then(|| host.to_owned())),
        ));
    }

    fn unknown_step(&self, place: &ReportedServer, several: bool) -> PlannedStep {
        let gone = self.servers.deleted().contains(place.server);
        let known = match gone {
            true => "the backup has it as gone",
            false => "the backup does not have it",
        };
        let why = format!("it is {} here, and {known}", word(place.state));
        let subject = format!("server {}", place.server);
        let look = |next: String| {
            let action = ReconcileAction::Look;
            PlannedStep::new(
                action,
                subject.clone(),
                &place.host,
                why.clone(),
                Work::Look,
            )
            .next(next)
        };
        if several {
            return look("several hosts have it: end the wrong one on its host".to_owned());
        }
        let Some(facts) = &place.facts else {
            return look(
                "its agent knows neither owner nor flavor: adopt it (POST /v1/adoptions), or end it on the host"
                    .to_owned(),
            );
        };
        let flavor = self.flavors.values().find(|flavor| {
            let properties = flavor.properties();
            flavor.name == facts.flavor
                && properties.is_ok_and(|p| {
                    p.resources == facts.resources && p.preemptible == facts.preemptible
                })
        });
        let Some(flavor) = flavor else {
            return look(format!(
                "create flavor {:?} as it was (`ebbtide flavor create`), and reconcile again",
                names::shorten(&facts.flavor)
            ));
        };
        let named = names::check_name("server", &facts.name)
            .and_then(|()| names::check_name("project", &facts.project_id));
        if named.is_err() {
            return look("its name or project cannot be stored: end it on the host".to_owned());
        }
        let why = format!(
            "{why}: {:?} of project {:?}, flavor {}",
            facts.name, facts.project_id, facts.flavor
        );
        let adoption = Adoption {
            place: place.clone(),
            facts: facts.clone(),
            flavor: flavor.clone(),
        };
        let work = Work::Adopt(Box::new(adoption));
        PlannedStep::new(ReconcileAction::Adopt, subject, &place.host, why, work)
    }

    /// A guest with the notice of an evacuation that no record has: the server that was to have
    /// the capacity is in no record either, and nothing would use what the victim gives.
    fn withdraw_step(&self, place: &ReportedServer, steps: &mut Vec<PlannedStep>) {
        let notice = place.facts.as_ref().and_then(|facts| facts.evacuation_id);
        let unknown = notice.filter(|id| !self.evacuations.is_active(id));
        if let Some(id) = unknown.filter(|_| place.state == HostedState::Running) {
            steps.push(PlannedStep::new(
                ReconcileAction::Spare,
                format!("evacuation {id}"),
                &place.host,
                format!(
                    "server {} has its notice, and the backup does not have who needed the capacity",
                    place.server
                ),
                Work::Withdraw(place.clone(), id),
            ));
        }
    }
}

fn discard_step(message: &OutboxMessage) -> PlannedStep {
    let kind = Message::from_bytes(&message.body)
        .map_or("unreadable", |message| message.body.event_type());
    PlannedStep::new(
        ReconcileAction::Discard,
        format!("message {}", message.id),
        &message.host,
        format!(
            "{kind} of {}: sent since, or for nothing",
            message.created_at
        ),
        Work::Discard(message.id),
    )
}

fn place_of(host: &str, server: &HostedServer) -> ReportedServer {
    ReportedServer {
        server: server.server_id,
        host: host.to_owned(),
        state: server.state,
        facts: server.facts.as_deref().cloned(),
    }
}

fn word(state: HostedState) -> &'static str {
    match state {
        HostedState::Running => "running",
        HostedState::Stopped => "stopped",
        HostedState::Hibernated => "hibernated",
    }
}

/// The status of a server that its host keeps.
pub(super) fn retained_status(state: HostedState) -> ServerStatus {
    match state {
        HostedState::Running => ServerStatus::Active,
        HostedState::Stopped => ServerStatus::Stopped,
        HostedState::Hibernated => ServerStatus::Hibernated,
    }
}

fn is_kept(status: ServerStatus, state: HostedState) -> bool {
    state != HostedState::Running && status == retained_status(state)
}

fn at_host(server: &Server) -> String {
    match &server.host {
        Some(host) => format!("{} on {host}", server.status),
        None => server.status.to_string(),
    }
}

fn close_text(server: &Server) -> String {
    format!("no host has it; the backup has it as {}", at_host(server))
}
