//! Prices on an OpenStack, as callers see them. How they are made is tested in the Nova service.

use super::kit::OpenStack;
use crate::curl::ask;
use ebbtide_model::{FlavorId, PricePoint, Timestamp};
use ebbtide_store::DecisionStore;
use serde_json::{Value, json};
use uuid::Uuid;

const PRICE: &str = "ebbtide:price_per_hour";

async fn read(cloud: &OpenStack, token: &str, path: &str) -> Value {
    let answer = ask(cloud, token, path, &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

fn flavors(prices: &Value) -> Vec<&str> {
    let all = prices["prices"].as_array();
    let all = all.into_iter().flatten();
    all.map(|price| price["flavor"].as_str().unwrap()).collect()
}

/// The history of three flavors: `gold` is for another project.
async fn history(cloud: &OpenStack) {
    let store = DecisionStore::open(&cloud.database).await.unwrap();
    let mut points = Vec::new();
    for (n, flavor) in ["bronze", "gold", "silver"].into_iter().enumerate() {
        for hour in 0..3 {
            points.push(PricePoint {
                flavor_id: FlavorId(Uuid::from_u128(n as u128)),
                flavor: flavor.to_owned(),
                at: Timestamp::from_millis(1_800_000_000_000 + hour * 3_600_000),
                price: "0.01".parse().unwrap(),
                supply: 4,
                demand: 1,
            });
        }
    }
    store.prices().publish(&points).await.unwrap();
    // A price that is there stays as it is.
    let other = PricePoint {
        price: "0.5".parse().unwrap(),
        ..points[0].clone()
    };
    store.prices().publish(&[other]).await.unwrap();
    let last = store.prices().last("bronze").await.unwrap();
    assert_eq!(last.as_ref(), points.get(2));
    store.close().await;
}

/// Three flavors of a price, of which `gold` is another project's.
async fn sale() -> OpenStack {
    let cloud = OpenStack::start("").await;
    for (id, name) in [(3, "silver"), (2, "gold"), (1, "bronze")] {
        cloud.sell(id, name, 1, (PRICE, "0.02")).await;
    }
    let api = &cloud.nova.api;
    api.sql("UPDATE flavors SET is_public = FALSE WHERE id = 2")
        .await;
    let row = [("id", "1"), ("flavor_id", "2"), ("project_id", "'another'")];
    api.insert("flavor_projects", &row).await;
    cloud
}

#[tokio::test]
async fn a_tenant_sees_the_flavors_that_it_may_use() {
    let cloud = sale().await;
    let names = |said: &Value| -> Vec<String> {
        let all = said["flavors"].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let admin = cloud.keystone.admin.clone();
    let member = cloud.keystone.token_of("ada").await;
    let all = read(&cloud, &admin, "/v1/flavors").await;
    assert_eq!(names(&all), ["bronze", "gold", "silver"]);
    let bronze = &all["flavors"][0];
    assert_eq!(bronze["vcpus"], json!(1), "{all}");
    assert_eq!(bronze["extra_specs"][PRICE], json!("0.02"), "{all}");
    let own = read(&cloud, &member, "/v1/flavors").await;
    assert_eq!(names(&own), ["bronze", "silver"]);
    assert_eq!(
        read(&cloud, &member, "/v1/flavors/bronze").await["flavor"],
        *bronze
    );
    let hidden = ask(&cloud, &member, "/v1/flavors/gold", &[]).await;
    assert_eq!(hidden.status, 404, "{}", hidden.body);
    let shown = ask(&cloud, &admin, "/v1/flavors/gold", &[]).await;
    assert_eq!(shown.status, 200, "{}", shown.body);
    // nova-api builds no servers of a disabled one.
    let change = "UPDATE flavors SET disabled = TRUE WHERE id = 3";
    cloud.nova.api.sql(change).await;
    let left = read(&cloud, &admin, "/v1/flavors").await;
    assert_eq!(names(&left), ["bronze", "gold"]);
    cloud.end().await;
}

#[tokio::test]
async fn a_tenant_sees_the_prices_of_the_flavors_that_it_may_use() {
    let cloud = sale().await;
    let admin = cloud.keystone.admin.clone();
    let member = cloud.keystone.token_of("ada").await;
    let all = read(&cloud, &admin, "/v1/prices").await;
    assert_eq!(flavors(&all), ["bronze", "gold", "silver"]);
    assert_eq!(all["prices"][0]["price"], json!("0.02"));
    assert_eq!(all["market"], json!(false), "{all}");
    let own = read(&cloud, &member, "/v1/prices").await;
    assert_eq!(flavors(&own), ["bronze", "silver"]);

    assert!(flavors(&read(&cloud, &member, "/v1/price-history").await).is_empty());
    history(&cloud).await;
    let all = read(&cloud, &admin, "/v1/price-history").await;
    assert_eq!(flavors(&all).len(), 9);
    // Every page is full until the last one, whatever is left out.
    let mut seen = Vec::new();
    let mut marker = String::new();
    loop {
        let path = format!("/v1/price-history?limit=2&marker={marker}");
        let page = read(&cloud, &member, &path).await;
        let found = flavors(&page);
        seen.extend(found.iter().map(|flavor| (*flavor).to_owned()));
        if found.len() < 2 {
            break;
        }
        let last = &page["prices"].as_array().unwrap()[1];
        marker = last["id"].as_str().unwrap().to_owned();
    }
    seen.sort();
    assert_eq!(
        seen,
        ["bronze", "bronze", "bronze", "silver", "silver", "silver"]
    );
    let hidden = read(&cloud, &member, "/v1/price-history?flavor=gold").await;
    assert!(flavors(&hidden).is_empty(), "{hidden}");
    cloud.end().await;
}
