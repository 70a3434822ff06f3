//! Hosts that an outside owner takes back: the ledger, Nova's services, notices and spares.

use super::agents::Agent;
use super::full_host::{VICTIM, on_host, victim};
use super::preemptions::Stage;
use super::reader;
use crate::evacuate::PreemptionDriver;
use crate::facts::Facts;
use crate::preemption::{Preemption, PreemptionState, WithdrawalReason};
use crate::reader::CloudReader;
use crate::reclaims::{
    ComputeServiceState, ComputeServices, HostReclaims, ReclaimError, ReclaimRecord,
};
use async_trait::async_trait;
use ebbtide_engine::HostReclaim;
use ebbtide_harness::SharedServers;
use ebbtide_model::{
    BudgetScope, DisruptionBudget, EvacuationCause, Reclaim, ReclaimDeadline, ReclaimTerms,
    Seconds, ServerId, StayReason,
};
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::{CloudDatabases as Nova, NOVA_34};
use ebbtide_openstack::OpenStackError;
use ebbtide_runtime::clock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const HOST: &str = "compute1";

/// Nova's services: one nova-compute.
#[derive(Default)]
struct Services {
    disabled: Mutex<Option<String>>,
    refuses: Mutex<bool>,
}

impl Services {
    fn disabled(&self) -> Option<String> {
        self.disabled.lock().unwrap().clone()
    }

    fn set(&self, reason: Option<&str>) {
        *self.disabled.lock().unwrap() = reason.map(str::to_owned);
    }
}

#[async_trait]
impl ComputeServices for Services {
    async fn state(&self, host: &str) -> Result<Option<ComputeServiceState>, OpenStackError> {
        Ok((host == HOST).then(|| ComputeServiceState {
            id: "7".to_owned(),
            disabled: self.disabled(),
        }))
    }

    async fn set_disabled(&self, id: &str, reason: Option<&str>) -> Result<(), OpenStackError> {
        assert_eq!(id, "7");
        if *self.refuses.lock().unwrap() {
            return Err(OpenStackError::Forbidden {
                service: "compute".to_owned(),
                what: "PUT /os-services/7".to_owned(),
                text: "the policy does not allow it".to_owned(),
            });
        }
        self.set(reason);
        Ok(())
    }
}

/// A full host and what reclaims it.
struct LentHost {
    stage: Stage,
    services: Arc<Services>,
    reclaims: HostReclaims,
    reader: CloudReader,
}

fn of_services(
    facts: &Facts,
    preempting: &PreemptionDriver,
    services: &Arc<Services>,
) -> HostReclaims {
    let services: Arc<dyn ComputeServices> = services.clone();
    HostReclaims::new(facts, preempting, Ok(services))
}

impl LentHost {
    async fn new() -> Self {
        Self::of(Stage::new().await).await
    }

    async fn of(stage: Stage) -> Self {
        let services = Arc::new(Services::default());
        let selector = &stage.bench.selector;
        let reclaims = of_services(&selector.facts, &selector.preempting, &services);
        let reader = reader(selector).with_reclaims(reclaims.clone());
        Self {
            stage,
            services,
            reclaims,
            reader,
        }
    }

    async fn reclaim(&self, terms: ReclaimTerms) -> Result<HostReclaim, ReclaimError> {
        self.reader.reclaim_host(HOST, terms, false).await
    }

    async fn give_back(&self) {
        self.reader.return_host(HOST, false).await.unwrap();
    }

    async fn shown(&self) -> HostReclaim {
        let mut all = self.reader.host_reclaims(Some(HOST)).await.unwrap();
        all.pop().expect("it is reclaimed")
    }

    async fn records(&self) -> Vec<Preemption> {
        let rows = self.stage.ledger.rows_of_late(3_600_000).await.unwrap();
        let documents = rows.into_iter().map(|row| row.document);
        documents
            .map(|document| serde_json::from_value(document).unwrap())
            .collect()
    }

    async fn budget(&self, max_victims: u32) {
        let rows = &self.stage.bench.nova.cell;
        rows.sql("UPDATE instances SET project_id = 'p1'").await;
        self.stage.bench.look().await;
        let budget = DisruptionBudget {
            scope: BudgetScope::Project("p1".to_owned()),
            max_victims,
            window: Seconds(3600),
        };
        assert!(self.reader.put_budget(&budget).await.unwrap());
        self.stage.first.freshen().await.unwrap();
    }
}

fn terms() -> ReclaimTerms {
    ReclaimTerms {
        owner: "slurm:1".to_owned(),
        reason: "job 1234".to_owned(),
        deadline: ReclaimDeadline::None,
        max_cost: None,
    }
}

async fn every_preemptible_server_leaves_once_and_by_the_deadline(stage: Stage) {
    let mut lent = LentHost::of(stage).await;
    let patient = [("grace_seconds", "300")];
    lent.stage.has_flavor_with(1, &patient).await;
    let second_facts = lent.stage.facts().await;
    let known = second_facts.clone();
    let second = lent.stage.scheduler_with("scheduler-2", known).await;
    let second = of_services(
        &second_facts,
        &PreemptionDriver::ready(second),
        &lent.services,
    );
    let within = ReclaimTerms {
        deadline: ReclaimDeadline::After(Seconds(200)),
        ..terms()
    };
    let begun = lent.reclaim(within).await.unwrap();
    assert_eq!(begun.reclaim.charged.len(), 4);
    let servers = lent.reader.servers().into_iter();
    let names: BTreeMap<ServerId, String> = servers.map(|one| (one.id, one.name)).collect();
    let reason = "reclaimed by slurm:1: job 1234";
    assert_eq!(lent.services.disabled().as_deref(), Some(reason));
    // Another scheduler, and the same one again, begin nothing twice.
    let (one, two) = tokio::join!(second.look(), lent.reclaims.look());
    one.unwrap();
    two.unwrap();
    let mut agent = lent.stage.take_agent();
    let mut told = BTreeSet::new();
    for _ in 0..4 {
        let notice = agent.notice().await;
        let grace = notice.grace_seconds.0;
        let is_patient = notice.server_id.0 == victim(1);
        assert!((190..=200).contains(&grace) == is_patient, "{notice:?}");
        told.insert(notice.server_id);
        let n = (1..=4).find(|n| victim(*n) == notice.server_id.0);
        lent.stage.is_deleted(n.expect("one of the four")).await;
        agent.gone(&notice).await;
    }
    assert_eq!(told.len(), 4);
    let records = lent.records().await;
    assert_eq!(records.len(), 4);
    for record in records {
        assert_eq!(record.cause, EvacuationCause::Reclaim);
        assert!(record.newcomers.is_empty());
        assert_eq!(
            lent.stage.end_of(record.id).await.state,
            PreemptionState::Done
        );
    }
    assert_eq!(lent.stage.posts().len(), 0, "Nova has freed what they had");
    // A scheduler whose memory is late begins nothing new.
    second.look().await.unwrap();
    assert_eq!(lent.records().await.len(), 4);
    let facts = &lent.stage.bench.selector.facts;
    for n in 1..=4 {
        facts.write(|cloud| cloud.remove_instance(victim(n)));
    }
    // Nova does not know the servers any more; the record does.
    let evacuations = lent.reader.evacuations(true).await.unwrap();
    assert_eq!(evacuations.len(), 4);
    for evacuation in evacuations {
        let id = evacuation.victim_id;
        assert_eq!(evacuation.cause, EvacuationCause::Reclaim);
        assert_eq!(evacuation.reclaim_owner.as_deref(), Some("slurm:1"));
        assert_eq!(evacuation.victim_name, names[&id]);
        assert_eq!(evacuation.cost, begun.reclaim.charged[&id]);
        assert_eq!(evacuation.host, HOST);
    }
    let free = lent.shown().await;
    assert_eq!((free.eviction.leave.len(), free.eviction.stay), (0, vec![]));
    lent.give_back().await;
    assert_eq!(lent.services.disabled(), None);
    assert!(lent.reader.host_reclaims(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_reclaimed_host_is_emptied_by_the_deadline() {
    every_preemptible_server_leaves_once_and_by_the_deadline(Stage::new().await).await;
}

#[tokio::test]
async fn a_reclaimed_host_is_emptied_on_mariadb_as_well() {
    let ledger = SharedServers::mariadb().await.expect("a MariaDB server");
    let nova = Nova::mariadb(NOVA_34).await;
    let bench = super::Bench::over(nova, 1, Options::default()).await;
    let full = super::full_host::FullHost::over(bench, ledger.url().to_owned()).await;
    every_preemptible_server_leaves_once_and_by_the_deadline(Stage::of(full).await).await;
}

#[tokio::test]
async fn a_host_that_is_returned_by_another_scheduler_spares_its_victims() {
    let mut lent = LentHost::new().await;
    for n in 1..=4 {
        let patient = [("grace_seconds", "300")];
        lent.stage.has_flavor_with(n, &patient).await;
    }
    let second_facts = lent.stage.facts().await;
    let known = second_facts.clone();
    let second = lent.stage.scheduler_with("scheduler-2", known).await;
    let second = of_services(
        &second_facts,
        &PreemptionDriver::ready(second),
        &lent.services,
    );
    lent.reclaim(terms()).await.unwrap();
    let mut agent = lent.stage.take_agent();
    let mut notices = Vec::new();
    for _ in 0..4 {
        notices.push(agent.notice().await);
    }
    second.give_back(HOST, false).await.unwrap();
    assert_eq!(lent.services.disabled(), None);
    for _ in 0..4 {
        let spare = agent.spare().await;
        let mut of = notices.iter();
        let notice = of.find(|notice| notice.evacuation_id == spare.evacuation_id);
        agent.spared(notice.expect("it had a notice")).await;
    }
    for record in lent.records().await {
        let end = lent.stage.end_of(record.id).await;
        assert_eq!(end.state, PreemptionState::Withdrawn);
        assert_eq!(end.withdrawal, Some(WithdrawalReason::HostReturned));
    }
    for n in 1..=4 {
        assert_eq!(lent.stage.has(victim(n)), on_host(&VICTIM));
    }
    assert_eq!(lent.stage.posts().len(), 0, "Placement was not touched");
    lent.give_back().await;
    // The owner takes it again: the same life may end for the later reclaim.
    lent.reclaim(terms()).await.unwrap();
    agent.notice().await;
}

#[tokio::test]
async fn a_disruption_budget_and_the_maximum_cost_limit_a_reclaim() {
    let mut lent = LentHost::new().await;
    lent.budget(1).await;
    lent.reclaim(terms()).await.unwrap();
    let stay = lent.shown().await.eviction.stay;
    let why: Vec<StayReason> = stay.into_iter().map(|(_, why)| why).collect();
    assert_eq!(why, [StayReason::Budget; 3]);
    lent.reclaims.look().await.unwrap();
    assert_eq!(lent.records().await.len(), 1);
    lent.stage.take_agent().notice().await;

    let cheap = LentHost::new().await;
    let preview = cheap
        .reader
        .reclaim_host(HOST, terms(), true)
        .await
        .unwrap();
    let (_, least) = preview.eviction.leave[0];
    let limited = ReclaimTerms {
        // Costs grow with the time.
        max_cost: Some(least + 60.0),
        ..terms()
    };
    let begun = cheap.reclaim(limited).await.unwrap();
    let (count, cost) = (begun.reclaim.charged.len(), begun.reclaim.cost());
    assert_eq!(cheap.records().await.len(), count);
    assert!(cost <= least + 60.0, "{cost}");
    let held = begun.eviction.stay.iter();
    let held = held.filter(|(_, why)| matches!(why, StayReason::MaxCost { .. }));
    assert_eq!(held.count(), 4 - count);
}

#[tokio::test]
async fn a_preview_changes_nothing_and_wrong_requests_are_refused() {
    let lent = LentHost::new().await;
    let preview = lent.reader.reclaim_host(HOST, terms(), true).await.unwrap();
    assert_eq!(preview.eviction.leave.len(), 4);
    assert_eq!(lent.services.disabled(), None);
    assert!(lent.records().await.is_empty());
    let unknown = lent.reader.reclaim_host("compute9", terms(), false).await;
    assert!(
        matches!(unknown, Err(ReclaimError::NoHost(_))),
        "{unknown:?}"
    );
    let wrong = ReclaimTerms {
        owner: String::new(),
        ..terms()
    };
    let wrong = lent.reclaim(wrong).await;
    assert!(matches!(wrong, Err(ReclaimError::Invalid(_))), "{wrong:?}");
    lent.reclaim(terms()).await.unwrap();
    let other = ReclaimTerms {
        owner: "maintenance".to_owned(),
        ..terms()
    };
    let other = lent.reclaim(other).await;
    assert!(
        matches!(other, Err(ReclaimError::Reclaimed(_))),
        "{other:?}"
    );
    let again = lent.reclaim(terms()).await.unwrap();
    assert_eq!(again.reclaim, lent.shown().await.reclaim);
    assert_eq!(lent.records().await.len(), 4);
}

#[tokio::test]
async fn if_nova_refuses_nothing_has_begun() {
    let lent = LentHost::new().await;
    *lent.services.refuses.lock().unwrap() = true;
    let refused = lent.reclaim(terms()).await;
    assert!(
        matches!(refused, Err(ReclaimError::Cloud(_))),
        "{refused:?}"
    );
    assert!(lent.stage.ledger.reclaims().await.unwrap().is_empty());
    assert!(lent.records().await.is_empty());
}

#[tokio::test]
async fn a_scheduler_finishes_what_another_one_had_begun() {
    let lent = LentHost::new().await;
    let ledger = &lent.stage.ledger;
    let mut record = ReclaimRecord::new(Reclaim::new(terms(), None, clock::now()));
    let document = record.document();
    assert!(ledger.put_reclaim(HOST, None, &document).await.unwrap());
    lent.reclaims.look().await.unwrap();
    assert!(lent.services.disabled().is_some(), "Nova had not been told");
    assert_eq!(lent.records().await.len(), 4);
    let row = ledger.reclaim(HOST).await.unwrap().unwrap();
    record = ReclaimRecord::read(&row).unwrap();
    record.returned = Some(serde_json::from_str(r#"{"keep_disabled": true}"#).unwrap());
    let known = Some(row.version);
    let document = record.document();
    assert!(ledger.put_reclaim(HOST, known, &document).await.unwrap());
    lent.reclaims.look().await.unwrap();
    let kept = lent.services.disabled();
    assert_eq!(kept.as_deref(), Some("returned by slurm:1"));
    assert!(ledger.reclaims().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_operators_reason_comes_back_with_the_host() {
    let lent = LentHost::new().await;
    lent.services.set(Some("new memory"));
    lent.reclaim(terms()).await.unwrap();
    let reason = "reclaimed by slurm:1: job 1234";
    assert_eq!(lent.services.disabled().as_deref(), Some(reason));
    lent.give_back().await;
    assert_eq!(lent.services.disabled().as_deref(), Some("new memory"));
}

#[tokio::test]
async fn servers_of_a_silent_host_and_locked_ones_leave_later() {
    let mut lent = LentHost::new().await;
    drop(lent.stage.take_agent());
    lent.stage.sets(2, "locked = 1, locked_by = 'owner'").await;
    lent.stage.bench.look().await;
    lent.reclaim(terms()).await.unwrap();
    let expected = |n: i64| match n {
        2 => (ServerId(victim(n)), StayReason::Busy),
        n => (ServerId(victim(n)), StayReason::HostSilent),
    };
    let stay: Vec<_> = (1..=4).map(expected).collect();
    assert_eq!(lent.shown().await.eviction.stay, stay);
    assert!(lent.records().await.is_empty());
    let mut agent = Agent::of(HOST, &lent.stage.broker, &lent.stage.prefix()).await;
    lent.reclaims.look().await.unwrap();
    for _ in 0..3 {
        assert_ne!(agent.notice().await.server_id.0, victim(2));
    }
    let stay = lent.shown().await.eviction.stay;
    assert_eq!(stay, [(ServerId(victim(2)), StayReason::Busy)]);
}
