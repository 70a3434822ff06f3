//! Bills of a real scheduler: what each role gets, and which hours count.

use crate::advice::{Region, last_hour, lives, with};
use ebbtide_model::record::Change;
use ebbtide_model::{FlavorId, LifeEnd, PricePoint, Timestamp};
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

/// All hours that match, in pages of so many.
async fn hours(
    region: &Region,
    token: &str,
    mut request: v1::ListBilledHoursRequest,
) -> Result<Vec<v1::BilledHour>, Status> {
    let mut market = MarketClient::new(region.channel().await);
    let mut all = Vec::new();
    loop {
        let page = market.list_billed_hours(with(request.clone(), token));
        let page = page.await?.into_inner().hours;
        assert!(request.limit == 0 || page.len() <= request.limit as usize);
        match page.last() {
            Some(last) => request.marker.clone_from(&last.id),
            None => return Ok(all),
        }
        all.extend(page);
    }
}

fn in_pages_of(limit: u32) -> v1::ListBilledHoursRequest {
    v1::ListBilledHoursRequest {
        limit,
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hours_of_any_pages_add_up_to_the_bills() {
    let now = last_hour();
    let region = Region::start(lives(now)).await;
    let token = &region.operator;
    let all = hours(&region, token, in_pages_of(0)).await.unwrap();
    assert_eq!(hours(&region, token, in_pages_of(97)).await.unwrap(), all);
    let mut order: Vec<_> = all.iter().map(|h| (&h.from, &h.server_id)).collect();
    order.sort_unstable();
    order.dedup();
    let listed: Vec<_> = all.iter().map(|h| (&h.from, &h.server_id)).collect();
    assert_eq!(listed, order);

    let sums = bills(&region, token, v1::ListBillsRequest::default()).await;
    let sums = sums.unwrap();
    for bill in &sums.bills {
        let own = |h: &&v1::BilledHour| h.project_id == bill.project_id && h.flavor == bill.flavor;
        let of = |charge: &str| {
            all.iter()
                .filter(own)
                .filter(|h| h.charge == charge)
                .count()
        };
        let charged = of("full") + of("ended-by-owner");
        assert_eq!(charged as u64, bill.charged_hours, "{bill:?}");
        assert_eq!(of("ended-by-provider") as u64, bill.free_hours, "{bill:?}");
        let micros = charged * 31_000;
        let sum = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        assert_eq!(sum, bill.charged);
    }
    let listed = all.len() as u64;
    let counted = |b: &v1::Bill| b.charged_hours + b.free_hours;
    assert_eq!(listed, sums.bills.iter().map(counted).sum::<u64>());
    region.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_gets_its_own_hours_of_a_period() {
    let now = last_hour();
    let region = Region::start(lives(now)).await;
    let ago = |hours: i64| Timestamp::from_millis(now - hours * 3_600_000).to_string();
    let period = v1::ListBilledHoursRequest {
        from: ago(22),
        before: ago(20),
        ..Default::default()
    };
    // Lives that ended 20 and 21 hours ago, of one and two hours.
    let own = hours(&region, &region.science, period).await.unwrap();
    let rows: Vec<_> = own.iter().map(|h| (h.name.as_str(), h.hour)).collect();
    assert_eq!(rows, [("secret-name-1001", 2), ("secret-name-1000", 1)]);
    assert!(own.iter().all(|h| h.project_id == "science"));
    assert_eq!(own[1].to, ago(20));
    assert_eq!(own[1].price, "0.031");
    assert_eq!(own[1].charged, "0.031");
    assert_eq!(own[1].charge, "full");

    let others = v1::ListBilledHoursRequest {
        project_id: "art".to_owned(),
        ..Default::default()
    };
    let refused = hours(&region, &region.science, others).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    for marker in ["12", "x.1", "yesterday"] {
        let wrong = v1::ListBilledHoursRequest {
            marker: marker.to_owned(),
            ..Default::default()
        };
        let refused = hours(&region, &region.science, wrong).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    }
    region.end().await;
}

/// Prices of `spot`: so many hours before `now`.
fn prices(now: i64, points: &[(i64, &str)]) -> Vec<Change> {
    let point = |&(hours, price): &(i64, &str)| PricePoint {
        flavor_id: FlavorId(uuid::Uuid::nil()),
        flavor: "spot".to_owned(),
        at: Timestamp::from_millis(now - hours * 3_600_000),
        price: price.parse().unwrap(),
        supply: 1,
        demand: 1,
    };
    let changes = points.iter().map(point);
    changes.map(Change::PutPrice).collect()
}

/// The hours of one life, with what they cost: the market's price when each began.
async fn costs(now: i64, points: &[(i64, &str)], limit: u32) -> Vec<[String; 3]> {
    let mut stored = lives(now);
    for change in &mut stored {
        if let Change::PutLife(life) = change
            && life.name == "secret-name-1004"
        {
            life.end = LifeEnd::Preempted;
            life.ended_at = Timestamp::from_millis(life.ended_at.as_millis() - 60_000);
        }
    }
    stored.extend(prices(now, points));
    let region = Region::start(stored).await;
    let all = hours(&region, &region.science, in_pages_of(limit)).await;
    let of = |h: &v1::BilledHour| h.name == "secret-name-1004";
    let rows = all.unwrap().into_iter().filter(of);
    let rows = rows.map(|h| [h.price, h.charged, h.charge]).collect();
    region.end().await;
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_has_the_price_of_its_beginning_on_any_page() {
    let now = last_hour();
    // The life began 29 hours ago, and ended 24 hours and a minute ago, by the provider.
    let points = [
        (1000, "0.01"),
        (28, "0.02"),
        (27, "0.03"),
        (25, "0.04"),
        (2, "0.9"),
    ];
    let row = |price: &str, charged: &str, charge: &str| {
        [price.to_owned(), charged.to_owned(), charge.to_owned()]
    };
    let expected = [
        row("0.01", "0.01", "full"),
        row("0.02", "0.02", "full"),
        row("0.03", "0.03", "full"),
        row("0.03", "0.03", "full"),
        row("0.04", "0.00", "ended-by-provider"),
    ];
    assert_eq!(costs(now, &points, 0).await, expected);
    assert_eq!(costs(now, &points, 1).await, expected);
    // The prices before the third hour are not kept any more.
    let unknown = row("", "0.00", "price-unknown");
    let mut rest = expected;
    rest[..2].fill(unknown);
    assert_eq!(costs(now, &points[2..], 1).await, rest);
    assert_eq!(costs(now, &points[2..], 0).await, rest);
}
