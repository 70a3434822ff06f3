//! A what-if gets what the request gets that follows it, and writes nothing.

use super::agents::Agent;
use super::full_host::open_ledger;
use super::reader;
use super::{ASKED, Bench, LONG, host, message_for, newcomer, other_claims};
use crate::evacuate::{Evacuations, PreemptionDriver};
use crate::metrics::Metrics;
use crate::preemption::{Preemption, PreemptionPolicy, ReplyWhen};
use crate::settings::SelectSettings;
use crate::{WhatIf, WhatIfError, WhatIfImage};
use ebbtide_bus::{InProcessBroker, QueuePrefix};
use ebbtide_model::{BudgetScope, Decision, DecisionOutcome, DisruptionBudget, Seconds, ServerId};
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::instance_uuid;
use ebbtide_store::ledger::Ledger;
use oslo_messaging::{IncomingCall, RemoteError};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

mod devices;
mod requests;

/// The image of the recorded request.
const IMAGE: &str = "6f3d3f19-f6d7-49f2-8407-b2e149644d6a";
const PROJECT: &str = "806f9478362a4a8684a7e275e6ca3b4f";
/// What the recorded request calls its flavor.
const FLAVOR: &str = "small";
pub(super) const GROUP: &str = "55555555-5555-4555-8555-555555555555";
const POLICIES: [&str; 4] = [
    "affinity",
    "anti-affinity",
    "soft-affinity",
    "soft-anti-affinity",
];
/// Every world of a run. A failure names its seed.
const WORLDS: u64 = 32;
/// Requests in each world.
const REQUESTS: u128 = 6;

/// A cloud with a scheduler that preempts and answers as soon as the swap is done.
pub(super) struct Clouds {
    pub(super) bench: Bench,
    pub(super) ledger: Ledger,
    /// They get the notices, and need not act: requests are answered before.
    pub(super) agents: Vec<Agent>,
}

impl Bench {
    /// The flavor of the requests to come.
    pub(super) async fn sells(&self, flavor: &Flavor) {
        let api = &self.nova.api;
        api.sql("DELETE FROM flavors").await;
        api.sql("DELETE FROM flavor_extra_specs").await;
        let vcpus = flavor.vcpus.to_string();
        let row = [
            ("id", "1"),
            ("name", "'small'"),
            ("flavorid", "'0211f765-1255-4548-9ebe-60ede6070eff'"),
            ("memory_mb", "2000"),
            ("vcpus", &vcpus),
            ("swap", "0"),
            ("root_gb", "20"),
            ("ephemeral_gb", "0"),
            ("disabled", "FALSE"),
            ("is_public", "TRUE"),
        ];
        api.insert("flavors", &row).await;
        for (key, value) in flavor.specs() {
            self.sells_with(key, value).await;
        }
    }

    /// The flavor says more.
    async fn sells_with(&self, key: &str, value: &str) {
        let [key, value] = [key, value].map(|text| format!("'{text}'"));
        let row = [("flavor_id", "1"), ("key", &key), ("value", &value)];
        self.nova.api.insert("flavor_extra_specs", &row).await;
    }
}

impl Clouds {
    pub(super) async fn of_hosts(hosts: i64) -> Self {
        Self::with_options(hosts, Options::default()).await
    }

    async fn with_options(hosts: i64, mut options: Options) -> Self {
        for filter in ["SameHostFilter", "DifferentHostFilter"] {
            options.enabled_filters.push(filter.to_owned());
        }
        let mut bench = Bench::with_options(hosts, options).await;
        bench.selector.settings = Arc::new(SelectSettings {
            reply_when: ReplyWhen::AtOnce,
            ..SelectSettings::clone(&bench.selector.settings)
        });
        let url = format!("sqlite:{}", bench.file("ledger.db").display());
        let ledger = open_ledger(&url).await;
        let own = open_ledger(&url).await;
        let owner = own.register("scheduler-1").await.unwrap();
        let (broker, prefix) = (InProcessBroker::new(), QueuePrefix::new("ebbtide").unwrap());
        let mut agents = Vec::new();
        for n in 1..=hosts {
            agents.push(Agent::of(&format!("compute{n}"), &broker, &prefix).await);
        }
        let evacuations = Evacuations::new(
            bench.selector.facts.clone(),
            own,
            owner,
            Arc::new(broker.connect()),
            prefix,
            PreemptionPolicy::default(),
            bench.tasks.clone(),
            Metrics::default(),
        );
        evacuations.start().await.unwrap();
        bench.selector.preempting = PreemptionDriver::ready(evacuations);
        Self {
            bench,
            ledger,
            agents,
        }
    }

    /// A server runs on a host.
    pub(super) async fn runs(&self, n: i64, on: i64, vcpus: u64, preemptible: bool, hour: u32) {
        let nova = &self.bench.nova;
        let at = format!("2026-01-01 {hour:02}:00:00");
        let uuid = nova.add_instance(n, &format!("compute{on}"), &at).await;
        let sql = format!("UPDATE instances SET node = 'node{on}' WHERE id = {n}");
        nova.cell.sql(&sql).await;
        if !preemptible {
            let flavor = ebbtide_nova_databases::flavor_json("false");
            let sql = format!(
                "UPDATE instance_extra SET flavor = {} WHERE instance_uuid = '{uuid}'",
                ebbtide_nova_databases::quote(&nova.cell, &flavor)
            );
            nova.cell.sql(&sql).await;
        }
        let text = format!("'{uuid}'");
        let mapping = [
            ("instance_uuid", text.as_str()),
            ("cell_id", "2"),
            ("project_id", "'p1'"),
        ];
        nova.api.insert("instance_mappings", &mapping).await;
        let consumer = uuid.parse().unwrap();
        let claimed = self
            .bench
            .placement
            .model(|m| other_claims(m, consumer, host(on), vcpus));
        assert_eq!(claimed, 204);
    }

    /// The flavor of the requests to come.
    pub(super) async fn sells(&self, flavor: &Flavor) {
        self.bench.sells(flavor).await;
    }

    pub(super) async fn groups(&self, policy: &str, members: &[String]) {
        let api = &self.bench.nova.api;
        for table in [
            "instance_groups",
            "instance_group_policy",
            "instance_group_member",
        ] {
            api.sql(&format!("DELETE FROM {table}")).await;
        }
        let (uuid, project, policy) = (
            format!("'{GROUP}'"),
            format!("'{PROJECT}'"),
            format!("'{policy}'"),
        );
        let row = [
            ("id", "1"),
            ("uuid", uuid.as_str()),
            ("name", "'db'"),
            ("project_id", &project),
        ];
        api.insert("instance_groups", &row).await;
        let row = [
            ("id", "1"),
            ("group_id", "1"),
            ("policy", policy.as_str()),
            ("rules", "'{}'"),
        ];
        api.insert("instance_group_policy", &row).await;
        for (n, member) in members.iter().enumerate() {
            let (id, member) = (n.to_string(), format!("'{member}'"));
            let row = [
                ("id", id.as_str()),
                ("group_id", "1"),
                ("instance_uuid", &member),
            ];
            api.insert("instance_group_member", &row).await;
        }
    }

    /// Nova's conductor asks, and waits.
    pub(super) async fn asks(&self, wanted: &ServerRequest) -> Result<Value, RemoteError> {
        self.asks_with(&wanted.instances, wanted.arguments()).await
    }

    /// The same with other arguments.
    async fn asks_with(
        &self,
        instances: &[Uuid],
        arguments: oslo_messaging::Map,
    ) -> Result<Value, RemoteError> {
        for instance in instances {
            self.bench.expect(*instance).await;
        }
        let mut call = IncomingCall::detached("select_destinations", arguments);
        let id = format!("req-{}", instances[0]);
        call.context.insert("request_id".to_owned(), json!(id));
        call.message_id = Some("reply".to_owned());
        call.unique_id = Some(message_for(instances[0]));
        let answer = self.bench.selector.select(call);
        tokio::time::timeout(LONG, answer)
            .await
            .expect("an answer in time")
    }

    /// Victims of all preemptions.
    pub(super) async fn victims(&self) -> BTreeSet<Uuid> {
        let rows = self.ledger.rows_of_late(3_600_000).await.unwrap();
        let records = rows
            .into_iter()
            .map(|row| serde_json::from_value(row.document).unwrap());
        let victims = |record: Preemption| record.victims.into_iter().map(|v| v.server.0);
        records.flat_map(victims).collect()
    }

    /// How often something was written.
    fn writes(&self) -> usize {
        let seen = self.bench.placement.seen();
        seen.iter()
            .filter(|seen| !seen.what.starts_with("GET "))
            .count()
    }

    /// What Placement was asked, and by whom.
    fn heard_since(&self, heard: usize) -> Vec<String> {
        let seen = self.bench.placement.seen().into_iter().skip(heard);
        seen.map(|seen| format!("{} {}", seen.what, seen.body))
            .collect()
    }

    pub(super) async fn what_if(&self, question: &WhatIf) -> Result<Decision, WhatIfError> {
        let (writes, rows) = (self.writes(), self.victims().await);
        let decision = reader(&self.bench.selector).what_if(question).await;
        assert_eq!(
            (self.writes(), self.victims().await),
            (writes, rows),
            "it writes"
        );
        decision
    }
}

#[derive(Debug, Clone)]
pub(super) struct Flavor {
    pub(super) vcpus: u64,
    pub(super) preemptible: bool,
}

impl Flavor {
    fn specs(&self) -> BTreeMap<&str, &str> {
        let specs = self.preemptible.then_some(("ebbtide:preemptible", "true"));
        specs.into_iter().collect()
    }
}

/// A request, as the conductor and as a what-if has it.
#[derive(Debug, Clone)]
pub(super) struct ServerRequest {
    instances: Vec<Uuid>,
    pub(super) flavor: Flavor,
    /// Policy and members before the request.
    group: Option<(&'static str, Vec<String>)>,
    hints: BTreeMap<String, Vec<String>>,
    zone: Option<String>,
    from_volume: bool,
}

impl ServerRequest {
    /// The arguments of the call.
    pub(super) fn arguments(&self) -> oslo_messaging::Map {
        let Value::Object(mut args) = serde_json::from_str(ASKED).unwrap() else {
            panic!("arguments")
        };
        args.insert("instance_uuids".to_owned(), json!(self.instances));
        let spec = &mut args["spec_obj"]["nova_object.data"];
        spec["instance_uuid"] = json!(self.instances[0]);
        spec["num_instances"] = json!(self.instances.len());
        spec["availability_zone"] = json!(self.zone);
        spec["is_bfv"] = json!(self.from_volume);
        let flavor = &mut spec["flavor"]["nova_object.data"];
        flavor["vcpus"] = json!(self.flavor.vcpus);
        flavor["extra_specs"] = json!(self.flavor.specs());
        let mut hints = self.hints.clone();
        if let Some((policy, members)) = &self.group {
            hints.insert("group".to_owned(), vec![GROUP.to_owned()]);
            let own = self.instances.iter().map(Uuid::to_string);
            let members: Vec<String> = members.iter().cloned().chain(own).collect();
            spec["instance_group"] = json!({
                "nova_object.name": "InstanceGroup", "nova_object.namespace": "nova",
                "nova_object.version": "1.11", "nova_object.data": {
                    "uuid": GROUP, "policy": policy, "_rules": {}, "members": members, "hosts": [],
                },
            });
        }
        spec["scheduler_hints"] = json!(hints);
        args
    }

    pub(super) fn question(&self) -> WhatIf {
        WhatIf {
            servers: self.instances.iter().copied().map(ServerId).collect(),
            project_id: PROJECT.to_owned(),
            flavor: FLAVOR.to_owned(),
            image: Some(WhatIfImage {
                id: IMAGE.to_owned(),
                disk_format: "raw".to_owned(),
                properties: BTreeMap::new(),
            }),
            boots_from_volume: self.from_volume,
            availability_zone: self.zone.clone(),
            group: self.group.as_ref().map(|_| "db".to_owned()),
            hints: self.hints.clone(),
            ..WhatIf::default()
        }
    }

    pub(super) fn flavor(&self) -> Flavor {
        self.flavor.clone()
    }

    /// One normal server.
    pub(super) fn normal(instance: Uuid, vcpus: u64) -> Self {
        Self {
            instances: vec![instance],
            flavor: Flavor {
                vcpus,
                preemptible: false,
            },
            group: None,
            hints: BTreeMap::new(),
            zone: None,
            from_volume: true,
        }
    }

    fn random(chance: &mut Pcg64, first: u128, members: &[String], servers: i64) -> Self {
        let count = [1, 1, 1, 2, 3][chance.random_range(0..5)];
        let policy = POLICIES[chance.random_range(0..POLICIES.len())];
        let mut hints = BTreeMap::new();
        if chance.random_range(0..5) == 0 && servers > 0 {
            let name = ["same_host", "different_host"][chance.random_range(0..2)];
            let server = instance_uuid(chance.random_range(1..=servers));
            hints.insert(name.to_owned(), vec![server]);
        }
        let zone = match chance.random_range(0..16) {
            0 => Some("elsewhere".to_owned()),
            1 | 2 => Some("nova".to_owned()),
            _ => None,
        };
        Self {
            instances: (first..first + count).map(newcomer).collect(),
            flavor: Flavor {
                vcpus: chance.random_range(1..=4),
                preemptible: chance.random_range(0..5) == 0,
            },
            group: (chance.random_range(0..3) == 0).then(|| (policy, members.to_vec())),
            hints,
            zone,
            from_volume: chance.random_range(0..4) == 0,
        }
    }
}

/// Hosts of an answer or a decision, for each instance: the first is chosen.
type Places = Vec<Vec<String>>;

fn places_of_answer(answer: &Value) -> Places {
    let name = |s: &Value| {
        s["nova_object.data"]["service_host"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let hosts = |one: &Value| one.as_array().unwrap().iter().map(name).collect();
    answer.as_array().unwrap().iter().map(hosts).collect()
}

/// Places and victims of a decision; `None`: there is no host.
fn outcome(decision: &Decision) -> Option<(Places, BTreeSet<Uuid>)> {
    let DecisionOutcome::Placed(placements) = &decision.outcome else {
        return None;
    };
    let places = placements.iter().map(|placement| {
        let chosen = std::iter::once(placement.host.clone());
        chosen.chain(placement.alternates.iter().cloned()).collect()
    });
    let victims = decision.victims().map(|(_, victim)| victim.server_id.0);
    Some((places.collect(), victims.collect()))
}

/// What happened in a world, so that a run of dull ones does not pass.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Ends {
    placed: usize,
    preempted: usize,
    refused: usize,
    groups: usize,
}

/// A budget for the project of all victims; how many it allows.
async fn limit(cloud: &Clouds, chance: &mut Pcg64) -> usize {
    let most = chance.random_range(0..4_u32);
    let budget = DisruptionBudget {
        scope: BudgetScope::Project("p1".to_owned()),
        max_victims: most,
        window: Seconds(600),
    };
    cloud.ledger.put_budget(&budget).await.unwrap();
    most as usize
}

async fn world(seed: u64, budgets: bool) -> Ends {
    let mut chance = Pcg64::seed_from_u64(seed);
    let hosts = chance.random_range(2..=5);
    let cloud = Clouds::of_hosts(hosts).await;
    let mut servers = 0;
    for on in 1..=hosts {
        let mut left = 8;
        while left > 0 && chance.random_range(0..8) > 0 {
            let vcpus = chance.random_range(1..=left.min(4));
            left -= vcpus;
            servers += 1;
            let preemptible = chance.random_range(0..3) > 0;
            cloud
                .runs(servers, on, vcpus, preemptible, chance.random_range(0..24))
                .await;
        }
    }
    cloud.bench.look().await;
    let mut ends = Ends::default();
    let mut members: Vec<String> = (1..=servers.min(2)).map(instance_uuid).collect();
    let mut most = usize::MAX;
    for n in 0..REQUESTS {
        if budgets && n % 2 == 0 {
            most = limit(&cloud, &mut chance).await;
        }
        let wanted = ServerRequest::random(&mut chance, n * 10, &members, servers);
        // A request for several leaves out a host of which it sees late that it has changed. A
        // what-if does so, too, and reads the host again; so the request that follows knows better.
        if wanted.instances.len() == 1 && chance.random_range(0..3) == 0 {
            // Another scheduler claims where this one does not look. It may be refused.
            let on = host(chance.random_range(1..=hosts));
            let model = &cloud.bench.placement;
            model.model(|model| other_claims(model, newcomer(900 + n), on, 1));
        }
        cloud.sells(&wanted.flavor).await;
        if let Some((policy, members)) = &wanted.group {
            cloud.groups(policy, members).await;
        }
        let heard = cloud.bench.placement.seen().len();
        let told = cloud.what_if(&wanted.question()).await.unwrap();
        let before = cloud.victims().await;
        let answer = cloud.asks(&wanted).await;
        let after = cloud.victims().await;
        let victims: BTreeSet<Uuid> = after.difference(&before).copied().collect();
        assert!(
            victims.is_empty() || after.len() <= most,
            "seed {seed}, request {n}: {after:?} left, and {most} may"
        );
        let same = match (&answer, outcome(&told)) {
            (Err(refused), None) => refused.class == "NoValidHost",
            (Ok(answer), Some((places, would_leave))) => {
                let got = places_of_answer(answer);
                let chosen = |places: &Places| -> Vec<String> {
                    places.iter().map(|hosts| hosts[0].clone()).collect()
                };
                // A preemption looks for alternates when its answer is sent, which is later.
                let same = match victims.is_empty() {
                    true => got == places,
                    false => chosen(&got) == chosen(&places),
                };
                same && victims == would_leave
            }
            _ => false,
        };
        assert!(
            same,
            "seed {seed}, request {n}: {wanted:#?}\ngot {answer:?} with {victims:?}\nwas told {:#?}\n{:#?}",
            told.outcome,
            cloud.heard_since(heard)
        );
        match &answer {
            Err(_) => ends.refused += 1,
            Ok(_) if victims.is_empty() => ends.placed += 1,
            Ok(_) => ends.preempted += 1,
        }
        if wanted.group.is_some() && answer.is_ok() {
            ends.groups += 1;
            members.extend(wanted.instances.iter().map(Uuid::to_string));
        }
    }
    ends
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_what_if_is_told_what_the_request_gets() {
    use futures::StreamExt;
    let worlds = (0..WORLDS).map(|seed| world(seed, seed % 3 == 2));
    let worlds = futures::stream::iter(worlds).buffer_unordered(4);
    let ends: Vec<Ends> = worlds.collect().await;
    let sum = |of: fn(&Ends) -> usize| ends.iter().map(of).sum::<usize>();
    let counts = [
        ("placed", sum(|e| e.placed)),
        ("preempted", sum(|e| e.preempted)),
        ("refused", sum(|e| e.refused)),
        ("in groups", sum(|e| e.groups)),
    ];
    println!("{counts:?}");
    assert!(
        counts.iter().all(|(_, n)| *n >= 15),
        "too little happened: {counts:?}"
    );
}
