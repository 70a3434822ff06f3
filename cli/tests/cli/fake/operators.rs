//! What operators ask of the fake region.

use super::{Answer, Fake, id, refuse};
use ebbtide_proto::v1::admin_server::Admin;
use ebbtide_proto::v1::*;
use tonic::{Code, Request, Response, Status};

#[tonic::async_trait]
impl Admin for Fake {
    async fn list_hosts(&self, _: Request<ListHostsRequest>) -> Answer<ListHostsResponse> {
        Ok(Response::new(ListHostsResponse {
            hosts: self.with(|s| s.hosts.clone()),
        }))
    }

    async fn get_host(&self, request: Request<GetHostRequest>) -> Answer<GetHostResponse> {
        let name = request.into_inner().name;
        let host = self.with(|s| s.hosts.iter().find(|host| host.name == name).cloned());
        let message = format!("no host named {name:?}");
        let host = host.ok_or_else(|| refuse(Code::NotFound, "EB-API-003", &message))?;
        let mut servers = self.with(|s| s.servers.clone());
        servers.retain(|server| server.host == name);
        Ok(Response::new(GetHostResponse {
            host: Some(host),
            servers,
        }))
    }

    async fn disable_host(
        &self,
        request: Request<DisableHostRequest>,
    ) -> Answer<DisableHostResponse> {
        let r = request.into_inner();
        let host = self.with(|state| {
            let host = state
                .hosts
                .iter_mut()
                .find(|host| host.name == r.name)
                .unwrap();
            host.health = "disabled".into();
            host.disabled_reason = r.reason;
            host.clone()
        });
        Ok(Response::new(DisableHostResponse { host: Some(host) }))
    }

    async fn enable_host(&self, request: Request<EnableHostRequest>) -> Answer<EnableHostResponse> {
        let name = request.into_inner().name;
        let host = self.with(|state| {
            let host = state
                .hosts
                .iter_mut()
                .find(|host| host.name == name)
                .unwrap();
            host.health = "up".into();
            host.disabled_reason.clear();
            host.clone()
        });
        Ok(Response::new(EnableHostResponse { host: Some(host) }))
    }

    async fn remove_host(&self, request: Request<RemoveHostRequest>) -> Answer<RemoveHostResponse> {
        let name = request.into_inner().name;
        self.with(|state| state.hosts.retain(|host| host.name != name));
        Ok(Response::new(RemoveHostResponse {
            queue: format!("ebbtide.agent.{name}"),
            queue_deleted: false,
            queue_problem: "the broker refuses to delete it".into(),
            login: format!("agent-{name}"),
        }))
    }

    async fn readmit_host(
        &self,
        _request: Request<ReadmitHostRequest>,
    ) -> Answer<ReadmitHostResponse> {
        Ok(Response::new(ReadmitHostResponse {}))
    }

    async fn reclaim_host(
        &self,
        request: Request<ReclaimHostRequest>,
    ) -> Answer<ReclaimHostResponse> {
        let r = request.into_inner();
        let known = self.with(|s| {
            s.reclaims
                .iter()
                .find(|known| known.host == r.name)
                .cloned()
        });
        if let Some(known) = known.filter(|known| known.owner != r.owner) {
            let message = format!("host {:?} is reclaimed by {:?}", r.name, known.owner);
            return Err(refuse(Code::FailedPrecondition, "EB-REGION-008", &message));
        }
        let mut reclaim = HostReclaim {
            host: r.name,
            owner: r.owner,
            reason: r.reason,
            since: "2026-11-20T10:00:00Z".into(),
            deadline: r.deadline,
            max_cost: r.max_cost,
            cost_unit: "seconds of the started billing period".into(),
            state: "leaving".into(),
            planned: vec![PlannedEviction {
                server_id: id(1),
                name: "spot-1".into(),
                project_id: "lab".into(),
                cost: 600.0,
                grace_seconds: r.deadline_seconds.min(120),
            }],
            staying: vec![StayingServer {
                server_id: id(2),
                name: "pet".into(),
                project_id: "corporate".into(),
                reason: "normal".into(),
                detail: "a normal server; a reclaim evicts preemptible ones only".into(),
                until: String::new(),
            }],
            leaving: 1,
            ..HostReclaim::default()
        };
        let answer = reclaim.clone();
        if !r.dry_run {
            // It is free at the next look.
            (reclaim.state, reclaim.leaving) = ("free".into(), 0);
            let victim = reclaim.planned.remove(0);
            reclaim.evacuations.push(Evacuation {
                id: id(801),
                victim_id: victim.server_id,
                victim_name: victim.name,
                victim_project_id: victim.project_id,
                host: reclaim.host.clone(),
                cause: "reclaim".into(),
                reclaim_owner: reclaim.owner.clone(),
                grace_seconds: victim.grace_seconds,
                cost: victim.cost,
                state: "evacuated".into(),
                ..Evacuation::default()
            });
            self.with(|s| s.reclaims.push(reclaim));
        }
        Ok(Response::new(ReclaimHostResponse {
            reclaim: Some(answer),
        }))
    }

    async fn get_reclaim(&self, request: Request<GetReclaimRequest>) -> Answer<GetReclaimResponse> {
        let name = request.into_inner().name;
        let reclaim = self.with(|s| s.reclaims.iter().find(|known| known.host == name).cloned());
        let message = format!("there is no reclaimed host {name:?}");
        let reclaim = reclaim.ok_or_else(|| refuse(Code::NotFound, "EB-SERVICE-001", &message))?;
        Ok(Response::new(GetReclaimResponse {
            reclaim: Some(reclaim),
        }))
    }

    async fn list_reclaims(&self, _: Request<ListReclaimsRequest>) -> Answer<ListReclaimsResponse> {
        Ok(Response::new(ListReclaimsResponse {
            reclaims: self.with(|s| s.reclaims.clone()),
        }))
    }

    async fn return_host(&self, request: Request<ReturnHostRequest>) -> Answer<ReturnHostResponse> {
        let r = request.into_inner();
        let host = self.with(|state| {
            state.reclaims.retain(|known| known.host != r.name);
            let mut hosts = state.hosts.iter();
            hosts.find(|host| host.name == r.name).cloned()
        });
        let message = format!("no host named {:?}", r.name);
        let host = host.ok_or_else(|| refuse(Code::NotFound, "EB-API-003", &message))?;
        Ok(Response::new(ReturnHostResponse { host: Some(host) }))
    }

    async fn create_flavor(
        &self,
        request: Request<CreateFlavorRequest>,
    ) -> Answer<CreateFlavorResponse> {
        let mut flavor = request.into_inner().flavor.unwrap();
        flavor.preemptible = flavor
            .extra_specs
            .get("ebbtide:preemptible")
            .is_some_and(|value| value == "true");
        self.with(|state| {
            flavor.id = id(700 + u32::try_from(state.flavors.len()).unwrap());
            state.flavors.push(flavor.clone());
        });
        Ok(Response::new(CreateFlavorResponse {
            flavor: Some(flavor),
        }))
    }

    async fn list_flavors(&self, _: Request<ListFlavorsRequest>) -> Answer<ListFlavorsResponse> {
        Ok(Response::new(ListFlavorsResponse {
            flavors: self.with(|s| s.flavors.clone()),
        }))
    }

    async fn get_flavor(&self, request: Request<GetFlavorRequest>) -> Answer<GetFlavorResponse> {
        let flavor = self.with(|state| state.flavor(&request.into_inner().id))?;
        Ok(Response::new(GetFlavorResponse {
            flavor: Some(flavor),
        }))
    }

    async fn delete_flavor(
        &self,
        request: Request<DeleteFlavorRequest>,
    ) -> Answer<DeleteFlavorResponse> {
        let text = request.into_inner().id;
        self.with(|state| {
            state.flavor(&text)?;
            state
                .flavors
                .retain(|flavor| flavor.name != text && flavor.id != text);
            Ok::<_, Status>(())
        })?;
        Ok(Response::new(DeleteFlavorResponse {}))
    }

    async fn put_aggregate(
        &self,
        request: Request<PutAggregateRequest>,
    ) -> Answer<PutAggregateResponse> {
        let mut aggregate = request.into_inner().aggregate.unwrap();
        aggregate.id = id(600);
        self.with(|state| {
            state
                .aggregates
                .retain(|other| other.name != aggregate.name);
            state.aggregates.push(aggregate.clone());
        });
        Ok(Response::new(PutAggregateResponse {
            aggregate: Some(aggregate),
        }))
    }

    async fn list_aggregates(
        &self,
        _: Request<ListAggregatesRequest>,
    ) -> Answer<ListAggregatesResponse> {
        let aggregates = self.with(|state| state.aggregates.clone());
        Ok(Response::new(ListAggregatesResponse { aggregates }))
    }

    async fn delete_aggregate(
        &self,
        request: Request<DeleteAggregateRequest>,
    ) -> Answer<DeleteAggregateResponse> {
        let text = request.into_inner().id;
        self.with(|state| state.aggregates.retain(|a| a.name != text && a.id != text));
        Ok(Response::new(DeleteAggregateResponse {}))
    }

    async fn put_budget(&self, request: Request<PutBudgetRequest>) -> Answer<PutBudgetResponse> {
        let budget = request.into_inner().budget.unwrap();
        self.with(|state| state.budgets.push(budget.clone()));
        Ok(Response::new(PutBudgetResponse {
            budget: Some(budget),
        }))
    }

    async fn list_budgets(&self, _: Request<ListBudgetsRequest>) -> Answer<ListBudgetsResponse> {
        Ok(Response::new(ListBudgetsResponse {
            budgets: self.with(|s| s.budgets.clone()),
        }))
    }

    async fn list_plugins(&self, _: Request<ListPluginsRequest>) -> Answer<ListPluginsResponse> {
        Ok(Response::new(ListPluginsResponse {
            plugins: self.with(|s| s.plugins.clone()),
        }))
    }

    async fn delete_budget(
        &self,
        request: Request<DeleteBudgetRequest>,
    ) -> Answer<DeleteBudgetResponse> {
        let r = request.into_inner();
        self.with(|state| {
            state
                .budgets
                .retain(|b| b.project_id != r.project_id || b.group_id != r.group_id);
        });
        Ok(Response::new(DeleteBudgetResponse {}))
    }

    async fn adopt_server(&self, _: Request<AdoptServerRequest>) -> Answer<AdoptServerResponse> {
        Err(Status::unimplemented("the command does not adopt"))
    }

    async fn audit(&self, _: Request<AuditRequest>) -> Answer<AuditResponse> {
        Ok(Response::new(AuditResponse {
            hosts: 4,
            compared_hosts: 4,
            servers: 10,
            evacuations: 1,
            unsent_messages: 0,
            on_duty: true,
            duty: String::new(),
            findings: vec![Finding {
                code: "EB-AUDIT-104".into(),
                subject: format!("server {}", id(7)),
                what: "host host-B has it (Running), and the region knows of none there".into(),
                next: "if it belongs to no server, end it on the host; else adopt it".into(),
            }],
        }))
    }

    async fn reconcile(&self, request: Request<ReconcileRequest>) -> Answer<ReconcileResponse> {
        Ok(Response::new(ReconcileResponse {
            held: true,
            backup_at: "2026-11-20T11:00:00Z".into(),
            applied: request.into_inner().apply,
            hosts: 4,
            compared_hosts: 4,
            steps: vec![ReconcileStep {
                action: "adopt".into(),
                subject: format!("server {}", id(7)),
                host: "host-B".into(),
                why: "it is running here, and the backup does not have it".into(),
                next: String::new(),
            }],
            obstacles: vec![],
        }))
    }
}
