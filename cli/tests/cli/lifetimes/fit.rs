//! Models from lifetimes, and checks of new lifetimes.

use super::{ebbtide, file, plain, public_data};

#[tokio::test]
async fn the_refit_table_comes_out_of_the_command_within_two_percent() {
    let (data, reduced) = public_data();
    let vectors: serde_json::Value = serde_json::from_str(include_str!(
        "../../../../tenant/lifetime/tests/vectors/001_refit.json"
    ))
    .unwrap();
    let ran = ebbtide(&["model", "fit", &data, "--by", "flavor", "-o", "json"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("16 rows"), "{}", ran.err);
    let json = ran.json();
    let groups = json["groups"].as_array().unwrap();
    if reduced {
        // All of them, and each of five flavors.
        assert_eq!(groups.len(), 6, "{json}");
        assert_eq!(groups[0]["lifetimes"], 984);
        for group in groups {
            assert!(group["r2"].as_f64() > Some(0.9), "{group}");
        }
        return;
    }
    for (name, vector) in [
        ("all", "ALL"),
        ("flavor=n1-highcpu-2", "n1-highcpu-2 all-zones"),
        ("flavor=n1-highcpu-4", "n1-highcpu-4 all-zones"),
        ("flavor=n1-highcpu-8", "n1-highcpu-8 all-zones"),
        ("flavor=n1-highcpu-16", "n1-highcpu-16 all-zones"),
        ("flavor=n1-highcpu-32", "n1-highcpu-32 all-zones"),
    ] {
        let own = groups.iter().find(|g| g["group"] == name).unwrap();
        let expected = vectors.as_array().unwrap();
        let expected = expected.iter().find(|v| v["group"] == vector).unwrap();
        assert_eq!(own["preempted"], expected["n_preempted"], "{name}");
        assert_eq!(own["lifetimes"], expected["n_total"], "{name}");
        let expected = &expected["preempted_ecdf"];
        for parameter in ["A", "tau1", "tau2", "b"] {
            let (own, expected) = (
                own["parameters"][parameter].as_f64().unwrap(),
                expected[parameter].as_f64().unwrap(),
            );
            assert!(
                (own / expected - 1.0).abs() < 0.02,
                "{name} {parameter} {own} {expected}"
            );
        }
        let r2 = own["r2"].as_f64().unwrap();
        assert!(
            (r2 - expected["r2"].as_f64().unwrap()).abs() < 0.003,
            "{name} {r2}"
        );
    }
    // Groups too small for the model say so and do not spoil the others.
    let small = groups
        .iter()
        .find(|g| g["group"] == "flavor=n1-standard-4")
        .unwrap();
    assert_eq!(small["error"]["code"], "EB-LIFETIME-004");
    // The non-idle ones, and figure 1's type and zone.
    let ran = ebbtide(&[
        "model",
        "fit",
        &data,
        "--where",
        "idle=non-idle",
        "-o",
        "json",
        "-q",
    ])
    .await;
    let a = ran.json()["groups"][0]["parameters"]["tau1"]
        .as_f64()
        .unwrap();
    assert!((a / 0.91 - 1.0).abs() < 0.02, "{a}");
    let figure = [
        "model",
        "fit",
        &data,
        "--by",
        "flavor,zone",
        "--where",
        "zone=us-east1-b",
        "-o",
        "json",
        "-q",
    ];
    let json = ebbtide(&figure).await.json();
    let groups = json["groups"].as_array().unwrap();
    let of = groups
        .iter()
        .find(|g| g["group"] == "flavor=n1-highcpu-16,zone=us-east1-b");
    let tau1 = of.unwrap()["parameters"]["tau1"].as_f64().unwrap();
    assert!((tau1 / 2.22 - 1.0).abs() < 0.02, "{tau1}");
}

#[tokio::test]
async fn a_table_of_fits_has_its_verdicts_and_a_chart() {
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("fit.svg");
    let (data, reduced) = public_data();
    let ran = ebbtide(&["model", "fit", &data, "--svg", svg.to_str().unwrap()]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let drawn = std::fs::read_to_string(&svg).unwrap();
    if reduced {
        assert!(
            ran.out.contains("bathtub") && drawn.contains("stopped as censored"),
            "{}",
            ran.out
        );
        return;
    }
    insta::assert_snapshot!("model_fit", ran.out);
    assert!(drawn.starts_with("<svg") && drawn.contains("709 stopped as censored"));
    let mle = ebbtide(&["model", "fit", &data, "--method", "mle", "--model", "best"]).await;
    assert!(mle.out.contains("use weibull"), "{}", mle.out);
}

#[tokio::test]
async fn the_plain_format_is_read_plain_gzip_and_zstd() {
    let directory = tempfile::tempdir().unwrap();
    let text = plain();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(
        text.as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let files = [
        file(directory.path(), "a.csv", &text),
        file(directory.path(), "a.csv.gz", gzip.finish().unwrap()),
        file(directory.path(), "a.csv.zst", zstd),
    ];
    let mut answers = Vec::new();
    for file in &files {
        let ran = ebbtide(&[
            "model", "fit", file, "--by", "flavor", "--model", "weibull", "-o", "json",
        ])
        .await;
        assert_eq!(ran.code, 0, "{file}: {}", ran.err);
        answers.push(ran.out);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let json: serde_json::Value = serde_json::from_str(&answers[0]).unwrap();
    assert_eq!(json["groups"][0]["lifetimes"], 60);
    assert_eq!(json["groups"][0]["stopped"], 11);
    assert_eq!(json["groups"][1]["labels"]["flavor"], "spot.a");
    // Hours of the launch as they were written down, days by --since.
    let ran = ebbtide(&[
        "model",
        "fit",
        &files[0],
        "--by",
        "hour",
        "--model",
        "empirical",
        "-o",
        "value",
    ])
    .await;
    assert!(
        ran.out.contains("hour=09 ") && ran.out.lines().count() == 25,
        "{}",
        ran.out
    );
    let ran = ebbtide(&[
        "model",
        "fit",
        &files[0],
        "--since",
        "2026-05-02",
        "--model",
        "empirical",
        "-o",
        "json",
    ])
    .await;
    assert!(
        ran.json()["groups"][0]["lifetimes"].as_u64() < Some(40),
        "{}",
        ran.out
    );
}

#[tokio::test]
async fn what_fit_writes_is_what_plans_and_checks_read_for_every_model() {
    let directory = tempfile::tempdir().unwrap();
    let lives = file(directory.path(), "lives.csv", plain());
    for model in [
        "bathtub",
        "exponential",
        "weibull",
        "gompertz-makeham",
        "uniform",
        "phases",
        "empirical",
        "best",
    ] {
        let fit = [
            "model", "fit", &lives, "--model", model, "--method", "mle", "--by", "flavor", "-o",
            "json",
        ];
        let ran = ebbtide(&fit).await;
        assert_eq!(ran.code, 0, "{model}: {}", ran.err);
        let models = file(directory.path(), &format!("{model}.json"), &ran.out);
        for group in ["all", "flavor=spot.a", "spot.a"] {
            let plan = [
                "plan",
                "checkpoint",
                "--job",
                "2h",
                "--step",
                "5m",
                "--model",
                &models,
                "--group",
                group,
                "-o",
                "json",
            ];
            let ran = ebbtide(&plan).await;
            assert_eq!(ran.code, 0, "{model} {group}: {}", ran.err);
            assert!(
                ran.json()["schedule"]["overhead"].as_f64() > Some(0.0),
                "{model}"
            );
        }
        let ran = ebbtide(&[
            "model",
            "check",
            &lives,
            "--against",
            &models,
            "--group",
            "spot.b",
            "-o",
            "json",
        ])
        .await;
        assert!(ran.code <= 1, "{model}: {}", ran.err);
        assert_eq!(
            ran.json()["lifetimes"],
            30,
            "{model}: only those of the group"
        );
    }
}

#[tokio::test]
async fn a_check_finds_what_changed_and_leaves_what_did_not_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (data, reduced) = public_data();
    // 16 CPUs until 24 March.
    let fit = [
        "model",
        "fit",
        &data,
        "--where",
        "flavor=n1-highcpu-16",
        "--until",
        "2019-03-24",
        "--method",
        "mle",
        "--model",
        "weibull",
        "-o",
        "json",
    ];
    let model = file(directory.path(), "m.json", ebbtide(&fit).await.out);
    let svg = directory.path().join("check.svg");
    let check = [
        "model",
        "check",
        &data,
        "--since",
        "2019-03-24",
        "--against",
        &model,
    ];
    let same = [
        &check[..],
        &[
            "--where",
            "flavor=n1-highcpu-16",
            "--svg",
            svg.to_str().unwrap(),
        ],
    ]
    .concat();
    let ran = ebbtide(&same).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("nothing says that the model does not fit"),
        "{}",
        ran.out
    );
    assert!(std::fs::read_to_string(&svg).unwrap().contains("alarm"));
    if reduced {
        // There all flavors live alike.
        return;
    }
    // Those with two CPUs live longer.
    let other = [
        &check[..],
        &["--where", "flavor=n1-highcpu-2", "-o", "json"],
    ]
    .concat();
    let ran = ebbtide(&other).await;
    assert_eq!(ran.code, 1);
    let json = ran.json();
    assert_eq!(json["fits"], false);
    assert!(json["alarm"]["hazard_times"].as_f64() < Some(1.0), "{json}");
    assert!(
        json["alarm"]["since_launched"]
            .as_str()
            .unwrap()
            .starts_with("2019-"),
        "{json}"
    );
    assert!(
        ran.err.contains("EB-CLI-010") && ran.err.contains("less often"),
        "{}",
        ran.err
    );
}
