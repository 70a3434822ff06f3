//! What is remembered, for how long, and how often Keystone is asked.

use crate::fake::{FakeKeystone, TestClock, member, read, unknown};
use ebbtide_keystone::Meaning;
use futures::future::join_all;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

const QUICK: Duration = Duration::ZERO;
const SLOW: Duration = Duration::from_millis(100);
const LATE: &str = "2026-11-26T20:00:00.000000Z";

#[tokio::test]
async fn a_hundred_requests_with_one_token_are_one_question() {
    let keystone = FakeKeystone::start(SLOW, |_| (200, member(LATE))).await;
    let validator = keystone.validator(&TestClock::new());
    let answers = join_all((0..100).map(|_| read(&validator, "t"))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(keystone.questions(), 1);
    let other = read(&validator, "u").await;
    assert!(other.is_ok() && keystone.questions() == 2);
}

#[tokio::test]
async fn a_hundred_requests_with_one_bad_token_are_one_question_for_ten_seconds() {
    let keystone = FakeKeystone::start(SLOW, |_| unknown()).await;
    let clock = TestClock::new();
    let validator = keystone.validator(&clock);
    let answers = join_all((0..100).map(|_| read(&validator, "bad"))).await;
    let invalid = |code: &str| code == "EB-KEYSTONE-004";
    assert!(
        answers
            .iter()
            .all(|a| invalid(a.as_ref().unwrap_err().code()))
    );
    clock.advance(9);
    read(&validator, "bad").await.unwrap_err();
    assert_eq!(keystone.questions(), 1);
    clock.advance(1);
    read(&validator, "bad").await.unwrap_err();
    assert_eq!(keystone.questions(), 2);
}

#[tokio::test]
async fn a_request_that_is_given_up_does_not_hold_up_the_others() {
    let keystone = FakeKeystone::start(SLOW, |_| (200, member(LATE))).await;
    let validator = keystone.validator(&TestClock::new());
    validator.check().await.unwrap();
    let first = tokio::time::timeout(SLOW / 4, read(&validator, "t"));
    let (first, second) = tokio::join!(first, read(&validator, "t"));
    assert!(first.is_err() && second.is_ok());
}

#[tokio::test]
async fn a_revoked_token_is_refused_after_the_cache_time() {
    let status = Arc::new(AtomicU16::new(200));
    let now = Arc::clone(&status);
    let keystone = FakeKeystone::start(QUICK, move |_| match now.load(Ordering::SeqCst) {
        200 => (200, member(LATE)),
        _ => unknown(),
    })
    .await;
    let clock = TestClock::new();
    let validator = keystone.validator(&clock);
    read(&validator, "t").await.unwrap();
    status.store(404, Ordering::SeqCst);
    clock.advance(299);
    read(&validator, "t").await.unwrap();
    clock.advance(1);
    let refused = read(&validator, "t").await.unwrap_err();
    assert_eq!(refused.code(), "EB-KEYSTONE-004");
    assert_eq!(refused.meaning(), Meaning::Unauthenticated);
}

#[tokio::test]
async fn a_cached_token_is_not_used_after_its_end() {
    let keystone =
        FakeKeystone::start(QUICK, |_| (200, member("2026-11-26T12:01:00.000000Z"))).await;
    let clock = TestClock::new();
    let validator = keystone.validator(&clock);
    read(&validator, "t").await.unwrap();
    clock.advance(59);
    read(&validator, "t").await.unwrap();
    assert_eq!(keystone.questions(), 1);
    clock.advance(1);
    // Keystone, whose clock is behind ours, would still take it.
    let refused = read(&validator, "t").await.unwrap_err();
    assert_eq!(
        (refused.code(), keystone.questions()),
        ("EB-KEYSTONE-005", 2)
    );
}

#[tokio::test]
async fn a_failing_keystone_is_unavailable_and_left_alone_for_a_second() {
    let status = Arc::new(AtomicU16::new(500));
    let now = Arc::clone(&status);
    let keystone = FakeKeystone::start(QUICK, move |_| match now.load(Ordering::SeqCst) {
        200 => (200, member(LATE)),
        status => (status, json!({})),
    })
    .await;
    let clock = TestClock::new();
    let mut options = crate::fake::options(&keystone.url, "");
    options.identity.connect_retries = 0;
    let policy = ebbtide_keystone::CachePolicy::new(options.token_cache_time);
    let validator =
        ebbtide_keystone::TokenValidator::with_policy(options, policy, clock.clone()).unwrap();
    let failed = read(&validator, "t").await.unwrap_err();
    assert_eq!(
        (failed.code(), failed.meaning()),
        ("EB-KEYSTONE-010", Meaning::Unavailable)
    );
    let others: Vec<String> = (0..50).map(|n| format!("other-{n}")).collect();
    let answers = join_all(others.iter().map(|token| read(&validator, token))).await;
    assert!(answers.iter().all(|answer| answer.is_err()));
    assert_eq!(keystone.questions(), 1);
    status.store(200, Ordering::SeqCst);
    clock.advance(1);
    read(&validator, "t").await.unwrap();
}

#[tokio::test]
async fn a_keystone_that_refuses_us_is_not_the_callers_fault() {
    for status in [401, 403] {
        let keystone = FakeKeystone::start(QUICK, move |_| (status, json!({}))).await;
        let validator = keystone.validator(&TestClock::new());
        let refused = read(&validator, "t").await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.meaning().status()),
            ("EB-KEYSTONE-011", 503)
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_no_token_admits_no_request() {
    for body in [
        json!({}),
        json!([]),
        json!({"token": {"user": "s3cret"}}),
        json!("s3cret"),
    ] {
        let keystone = FakeKeystone::start(QUICK, move |_| (200, body.clone())).await;
        let validator = keystone.validator(&TestClock::new());
        let refused = read(&validator, "t").await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.meaning().status()),
            ("EB-KEYSTONE-012", 503)
        );
        assert!(!refused.to_string().contains("s3cret"));
    }
}

#[tokio::test]
async fn neither_debug_output_nor_errors_have_a_token() {
    let keystone = FakeKeystone::start(QUICK, |token| match token {
        "s3cret" => (200, member(LATE)),
        _ => (404, json!({"error": {"message": "no such token: hidden"}})),
    })
    .await;
    let validator = keystone.validator(&TestClock::new());
    let known = read(&validator, "s3cret").await.unwrap();
    let refused = read(&validator, "hidden").await.unwrap_err();
    let said = format!("{validator:?} {known:?} {refused:?} {refused}");
    assert!(
        !said.contains("s3cret") && !said.contains("hidden"),
        "{said}"
    );
}
