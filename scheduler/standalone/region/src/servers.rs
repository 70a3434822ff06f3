//! Tenant operations on servers: create, delete, release.

use crate::admin::within_quota;
use crate::transition::Transition;
use crate::{CreateServers, CreatedServers, Ids, Region, RegionError, orphaned_start};
use ebbtide_model::message::{Body, Release, Start};
use ebbtide_model::record::Change;
use ebbtide_model::server::ServerFailure;
use ebbtide_model::{
    CloudEvent, Decision, DecisionId, DecisionOutcome, Evacuation, Placement, PlacementRequest,
    Server, ServerId, ServerStatus, Timestamp, names,
};
use std::collections::BTreeMap;

/// The fault of a server for which there was no valid host.
pub(crate) const NO_VALID_HOST: &str = "EB-FAULT-001";
/// The fault of a server that its host has lost.
pub(crate) const LOST: &str = "EB-FAULT-002";
/// The fault of a preemptible server that was evacuated.
pub(crate) const PREEMPTED: &str = "EB-FAULT-003";

impl Region {
    /// The decision that the region would make with the identifier from `ids`; nothing changes. The
    /// same identifier gives the same random choices.
    ///
    /// # Errors
    /// As [`ebbtide_engine::Engine::decide`].
    pub fn what_if(
        &self,
        now: Timestamp,
        ids: &mut dyn Ids,
        request: &PlacementRequest,
    ) -> Result<Decision, RegionError> {
        self.decide(&mut Transition::new(now, ids), request)
    }

    /// One pass of the engine, which changes nothing.
    pub(crate) fn decide(
        &self,
        transition: &mut Transition<'_>,
        request: &PlacementRequest,
    ) -> Result<Decision, RegionError> {
        self.decide_on(transition, request, None)
    }

    /// As [`Self::decide`], for a server that may only be on these hosts.
    pub(crate) fn decide_on(
        &self,
        transition: &mut Transition<'_>,
        request: &PlacementRequest,
        hosts: Option<&[&str]>,
    ) -> Result<Decision, RegionError> {
        request.check()?;
        let id = DecisionId(transition.uuid());
        // The seed comes from the decision's id, so that a decision with random choices can be
        // repeated.
        let (_, seed) = id.0.as_u64_pair();
        let budgets = self.remaining_budgets(transition.now);
        let table = &self.table;
        Ok(match hosts {
            None => self
                .engine
                .decide(table, &budgets, request, transition.now, seed, id)?,
            Some(hosts) => {
                self.engine
                    .decide_on(table, &budgets, request, hosts, transition.now, seed, id)?
            }
        })
    }

    pub(crate) fn create_servers(
        &mut self,
        transition: &mut Transition<'_>,
        create: CreateServers,
    ) -> Result<CreatedServers, RegionError> {
        names::check_name("server", &create.name)?;
        create.request.check()?;
        if let Some(repeated) = self.repeated(&create)? {
            return Ok(CreatedServers::Repeated(repeated));
        }
        let project = &create.request.project_id;
        let used = self.servers.count_of(project) as usize;
        let requested = create.request.server_ids.len();
        // Checked before the decision, because a refused request leaves a server in error, too.
        within_quota(
            "servers (those in error count)",
            project,
            used,
            requested,
            create.quota,
        )?;
        self.check_bid(&create.request.flavor, create.max_price)?;
        self.note_leftovers();
        let improvements = self.improvements;
        let speculated = transition.speculation.take();
        let speculated = speculated.and_then(|speculation| self.still_right(speculation));
        let foreseen = speculated.is_some();
        let decision = match speculated {
            Some(decision) => decision,
            None => self.decide(transition, &create.request)?,
        };
        self.in_shadow(transition, &create.request, &decision);
        transition
            .effects
            .changes
            .push(Change::PutDecision(Box::new(decision.clone())));
        transition
            .effects
            .events
            .push(CloudEvent::Decision(Box::new(decision.clone())));
        self.open_price(transition, &create.request.flavor);
        let mut servers = self.servers_for(&create, &decision, transition.now);
        match &decision.outcome {
            DecisionOutcome::Placed(placements) => {
                for (server, placement) in servers.iter_mut().zip(placements) {
                    self.claim(transition, server, placement, decision.id);
                }
            }
            // A caller that starts its servers itself has no use for servers in error.
            DecisionOutcome::NoValidHost(_) if create.external => servers.clear(),
            DecisionOutcome::NoValidHost(none) => {
                // One server in error stands for the whole request. All of them would carry the
                // same fault, and a thousand would cost the region a thousand times as much.
                servers.truncate(1);
                for server in &mut servers {
                    server.fault = Some(ServerFailure {
                        code: NO_VALID_HOST.to_owned(),
                        message: match requested {
                            1 => none.reason.clone(),
                            _ => format!(
                                "{}; none of the {requested} servers of this request was created",
                                none.reason
                            ),
                        },
                        at: transition.now,
                    });
                    self.save_server(transition, server.clone());
                }
            }
        }
        if foreseen {
            // Later requests of the same batch were decided with this one in view.
            self.improvements = improvements;
            self.speculating.emptied.clear();
        }
        Ok(CreatedServers::New {
            servers,
            decision: Box::new(decision),
        })
    }

    /// The servers that a request asks for, before they are placed.
    pub(crate) fn servers_for(
        &self,
        create: &CreateServers,
        decision: &Decision,
        now: Timestamp,
    ) -> Vec<Server> {
        let request = &create.request;
        let several = request.server_ids.len() > 1;
        let ids = request.server_ids.iter().enumerate();
        ids.map(|(position, id)| Server {
            id: *id,
            name: match several {
                true => format!("{}-{}", create.name, position + 1),
                false => create.name.clone(),
            },
            project_id: request.project_id.clone(),
            flavor: request.flavor.clone(),
            group_id: request.group_id,
            availability_zone: request.availability_zone.clone(),
            host: None,
            status: ServerStatus::Error,
            external: create.external,
            decision_id: Some(decision.id),
            evacuation_id: None,
            created_at: now,
            launched_at: None,
            ended_at: None,
            fault: None,
            ignore_hosts: request.ignore_hosts.clone(),
            force_hosts: request.force_hosts.clone(),
            refused_hosts: Vec::new(),
            max_price: create.max_price,
            left_hosts: BTreeMap::new(),
            last_message_at: None,
            reported_at: None,
            starts: 0,
            comeback: None,
        })
        .collect()
    }

    /// True if this request has not been made before.
    pub(crate) fn is_new(&self, create: &CreateServers) -> bool {
        matches!(self.repeated(create), Ok(None))
    }

    /// The servers of a repeated request; `None` for a new one.
    ///
    /// A server of the request that went recently is not created again: a caller that repeats a
    /// request did not get the answer, and does not know that the server is gone. A reserved place
    /// (`external`) may be requested again, because the same caller released it.
    fn repeated(&self, create: &CreateServers) -> Result<Option<Vec<Server>>, RegionError> {
        let (request, external) = (&create.request, create.external);
        let ids = &request.server_ids;
        let known: Vec<Server> = ids
            .iter()
            .filter_map(|id| self.servers.get(id).cloned())
            .collect();
        let gone = ids
            .iter()
            .filter(|id| !external && self.servers.deleted().contains(**id))
            .count();
        if known.is_empty() && gone == 0 {
            return Ok(None);
        }
        let refused = |next| {
            let first = known.first().map(|s| s.id).or_else(|| ids.first().copied());
            let name = first.map(|id| id.to_string()).unwrap_or_default();
            Err(RegionError::Exists {
                what: "server",
                name,
                next,
            })
        };
        let same = |s: &Server| {
            s.project_id == request.project_id
                && s.flavor == request.flavor
                && s.group_id == request.group_id
                && s.external == external
                && s.max_price == create.max_price
        };
        // A refused request left only its first server.
        let refused_before = ids.first() == known.first().map(|s| &s.id)
            && known.len() == 1
            && known[0].host.is_none()
            && known[0].starts == 0
            && known[0]
                .fault
                .as_ref()
                .is_some_and(|f| f.code == NO_VALID_HOST);
        if known.is_empty() {
            refused("it is gone already; for a new server use a new id")
        } else if (refused_before || known.len() + gone == ids.len()) && known.iter().all(same) {
            Ok(Some(known))
        } else {
            refused("a repeated request must be the same; for a new one use new ids")
        }
    }

    /// Writes the claim of a server on its host and the evacuations that it needs. Starts the
    /// server if it need not wait.
    pub(crate) fn claim(
        &mut self,
        transition: &mut Transition<'_>,
        server: &mut Server,
        placement: &Placement,
        decision_id: DecisionId,
    ) {
        server.host = Some(placement.host.clone());
        server.decision_id = Some(decision_id);
        server.fault = None;
        server.status = ServerStatus::Waiting;
        self.save_server(transition, server.clone());
        for victim in &placement.victims {
            self.begin_preemption(transition, victim, server, decision_id);
        }
        if !placement.waits_for_room {
            self.start(transition, server);
        }
    }

    /// Starts a server whose capacity is free.
    pub(crate) fn start(&mut self, transition: &mut Transition<'_>, server: &mut Server) {
        let Some(host) = server.host.clone() else {
            return;
        };
        if server.external {
            server.status = ServerStatus::Reserved;
            server.launched_at = Some(transition.now);
            self.save_server(transition, server.clone());
            return;
        }
        let properties = match server.flavor.properties() {
            Ok(properties) => properties,
            // The flavor was readable when the server was created. The claim ends at its time
            // limit.
            Err(error) => return transition.ignored(format!("server {}: {error}", server.id)),
        };
        server.starts = server.starts.saturating_add(1);
        let start = Start {
            server_id: server.id,
            name: server.name.clone(),
            project_id: server.project_id.clone(),
            flavor: server.flavor.name.clone(),
            resources: properties.resources,
            preemptible: properties.preemptible,
            attempt: server.starts,
            resume: server.resumes(),
            storage: server.saved_storage(),
        };
        let sent = transition.send(&host, Body::Start(start), None, server.last_message_at);
        server.last_message_at = Some(sent.time);
        server.status = ServerStatus::Building;
        self.save_server(transition, server.clone());
        let until = transition.now.plus(self.config.start_timeout_seconds);
        self.servers.calls_mut().sent(server.id, sent.id, until);
    }

    /// A server by id, or by name if only one server has the name.
    ///
    /// # Errors
    /// [`RegionError::NotFound`] or [`RegionError::Ambiguous`].
    pub fn find_server(&self, name: &str) -> Result<&Server, RegionError> {
        if let Some(server) = name
            .parse::<ServerId>()
            .ok()
            .and_then(|id| self.servers.get(&id))
        {
            return Ok(server);
        }
        let named: Vec<&Server> = self
            .servers
            .values()
            .filter(|s| s.name == name && !orphaned_start::is_orphaned_start(s))
            .collect();
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

    fn by_id(&self, id: ServerId) -> Result<&Server, RegionError> {
        self.servers.get(&id).ok_or_else(|| RegionError::NotFound {
            what: "server",
            name: id.to_string(),
            next: "`ebbtide server list` shows those that are not gone",
        })
    }

    pub(crate) fn delete_server(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
    ) -> Result<Server, RegionError> {
        let mut server = self.by_id(id)?.clone();
        match (server.status, server.host.clone()) {
            (ServerStatus::Deleting, _) => {}
            // No agent knows the server.
            (ServerStatus::Waiting | ServerStatus::Reserved, _) | (_, None) => {
                self.finish(transition, &mut server, ServerStatus::Deleted);
            }
            (_, Some(host)) => {
                server.status = ServerStatus::Deleting;
                self.save_server(transition, server.clone());
                self.send_delete(transition, &server, &host);
            }
        }
        Ok(server)
    }

    /// Saves a server that does not hold capacity any more.
    pub(crate) fn finish(
        &mut self,
        transition: &mut Transition<'_>,
        server: &mut Server,
        status: ServerStatus,
    ) {
        server.status = status;
        server.ended_at = Some(transition.now);
        self.save_server(transition, server.clone());
    }

    pub(crate) fn release_server(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
    ) -> Result<Evacuation, RegionError> {
        let server = self.by_id(id)?;
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
        let release = Release {
            evacuation_id: evacuation.id,
            server_id: id,
        };
        let said = self.last_message_at(id);
        transition.send(&evacuation.host, Body::Release(release), None, said);
        Ok(evacuation)
    }
}
