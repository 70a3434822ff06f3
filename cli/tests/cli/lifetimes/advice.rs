//! Advice of a region, as it is asked for and shown.

use crate::fake::Fake;
use crate::run::against as run;
use ebbtide_proto::v1::*;

fn share(share: f64, low: f64, high: f64) -> SeenShare {
    SeenShare { share, low, high }
}

fn told(within_hours: f64, told: f64, lives: u32, were: SeenShare, off: bool) -> ToldBefore {
    ToldBefore {
        within_hours,
        told,
        lives,
        were: Some(were),
        off,
    }
}

fn advice() -> GetAdviceResponse {
    GetAdviceResponse {
        max_lifetime_hours: 24.0,
        scope: "flavor".into(),
        whose: "own-and-others".into(),
        lives: 252,
        own_lives: 12,
        interruptions: 190,
        lived_hours: 2100.0,
        model: "bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.4,max=24".into(),
        model_fits: true,
        model_words: "bathtub, of all formulas the likeliest; largest error 4 percentage points"
            .into(),
        expected_hours: 12.5,
        chances: vec![
            InterruptionChance {
                within_hours: 1.0,
                chance: 0.0213,
                seen: Some(share(0.02, 0.0, 0.07)),
            },
            InterruptionChance {
                within_hours: 24.0,
                chance: 1.0,
                seen: None,
            },
        ],
        curve: (0..=48)
            .map(|n| LifetimePoint {
                hours: f64::from(n) / 2.0,
                model: f64::from(n) / 48.0,
                seen: (n < 40).then_some(f64::from(n) / 50.0),
            })
            .collect(),
        calibration: Some(Calibration {
            rows: vec![
                told(1.0, 0.28, 90, share(0.27, 0.19, 0.37), false),
                told(6.0, 0.41, 70, share(0.43, 0.32, 0.55), false),
                told(6.0, 0.52, 20, share(0.91, 0.75, 0.99), true),
            ],
            overall: vec![
                told(1.0, 0.28, 90, share(0.27, 0.19, 0.37), false),
                told(6.0, 0.44, 90, share(0.51, 0.42, 0.61), false),
            ],
            untold: 40,
            verdict: "differs".into(),
        }),
        schedule: Some(CheckpointSchedule {
            interval_hours: vec![0.5, 0.5, 0.5, 0.75],
            new_server_before: vec![3],
            step_hours: 1.0 / 60.0,
            job_hours: 2.25,
            expected_hours: 2.5,
            hourly_hours: Some(2.75),
            without_hours: None,
        }),
        ..GetAdviceResponse::default()
    }
}

async fn region(advice: GetAdviceResponse) -> Fake {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.advice = advice;
        state.flavors = vec![Flavor {
            name: "spot.a".into(),
            preemptible: true,
            ..Flavor::default()
        }];
    });
    fake
}

#[tokio::test]
async fn everything_that_is_told_is_shown() {
    let fake = region(advice()).await;
    let line = [
        "advice",
        "spot.a",
        "--age",
        "3h",
        "--job",
        "2h15m",
        "--checkpoint",
        "90s",
        "--restart",
        "2m",
    ];
    let ran = run(&fake, &line).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    for words in [
        "252, 190 interrupted, 2100 h together",
        "12 of your own, and others'",
        "bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.4,max=24",
        "12 h 30 min",
        "2.1 %",
        "2 % (0 to 7)",
        "not watched for so long",
        "43 % (32 to 55)",
        "44 %, all",
        "off",
        "differ from what happened",
        "40 were told nothing",
        "3 × 30 new server: 45",
        "2 h 30 min",
        "11.1 %",
        "never",
    ] {
        assert!(ran.out.contains(words), "{words:?} is not in\n{}", ran.out);
    }
    let asked = fake.with(|state| state.advice_asked.clone()).unwrap();
    assert_eq!((asked.age_hours, asked.job_hours), (3.0, 2.25));
    assert_eq!(asked.checkpoint_hours, Some(0.025));
    assert!((asked.restart_hours - 1.0 / 30.0).abs() < 1e-12);
}

#[tokio::test]
async fn json_is_the_contract_and_a_value_is_a_model_that_plans_take() {
    let fake = region(advice()).await;
    let json = run(&fake, &["advice", "spot.a", "-o", "json"]).await.json();
    assert_eq!(json["chances"][0]["chance"].as_f64(), Some(0.0213));
    assert_eq!(json["schedule"]["interval_hours"][3].as_f64(), Some(0.75));
    let value = run(&fake, &["advice", "spot.a", "-o", "value"]).await;
    let model = value.out.trim();
    let plan = super::ebbtide(&["plan", "checkpoint", "--job", "5h", "--model", model]).await;
    assert_eq!(plan.code, 0, "{}", plan.err);
}

#[tokio::test]
async fn the_life_that_is_left_and_the_calibration_are_drawn() {
    let fake = region(advice()).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("advice.svg");
    let ran = run(
        &fake,
        &["advice", "spot.a", "--svg", path.to_str().unwrap()],
    )
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let svg = std::fs::read_to_string(&path).unwrap();
    for words in [
        "the life that is left",
        "told before, and what happened",
        "within 6 h",
        "as told",
    ] {
        assert!(svg.contains(words), "{words}");
    }
}

#[tokio::test]
async fn too_little_is_said_with_its_numbers_and_nothing_is_drawn() {
    let fake = region(GetAdviceResponse {
        scope: "all-preemptible".into(),
        whose: "own".into(),
        lives: 4,
        own_lives: 4,
        interruptions: 3,
        lived_hours: 7.5,
        too_little: "too little is known: a model needs at least 10 interruptions".into(),
        ..GetAdviceResponse::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("advice.svg");
    let ran = run(
        &fake,
        &["advice", "spot.a", "--svg", path.to_str().unwrap()],
    )
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    for words in [
        "at least 10 interruptions",
        "there are 3 in 4 lives of 7 h 30 min together",
        "your own only",
        "all preemptible flavors",
    ] {
        assert!(ran.out.contains(words), "{words:?} is not in\n{}", ran.out);
    }
    assert!(
        ran.err.contains("nothing is drawn") && !path.exists(),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn no_job_an_unknown_flavor_and_no_time_are_refused() {
    let fake = region(advice()).await;
    let nothing = run(&fake, &["advice", "spot.a", "--job", "0"]).await;
    assert!(
        nothing.code != 0 && nothing.err.contains("--job"),
        "{}",
        nothing.err
    );
    let unknown = run(&fake, &["advice", "spot.x"]).await;
    assert!(
        unknown.code != 0 && unknown.err.contains("spot.x"),
        "{}",
        unknown.err
    );
    let no_time = run(&fake, &["advice", "spot.a", "--age", "old"]).await;
    assert!(
        no_time.code != 0 && no_time.err.contains("is no time"),
        "{}",
        no_time.err
    );
}
