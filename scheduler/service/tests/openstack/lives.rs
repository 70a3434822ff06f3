//! Past lives and advice on an OpenStack: learnt from Nova's rows and the ledger, the same as in a
//! standalone region with these lives, and as tight.

use super::kit::{HOST, OpenStack, holding, server};
use crate::advice::{Region, about, last_hour, lives};
use crate::curl::{HttpService, ask};
use crate::region::with;
use ebbtide_model::record::Change;
use ebbtide_model::{
    EvacuationCause, EvacuationId, InterruptionBehaviour, LifeEnd, PastLife, Seconds, ServerId,
    Timestamp,
};
use ebbtide_nova_databases::CloudDatabases;
use ebbtide_nova_service::preemption::{Preemption, PreemptionState, Victim, VictimState};
use ebbtide_proto::v1;
use ebbtide_proto::v1::market_client::MarketClient;
use ebbtide_store::ledger::{Ledger, NewRow, RowEnd, UpdateResult};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tonic::Code;
use tonic::transport::Endpoint;
use uuid::Uuid;

/// What Nova writes into a server of the flavor `spot`.
fn flavor() -> String {
    json!({"cur": {
        "nova_object.name": "Flavor", "nova_object.namespace": "nova",
        "nova_object.version": "1.2", "nova_object.data": {
            "name": "spot", "flavorid": "f1", "vcpus": 1, "memory_mb": 512, "root_gb": 1,
            "ephemeral_gb": 0, "swap": 0, "extra_specs": {
                "ebbtide:preemptible": "true", "ebbtide:max_lifetime_seconds": "86400",
                "ebbtide:price_per_hour": "0.031",
            },
        },
    }, "old": null, "new": null})
    .to_string()
}

fn sql_time(at: Timestamp) -> String {
    let text = at.to_string().replace('T', " ");
    format!("'{}'", &text[..19])
}

/// Nova's rows of servers that are gone. Nothing in them says who ended a server.
async fn write_rows(nova: &CloudDatabases, lives: &[PastLife]) {
    let (mut servers, mut extras) = (Vec::new(), Vec::new());
    for (place, life) in lives.iter().enumerate() {
        let (id, uuid) = (100 + place, life.server_id);
        let (began, ended) = (sql_time(life.launched_at), sql_time(life.ended_at));
        servers.push(format!(
            "({id}, '{uuid}', '{HOST}', '{}', '{}', {began}, {ended}, {began}, {ended}, {ended}, {id}, FALSE, 'deleted')",
            life.project_id, life.name
        ));
        extras.push(format!("('{uuid}', {id}, '{}')", flavor()));
    }
    let columns = "id, uuid, host, project_id, display_name, created_at, updated_at, launched_at, \
                   terminated_at, deleted_at, deleted, hidden, vm_state";
    for (table, columns, rows) in [
        ("instances", columns, servers),
        ("instance_extra", "instance_uuid, deleted, flavor", extras),
    ] {
        let sql = format!("INSERT INTO {table} ({columns}) VALUES {}", rows.join(", "));
        nova.cell.sql(&sql).await;
    }
}

fn victim(life: &PastLife) -> Victim {
    Victim {
        server: life.server_id,
        name: String::new(),
        cost: 0.0,
        evacuation: EvacuationId(ebbtide_runtime::ids::new()),
        host: HOST.to_owned(),
        had: holding(&life.project_id, 1),
        generation: 1,
        keeps: None,
        behaviour: InterruptionBehaviour::Terminate,
        grace: Seconds(0),
        flavor: "spot".to_owned(),
        launched_at: Some(life.launched_at),
        released: false,
        state: VictimState::Evacuated {
            how: ebbtide_model::message::EvacuationEnd::Terminated,
            at: life.ended_at,
            unbilled: None,
            recorded: true,
        },
    }
}

/// The ledger's record of the servers that the scheduler has ended.
async fn write_ledger(ledger: &Ledger, lives: &[PastLife]) {
    let victims: Vec<Victim> = lives.iter().map(victim).collect();
    let planned = lives.iter().map(|life| life.ended_at).min().unwrap();
    let first = victims[0].clone();
    let cause = EvacuationCause::Preemption;
    let id = ebbtide_runtime::ids::new();
    let mut record = Preemption::without_newcomers(id, cause, first, planned, planned);
    record.victims = victims;
    record.state = PreemptionState::Done;
    let row = NewRow {
        id,
        request_id: record.request_id.clone(),
        request_key: None,
        state: "done".to_owned(),
        owner: ledger.register("scheduler1").await.unwrap(),
        newcomers: Vec::new(),
        victims: lives.iter().map(|life| life.server_id.0).collect(),
        document: serde_json::to_value(&record).unwrap(),
    };
    ledger.insert(&row).await.unwrap();
    let end = ledger.finish(id, 1, "done", &row.document, RowEnd::Answers);
    assert_eq!(end.await.unwrap(), UpdateResult::Updated(2));
}

/// The lives of the test of a standalone region, with `own` as the tenant's project.
fn past(own: &str) -> Vec<PastLife> {
    let life = |change: Change| match change {
        Change::PutLife(life) => *life,
        other => panic!("{other:?}"),
    };
    let mut all: Vec<PastLife> = lives(last_hour()).into_iter().map(life).collect();
    for life in all.iter_mut().filter(|life| life.project_id == "science") {
        own.clone_into(&mut life.project_id);
    }
    all
}

/// A cloud with this past, which sells the flavor.
async fn cloud_with_past() -> OpenStack {
    let cloud = OpenStack::start_after("", async |nova, ledger, own| {
        let past = past(own);
        write_rows(nova, &past).await;
        let ours = past.iter().filter(|life| life.end == LifeEnd::Preempted);
        write_ledger(ledger, &ours.cloned().collect::<Vec<_>>()).await;
    })
    .await;
    cloud
        .sell(1, "spot", 1, ("ebbtide:preemptible", "true"))
        .await;
    for (id, key, value) in [
        (101, "ebbtide:max_lifetime_seconds", "86400"),
        (102, "ebbtide:price_per_hour", "0.031"),
    ] {
        let sql = format!(
            "INSERT INTO flavor_extra_specs (id, flavor_id, \"key\", value) VALUES ({id}, 1, '{key}', '{value}')"
        );
        cloud.nova.api.sql(&sql).await;
    }
    cloud
}

async fn market(cloud: &OpenStack) -> MarketClient<tonic::transport::Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", cloud.address())).unwrap();
    MarketClient::new(endpoint.connect().await.unwrap())
}

async fn get(cloud: &OpenStack, token: &str, path: &str) -> (u16, Value) {
    let answer = ask(cloud, token, path, &[]).await;
    (answer.status, answer.json())
}

fn ends(list: &Value) -> BTreeSet<(String, String)> {
    let text = |life: &Value, name: &str| life[name].as_str().unwrap().to_owned();
    let lives = list["lives"].as_array().unwrap_or_else(|| panic!("{list}"));
    lives
        .iter()
        .map(|life| (text(life, "server_id"), text(life, "end")))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_lives_give_the_same_advice_on_both_clouds() {
    let region = Region::start(lives(last_hour())).await;
    let cloud = cloud_with_past().await;
    let tenant = cloud.keystone.token_of("ada").await;
    let mut client = market(&cloud).await;
    for (of_region, of_openstack) in [
        (&region.science, &tenant),
        (&region.operator, &cloud.keystone.admin),
    ] {
        let mut expected = region.ask(of_region, about("spot")).await.unwrap();
        let told = client.get_advice(with(about("spot"), of_openstack)).await;
        let told = told.unwrap().into_inner();
        // The flavor of this region has no price.
        let price = told.price.clone().unwrap();
        assert_eq!((price.price.as_str(), price.supply), ("0.031", 0));
        expected.price = Some(price);
        assert_eq!(told, expected);
        assert!(
            !told.model.is_empty() && told.schedule.is_some(),
            "{told:?}"
        );
        // The same over REST.
        let path = "/v1/advice?flavor=spot&job_hours=4&restart_hours=0.05";
        let (status, answer) = get(&cloud, of_openstack, path).await;
        assert_eq!((status, &answer["model"]), (200, &json!(told.model)));
        assert_eq!(answer["whose"], json!(told.whose));
    }
    region.end().await;
    cloud.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lives_of_novas_history_have_the_ends_that_the_ledger_knows_and_outlive_novas_rows() {
    let cloud = cloud_with_past().await;
    let past = past(&cloud.keystone.project);
    let admin = &cloud.keystone.admin;
    let expected: BTreeSet<(String, String)> = past
        .iter()
        .map(|life| (life.server_id.to_string(), life.end.to_string()))
        .collect();
    let (_, all) = get(&cloud, admin, "/v1/lives").await;
    assert_eq!(ends(&all), expected);
    // By pages, too.
    let mut paged = BTreeSet::new();
    let mut path = "/v1/lives?limit=100".to_owned();
    loop {
        let (_, page) = get(&cloud, admin, &path).await;
        let Some(last) = page["lives"].as_array().and_then(|lives| lives.last()) else {
            break;
        };
        path = format!(
            "/v1/lives?limit=100&marker={}",
            last["id"].as_str().unwrap()
        );
        paged.extend(ends(&page));
    }
    assert_eq!(paged, expected);
    let (_, spot) = get(&cloud, admin, "/v1/lives?flavor=spot&limit=1").await;
    let life = &spot["lives"][0];
    assert_eq!(
        (
            &life["price_per_hour"],
            &life["max_lifetime_seconds"],
            &life["host"]
        ),
        (&json!("0.031"), &json!(86_400), &json!(HOST))
    );
    // A server that its owner stopped, started and deleted had two lives.
    let id = server(1);
    for (action, at) in [
        ("stop", "datetime('now', '-3 hours')"),
        ("start", "datetime('now', '-2 hours')"),
        ("delete", "datetime('now', '-2 seconds')"),
    ] {
        let sql = format!(
            "INSERT INTO instance_actions (instance_uuid, action, start_time, deleted) \
             VALUES ('{id}', '{action}', {at}, 0)"
        );
        cloud.nova.cell.sql(&sql).await;
    }
    let change = "UPDATE instances SET launched_at = datetime('now', '-5 hours'), \
                  terminated_at = datetime('now') WHERE id = 1";
    cloud.nova.cell.sql(change).await;
    cloud.server_goes(1).await;
    let of_server = async || {
        let (_, list) = get(&cloud, admin, "/v1/lives?flavor=m1.small").await;
        list["lives"].as_array().unwrap().clone()
    };
    let found = of_server().await;
    let ends_of_it: Vec<(&Value, &Value)> = found
        .iter()
        .map(|life| (&life["server_id"], &life["end"]))
        .collect();
    let id = json!(id.to_string());
    // The latest launch first.
    let expected_of_it = [(&id, &json!("deleted")), (&id, &json!("stopped"))];
    assert_eq!(ends_of_it, expected_of_it, "{found:?}");
    // The operator archives Nova's rows.
    for sql in [
        "DELETE FROM instance_actions",
        "DELETE FROM instance_extra WHERE deleted <> 0",
        "DELETE FROM instances WHERE deleted <> 0",
    ] {
        cloud.nova.cell.sql(sql).await;
    }
    assert_eq!(of_server().await, found);
    let (_, all) = get(&cloud, admin, "/v1/lives?flavor=spot").await;
    assert_eq!(ends(&all), expected);
    cloud.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_lists_its_own_lives_only_and_learns_no_other_tenant_from_advice() {
    let cloud = cloud_with_past().await;
    let past = past(&cloud.keystone.project);
    let tenant = cloud.keystone.token_of("ada").await;
    let own: BTreeSet<ServerId> = past
        .iter()
        .filter(|life| life.project_id == cloud.keystone.project)
        .map(|life| life.server_id)
        .collect();
    let mut client = market(&cloud).await;
    // Over REST and over gRPC.
    let (_, list) = get(&cloud, &tenant, "/v1/lives").await;
    let listed: BTreeSet<ServerId> = ends(&list)
        .iter()
        .map(|(id, _)| ServerId(id.parse::<Uuid>().unwrap()))
        .collect();
    assert_eq!((listed, own.len()), (own.clone(), 8));
    let all = v1::ListLivesRequest::default();
    let lives = client.list_lives(with(all, &tenant)).await.unwrap();
    assert_eq!(lives.into_inner().lives.len(), own.len());
    let (status, refused) = get(&cloud, &tenant, "/v1/lives?project_id=art").await;
    assert_eq!((status, &refused["code"]), (403, &json!("EB-ACCESS-005")));
    let foreign = v1::ListLivesRequest {
        project_id: "art".to_owned(),
        ..Default::default()
    };
    let refused = client.list_lives(with(foreign, &tenant)).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    // Advice counts the lives of others in batches and names none of them.
    let told = client.get_advice(with(about("spot"), &tenant)).await;
    let told = told.unwrap().into_inner();
    assert_eq!(
        (told.whose.as_str(), told.own_lives, told.lives),
        ("own-and-others", 8, 248)
    );
    let (_, rest) = get(&cloud, &tenant, "/v1/advice?flavor=spot").await;
    let text = format!("{told:?} {rest}");
    for word in ["secret", "art", "biology", "chemistry", "dance", HOST] {
        let named = text.contains(&format!("\"{word}")) || text.contains(&format!("{word}-"));
        assert!(!named, "{word} is in {text}");
    }
    // A flavor of other projects does not exist for this one; a normal one has nothing to advise.
    let marked = ("ebbtide:preemptible", "true");
    cloud.sell(2, "private", 1, marked).await;
    let change = "UPDATE flavors SET is_public = FALSE WHERE id = 2";
    cloud.nova.api.sql(change).await;
    cloud.sell(3, "normal", 1, ("quota:cpu_shares", "1")).await;
    for (token, flavor, status, code) in [
        (&tenant, "private", 404, "EB-SERVICE-001"),
        (&tenant, "none", 404, "EB-SERVICE-001"),
        (&tenant, "normal", 400, "EB-SERVICE-002"),
    ] {
        let path = format!("/v1/advice?flavor={flavor}");
        let (found, refused) = get(&cloud, token, &path).await;
        assert_eq!(
            (found, &refused["code"]),
            (status, &json!(code)),
            "{refused}"
        );
    }
    let (status, answer) = get(&cloud, &cloud.keystone.admin, "/v1/advice?flavor=private").await;
    assert_eq!((status, &answer["scope"]), (200, &json!("all-preemptible")));
    // Without a token there is nothing.
    for path in ["/v1/lives", "/v1/advice?flavor=spot"] {
        assert_eq!(get(&cloud, "", path).await.0, 401, "{path}");
    }
    cloud.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_anything_was_evicted_advice_says_that_too_little_is_known() {
    let cloud = OpenStack::start_after("", async |nova, _, own| {
        write_rows(nova, &past(own)).await;
    })
    .await;
    cloud
        .sell(1, "spot", 1, ("ebbtide:preemptible", "true"))
        .await;
    let admin = &cloud.keystone.admin;
    let (_, told) = get(&cloud, admin, "/v1/advice?flavor=spot").await;
    let figures = ["interruptions", "model"].map(|name| told[name].clone());
    assert_eq!(figures, [json!(0), json!("")], "{told}");
    let why = told["too_little"].as_str().unwrap();
    assert!(why.contains("at least 10 interruptions"), "{why}");
    // The four servers that run are of another flavor, and lives of all flavors were looked at.
    let counted = (&told["lives"], &told["scope"]);
    assert_eq!(counted, (&json!(252), &json!("all-preemptible")));
    cloud.end().await;
}
