//! What becomes of servers: those of the backup, and those that only a host has.

use super::ReconcileAction;
use super::step::{
    Adoption, PlannedStep, ReportedServer, ReportedServers, Work, retained_status, word,
};
use crate::{Region, orphaned_start};
use ebbtide_model::message::HostedState;
use ebbtide_model::{Server, ServerStatus, Timestamp, names};
use std::collections::BTreeSet;

impl Region {
    pub(super) fn server_steps(
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

    pub(super) fn unknown_step(&self, place: &ReportedServer, several: bool) -> PlannedStep {
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
    pub(super) fn withdraw_step(&self, place: &ReportedServer, steps: &mut Vec<PlannedStep>) {
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
