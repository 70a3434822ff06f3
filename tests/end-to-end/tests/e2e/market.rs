//! Lives, prices and bills through the command, against a region.

use super::command::{ebbtide, json, run};
use super::kit::{create, evacuations, flavor, request, until};
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};

pub(crate) async fn market() -> Region {
    let options = RegionOptions {
        hosts: vec!["host-A".to_owned()],
        sections: "[region.market]\nenabled = true\ninterval_seconds = 1\nsteepness = 1\nstep_percent = 100\n".to_owned(),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    let specs = [
        ("ebbtide:preemptible", "true"),
        ("ebbtide:grace_seconds", "1"),
        ("ebbtide:price_per_hour", "0.10"),
    ];
    flavor(&region, "spot", 2, &specs).await;
    flavor(&region, "pet", 4, &[]).await;
    region
}

async fn price(region: &Region) -> String {
    let said = ebbtide(region, &["price", "list", "-q", "-o", "json"]).await;
    json(&said)[0]["price"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

pub(crate) async fn until_price(region: &Region, wanted: &str) {
    eventually(PATIENCE, async || match price(region).await {
        now if now == wanted => Ok(()),
        now => Err(format!("it is {now}, not {wanted}")),
    })
    .await;
}

#[tokio::test]
async fn who_does_not_pay_leaves_with_notice_and_every_end_is_written_down_and_billed() {
    let region = market().await;
    // Nothing is taken of four places.
    until_price(&region, "0.01").await;
    let bid = [
        "server",
        "create",
        "--flavor",
        "spot",
        "--max-price",
        "0.05",
        "-o",
        "json",
        "poor",
    ];
    let poor = ebbtide(&region, &bid).await;
    assert_eq!(poor.code, Some(0), "{}", poor.text);
    let list = json(&ebbtide(&region, &["server", "list", "-o", "json"]).await);
    let poor = list[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(list[0]["max_price"], "0.05");
    until(&region, &poor, "active").await;
    until_price(&region, "0.0325").await;
    let too_little = [
        "server",
        "create",
        "--flavor",
        "spot",
        "--max-price",
        "0.02",
        "cheap",
    ];
    let refused = ebbtide(&region, &too_little).await;
    assert_eq!(refused.code, Some(1), "{}", refused.text);
    assert!(
        refused.text.contains("EB-REGION-005") && refused.text.contains("0.0325"),
        "{}",
        refused.text
    );
    // Two more, and it is 0.0775.
    let (rich, _) = create(&region, "rich", request("spot", 2)).await;
    until(&region, &poor, "preempted").await;
    let told = evacuations(&region).await;
    assert_eq!((told.len(), told[0].cause.as_str()), (1, "out-of-bid"));
    until(&region, &rich[0].id, "active").await;
    let history = json(&ebbtide(&region, &["price", "history", "spot", "-o", "json"]).await);
    let seen: Vec<&str> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["price"].as_str().unwrap())
        .collect();
    assert!(seen.contains(&"0.0775"), "{seen:?}");
    // A victim, and one that its owner deletes.
    let (pet, _) = create(&region, "pet", request("pet", 2)).await;
    until(&region, &pet[0].id, "active").await;
    until(&region, &rich[0].id, "preempted").await;
    let deleted = ebbtide(&region, &["server", "delete", "pet-1"]).await;
    assert_eq!(deleted.code, Some(0), "{}", deleted.text);
    let bill = ["billing", "hours", "-o", "json"];
    let bill = eventually(PATIENCE, async || {
        let bill = json(&ebbtide(&region, &bill).await);
        let rows = bill.as_array().unwrap().clone();
        (rows.len() == 4)
            .then_some(rows)
            .ok_or_else(|| bill.to_string())
    })
    .await;
    let of = |name: &str| bill.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(
        (&of("poor")["charge"], &of("poor")["charged"]),
        (&"ended-by-provider".into(), &"0.00".into())
    );
    assert_eq!(of("rich-1")["charge"], "ended-by-provider");
    assert_eq!(of("pet-1")["charge"], "ended-by-owner");
    let fit = [
        "model",
        "fit",
        "--from-region",
        "--model",
        "empirical",
        "-q",
        "-o",
        "json",
    ];
    let fit = json(&run("ebbtide-lab", &region, &fit).await);
    assert_eq!(
        (
            &fit["groups"][0]["lifetimes"],
            &fit["groups"][0]["preempted"]
        ),
        (&3.into(), &2.into()),
        "who was out of bid would have stayed at any price"
    );
}
