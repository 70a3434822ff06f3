//! What tenants do with servers: create, delete, release; and operators: adopt.

use crate::state::Step;
use crate::{room, AdoptServer, CreateServers, Event, Region, RegionError, Reply};
use ebbtide_model::message::{Body, Delete, Release, Start};
use ebbtide_model::record::Change;
use ebbtide_model::server::Fault;
use ebbtide_model::{
    Decision, DecisionId, Outcome, Placement, PlacementRequest, Server, ServerId,
    ServerStatus, names,
};

/// The fault of a server for which there was no place.
pub(crate) const NO_VALID_HOST: &str = "EB-FAULT-001";
/// The fault of a server that its host lost.
pub(crate) const LOST: &str = "EB-FAULT-002";
/// The fault of a preemptible server that was evacuated.
pub(crate) const PREEMPTED: &str = "EB-FAULT-003";

impl Region {
    pub(crate) fn what_if(&mut self, step: &mut Step<'_>, request: &PlacementRequest) -> Result<Reply, RegionError> {
        let decision = self.decide(step, request)?;
        Ok(Reply::WhatIf(Box::new(decision)))
    }

    /// One pass of the engine. Nothing is changed.
    pub(crate) fn decide(&self, step: &mut Step<'_>, request: &PlacementRequest) -> Result<Decision, RegionError> {
        request.check()?;
        let id = DecisionId(step.uuid());
        // Whatever chance the policy allows comes from the decision's id, so that it can be repeated.
        let (_, seed) = id.0.as_u64_pair();
        let budgets = self.budgets_left(step.now);
        Ok(self.engine.decide(&self.table, &budgets, request, step.now, seed, id)?)
    }

    pub(crate) fn create_servers(
        &mut self,
        step: &mut Step<'_>,
        create: CreateServers,
    ) -> Result<Reply, RegionError> {
        let CreateServers { name, request, external } = create;
        names::check_name("server", &name)?;
        request.check()?;
        if let Some(repeated) = self.repeated(&request)? {
            return Ok(Reply::Repeated(repeated));
        }
        let decision = self.decide(step, &request)?;
        step.effects.changes.push(Change::PutDecision(Box::new(decision.clone())));
        step.effects.events.push(Event::Decision(Box::new(decision.clone())));
        let several = request.server_ids.len() > 1;
        let mut servers = Vec::with_capacity(request.server_ids.len());
        for (position, id) in request.server_ids.iter().enumerate() {
            let name = if several { format!("{name}-{}", position + 1) } else { name.clone() };
            servers.push(Server {
                id: *id,
                name,
                project_id: request.project_id.clone(),
                flavor: request.flavor.clone(),
                group_id: request.group_id,
                availability_zone: request.availability_zone.clone(),
                host: None,
                status: ServerStatus::Error,
                external,
                decision_id: Some(decision.id),
                evacuation_id: None,
                created_at: step.now,
                launched_at: None,
                ended_at: None,
                fault: None,
                ignore_hosts: request.ignore_hosts.clone(),
                force_hosts: request.force_hosts.clone(),
                refused_hosts: Vec::new(),
            });
        }
        match &decision.outcome {
            Outcome::Placed(placements) => {
                for (server, placement) in servers.iter_mut().zip(placements) {
                    self.claim(step, server, placement, decision.id)?;
                }
            }
            // Who starts them itself has no use for servers in error.
            Outcome::NoValidHost(_) if external => servers.clear(),
            Outcome::NoValidHost(none) => {
                for server in &mut servers {
                    server.fault = Some(Fault {
                        code: NO_VALID_HOST.to_owned(),
                        message: none.reason.clone(),
                        at: step.now,
                    });
                    self.save_server(step, server.clone());
                }
            }
        }
        Ok(Reply::Created { servers, decision: Box::new(decision) })
    }

    /// The servers of a request that came before, if it did.
    fn repeated(&self, request: &PlacementRequest) -> Result<Option<Vec<Server>>, RegionError> {
        let known: Vec<Server> =
            request.server_ids.iter().filter_map(|id| self.servers.get(id).cloned()).collect();
        if known.is_empty() {
            return Ok(None);
        }
        let same = known.len() == request.server_ids.len()
            && known.iter().all(|s| s.project_id == request.project_id && s.flavor == request.flavor);
        if same {
            Ok(Some(known))
        } else {
            Err(RegionError::Exists {
                what: "server",
                name: known.first().map(|s| s.id.to_string()).unwrap_or_default(),
                next: "a repeated request must be the same; for a new one use new ids",
            })
        }
    }

    /// Writes the claim of a server on its place, and the evacuations that it needs, and starts it if it need not wait.
    pub(crate) fn claim(
        &mut self,
        step: &mut Step<'_>,
        server: &mut Server,
        placement: &Placement,
        decision_id: DecisionId,
    ) -> Result<(), RegionError> {
        server.host = Some(placement.host.clone());
        server.decision_id = Some(decision_id);
        server.fault = None;
        server.status = ServerStatus::Waiting;
        self.save_server(step, server.clone());
        for victim in &placement.victims {
            self.begin_evacuation(step, victim, server, decision_id);
        }
        if !placement.waits_for_room {
            self.start(step, server)?;
        }
        Ok(())
    }

    /// Lets a server begin: its room is free.
    pub(crate) fn start(&mut self, step: &mut Step<'_>, server: &mut Server) -> Result<(), RegionError> {
        let Some(host) = server.host.clone() else {
            return Ok(());
        };
        if server.external {
            server.status = ServerStatus::Reserved;
            server.launched_at = Some(step.now);
            self.save_server(step, server.clone());
            return Ok(());
        }
        let properties = server.flavor.properties()?;
        let start = Start {
            server_id: server.id,
            name: server.name.clone(),
            project_id: server.project_id.clone(),
            flavor: server.flavor.name.clone(),
            resources: properties.resources,
            preemptible: properties.preemptible,
        };
        step.send(&host, Body::Start(start), None);
        server.status = ServerStatus::Building;
        self.building.insert(server.id, step.now.plus(self.config.start_timeout_seconds));
        self.save_server(step, server.clone());
        Ok(())
    }

    /// A server by id, or by name if only one has it.
    ///
    /// # Errors
    /// [`RegionError::NotFound`] or [`RegionError::Ambiguous`].
    pub fn find_server(&self, name: &str) -> Result<&Server, RegionError> {
        if let Some(server) = name.parse::<ServerId>().ok().and_then(|id| self.servers.get(&id)) {
            return Ok(server);
        }
        let named: Vec<&Server> = self.servers.values().filter(|s| s.name == name).collect();
        match named.as_slice() {
            [server] => Ok(server),
            [] => Err(RegionError::NotFound {
                what: "server",
                name: names::shorten(name),
                next: "`ebbtide server list` shows those that are not gone",
            }),
            several => Err(RegionError::Ambiguous {
                what: "servers",
                name: names::shorten(name),
                count: several.len(),
            }),
        }
    }

    pub(crate) fn delete_server(&mut self, step: &mut Step<'_>, id: ServerId) -> Result<Reply, RegionError> {
        let mut server = self.find_server(&id.to_string())?.clone();
        match server.status {
            ServerStatus::Waiting | ServerStatus::Reserved => {
                self.finish(step, &mut server, ServerStatus::Deleted);
                self.spare_victims_of(step, server.id, "the server that needed the room was deleted");
                self.advance_waiting(step, server.host.as_deref());
            }
            ServerStatus::Deleting => {}
            ServerStatus::Error if server.launched_at.is_none() => {
                // It may still be coming up on a host that did not answer in time.
                for host in server.refused_hosts.clone() {
                    step.send(&host, Body::Delete(Delete { server_id: id }), None);
                }
                self.finish(step, &mut server, ServerStatus::Deleted);
            }
            _ => {
                if let Some(host) = server.host.clone() {
                    step.send(&host, Body::Delete(Delete { server_id: id }), None);
                    server.status = ServerStatus::Deleting;
                    self.save_server(step, server.clone());
                } else {
                    self.finish(step, &mut server, ServerStatus::Deleted);
                }
            }
        }
        Ok(Reply::Server(Box::new(server)))
    }

    /// Writes a server that holds no room any more.
    pub(crate) fn finish(&mut self, step: &mut Step<'_>, server: &mut Server, status: ServerStatus) {
        server.status = status;
        server.ended_at = Some(step.now);
        self.save_server(step, server.clone());
    }

    pub(crate) fn release_server(&mut self, step: &mut Step<'_>, id: ServerId) -> Result<Reply, RegionError> {
        let server = self.find_server(&id.to_string())?;
        let evacuation = server
            .evacuation_id
            .and_then(|id| self.evacuations.get(&id))
            .filter(|e| !e.state.is_final() && !e.spare_requested)
            .cloned()
            .ok_or_else(|| {
                RegionError::Conflict(format!(
                    "server {id} is not being evacuated (it is {}); `ebbtide server delete` ends it",
                    server.status
                ))
            })?;
        let release = Release { evacuation_id: evacuation.id, server_id: id };
        step.send(&evacuation.host.clone(), Body::Release(release), None);
        Ok(Reply::Evacuation(Box::new(evacuation)))
    }

    pub(crate) fn adopt_server(&mut self, step: &mut Step<'_>, adopt: AdoptServer) -> Result<Reply, RegionError> {
        names::check_name("server", &adopt.name)?;
        names::check_name("project", &adopt.project_id)?;
        let properties = adopt.flavor.properties()?;
        if let Some(known) = self.servers.get(&adopt.id) {
            return if known.host.as_deref() == Some(&adopt.host) && known.flavor == adopt.flavor {
                Ok(Reply::Server(Box::new(known.clone())))
            } else {
                Err(RegionError::Exists {
                    what: "server",
                    name: adopt.id.to_string(),
                    next: "it is on another host or has another flavor; use a new id",
                })
            };
        }
        let usage = self.table.usage(&adopt.host).ok_or_else(|| RegionError::NotFound {
            what: "host",
            name: names::shorten(&adopt.host),
            next: "`ebbtide host list` shows those whose agents have registered",
        })?;
        for (class, amount) in properties.resources.iter() {
            let free = room::full(&usage, class);
            if adopt.start_now && i64::try_from(amount).unwrap_or(i64::MAX) > free {
                return Err(RegionError::Conflict(format!(
                    "host {} has {free} {class} free, the server needs {amount}",
                    adopt.host
                )));
            }
        }
        let launched_at = adopt.launched_at.unwrap_or(step.now);
        if launched_at > step.now {
            return Err(RegionError::Conflict(format!("launched_at {launched_at} is in the future")));
        }
        let mut server = Server {
            id: adopt.id,
            name: adopt.name,
            project_id: adopt.project_id,
            flavor: adopt.flavor,
            group_id: adopt.group.map(|g| g.id),
            availability_zone: None,
            host: Some(adopt.host),
            status: ServerStatus::Active,
            external: false,
            decision_id: None,
            evacuation_id: None,
            created_at: launched_at,
            launched_at: Some(launched_at),
            ended_at: None,
            fault: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            refused_hosts: Vec::new(),
        };
        if adopt.start_now {
            self.start(step, &mut server)?;
        } else {
            self.save_server(step, server.clone());
        }
        Ok(Reply::Server(Box::new(server)))
    }
}
