//! Unified limits of a real Keystone.

use crate::cloud::Cloud;
use crate::fake::config;
use ebbtide_keystone::limits::{
    Limit, LimitSource, PREEMPTIBLE_MEMORY_MB, PREEMPTIBLE_SERVERS, PREEMPTIBLE_VCPUS,
};
use ebbtide_keystone::{AuthTokenOptions, LimitOptions, LimitReader};
use serde_json::json;

fn reader(cloud: &Cloud, more: &str) -> LimitReader {
    let config = config(&cloud.url(), more);
    let tokens = AuthTokenOptions::read(&config).unwrap();
    LimitReader::new(LimitOptions::read(&config, &tokens).unwrap()).unwrap()
}

async fn register(cloud: &Cloud, resource: &str, limit: i64) {
    let given = json!({"registered_limits": [{
        "service_id": cloud.service, "region_id": "RegionOne", "resource_name": resource,
        "default_limit": limit,
    }]});
    cloud.post("/v3/registered_limits", given).await;
}

async fn set(cloud: &Cloud, of: &str, id: &str, resource: &str, limit: i64) {
    let given = json!({"limits": [{
        of: id, "service_id": cloud.service, "region_id": "RegionOne",
        "resource_name": resource, "resource_limit": limit,
    }]});
    cloud.post("/v3/limits", given).await;
}

#[tokio::test]
async fn a_project_has_its_limits_the_registered_ones_or_a_clear_error() {
    let cloud = Cloud::start("").await;
    register(&cloud, PREEMPTIBLE_SERVERS, 10).await;
    register(&cloud, PREEMPTIBLE_VCPUS, 40).await;
    set(&cloud, "project_id", &cloud.project, PREEMPTIBLE_SERVERS, 3).await;
    let reader = reader(&cloud, "");
    let limits = reader.project(&cloud.project, None).await.unwrap();
    let servers = limits.get(PREEMPTIBLE_SERVERS).unwrap();
    assert_eq!(
        (servers.limit, servers.source),
        (Limit::AtMost(3), LimitSource::Project)
    );
    let vcpus = limits.get(PREEMPTIBLE_VCPUS).unwrap();
    assert_eq!(
        (vcpus.limit, vcpus.source),
        (Limit::AtMost(40), LimitSource::Registered)
    );
    let unknown = limits.get(PREEMPTIBLE_MEMORY_MB).unwrap_err();
    assert_eq!(unknown.code(), "EB-KEYSTONE-015");
    assert!(unknown.to_string().contains("RegionOne"), "{unknown}");

    // Cached, as tokens are; another reader asks anew.
    set(&cloud, "project_id", &cloud.project, PREEMPTIBLE_VCPUS, 7).await;
    let again = reader.project(&cloud.project, None).await.unwrap();
    assert_eq!(again, limits);
    let anew = self::reader(&cloud, "")
        .project(&cloud.project, None)
        .await
        .unwrap();
    assert_eq!(anew.get(PREEMPTIBLE_VCPUS).unwrap().limit, Limit::AtMost(7));

    // Without the service in the region there is nothing to look for.
    let elsewhere = self::reader(&cloud, "[oslo_limit]\nregion_name = RegionTwo");
    let failed = elsewhere.project(&cloud.project, None).await.unwrap_err();
    assert_eq!(
        (failed.code(), failed.meaning().status()),
        ("EB-KEYSTONE-017", 503)
    );
}

#[tokio::test]
async fn with_two_levels_the_domain_counts_and_a_deleted_project_is_an_error() {
    let cloud = Cloud::start("[unified_limit]\nenforcement_model = strict_two_level\n").await;
    register(&cloud, PREEMPTIBLE_SERVERS, 10).await;
    register(&cloud, PREEMPTIBLE_VCPUS, 40).await;
    set(&cloud, "domain_id", "default", PREEMPTIBLE_SERVERS, 20).await;
    set(
        &cloud,
        "project_id",
        &cloud.project,
        PREEMPTIBLE_SERVERS,
        15,
    )
    .await;
    let reader = reader(&cloud, "");
    let limits = reader.project(&cloud.project, None).await.unwrap();
    let servers = limits.get(PREEMPTIBLE_SERVERS).unwrap();
    assert_eq!(
        (servers.limit, servers.source),
        (Limit::AtMost(15), LimitSource::Project)
    );
    assert_eq!(servers.domain_total, Some(Limit::AtMost(20)));
    assert_eq!(limits.get(PREEMPTIBLE_VCPUS).unwrap().domain_total, None);
    for missing in ["0123456789abcdef0123456789abcdef", "../users", ""] {
        let failed = reader.project(missing, None).await.unwrap_err();
        assert_eq!(
            (failed.code(), failed.meaning().status()),
            ("EB-KEYSTONE-016", 403)
        );
    }
}

#[test]
fn credentials_that_are_not_for_the_system_are_refused_at_start() {
    let section = |scope: &str| {
        format!(
            "[oslo_limit]\nauth_url = http://k\nusername = nova\nuser_domain_id = default\n\
             password = nova\n{scope}"
        )
    };
    let read = |more: &str| {
        let config = config("http://k", more);
        LimitOptions::read(&config, &AuthTokenOptions::read(&config).unwrap())
    };
    read(&section("system_scope = all")).unwrap();
    for scope in ["", "project_id = p", "domain_id = d"] {
        let error = read(&section(scope)).unwrap_err();
        assert_eq!(error.code(), "EB-KEYSTONE-001");
        assert!(error.to_string().contains("system_scope"), "{error}");
    }
}
