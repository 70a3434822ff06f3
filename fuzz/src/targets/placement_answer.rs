//! Placement's answers on the way into the cloud in memory: candidates, summaries.

use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{Cloud, CloudSettings};

pub(super) fn run(bytes: &[u8]) {
    let Ok(answer) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return;
    };
    let mut cloud = Cloud::new(Options::default(), CloudSettings::default()).expect("the defaults");
    match cloud.put_summaries(&answer) {
        Ok(count) => {
            let told = answer["provider_summaries"]
                .as_object()
                .map(serde_json::Map::len);
            assert_eq!(Some(count), told);
        }
        Err(error) => assert!(error.to_string().len() < 2_000, "an endless error"),
    }
    // Again, as when another answer comes.
    let _ = cloud.put_summaries(&answer);
    if let Err(error) = cloud.candidates_from_answer(&answer) {
        assert!(error.to_string().len() < 2_000, "an endless error");
    }
    let _ = cloud.aggregate_uuids();
}
