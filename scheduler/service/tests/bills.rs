//! Bills of a real scheduler: what each role gets, and which hours count.

use crate::advice::{Region, last_hour, lives, with};
use ebbtide_model::Timestamp;
use ebbtide_proto::v1;
use ebbtide_proto::v1::market_client::MarketClient;
use tonic::{Code, Status};

async fn bills(
    region: &Region,
    token: &str,
    request: v1::ListBillsRequest,
) -> Result<v1::ListBillsResponse, Status> {
    let mut market = MarketClient::new(region.channel().await);
    Ok(market.list_bills(with(request, token)).await?.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn bills_are_sums_by_project_and_flavor_and_a_tenant_gets_its_own() {
    let now = last_hour();
    let region = Region::start(lives(now)).await;
    let all = bills(&region, &region.operator, v1::ListBillsRequest::default()).await;
    let projects: Vec<String> = all
        .unwrap()
        .bills
        .into_iter()
        .map(|b| b.project_id)
        .collect();
    assert_eq!(
        projects,
        ["art", "biology", "chemistry", "dance", "science"]
    );

    // Eight lives of 1 to 8 whole hours, at 0.031 each: no hour is cut short.
    let own = bills(&region, &region.science, v1::ListBillsRequest::default());
    let own = own.await.unwrap();
    let bill = v1::Bill {
        project_id: "science".to_owned(),
        flavor: "spot".to_owned(),
        charged_hours: 36,
        charged: "1.116000".to_owned(),
        ..Default::default()
    };
    assert_eq!(own.bills, [bill]);
    assert_eq!(own.charged, "1.116000");

    let others = v1::ListBillsRequest {
        project_id: "art".to_owned(),
        ..Default::default()
    };
    let refused = bills(&region, &region.science, others).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    region.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_belongs_to_the_period_in_which_it_began() {
    let now = last_hour();
    let region = Region::start(lives(now)).await;
    let ago = |hours: i64| Timestamp::from_millis(now - hours * 3_600_000).to_string();
    let within = |from: &str, before: &str| v1::ListBillsRequest {
        from: from.to_owned(),
        before: before.to_owned(),
        ..Default::default()
    };
    // The last hour of science's lives began 21 hours ago, the one before 22 hours ago.
    let last = bills(&region, &region.science, within(&ago(21), "")).await;
    assert_eq!(last.unwrap().bills[0].charged_hours, 1);
    let earlier = bills(&region, &region.science, within("", &ago(21))).await;
    assert_eq!(earlier.unwrap().bills[0].charged_hours, 35);
    let none = bills(&region, &region.science, within(&ago(20), &ago(10))).await;
    assert_eq!(
        none.unwrap(),
        v1::ListBillsResponse {
            charged: "0.000000".to_owned(),
            ..Default::default()
        }
    );
    let wrong = bills(&region, &region.science, within("yesterday", "")).await;
    assert_eq!(wrong.unwrap_err().code(), Code::InvalidArgument);
    region.end().await;
}
