//! A real Keystone that goes away.

use crate::cloud::Cloud;
use crate::fake::{options, read};
use ebbtide_harness::eventually;
use ebbtide_keystone::{CachePolicy, Meaning, TokenValidator};
use ebbtide_runtime::clock::Stopwatch;
use std::time::Duration;

#[tokio::test]
async fn cached_tokens_go_on_while_keystone_is_away_and_others_are_unavailable_in_time() {
    let mut cloud = Cloud::start("").await;
    let options = options(&cloud.url(), "");
    let limit = CachePolicy::new(options.token_cache_time).limit;
    let validator = TokenValidator::new(options).unwrap();
    let (cached, new) = (cloud.token_of("ada").await, cloud.token_of("rita").await);
    read(&validator, &cached).await.unwrap();

    // It takes connections and says nothing.
    cloud.keystone.freeze().unwrap();
    let watch = Stopwatch::start();
    let failed = read(&validator, &new).await.unwrap_err();
    assert_eq!(
        (failed.code(), failed.meaning()),
        ("EB-KEYSTONE-010", Meaning::Unavailable)
    );
    assert!(watch.elapsed() < limit * 2, "{:?}", watch.elapsed());
    read(&validator, &cached).await.unwrap();
    cloud.keystone.thaw().unwrap();
    let answers = async || read(&validator, &new).await;
    eventually(Duration::from_secs(60), answers).await;

    // It takes no connections.
    let another = cloud.token_of("rita").await;
    cloud.keystone.kill();
    let failed = read(&validator, &another).await.unwrap_err();
    assert_eq!(failed.meaning(), Meaning::Unavailable);
    read(&validator, &cached).await.unwrap();
    cloud.keystone.restart().await.unwrap();
    let answers = async || read(&validator, &another).await;
    eventually(Duration::from_secs(60), answers).await;
}
