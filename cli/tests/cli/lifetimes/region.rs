//! Models from what a region has written down.

use crate::fake::Fake;
use crate::run::against as run;
use ebbtide_proto::v1::{Flavor, Life, Server};
use std::collections::HashMap;

/// A life from the beginning of a day in November, in minutes.
fn life(n: u32, minutes: u32, end: &str) -> Life {
    let day = 1 + n % 18;
    let at = |minutes: u32| {
        format!(
            "2026-11-{:02}T{:02}:{:02}:00Z",
            day + minutes / 1440,
            minutes / 60 % 24,
            minutes % 60
        )
    };
    Life {
        id: format!("{n}.1"),
        project_id: "default".into(),
        flavor: if n.is_multiple_of(2) {
            "spot.a"
        } else {
            "spot.b"
        }
        .into(),
        preemptible: true,
        host: "host-A".into(),
        zone: "nova".into(),
        launched_at: at(0),
        ended_at: at(minutes),
        end: end.into(),
        max_lifetime_seconds: 86_400,
        ..Life::default()
    }
}

fn spot(name: &str) -> Flavor {
    let said = ("ebbtide:max_lifetime_seconds".into(), "86400".into());
    Flavor {
        name: name.into(),
        preemptible: true,
        extra_specs: HashMap::from([said]),
        ..Flavor::default()
    }
}

async fn region() -> Fake {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.flavors = vec![spot("spot.a"), spot("spot.b")];
        // More than a page; every fifth was stopped, every seventh came to its maximum lifetime,
        // less the grace period.
        state.lives = (0..250)
            .map(|n| match n {
                _ if n % 5 == 0 => life(n, 30 + n, "deleted"),
                _ if n % 7 == 0 => life(n, 1435, "max-lifetime"),
                _ => life(n, 20 + (n * 37) % 900, "preempted"),
            })
            .collect();
        state.lives.push(Life {
            preemptible: false,
            ..life(251, 9, "deleted")
        });
        state.lives.push(Life {
            project_id: "other".into(),
            ..life(252, 9, "preempted")
        });
        let runs = |status: &str, preemptible| Server {
            flavor_name: "spot.a".into(),
            project_id: "default".into(),
            status: status.into(),
            preemptible,
            launched_at: "2026-11-20T08:40:12Z".into(),
            ..Server::default()
        };
        state.servers = vec![
            Server {
                id: "1".into(),
                name: "a".into(),
                ..runs("active", true)
            },
            Server {
                id: "2".into(),
                name: "b".into(),
                ..runs("stopped", true)
            },
            Server {
                id: "3".into(),
                name: "c".into(),
                ..runs("active", false)
            },
        ];
    });
    fake
}

#[tokio::test]
async fn a_model_is_fitted_to_the_lives_of_a_project_with_those_that_go_on_as_censored() {
    let fake = region().await;
    let ran = run(
        &fake,
        &[
            "model",
            "fit",
            "--from-region",
            "--by",
            "flavor",
            "--model",
            "weibull",
            "-o",
            "json",
        ],
    )
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    let all = &json["groups"][0];
    assert_eq!(
        (all["group"].as_str(), all["lifetimes"].as_u64()),
        (Some("all"), Some(251))
    );
    // 50 were stopped, and one goes on.
    assert_eq!(all["stopped"], 51);
    assert_eq!(
        (all["method"].as_str(), all["maximum_hours"].as_f64()),
        (Some("mle"), Some(24.0))
    );
    // Those that were ended by the limit are its atom: 29 of 250 did not end before.
    let share = all["share_at_maximum"].as_f64().unwrap();
    assert!((0.08..0.25).contains(&share), "{share}");
    assert_eq!(json["groups"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn operators_fit_models_to_all_projects_and_files_stay_as_they_were() {
    let fake = region().await;
    let line = [
        "model",
        "fit",
        "--from-region",
        "--all-projects",
        "--model",
        "empirical",
        "-o",
        "json",
    ];
    let ran = run(&fake, &line).await;
    assert_eq!(ran.json()["groups"][0]["lifetimes"], 252, "{}", ran.err);
    let ran = run(&fake, &["model", "fit"]).await;
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("<FILE>"), "{}", ran.err);
    let ran = run(&fake, &["model", "fit", "x.csv", "--from-region"]).await;
    assert_eq!(ran.code, 2);
}

#[tokio::test]
async fn a_model_is_checked_against_the_region() {
    let fake = region().await;
    let line = [
        "model",
        "check",
        "--from-region",
        "--against",
        "exponential:lambda=20",
    ];
    let ran = run(&fake, &line).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("do not fit the model"), "{}", ran.err);
}

#[tokio::test]
async fn a_region_without_lives_says_so() {
    let fake = Fake::start().await;
    let ran = run(&fake, &["model", "fit", "--from-region"]).await;
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(
        ran.err.contains("no preemptible server that has run"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("EB-LIFETIME-004"), "{}", ran.err);
}
