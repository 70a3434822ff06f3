//! Disruption budgets are constraints of every preemption, whichever scheduler makes it.

use super::full_host::{FullHost, victim};
use super::preemptions::Stage;
use super::reader;
use super::what_if::{Clouds, GROUP, ServerRequest};
use super::{Bench, newcomer, small};
use crate::evacuate::PreemptionDriver;
use crate::preemption::{Preemption, ReplyWhen};
use crate::select::{Members, ReadAhead, Selector, VictimReservations};
use crate::settings::SelectSettings;
use ebbtide_harness::SharedServers;
use ebbtide_model::{BudgetScope, Decision, DecisionOutcome, DisruptionBudget, GroupId, Seconds};
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::instance_uuid;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// What a decision says where a budget is in the way.
const IN_THE_WAY: &str = "only be had beyond a disruption budget";

fn project(id: &str) -> BudgetScope {
    BudgetScope::Project(id.to_owned())
}

fn budget(scope: BudgetScope, max_victims: u32, window: u32) -> DisruptionBudget {
    DisruptionBudget {
        scope,
        max_victims,
        window: Seconds(window),
    }
}

fn servers(numbers: &[i64]) -> BTreeSet<Uuid> {
    numbers.iter().map(|n| victim(*n)).collect()
}

/// Servers of one project on the first host.
const LAB: [i64; 4] = [1, 2, 3, 4];

/// Two full hosts: four servers of `lab` on the first, 5 to 8 of `web` on the second.
async fn two_projects() -> Clouds {
    let cloud = Clouds::of_hosts(2).await;
    for n in 1..=8 {
        let is_lab = LAB.contains(&n);
        cloud.runs(n, if is_lab { 1 } else { 2 }, 2, true, 1).await;
        let owner = if is_lab { "lab" } else { "web" };
        let sql = format!("UPDATE instances SET project_id = '{owner}' WHERE id = {n}");
        cloud.bench.nova.cell.sql(&sql).await;
    }
    cloud.bench.look().await;
    cloud
}

async fn put(cloud: &Clouds, budget: DisruptionBudget) {
    let reader = reader(&cloud.bench.selector);
    assert!(reader.put_budget(&budget).await.unwrap());
}

/// True if the request gets a host.
async fn asks(cloud: &Clouds, n: u128) -> bool {
    match cloud.asks(&ServerRequest::normal(newcomer(n), 2)).await {
        Ok(_) => true,
        Err(refused) => {
            assert_eq!(refused.class, "NoValidHost");
            false
        }
    }
}

/// The reason of a refusal, with the reasons of the hosts.
fn reasons(decision: &Decision) -> String {
    let DecisionOutcome::NoValidHost(refusal) = &decision.outcome else {
        panic!("{:?}", decision.outcome)
    };
    let steps = decision.explanation.instances.iter();
    let dropped = steps.flat_map(|step| step.filters.iter().flat_map(|f| &f.dropped));
    let hosts = dropped.map(|host| host.reason.as_str());
    std::iter::once(refusal.reason.as_str())
        .chain(hosts)
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn a_budget_that_is_used_up_protects_its_project_and_others_give_the_capacity() {
    let cloud = two_projects().await;
    put(&cloud, budget(project("lab"), 1, 600)).await;
    put(&cloud, budget(project("web"), 1, 600)).await;
    assert!(asks(&cloud, 1).await);
    assert!(asks(&cloud, 2).await, "the other project's budget is whole");
    let victims = cloud.victims().await;
    let lab = victims.intersection(&servers(&LAB)).count();
    assert_eq!((victims.len(), lab), (2, 1), "{victims:?}");
    // Both budgets are used up.
    cloud
        .sells(&ServerRequest::normal(newcomer(3), 2).flavor())
        .await;
    let question = ServerRequest::normal(newcomer(3), 2).question();
    let told = cloud.what_if(&question).await.unwrap();
    let said = reasons(&told);
    assert!(said.contains(IN_THE_WAY), "{said}");
    assert!(!asks(&cloud, 3).await);
    assert_eq!(cloud.victims().await, victims);

    put(&cloud, budget(project("web"), 2, 600)).await;
    assert!(
        asks(&cloud, 4).await,
        "a larger budget allows another victim"
    );
    let reader = reader(&cloud.bench.selector);
    assert!(reader.delete_budget(&project("lab")).await.unwrap());
    assert!(asks(&cloud, 5).await, "no budget is left");
    assert_eq!(cloud.victims().await.len(), 4);
    assert!(!reader.delete_budget(&project("lab")).await.unwrap());
}

#[tokio::test]
async fn a_budget_of_a_group_counts_the_members_that_nova_knows() {
    let cloud = two_projects().await;
    cloud
        .groups("soft-anti-affinity", &[1, 5].map(instance_uuid))
        .await;
    let group = BudgetScope::Group(GroupId(GROUP.parse().unwrap()));
    let unknown = BudgetScope::Group(GroupId(newcomer(9)));
    let reader = reader(&cloud.bench.selector);
    let refused = reader.put_budget(&budget(unknown, 1, 600)).await.unwrap();
    assert!(!refused, "Nova has no such group");
    put(&cloud, budget(group.clone(), 1, 600)).await;
    // Six others and one member leave.
    for n in 1..=7 {
        assert!(asks(&cloud, n).await, "request {n}");
    }
    assert!(!asks(&cloud, 8).await);
    let victims = cloud.victims().await;
    let members = victims.intersection(&servers(&[1, 5])).count();
    assert_eq!((victims.len(), members), (7, 1), "{victims:?}");
    put(&cloud, budget(group, 2, 600)).await;
    assert!(asks(&cloud, 9).await);
}

#[tokio::test]
async fn a_server_that_is_gone_counts_within_the_window_and_no_longer() {
    let mut stage = Stage::new().await;
    let mut agent = stage.take_agent();
    let reader = reader(&stage.bench.selector);
    let set = async |most, window| {
        let budget = budget(project("p1"), most, window);
        assert!(reader.put_budget(&budget).await.unwrap());
    };
    set(1, 600).await;
    let first = async { stage.bench.ask(newcomer(1), 2).await.unwrap() };
    tokio::join!(first, async {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
    });
    stage.bench.ask(newcomer(2), 2).await.unwrap_err();
    // A window of nothing counts only what is under way.
    set(1, 0).await;
    let second = async { stage.bench.ask(newcomer(3), 2).await.unwrap() };
    tokio::join!(second, async {
        let notice = agent.notice().await;
        stage.bench.ask(newcomer(4), 2).await.unwrap_err();
        agent.gone(&notice).await;
    });
}

/// Another scheduler's requests, with its own memory and connections.
async fn other_selector(stage: &Stage) -> Selector {
    let facts = stage.facts().await;
    let evacuations = stage.scheduler_with("scheduler-2", facts.clone()).await;
    Selector {
        facts,
        preempting: PreemptionDriver::ready(evacuations),
        reservations: VictimReservations::default(),
        read_ahead: ReadAhead::default(),
        members: Members::default(),
        ..stage.bench.selector.clone()
    }
}

/// Two schedulers get requests at the same moment, again and again: the budget holds, and it is
/// used up.
async fn at_the_same_moment(ledger_url: String) {
    let bench = Bench::with_options(1, Options::default()).await;
    let mut stage = Stage::of(FullHost::over(bench, ledger_url).await).await;
    // The victims do not leave meanwhile, and count all the same.
    let _agent = stage.take_agent();
    stage.bench.selector.settings = Arc::new(SelectSettings {
        reply_when: ReplyWhen::AtOnce,
        ..SelectSettings::clone(&stage.bench.selector.settings)
    });
    let other = other_selector(&stage).await;
    let limit = budget(project("p1"), 2, 600);
    stage.ledger.put_budget(&limit).await.unwrap();
    let asked = (1..=6).map(|n| {
        let selector = match n % 2 {
            0 => &other,
            _ => &stage.bench.selector,
        };
        stage.bench.ask_of(selector, newcomer(n), small(2), false)
    });
    let answers = futures::future::join_all(asked).await;
    let placed = answers.iter().filter(|answer| answer.is_ok()).count();
    let rows = stage.ledger.rows_of_late(3_600_000).await.unwrap();
    let records = rows.into_iter().map(|row| row.document);
    let records = records.map(|d| serde_json::from_value::<Preemption>(d).unwrap());
    let left: BTreeSet<_> = records
        .flat_map(|record| record.victims)
        .map(|victim| victim.server)
        .collect();
    assert_eq!((placed, left.len()), (2, 2), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedulers_at_the_same_moment_keep_to_one_budget_on_mariadb() {
    let ledger = SharedServers::mariadb().await.expect("a MariaDB server");
    at_the_same_moment(ledger.url().to_owned()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedulers_at_the_same_moment_keep_to_one_budget_on_postgresql() {
    let ledger = SharedServers::postgres()
        .await
        .expect("a PostgreSQL server");
    at_the_same_moment(ledger.url().to_owned()).await;
}
