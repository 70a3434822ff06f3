//! Tokens of a real Keystone.

use crate::answers;
use crate::cloud::{Cloud, id};
use crate::fake::{options, read};
use ebbtide_keystone::{
    AccessPolicy, ApiRequest, ApiRole, CachePolicy, KeystoneError, Scope, SystemClock,
    TokenValidator,
};
use ebbtide_openstack::AdapterOptions;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn validator(cloud: &Cloud, more: &str) -> TokenValidator {
    let options = options(&cloud.url(), more);
    let policy = CachePolicy {
        // On a busy machine Keystone takes longer than it may in production.
        limit: Duration::from_secs(120),
        ..CachePolicy::new(options.token_cache_time)
    };
    TokenValidator::with_policy(options, policy, Arc::new(SystemClock)).unwrap()
}

async fn refusal(validator: &TokenValidator, token: &str) -> (&'static str, u16) {
    let error = read(validator, token).await.unwrap_err();
    (error.code(), error.meaning().status())
}

async fn role(validator: &TokenValidator, token: &str) -> Result<ApiRole, KeystoneError> {
    AccessPolicy::default().api_role(&read(validator, token).await?.token)
}

/// A credential of ada's with these access rules, and a token that it gives.
async fn credential(cloud: &Cloud, name: &str, rules: Value) -> String {
    let token = cloud.token_of("ada").await;
    let user = id(&cloud.describe(&token).await.body["token"]["user"]);
    let path = format!("/v3/users/{user}/application_credentials");
    let mut given = json!({"application_credential": {"name": name, "secret": "pw"}});
    if !rules.is_null() {
        given["application_credential"]["access_rules"] = rules;
    }
    let made = cloud.call_as(&token, "POST", &path, Some(given)).await;
    let credential = json!({"id": id(&made["application_credential"]), "secret": "pw"});
    cloud
        .issue(json!({"identity": {
            "methods": ["application_credential"], "application_credential": credential,
        }}))
        .await
}

/// One test, because a start of Keystone takes seconds.
#[tokio::test]
async fn a_real_keystones_tokens_are_taken_for_what_they_are() {
    let cloud = Cloud::start("").await;
    let validator = validator(&cloud, "");
    validator.check().await.unwrap();

    let member = cloud.token_of("ada").await;
    let known = read(&validator, &member).await.unwrap().token;
    assert_eq!(
        (known.user.name.as_str(), known.user.domain.id.as_str()),
        ("ada", "default")
    );
    assert_eq!(known.project().unwrap().id, cloud.project);
    assert_eq!(known.audit_ids.len(), 1);
    assert!(known.is_admin_project);
    assert_eq!(
        AccessPolicy::default().api_role(&known),
        Ok(ApiRole::ProjectMember)
    );
    let endpoint = known.endpoint(&AdapterOptions::new("preemption")).unwrap();
    assert_eq!(endpoint.url, "http://internal.example");
    assert_eq!(endpoint.service_id, Some(cloud.service.clone()));

    let reader = cloud.token_of("rita").await;
    assert_eq!(role(&validator, &reader).await, Ok(ApiRole::ProjectReader));
    assert_eq!(role(&validator, &cloud.admin).await, Ok(ApiRole::Admin));
    let system = cloud
        .log_in("admin", json!({"system": {"all": true}}))
        .await;
    let known = read(&validator, &system).await.unwrap().token;
    assert_eq!(
        (&known.scope, AccessPolicy::default().api_role(&known)),
        (&Scope::System, Ok(ApiRole::Admin))
    );
    let reader_of_system = cloud.log_in("nova", json!({"system": {"all": true}})).await;
    let refused = role(&validator, &reader_of_system).await.unwrap_err();
    assert_eq!(refused.code(), "EB-KEYSTONE-014");

    let unscoped = cloud.log_in("eve", json!("unscoped")).await;
    assert_eq!(
        refusal(&validator, &unscoped).await,
        ("EB-KEYSTONE-006", 403)
    );
    assert_eq!(
        refusal(&validator, "gAAAAABforeign").await,
        ("EB-KEYSTONE-004", 401)
    );

    let revoked = cloud.token_of("ada").await;
    cloud.revoke(&revoked).await;
    assert_eq!(
        refusal(&validator, &revoked).await,
        ("EB-KEYSTONE-004", 401)
    );

    // Another service on behalf of ada, and ada, who takes herself for a service.
    let service = json!({"project": {"name": "service", "domain": {"id": "default"}}});
    let service = cloud.log_in("nova", service).await;
    assert_eq!(role(&validator, &service).await, Ok(ApiRole::Service));
    let on_behalf = |service| {
        ApiRequest::new("GET", "/v1/servers")
            .with_token(Some(&member))
            .with_service_token(Some(service))
    };
    let known = validator.authenticate(&on_behalf(&service)).await.unwrap();
    assert_eq!(known.service.unwrap().user.name, "nova");
    let refused = validator
        .authenticate(&on_behalf(&revoked))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "EB-KEYSTONE-008");
    let strict = self::validator(&cloud, "service_token_roles_required = true");
    strict.authenticate(&on_behalf(&service)).await.unwrap();
    let refused = strict.authenticate(&on_behalf(&reader)).await.unwrap_err();
    assert_eq!(refused.code(), "EB-KEYSTONE-008");

    let rules = json!([{"service": "preemption", "method": "GET", "path": "/v1/servers/{id}"}]);
    let restricted = credential(&cloud, "restricted", rules).await;
    let request = |method, path| ApiRequest::new(method, path).with_token(Some(&restricted));
    let known = validator
        .authenticate(&request("GET", "/v1/servers/a"))
        .await
        .unwrap();
    assert!(
        known
            .token
            .application_credential
            .as_ref()
            .unwrap()
            .restricted
    );
    for other in [
        request("GET", "/v1/servers"),
        request("DELETE", "/v1/servers/a"),
    ] {
        let refused = validator.authenticate(&other).await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.meaning().status()),
            ("EB-KEYSTONE-007", 401)
        );
    }
    let free = credential(&cloud, "free", Value::Null).await;
    assert_eq!(role(&validator, &free).await, Ok(ApiRole::ProjectMember));

    let mut described = BTreeMap::new();
    for (name, token) in [
        ("member", &member),
        ("admin", &cloud.admin),
        ("system", &system),
        ("unscoped", &unscoped),
        ("restricted", &restricted),
        ("free", &free),
        ("revoked", &revoked),
    ] {
        let answer = cloud.describe(token).await;
        described.insert(
            name.to_owned(),
            json!({"status": answer.status, "body": answer.body}),
        );
    }
    answers::compare_or_record(&described);
}

#[tokio::test]
async fn a_user_that_may_not_ask_is_told_from_a_bad_token() {
    let cloud = Cloud::start("").await;
    let mut options = options(&cloud.url(), "");
    // ada's own credentials for the service: a member may not validate the tokens of others.
    let text = format!(
        "[keystone_authtoken]\nauth_type = password\nauth_url = {}\nusername = ada\n\
         user_domain_name = Default\npassword = ada\nproject_id = {}\n",
        cloud.url(),
        cloud.project,
    );
    let config = oslo_config::Config::of_text("nova.conf".as_ref(), &text).unwrap();
    let member = ebbtide_keystone::AuthTokenOptions::read(&config).unwrap();
    options.auth = member.auth;
    let validator = TokenValidator::new(options).unwrap();
    assert_eq!(
        refusal(&validator, &cloud.admin).await,
        ("EB-KEYSTONE-011", 503)
    );

    let wrong = crate::fake::options(&cloud.url(), "password = wrong");
    let validator = TokenValidator::new(wrong).unwrap();
    assert_eq!(
        validator.check().await.unwrap_err().code(),
        "EB-KEYSTONE-011"
    );
    assert_eq!(
        refusal(&validator, &cloud.admin).await,
        ("EB-KEYSTONE-011", 503)
    );
}

#[tokio::test]
async fn an_expired_token_is_good_for_a_service_alone_and_ours_is_renewed() {
    // Short lives begin after the set-up, which takes longer on a busy machine.
    let mut cloud = Cloud::start("").await;
    cloud.restart_with("[token]\nexpiration = 8\n").await;
    let validator = validator(&cloud, "");
    // On a busy machine a token may expire before it is read.
    let (user, expires_at) = loop {
        let user = cloud.token_of("ada").await;
        match read(&validator, &user).await {
            Ok(caller) => break (user, caller.token.expires_at),
            Err(error) => assert_eq!(error.code(), "EB-KEYSTONE-004", "{error}"),
        }
    };
    // Keystone's times have whole seconds.
    while ebbtide_runtime::clock::utc() < expires_at {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Tokens that are issued from now on live long. Those from before do not.
    cloud.restart_with("").await;
    // It was cached, and the session's own token has expired as well.
    let (code, status) = refusal(&validator, &user).await;
    assert_eq!((code, status), ("EB-KEYSTONE-004", 401));
    let service = json!({"project": {"name": "service", "domain": {"id": "default"}}});
    let service = cloud.log_in("nova", service).await;
    let request = ApiRequest::new("GET", "/v1/servers")
        .with_token(Some(&user))
        .with_service_token(Some(&service));
    let known = validator.authenticate(&request).await.unwrap();
    assert_eq!(known.token.user.name, "ada");
    let other = cloud.token_of("rita").await;
    let request = request.with_service_token(Some(&other));
    let refused = validator.authenticate(&request).await.unwrap_err();
    assert_eq!(refused.meaning().status(), 401);
}
