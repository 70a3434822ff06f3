//! New credentials of our own, with a real Keystone.

use crate::cloud::{Cloud, id};
use crate::fake::{options, read};
use ebbtide_harness::eventually;
use ebbtide_keystone::TokenValidator;
use ebbtide_openstack::{AuthMethod, AuthOptions, Secret};
use ebbtide_runtime::login::Renewal;
use serde_json::json;
use std::time::Duration;

/// Our own credentials with another password.
fn with_password(cloud: &Cloud, new: &str) -> AuthOptions {
    let mut auth = options(&cloud.url(), "").auth;
    match &mut auth.method {
        AuthMethod::Password { password, .. } => *password = Secret::new(new),
        other => panic!("no password: {other:?}"),
    }
    auth
}

#[tokio::test]
async fn a_new_password_counts_at_once_and_a_wrong_one_never() {
    let cloud = Cloud::start("").await;
    let validator = TokenValidator::new(options(&cloud.url(), "")).unwrap();
    let validate = async || {
        let ada = cloud.token_of("ada").await;
        read(&validator, &ada).await
    };
    validate().await.unwrap();
    let session = validator.session();

    let wrong = with_password(&cloud, "geheim");
    let error = session.renew_login(wrong).await.unwrap_err();
    assert_eq!(error.code(), "EB-HTTP-002", "{error}");
    assert!(!error.to_string().contains("geheim"), "{error}");
    validate().await.unwrap();

    let users = cloud.get("/v3/users?name=nova").await;
    let path = format!("/v3/users/{}", id(&users["users"][0]));
    let change = json!({"user": {"password": "new"}});
    cloud
        .call_as(&cloud.admin, "PATCH", &path, Some(change))
        .await;
    // The change has ended our token, and the old password gets no other one.
    validate().await.unwrap_err();
    let new = with_password(&cloud, "new");
    assert_eq!(
        session.renew_login(new.clone()).await.unwrap(),
        Renewal::Accepted
    );
    // Keystone counts whole seconds: a token of the second of the change is ended by it, too.
    eventually(Duration::from_secs(30), async || {
        validate()
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(session.renew_login(new).await.unwrap(), Renewal::Unchanged);
}
