//! Tokens of others, asked about at Keystone.

use crate::server::{Reply, Seen, Server, options};
use ebbtide_openstack::{
    AdapterOptions, Identity, OpenStackError, Secret, Session, SessionOptions,
};
use serde_json::json;

/// Keystone that gives out tokens `own-N` and answers other requests by `answer`, which gets the
/// number of the token, too. Its catalog names the versioned URL.
async fn keystone(answer: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |number, seen| {
        if seen.method == "POST" {
            let url = format!("http://{}/v3/", seen.headers["host"]);
            let body = json!({"token": {
                "issued_at": "2026-11-20T00:00:00.000000Z",
                "expires_at": "2026-11-20T01:00:00.000000Z",
                "catalog": [{"id": "s", "type": "identity", "name": "keystone", "endpoints": [
                    {"id": "e", "interface": "internal", "region": "R1", "region_id": "R1",
                     "url": url}]}],
            }});
            return Reply::json(201, &body)
                .with_header("X-Subject-Token", &format!("own-{number}"));
        }
        let own = seen.headers["x-auth-token"].strip_prefix("own-").unwrap();
        answer(own.parse().unwrap(), seen)
    })
    .await
}

fn identity(server: &Server) -> Identity {
    let auth = options(&[
        ("auth_url", &server.url),
        ("username", "nova"),
        ("user_domain_id", "default"),
        ("password", "pw"),
    ]);
    let session = Session::new(auth.unwrap(), SessionOptions::new("ebbtide-test")).unwrap();
    Identity::new(session, AdapterOptions::identity())
}

#[tokio::test]
async fn a_token_is_asked_about_below_the_unversioned_root_with_access_rules() {
    let server = keystone(|_, _| Reply::json(200, &json!({"token": {"x": 1}}))).await;
    let identity = identity(&server);
    let subject = Secret::new("theirs");
    let answer = identity.token(&subject, false, true).await.unwrap();
    assert_eq!(answer["token"]["x"], 1);
    identity.token(&subject, true, false).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[1].path, "/v3/auth/tokens");
    assert_eq!(seen[1].headers["x-subject-token"], "theirs");
    assert_eq!(seen[1].headers["openstack-identity-access-rules"], "1");
    assert_eq!(seen[2].path, "/v3/auth/tokens?allow_expired=1&nocatalog");
}

#[tokio::test]
async fn an_own_token_that_has_ended_is_renewed_once() {
    let server = keystone(|own, _| match own {
        0 => Reply::empty(401),
        _ => Reply::json(200, &json!({"token": {}})),
    })
    .await;
    identity(&server)
        .token(&Secret::new("theirs"), false, true)
        .await
        .unwrap();
    let methods: Vec<_> = server.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(methods, ["POST", "GET", "POST", "GET"]);
}

#[tokio::test]
async fn no_error_repeats_a_token_that_keystone_quotes() {
    for status in [400, 403, 404, 409, 500, 200] {
        let server = keystone(move |_, _| {
            Reply::json(
                status,
                &json!({"error": {"message": "no Fernet token: theirs"}}),
            )
        })
        .await;
        let identity = identity(&server);
        let subject = Secret::new("theirs");
        let said = match identity.token(&subject, false, true).await {
            Ok(answer) => {
                assert_eq!(status, 200, "{answer}");
                continue;
            }
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!said.contains("theirs"), "{said}");
    }
}

#[tokio::test]
async fn a_token_that_no_header_can_carry_is_not_sent_at_all() {
    let server = keystone(|_, _| Reply::json(200, &json!({"token": {}}))).await;
    let refused = identity(&server)
        .token(&Secret::new("a\nb"), false, true)
        .await;
    assert!(
        matches!(refused, Err(OpenStackError::Config { .. })),
        "{refused:?}"
    );
    assert_eq!(server.seen().len(), 1);
}
