//! Decisions, explanations, event streams.

use super::request::{REQUEST_ID, limit, optional, parsed, required};
use super::servers::CREATE;
use super::{ApiHandlers, convert, guard};
use crate::cloud::Standalone;
use crate::error::ServiceError;
use crate::region_actor::{SequencedEvent, not_read};
use ebbtide_model::{CloudEvent, Decision, DecisionId, Server, ServerId, ServerStatus, names};
use ebbtide_proto::v1;
use ebbtide_region::{CreateServers, CreatedServers, Region};
use ebbtide_store::DecisionFilter;
use futures::{Stream, StreamExt};
use std::pin::Pin;
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tonic::{Request, Response, Status};

impl ApiHandlers {
    /// Sends a request for servers to the region; a repeated one returns the decision of the first
    /// time.
    pub(super) async fn create(
        &self,
        region: &Standalone,
        create: CreateServers,
    ) -> Result<(Vec<Server>, Decision), ServiceError> {
        match region.region_actor.handle(create).await? {
            CreatedServers::New { servers, decision } => Ok((servers, *decision)),
            CreatedServers::Repeated(servers) => {
                let id = servers.iter().find_map(|s| s.decision_id);
                let decision = match id {
                    Some(id) => region.store.decision(id).await.map_err(|e| not_read(&e))?,
                    None => None,
                };
                let decision = decision.ok_or_else(|| ServiceError::NotFound {
                    what: "decision",
                    name: "of the servers with these ids".to_owned(),
                    next: "they were adopted, not scheduled; use new ids",
                })?;
                Ok((servers, decision))
            }
        }
    }

    /// Waits until none of the servers waits for capacity.
    async fn settled(
        &self,
        region: &Standalone,
        mut servers: Vec<Server>,
        mut events: broadcast::Receiver<SequencedEvent>,
    ) -> Result<Vec<Server>, ServiceError> {
        while servers.iter().any(|s| s.status == ServerStatus::Waiting) {
            let told = tokio::select! {
                told = events.recv() => told,
                () = self.stop.cancelled() => return Err(ServiceError::Stopping),
            };
            match told {
                Ok(SequencedEvent {
                    event: CloudEvent::Server(new),
                    ..
                }) => {
                    if let Some(known) = servers.iter_mut().find(|s| s.id == new.id) {
                        *known = *new;
                    }
                }
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    let ids: Vec<ServerId> = servers.iter().map(|s| s.id).collect();
                    let look = move |region: &Region| -> Vec<Server> {
                        ids.iter()
                            .filter_map(|id| region.server(*id).cloned())
                            .collect()
                    };
                    servers = region.region_actor.read(look).await?;
                }
                Err(broadcast::error::RecvError::Closed) => return Err(ServiceError::Stopping),
            }
        }
        Ok(servers)
    }

    async fn find_decision(&self, id: &str) -> Result<Decision, ServiceError> {
        let missing = || ServiceError::NotFound {
            what: "decision",
            name: names::shorten(id),
            next: "`ebbtide decision list` shows the last ones; a server's id or name works, too",
        };
        let cloud = &self.api.cloud;
        if id.starts_with(REQUEST_ID) {
            let filter = DecisionFilter {
                request_id: Some(id.to_owned()),
                limit: 1,
                ..DecisionFilter::default()
            };
            let found = cloud.decisions(&filter).await?.pop();
            return found.ok_or_else(missing);
        }
        let uuid: Option<uuid::Uuid> = id.parse().ok();
        if let Some(uuid) = uuid {
            let found = match cloud.decision(DecisionId(uuid)).await? {
                Some(decision) => Some(decision),
                None => cloud.decision_for_server(ServerId(uuid)).await?,
            };
            return found.ok_or_else(missing);
        }
        let listed = self.server_by_name(id).await?;
        let found = match listed.server.decision_id {
            Some(decision) => cloud.decision(decision).await?,
            None => cloud.decision_for_server(listed.server.id).await?,
        };
        found.ok_or_else(missing)
    }
}

fn servers_on_the_wire(servers: &[Server]) -> Vec<v1::Server> {
    servers.iter().map(|s| convert::server(s, None)).collect()
}

type Events = Pin<Box<dyn Stream<Item = Result<v1::WatchEvent, Status>> + Send>>;

#[tonic::async_trait]
impl v1::scheduler_server::Scheduler for ApiHandlers {
    async fn select_destinations(
        &self,
        request: Request<v1::SelectDestinationsRequest>,
    ) -> Result<Response<v1::SelectDestinationsResponse>, Status> {
        let region = self.api.standalone(CREATE)?;
        let wire = request.into_inner();
        let request = self.api.placement_request(wire.request).await?;
        let name = request
            .server_ids
            .first()
            .map(|id| format!("claim-{id}"))
            .unwrap_or_default();
        // Subscribe before the claim, so that no event is missed.
        let events = region.region_actor.watch();
        let (mut servers, decision) = self
            .create(
                region,
                CreateServers {
                    quota: None,
                    max_price: None,
                    name,
                    request,
                    external: true,
                },
            )
            .await?;
        if wire.wait_for_room {
            servers = self.settled(region, servers, events).await?;
        }
        Ok(Response::new(v1::SelectDestinationsResponse {
            decision: Some(convert::decision(&decision)),
            servers: servers_on_the_wire(&servers),
        }))
    }

    async fn what_if(
        &self,
        request: Request<v1::WhatIfRequest>,
    ) -> Result<Response<v1::WhatIfResponse>, Status> {
        let who = guard::caller(&request)?;
        let unresolved = super::request::what_if(request.into_inner())?;
        let (decision, notices) = self.api.cloud.what_if(unresolved).await?;
        let decision = guard::visible_to(decision, &who);
        Ok(Response::new(v1::WhatIfResponse {
            decision: Some(convert::decision(&decision)),
            notices,
            counterfactuals: Some(convert::counterfactuals(&decision)),
        }))
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        let wire = request.into_inner();
        let id = required("id", optional(wire.id))?;
        let mut decision = self.find_decision(&id).await?;
        if !wire.as_project.is_empty() {
            if decision.request.project_id != wire.as_project {
                // A decision about another tenant does not exist for this one.
                return Err(ServiceError::NotFound {
                    what: "decision",
                    name: names::shorten(&id),
                    next: "it may belong to another project",
                }
                .into());
            }
            decision = decision.for_tenant(&wire.as_project);
        }
        Ok(Response::new(v1::ExplainResponse {
            decision: Some(convert::decision(&decision)),
            counterfactuals: Some(convert::counterfactuals(&decision)),
        }))
    }

    async fn list_decisions(
        &self,
        request: Request<v1::ListDecisionsRequest>,
    ) -> Result<Response<v1::ListDecisionsResponse>, Status> {
        let who = guard::caller(&request)?;
        let wire = request.into_inner();
        let limit = limit(wire.limit, 20, 1000);
        let filter = DecisionFilter {
            project_id: None,
            request_id: optional(wire.request_id),
            server_id: parsed("server_id", &wire.server_id)?,
            from: parsed("from", &wire.from)?,
            before: parsed("before", &wire.before)?,
            refused_only: wire.refused_only,
            limit,
            marker: parsed("marker", &wire.marker)?,
        };
        // A tenant's list combines those of its projects; other callers get one list of all.
        let projects: Vec<Option<String>> = if who.is_tenant() && wire.project_id.is_empty() {
            who.projects.iter().cloned().map(Some).collect()
        } else {
            let project = who.project(&wire.project_id, "list decisions");
            vec![optional(project.map_err(ServiceError::Access)?)]
        };
        let mut decisions = Vec::new();
        for project_id in projects {
            let filter = DecisionFilter {
                project_id,
                ..filter.clone()
            };
            decisions.extend(self.api.cloud.decisions(&filter).await?);
        }
        decisions.sort_by_key(|decision| std::cmp::Reverse(decision.at));
        decisions.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let decisions: Vec<Decision> = decisions
            .into_iter()
            .map(|decision| guard::visible_to(decision, &who))
            .collect();
        Ok(Response::new(v1::ListDecisionsResponse {
            decisions: decisions.iter().map(convert::decision_short).collect(),
        }))
    }

    type WatchStream = Events;

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Events>, Status> {
        let who = guard::caller(&request)?;
        let slot = self.gate.watch(&who).map_err(ServiceError::Access)?;
        let project = request.into_inner().project_id;
        let told = BroadcastStream::new(self.api.cloud.events());
        let events = told.filter_map(move |told| {
            let sent = match told {
                Ok(told) if project.is_empty() || convert::concerns(&told.event, &project) => {
                    guard::event(&told.event, &who).map(|event| v1::WatchEvent {
                        at: told.at.to_string(),
                        sequence: told.sequence,
                        event: Some(event),
                    })
                }
                Ok(_) => None,
                Err(BroadcastStreamRecvError::Lagged(missed)) => Some(v1::WatchEvent {
                    event: Some(v1::watch_event::Event::Lagged(missed)),
                    ..v1::WatchEvent::default()
                }),
            };
            // The stream is counted as long as it lives.
            let _taken = &slot;
            std::future::ready(sent.map(Ok))
        });
        Ok(Response::new(Box::pin(
            events.take_until(self.stop.clone().cancelled_owned()),
        )))
    }

    async fn region_summary(
        &self,
        _request: Request<v1::RegionSummaryRequest>,
    ) -> Result<Response<v1::RegionSummaryResponse>, Status> {
        let summary = self.api.cloud.summary().await?;
        let totals = &summary.totals;
        let hosts = |health: &str| totals.hosts.get(health).copied().unwrap_or(0);
        Ok(Response::new(v1::RegionSummaryResponse {
            hosts_up: hosts("up"),
            hosts_down: hosts("down"),
            hosts_disabled: hosts("disabled"),
            servers: totals
                .servers
                .iter()
                .map(|(status, n)| ((*status).to_owned(), *n))
                .collect(),
            resources: totals
                .totals
                .iter()
                .map(|u| convert::usage(u, totals.inventories.get(&u.class)))
                .collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: summary.policy,
            cost_module: summary.cost_module,
            bus: summary.bus,
            bus_connected: summary.bus_connected,
            database: summary.database,
        }))
    }
}
