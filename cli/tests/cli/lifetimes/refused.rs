//! What no model or plan can be made of.

use super::{REFIT, ebbtide, file, plain};
use std::io::Write as _;

#[tokio::test]
async fn bad_lifetimes_are_refused_with_code_and_place() {
    let directory = tempfile::tempdir().unwrap();
    let head = "lifetime_hours,ended\n";
    let many = |row: &str| format!("{head}{}", row.repeat(30));
    for (name, text, code, words) in [
        (
            "empty",
            String::new(),
            "EB-LIFETIME-009",
            "the file is empty",
        ),
        ("no rows", head.to_owned(), "EB-LIFETIME-004", "there are 0"),
        (
            "semicolons",
            "lifetime_hours;ended\n1,5;preempted\n".to_owned(),
            "EB-LIFETIME-009",
            "columns are separated by commas, and here they seem to be by ';'",
        ),
        (
            "one row",
            format!("{head}3,preempted\n"),
            "EB-LIFETIME-004",
            "there are 1",
        ),
        (
            "all stopped",
            many("3,stopped\n"),
            "EB-LIFETIME-004",
            "(30 were stopped by their users)",
        ),
        (
            "all alike",
            many("3,preempted\n"),
            "EB-LIFETIME-004",
            "there are 1",
        ),
        (
            "negative",
            format!("{head}1,preempted\n-3,preempted\n"),
            "EB-LIFETIME-003",
            "-3 h; a lifetime is a finite number, not negative (line 3)",
        ),
        (
            "not a number",
            format!("{head}NaN,preempted\n"),
            "EB-LIFETIME-003",
            "line 2",
        ),
        (
            "infinite",
            format!("{head}inf,preempted\n"),
            "EB-LIFETIME-003",
            "line 2",
        ),
        (
            "words",
            format!("{head}long,preempted\n"),
            "EB-LIFETIME-008",
            "line 2: the lifetime \"long\" is no number",
        ),
        (
            "seconds",
            format!("{head}5400,preempted\n"),
            "EB-LIFETIME-003",
            "is this another unit?",
        ),
        (
            "beyond the maximum",
            format!("{head}3,preempted\n30.5,stopped\n"),
            "EB-LIFETIME-003",
            "the maximum lifetime is 24 h",
        ),
        (
            "other end",
            format!("{head}3,crashed\n"),
            "EB-LIFETIME-008",
            "preempted or stopped",
        ),
        (
            "ragged",
            format!("{head}3,preempted\n3\n"),
            "EB-LIFETIME-008",
            "line 3",
        ),
        (
            "other columns",
            "id,age\n1,2\n".to_owned(),
            "EB-LIFETIME-009",
            "there are id, age",
        ),
        (
            "minutes",
            "lifetime_minutes,ended\n90,preempted\n".to_owned(),
            "EB-LIFETIME-009",
            "lifetimes are hours",
        ),
        (
            "no end",
            "lifetime_hours\n3\n".to_owned(),
            "EB-LIFETIME-009",
            "ended",
        ),
        (
            "twice",
            "lifetime_hours,ended,ended\n3,stopped,stopped\n".to_owned(),
            "EB-LIFETIME-009",
            "two columns",
        ),
        (
            "launch",
            "lifetime_hours,ended,launched\n3,preempted,yesterday\n".to_owned(),
            "EB-LIFETIME-008",
            "yesterday",
        ),
    ] {
        let lives = file(directory.path(), "bad.csv", text);
        for model in ["bathtub", "best", "weibull"] {
            let ran = ebbtide(&["model", "fit", &lives, "--model", model]).await;
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{name}: {}", ran.err);
            assert!(ran.err.starts_with(code), "{name}: {}", ran.err);
            assert!(ran.err.contains(words), "{name}: {}", ran.err);
            assert!(ran.err.contains("bad.csv"), "{name}: {}", ran.err);
        }
    }
    let lives = file(directory.path(), "good.csv", plain());
    let labelled = "lifetime_hours,ended,flavor\n1,preempted,small\n2,preempted,medium\n";
    let labelled = file(directory.path(), "labelled.csv", labelled);
    let plan = [
        "plan",
        "checkpoint",
        "--job",
        "5h",
        "--model",
        REFIT,
        "--mttf",
    ];
    let with_mttf = |mttf| [&plan[..], &[mttf]].concat();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(plain().as_bytes()).unwrap();
    let whole = gzip.finish().unwrap();
    let cut = file(directory.path(), "cut.csv", &whole[..whole.len() / 2]);
    for (line, code, exit, words) in [
        (
            vec!["model", "fit", &lives, "--by", "colour"],
            "EB-LIFETIME-009",
            1,
            "there are flavor, hour",
        ),
        (
            vec!["model", "fit", &lives, "--where", "colour=red"],
            "EB-LIFETIME-009",
            1,
            "no colour",
        ),
        (
            vec![
                "model",
                "fit",
                &lives,
                "--max-lifetime",
                "none",
                "--model",
                "bathtub",
            ],
            "EB-LIFETIME-001",
            2,
            "maximum",
        ),
        (
            vec!["model", "fit", "/nowhere.csv"],
            "EB-SIM-001",
            1,
            "/nowhere.csv",
        ),
        (
            vec![
                "model",
                "check",
                &lives,
                "--against",
                REFIT,
                "--false-alarms",
                "2",
            ],
            "EB-LIFETIME-006",
            2,
            "false alarm",
        ),
        (
            vec![
                "model",
                "check",
                &lives,
                "--against",
                REFIT,
                "--since",
                "2030-01-01",
            ],
            "EB-LIFETIME-009",
            1,
            "leave none of the 60 rows",
        ),
        (
            vec!["model", "fit", &labelled, "--where", "flavor=large"],
            "EB-LIFETIME-009",
            1,
            "leave none of the 2 rows; there are flavor=medium, flavor=small",
        ),
        (
            vec!["model", "fit", &cut],
            "EB-SIM-001",
            1,
            "gzip: the file ends in the middle: it was cut off",
        ),
        (
            with_mttf("0"),
            "EB-LIFETIME-006",
            2,
            "the mean time to failure is 0; it has to be",
        ),
        (
            with_mttf("0.000000000000001s"),
            "EB-LIFETIME-006",
            2,
            "more than a million",
        ),
    ] {
        let ran = ebbtide(&line).await;
        assert_eq!(ran.code, exit, "{line:?}: {}", ran.err);
        assert!(
            ran.err.contains(code) && ran.err.contains(words),
            "{line:?}: {}",
            ran.err
        );
    }
    // No maximum: a month is a lifetime like any other.
    let long = file(
        directory.path(),
        "long.csv",
        plain().replace("24.0,", "700.0,"),
    );
    let ran = ebbtide(&[
        "model",
        "fit",
        &long,
        "--max-lifetime",
        "none",
        "--model",
        "weibull",
        "-o",
        "json",
    ])
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.json()["groups"][0]["maximum_hours"].is_null());
}

#[tokio::test]
async fn models_that_are_none_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let lives = file(directory.path(), "lives.csv", plain());
    let fit = [
        "model", "fit", &lives, "--by", "flavor", "--model", "weibull", "-o", "json",
    ];
    let models = ebbtide(&fit).await;
    let models = file(directory.path(), "models.json", &models.out);
    let none = file(directory.path(), "none.json", "{}");
    let broken = file(
        directory.path(),
        "broken.json",
        r#"{"groups": [{"group": "all", "model": "weibull", "parameters": {"lambda": "x"}}]}"#,
    );
    for (model, group, code, words) in [
        (
            "gauss:mu=1",
            None,
            "EB-LIFETIME-010",
            "bathtub, exponential, weibull",
        ),
        (
            "bathtub:A=0.4,tau1=1",
            None,
            "EB-LIFETIME-010",
            "tau2 is missing",
        ),
        (
            "bathtub:A=0.4,tau1=1,tau2=0.8,b=24,c=1",
            None,
            "EB-LIFETIME-010",
            "no parameter \"c\"",
        ),
        (
            "bathtub:A=-1,tau1=1,tau2=0.8,b=24",
            None,
            "EB-LIFETIME-001",
            "A of the model bathtub is -1",
        ),
        ("weibull:lambda=0.1,k=much", None, "EB-LIFETIME-010", "much"),
        (
            "weibull:lambda=0.1,lambda=0.2,k=1",
            None,
            "EB-LIFETIME-010",
            "twice",
        ),
        ("uniform:max=none", None, "EB-LIFETIME-001", "maximum"),
        ("phases:3=0.1,2=0.1", None, "EB-LIFETIME-002", "phase 2"),
        ("empirical", None, "EB-LIFETIME-010", "too many points"),
        (
            "missing.json",
            None,
            "EB-LIFETIME-010",
            "there is no file missing.json",
        ),
        (none.as_str(), None, "EB-LIFETIME-010", "this is not what"),
        (broken.as_str(), None, "EB-LIFETIME-010", "the group all"),
        (
            models.as_str(),
            Some("spot.c"),
            "EB-LIFETIME-010",
            "there are all, flavor=spot.a, flavor=spot.b",
        ),
    ] {
        let mut line = vec![
            "plan", "reuse", "--job", "1h", "--age", "1h", "--model", model,
        ];
        if let Some(group) = group {
            line.extend(["--group", group]);
        }
        let ran = ebbtide(&line).await;
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{model}: {}",
            ran.err
        );
        assert!(
            ran.err.starts_with(code) && ran.err.contains(words),
            "{model}: {}",
            ran.err
        );
    }
    // By hand: one model alone, and phases on the command line.
    let alone = file(
        directory.path(),
        "one.json",
        r#"{"model": "exponential", "parameters": {"lambda": 0.1}}"#,
    );
    for model in [
        alone.as_str(),
        "phases:3=0.2,22=0.01,24=0.5",
        "exponential:lambda=0.1,max=none",
    ] {
        let ran = ebbtide(&[
            "plan", "reuse", "--job", "1h", "--age", "1h", "--model", model,
        ])
        .await;
        assert_eq!(ran.code, 0, "{model}: {}", ran.err);
    }
}
