//! Claims that wait: started when their room is really free, placed elsewhere when it will not be.

use crate::state::Step;
use crate::{Event, Region, room, servers};
use ebbtide_model::message::{Body, Delete};
use ebbtide_model::record::Change;
use ebbtide_model::server::Fault;
use ebbtide_model::{Outcome, PlacementRequest, Server, ServerId, ServerStatus};

impl Region {
    /// Starts those waiting on a host for whom there is room now, in the order of their claims.
    ///
    /// A later claim may pass an earlier one that needs more than is free yet: the room of all of them together is
    /// accounted for (their sum fits once everybody who is leaving has left), so it takes nothing from the earlier one.
    pub(crate) fn advance_waiting(&mut self, step: &mut Step<'_>, host: Option<&str>) {
        let Some(host) = host else { return };
        for id in self.waiting.get(host).cloned().unwrap_or_default() {
            let Some(mut server) = self.servers.get(&id).cloned() else { continue };
            if !self.has_room_now(&server, host) {
                continue;
            }
            if let Err(error) = self.start(step, &mut server) {
                step.ignored(format!("server {id} could not be started: {error}"));
            }
            // Others may have left meanwhile: who was chosen for this room and is still there need not go.
            self.spare_victims_of(step, id, "the room became free without it");
        }
    }

    /// After an evacuation has failed: as long as more is promised on the host than there will be, somebody who waits there goes
    /// elsewhere, first of all whoever the victim was to make room for.
    pub(crate) fn settle(&mut self, step: &mut Step<'_>, host: &str, preemptor: ServerId, why: &str) {
        while self.table.usage(host).is_some_and(|usage| room::is_overpromised(&usage)) {
            let waiting = self.waiting.get(host).cloned().unwrap_or_default();
            let preferred = waiting.iter().find(|id| **id == preemptor).or_else(|| waiting.last());
            let Some(id) = preferred.copied() else { break };
            self.place_elsewhere(step, id, host, why);
        }
        self.advance_waiting(step, Some(host));
    }

    /// True if what the server needs is physically free on the host: nobody runs there any more who will leave.
    fn has_room_now(&self, server: &Server, host: &str) -> bool {
        let (Some(usage), Ok(properties)) = (self.table.usage(host), server.flavor.properties()) else {
            return false;
        };
        properties
            .resources
            .iter()
            .all(|(class, amount)| room::physical(&usage, class) >= i64::try_from(amount).unwrap_or(i64::MAX))
    }

    /// Places a server that cannot have the room it was promised: the next best host, or an error that says why.
    pub(crate) fn place_elsewhere(&mut self, step: &mut Step<'_>, id: ServerId, refused: &str, why: &str) {
        let Some(mut server) = self.servers.get(&id).cloned() else { return };
        if !matches!(server.status, ServerStatus::Waiting | ServerStatus::Building) {
            return;
        }
        server.refused_hosts.push(refused.to_owned());
        // Out of the table first: its own claim must not stand in its way.
        server.status = ServerStatus::Error;
        server.host = None;
        server.fault = Some(Fault {
            code: servers::NO_VALID_HOST.to_owned(),
            message: format!("host {refused}: {why}"),
            at: step.now,
        });
        self.save_server(step, server.clone());
        self.spare_victims_of(step, id, "the server that needed the room goes to another host");
        self.advance_waiting(step, Some(refused));
        if server.refused_hosts.len() >= usize::try_from(self.config.max_attempts).unwrap_or(usize::MAX) {
            return;
        }
        let mut ignore_hosts = server.ignore_hosts.clone();
        ignore_hosts.extend(server.refused_hosts.iter().cloned());
        let request = PlacementRequest {
            server_ids: vec![id],
            project_id: server.project_id.clone(),
            flavor: server.flavor.clone(),
            availability_zone: server.availability_zone.clone(),
            group_id: server.group_id,
            ignore_hosts,
            force_hosts: server.force_hosts.clone(),
            alternates: 0,
        };
        let decision = match self.decide(step, &request) {
            Ok(decision) => decision,
            Err(error) => {
                step.ignored(format!("server {id} could not be placed elsewhere: {error}"));
                return;
            }
        };
        step.effects.changes.push(Change::PutDecision(Box::new(decision.clone())));
        step.effects.events.push(Event::Decision(Box::new(decision.clone())));
        match &decision.outcome {
            Outcome::Placed(placements) => {
                for placement in placements {
                    if let Err(error) = self.claim(step, &mut server, placement, decision.id) {
                        step.ignored(format!("server {id} could not be placed elsewhere: {error}"));
                    }
                }
            }
            Outcome::NoValidHost(none) => {
                server.decision_id = Some(decision.id);
                server.fault = Some(Fault {
                    code: servers::NO_VALID_HOST.to_owned(),
                    message: format!("host {refused}: {why}; after that: {}", none.reason),
                    at: step.now,
                });
                self.save_server(step, server);
            }
        }
    }

    /// A server that an agent did not start, or said that it could not: the room is given back, the server tried elsewhere.
    pub(crate) fn start_failed(&mut self, step: &mut Step<'_>, id: ServerId, host: &str, why: &str) {
        // It may come up after all; an agent that never had it says so and no harm is done.
        step.send(host, Body::Delete(Delete { server_id: id }), None);
        self.place_elsewhere(step, id, host, why);
    }
}
