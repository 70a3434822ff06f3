//! Prices and bills.

use crate::fake::Fake;
use crate::run::against;
use ebbtide_proto::v1::{
    Bill, BilledHour, FlavorPrice, Life, ListBilledHoursRequest, ListBillsRequest,
    ListBillsResponse, PriceRecord, Server,
};

fn record(at: &str, price: &str) -> PriceRecord {
    PriceRecord {
        id: at.into(),
        flavor: "spot.a".into(),
        at: at.into(),
        price: price.into(),
        supply: 10,
        demand: 4,
    }
}

fn life(id: &str, from: &str, to: &str, end: &str) -> Life {
    Life {
        id: format!("{id}.1"),
        server_id: id.into(),
        name: format!("job-{id}"),
        project_id: "default".into(),
        flavor: "spot.a".into(),
        preemptible: true,
        launched_at: format!("2026-11-20T{from}Z"),
        ended_at: format!("2026-11-20T{to}Z"),
        end: end.into(),
        price_per_hour: "0.10".into(),
        ..Life::default()
    }
}

/// A day of a market, with a victim, one that its owner deleted, a normal one, and one that runs.
pub async fn region() -> Fake {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.prices = vec![FlavorPrice {
            flavor: "spot.a".into(),
            preemptible: true,
            price: "0.05".into(),
            price_per_hour: "0.10".into(),
            floor: "0.01".into(),
            ceiling: "0.10".into(),
            since: "2026-11-20T14:00:00Z".into(),
            supply: 10,
            demand: 4,
        }];
        state.price_history = vec![
            record("1970-01-01T00:00:00Z", "0.10"),
            record("2026-11-20T08:00:00Z", "0.02"),
            record("2026-11-20T10:30:00Z", "0.031"),
            record("2026-11-20T12:00:00Z", "0.02"),
            record("2026-11-20T14:00:00Z", "0.05"),
        ];
        state.lives = vec![
            life("1", "09:00:00", "12:15:00", "preempted"),
            life("2", "10:40:00", "11:50:00", "deleted"),
            life("3", "07:30:00", "09:30:00", "out-of-bid"),
            Life {
                preemptible: false,
                flavor: "pet".into(),
                ..life("4", "09:00:00", "09:01:00", "deleted")
            },
        ];
        let bill = |flavor: &str, charged_hours, charged: &str| Bill {
            project_id: "default".into(),
            flavor: flavor.into(),
            charged_hours,
            charged: charged.into(),
            ..Bill::default()
        };
        let spot = Bill {
            free_hours: 1,
            unknown_hours: 2,
            ..bill("spot.a", 9, "0.353000")
        };
        state.bills = ListBillsResponse {
            bills: vec![bill("pet", 10, "1.000000"), spot],
            charged: "1.353000".into(),
        };
        // It is 20:40:12.
        state.servers = vec![Server {
            id: "5".into(),
            name: "job-5".into(),
            project_id: "default".into(),
            flavor_name: "spot.a".into(),
            status: "active".into(),
            preemptible: true,
            launched_at: "2026-11-20T18:00:00Z".into(),
            ..Server::default()
        }];
    });
    fake
}

/// An hour of a server on 2026-11-20, as the region bills it.
fn billed(server: &str, hour: u32, [from, to]: [&str; 2], price: &str, charge: &str) -> BilledHour {
    let free = ["ended-by-provider", "price-unknown"].contains(&charge);
    BilledHour {
        id: format!("{from}.{server}"),
        project_id: "default".into(),
        server_id: server.into(),
        name: format!("job-{server}"),
        flavor: "spot.a".into(),
        hour,
        from: format!("2026-11-20T{from}:00Z"),
        to: format!("2026-11-20T{to}:00Z"),
        price: price.into(),
        charged: if free { "0.00" } else { price }.into(),
        charge: charge.into(),
    }
}

pub async fn region_with_hours() -> Fake {
    let fake = region().await;
    fake.with(|state| {
        state.billed_hours = vec![
            billed("1", 3, ["11:00", "12:00"], "0.031", "full"),
            billed("2", 2, ["11:40", "11:50"], "0.031", "ended-by-owner"),
            billed("1", 4, ["12:00", "12:15"], "0.02", "ended-by-provider"),
        ];
    });
    fake
}

const HOURS: &str = "\
project_id,server_id,name,flavor,hour,from,to,price,charged,charge
default,1,job-1,spot.a,3,2026-11-20T11:00:00Z,2026-11-20T12:00:00Z,0.031,0.031,full
default,2,job-2,spot.a,2,2026-11-20T11:40:00Z,2026-11-20T11:50:00Z,0.031,0.031,ended-by-owner
default,1,job-1,spot.a,4,2026-11-20T12:00:00Z,2026-11-20T12:15:00Z,0.02,0.00,ended-by-provider
";

#[tokio::test]
async fn hours_are_those_of_the_region_and_files_have_every_one() {
    let fake = region_with_hours().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bill.csv");
    let path = path.to_str().unwrap();
    let period = "--from 2026-11-20T11:00:00Z --to 2026-11-20T13:00:00Z";
    let mut line = vec!["billing", "hours", "--csv", path];
    line.extend(period.split(' '));
    let ran = against(&fake, &line).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(std::fs::read_to_string(path).unwrap(), HOURS);
    let asked = fake.with(|state| state.hours_asked.take()).unwrap();
    let expected = ListBilledHoursRequest {
        project_id: "default".into(),
        from: "2026-11-20T11:00:00Z".into(),
        before: "2026-11-20T13:00:00Z".into(),
        limit: asked.limit,
        ..Default::default()
    };
    assert_eq!(asked, expected);

    let ran = against(&fake, &["billing", "hours", "-o", "json"]).await;
    let json = ran.json();
    assert_eq!(json.as_array().unwrap().len(), 3);
    assert_eq!(json[1]["server_id"], "2");
    assert_eq!(json[1]["hour"], 2);
    assert_eq!(json[1]["price"], "0.031");
    assert_eq!(json[2]["charged"], "0.00");
    assert_eq!(json[2]["charge"], "ended-by-provider");
}

#[tokio::test]
async fn sums_are_those_of_the_region() {
    let fake = region().await;
    let line = "billing total --from 2026-11-20 --to 2026-11-21T12:00:00Z --all-projects";
    let line: Vec<&str> = line.split(' ').collect();
    let ran = against(&fake, &line).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    fake.with(|state| {
        let asked = ListBillsRequest {
            project_id: String::new(),
            from: "2026-11-20T00:00:00Z".into(),
            before: "2026-11-21T12:00:00Z".into(),
        };
        assert_eq!(state.bills_asked, Some(asked));
    });
    assert!(
        ran.err.contains("2 hours began when prices were not"),
        "{}",
        ran.err
    );
    let sum = |line: &&str| line.contains("| all ") && line.contains("| 1.353000 |");
    assert!(ran.out.lines().any(|line| sum(&line)), "{}", ran.out);
    let ran = against(&fake, &["billing", "total", "-o", "json"]).await;
    let json = ran.json();
    assert_eq!(json.as_array().unwrap().len(), 2);
    assert_eq!(json[1]["flavor"], "spot.a");
    assert_eq!(json[1]["charged"], "0.353000");
    assert_eq!(json[1]["charged_hours"], 9);
    assert_eq!(json[1]["free_hours"], 3);
}

#[tokio::test]
async fn an_hour_from_before_all_prices_says_so() {
    let fake = region_with_hours().await;
    fake.with(|state| {
        let unknown = billed("3", 1, ["07:30", "08:30"], "", "price-unknown");
        state.billed_hours.push(unknown);
    });
    let ran = against(&fake, &["billing", "hours"]).await;
    assert!(
        ran.err
            .contains("1 hours began when prices were not written down"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("price-unknown"), "{}", ran.out);
}

#[tokio::test]
async fn prices_are_shown_drawn_and_written_for_the_commands_that_plan_by_them() {
    let fake = region().await;
    let misspelt = against(&fake, &["price", "history", "spot.aa"]).await;
    assert_eq!(misspelt.code, 4, "{}", misspelt.out);
    assert!(misspelt.err.contains("spot.aa"), "{}", misspelt.err);
    let ran = against(&fake, &["price", "list"]).await;
    assert!(
        ran.out.contains("0.05") && ran.out.contains("0.01"),
        "{}",
        ran.out
    );
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (csv, svg) = (file("prices.csv"), file("prices.svg"));
    let line = [
        "price", "history", "spot.a", "--csv", &csv, "--svg", &svg, "-o", "json",
    ];
    let ran = against(&fake, &line).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    let prices: Vec<&str> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["price"].as_str().unwrap())
        .collect();
    assert_eq!(prices, ["0.05", "0.02", "0.031", "0.02"]);
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<svg"));
    let simulated = against(
        &fake,
        &[
            "simulate",
            "checkpointing",
            "--history",
            &csv,
            "--job",
            "2h",
            "-o",
            "json",
        ],
    )
    .await;
    assert_eq!(simulated.code, 0, "{}", simulated.err);
}

#[tokio::test]
async fn a_maximum_price_is_passed_on_and_nonsense_is_refused_before() {
    let fake = region().await;
    let create = [
        "server",
        "create",
        "--flavor",
        "m1",
        "--max-price",
        "0.05",
        "a",
    ];
    against(&fake, &create).await;
    let log = fake.with(|state| state.log.clone());
    assert!(
        log.iter().any(|line| line.contains("at most 0.05")),
        "{log:?}"
    );
    for wrong in ["-1", "NaN", "0.0000001", "much"] {
        let create = [
            "server",
            "create",
            "--flavor",
            "m1",
            "--max-price",
            wrong,
            "a",
        ];
        assert_eq!(against(&fake, &create).await.code, 2, "{wrong}");
    }
}
