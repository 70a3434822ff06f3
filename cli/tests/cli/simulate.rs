//! `ebbtide-lab simulate evacuation`.

use crate::run::alone;

const SIMULATE: [&str; 2] = ["simulate", "evacuation"];

async fn simulate(options: &[&str]) -> crate::run::Ran {
    let words: Vec<&str> = SIMULATE.iter().chain(options).copied().collect();
    alone(&words).await
}

#[tokio::test]
async fn seeds_without_a_violation_end_with_a_line_that_says_so() {
    let ran = simulate(&["--seeds", "6", "--steps", "120"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out.lines().last(), Some("violations: 0"));
    assert!(ran.out.contains("seeds: 6\nsteps: 1440\n"), "{}", ran.out);
    let json = simulate(&["--seeds", "6", "--steps", "120", "-o", "json"])
        .await
        .json();
    assert_eq!(
        (&json["violations"], &json["seeds"]),
        (&0.into(), &6.into())
    );
    assert!(json["evacuations"].as_u64() > Some(0), "{json}");
    let value = simulate(&["--seeds", "2", "--steps", "50", "-o", "value"]).await;
    assert_eq!(value.out.trim(), "violations: 0");
}

#[tokio::test]
async fn a_broken_rule_is_told_as_a_story_that_can_be_played_again() {
    let ran = simulate(&[
        "--seeds",
        "100",
        "--break",
        "spare-ignored",
        "--threads",
        "2",
    ])
    .await;
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.out.contains("BROKEN: no server ends for nothing"),
        "{}",
        ran.out
    );
    let again = ran
        .out
        .lines()
        .find_map(|line| line.strip_prefix("again: ebbtide-lab "))
        .expect("it says how");
    let words: Vec<&str> = again.split(' ').collect();
    let played = alone(&words).await;
    assert_eq!(played.code, 1, "{}", played.err);
    let last = played.out.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("violations: 1 (no server ends for nothing"),
        "{last}"
    );
}

#[tokio::test]
async fn the_rules_that_can_be_broken_are_listed() {
    let ran = simulate(&["--break", "list", "-o", "value"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.lines().count() >= 10, "{}", ran.out);
    let wrong = simulate(&["--break", "everything"]).await;
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("notice-before-commit"), "{}", wrong.err);
}
