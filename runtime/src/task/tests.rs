//! Tests of tasks, with a paused timer.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

use super::*;
use tokio::sync::oneshot;

/// Ends when its sender is dropped.
async fn until_dropped(receiver: oneshot::Receiver<()>) {
    let _ = receiver.await;
}

#[tokio::test]
async fn a_dropped_task_is_aborted() {
    let (mut sender, receiver) = oneshot::channel::<()>();
    let task = spawn("test", until_dropped(receiver));
    drop(task);
    sender.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_finish_in_time_is_aborted() {
    let (mut sender, receiver) = oneshot::channel::<()>();
    let task = spawn_for("test", "subject", until_dropped(receiver));
    task.finish(Duration::from_secs(60)).await;
    sender.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_its_time_or_with_the_service() {
    let stop = CancellationToken::new();
    assert!(pause(&stop, Duration::from_secs(60)).await);
    stop.cancel();
    assert!(!pause(&stop, Duration::from_secs(60)).await);
}

#[tokio::test]
async fn a_panic_of_blocking_work_is_an_error() {
    assert_eq!(blocking(|| 7).await.expect("no panic"), 7);
    assert!(blocking(|| panic!("of the test")).await.is_err());
    let error = blocking_io(|| -> std::io::Result<()> { panic!("of the test") });
    assert!(error.await.is_err());
    let error = blocking_io(|| Err::<(), _>(std::io::ErrorKind::NotFound.into())).await;
    assert_eq!(
        error.expect_err("not found").kind(),
        std::io::ErrorKind::NotFound
    );
}

#[tokio::test]
async fn a_set_returns_every_result_in_spite_of_a_panic() {
    let mut set = TaskSet::new("test");
    set.spawn(async { panic!("of the test") });
    set.spawn(async { 7 });
    assert_eq!(set.next().await, 7);
    while !set.is_empty() {
        let next = tokio::time::timeout(Duration::from_millis(10), set.next()).await;
        assert!(next.is_err(), "a second result");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_stops_all_tasks() {
    let tasks = Tasks::new(CancellationToken::new());
    tasks.repeat("test", Duration::from_secs(1), || async {});
    assert!(!tasks.finish(Duration::from_secs(60)).await);
    tasks.stop_with("first");
    tasks.stop_with("second");
    assert!(tasks.finish(Duration::from_secs(60)).await);
    assert_eq!(tasks.failure(), Some("first"));
}
