//! Tokens: got once, renewed in time, replaced when refused, and never shown.

use crate::server::{Reply, Seen, Server, options};
use ebbtide_openstack::{AdapterOptions, OpenStackError, Placement, Session, SessionOptions};
use futures::future::join_all;
use serde_json::{Value, json};

fn endpoint(interface: &str, region: &str, url: &str) -> Value {
    json!({"interface": interface, "region": region, "region_id": region, "url": url})
}

/// A token that lives for some seconds; its catalog has Placement at `url`.
fn token(id: &str, seconds: u32, url: &str) -> Reply {
    let until = format!(
        "2026-11-20T{:02}:{:02}:{:02}.000000Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    );
    let endpoints = [
        endpoint("public", "RegionOne", "http://public.one:1/"),
        endpoint("internal", "RegionOne", url),
        endpoint("internal", "RegionTwo", "http://internal.two:1"),
        endpoint("admin", "RegionTwo", "http://admin.two:1"),
    ];
    let body = json!({"token": {
        "issued_at": "2026-11-20T00:00:00.000000Z", "expires_at": until,
        "catalog": [{"type": "placement", "name": "placement", "endpoints": endpoints}],
    }});
    Reply::json(201, &body).with_header("X-Subject-Token", id)
}

fn is_token_request(seen: &Seen) -> bool {
    seen.path == "/v3/auth/tokens"
}

/// Keystone and Placement at one address; each token is `token-N`, and Placement accepts those from
/// `first_good` on.
async fn cloud(seconds: u32, first_good: usize) -> Server {
    Server::start(move |number, seen| {
        if is_token_request(seen) {
            return token(&format!("token-{number}"), seconds, &format!("http://{}", seen.headers["host"]));
        }
        let number: usize = seen.headers["x-auth-token"].strip_prefix("token-").unwrap().parse().unwrap();
        if number < first_good {
            return Reply::json(401, &json!({"error": {"message": "The request you have made requires authentication."}}));
        }
        Reply::json(200, &json!({"resource_providers": []}))
    })
    .await
}

fn session_at(url: &str, more: &[(&str, &str)]) -> Result<Session, OpenStackError> {
    let mut pairs = vec![
        ("auth_url", url),
        ("username", "nova"),
        ("user_domain_id", "default"),
        ("password", "s3cret"),
    ];
    pairs.extend(more);
    Session::new(options(&pairs)?, SessionOptions::new("ebbtide-test"))
}

fn tokens_in(server: &Server) -> usize {
    server
        .seen()
        .iter()
        .filter(|seen| is_token_request(seen))
        .count()
}

#[tokio::test]
async fn a_hundred_requests_at_once_get_one_token() {
    let server = cloud(3_600, 0).await;
    let session = session_at(&server.url, &[]).unwrap();
    let placement = Placement::new(session, AdapterOptions::placement()).unwrap();
    let answers = join_all((0..100).map(|_| placement.providers(""))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(tokens_in(&server), 1);
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_for_all_who_had_it() {
    let server = cloud(3_600, 1).await;
    let session = session_at(&server.url, &[]).unwrap();
    session.authenticate().await.unwrap();
    let placement = Placement::new(session, AdapterOptions::placement()).unwrap();
    let answers = join_all((0..20).map(|_| placement.providers(""))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(tokens_in(&server), 2);
}

#[tokio::test]
async fn who_is_refused_with_a_new_token_too_does_not_go_on_asking() {
    let server = cloud(3_600, usize::MAX).await;
    let placement = Placement::new(
        session_at(&server.url, &[]).unwrap(),
        AdapterOptions::placement(),
    )
    .unwrap();
    let error = placement.providers("").await.unwrap_err();
    assert!(
        matches!(error, OpenStackError::Unauthorized { .. }),
        "{error}"
    );
    assert_eq!((tokens_in(&server), server.seen().len()), (2, 4));
}

#[tokio::test]
async fn a_token_at_its_end_is_renewed_before_it_is_used() {
    let server = cloud(0, 0).await;
    let placement = Placement::new(
        session_at(&server.url, &[]).unwrap(),
        AdapterOptions::placement(),
    )
    .unwrap();
    placement.providers("").await.unwrap();
    placement.providers("").await.unwrap();
    let used: Vec<_> = server
        .seen()
        .iter()
        .filter_map(|seen| seen.headers.get("x-auth-token").cloned())
        .collect();
    assert_eq!(used.len(), 2);
    assert_ne!(used[0], used[1]);
}

#[tokio::test]
async fn the_endpoint_is_that_of_the_first_preferred_interface_in_the_region() {
    let server = cloud(3_600, 0).await;
    let session = session_at(&server.url, &[]).unwrap();
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("region_name", "RegionTwo")], "http://internal.two:1"),
        (
            &[("valid_interfaces", "public,internal")],
            "http://public.one:1",
        ),
        (&[("interface", "adminURL")], "http://admin.two:1"),
        (
            &[
                ("valid_interfaces", "public, internal"),
                ("region_name", "RegionTwo"),
            ],
            "http://internal.two:1",
        ),
        (
            &[
                ("endpoint_override", "http://here/"),
                ("region_name", "Nowhere"),
            ],
            "http://here",
        ),
    ];
    for (pairs, url) in cases {
        let lookup = |name: &str| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let wanted = AdapterOptions::placement()
            .read("[placement]", lookup)
            .unwrap();
        assert_eq!(session.endpoint(&wanted).await.unwrap(), url);
    }
    let mut wanted = AdapterOptions::placement();
    wanted.region_name = Some("Nowhere".to_owned());
    let error = session.endpoint(&wanted).await.unwrap_err();
    assert_eq!(error.code(), "EB-HTTP-009");
    assert!(error.to_string().contains("Nowhere"));
}

#[tokio::test]
async fn each_kind_of_credentials_is_sent_as_keystone_wants_it() {
    let user = json!({"name": "nova", "domain": {"id": "default"}, "password": "s3cret"});
    let password = |scope: Value| {
        let mut auth = json!({"identity": {"methods": ["password"], "password": {"user": user}}});
        if !scope.is_null() {
            auth["scope"] = scope;
        }
        auth
    };
    let by_credential = |given: Value| json!({"identity": {"methods": ["application_credential"], "application_credential": given}});
    let cases: [(&[(&str, &str)], Value); 6] = [
        (&[], password(Value::Null)),
        (
            &[("system_scope", "all")],
            password(json!({"system": {"all": true}})),
        ),
        (
            &[("project_id", "p1")],
            password(json!({"project": {"id": "p1"}})),
        ),
        (
            &[
                ("project_name", "service"),
                ("default_domain_name", "Default"),
            ],
            password(json!({"project": {"name": "service", "domain": {"name": "Default"}}})),
        ),
        (
            &[
                ("auth_type", "v3applicationcredential"),
                ("application_credential_id", "c1"),
                ("application_credential_secret", "x"),
            ],
            by_credential(json!({"id": "c1", "secret": "x"})),
        ),
        (
            &[
                ("auth_type", "v3applicationcredential"),
                ("application_credential_name", "n"),
                ("application_credential_secret", "x"),
            ],
            by_credential(
                json!({"name": "n", "secret": "x", "user": {"name": "nova", "domain": {"id": "default"}}}),
            ),
        ),
    ];
    for (pairs, auth) in cases {
        let server = cloud(3_600, 0).await;
        session_at(&server.url, pairs)
            .unwrap()
            .authenticate()
            .await
            .unwrap();
        assert_eq!(server.seen()[0].body, json!({"auth": auth}));
    }
}

#[tokio::test]
async fn wrong_credentials_are_told_without_showing_them() {
    let refusal = json!({"error": {"code": 401, "message": "nova with s3cret"}});
    let server = Server::start(move |_, _| Reply::json(401, &refusal)).await;
    let session = session_at(&server.url, &[]).unwrap();
    let error = session.authenticate().await.unwrap_err();
    assert_eq!(error.code(), "EB-HTTP-002");
    let auth = options(&[("auth_type", "admin_token"), ("token", "s3cret")]).unwrap();
    for text in [
        error.to_string(),
        format!("{error:?}"),
        format!("{session:?}"),
        format!("{auth:?}"),
    ] {
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn options_that_are_missing_or_wrong_are_named() {
    let cases: [(&[(&str, &str)], &str); 7] = [
        (
            &[
                ("username", "nova"),
                ("user_domain_id", "d"),
                ("password", "p"),
            ],
            "auth_url",
        ),
        (
            &[
                ("auth_url", "http://k"),
                ("username", "nova"),
                ("password", "p"),
            ],
            "user_domain_name",
        ),
        (&[("auth_url", "http://k"), ("user_id", "u")], "password"),
        (&[("auth_type", "v3kerberos")], "auth_type"),
        (&[("auth_type", "admin_token")], "token"),
        (
            &[("auth_type", "none"), ("insecure", "perhaps")],
            "insecure",
        ),
        (
            &[
                ("auth_url", "http://k"),
                ("user_id", "u"),
                ("password", "p"),
                ("system_scope", "half"),
            ],
            "system_scope",
        ),
    ];
    for (pairs, wrong) in cases {
        match options(pairs).unwrap_err() {
            OpenStackError::Config { place, option, .. } => {
                assert_eq!((place.as_str(), option.as_str()), ("[test]", wrong))
            }
            other => panic!("{other}"),
        }
    }
}
