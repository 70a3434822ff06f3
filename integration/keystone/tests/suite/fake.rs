//! Keystone as a test wants it, and a clock that a test moves.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Response, Uri};
use ebbtide_keystone::{
    ApiRequest, AuthTokenOptions, Authentication, CachePolicy, Clock, ClockReading, KeystoneError,
    TokenValidator,
};
use oslo_config::Config;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use time::OffsetDateTime;
use time::macros::datetime;
use tokio::task::JoinSet;

/// Where test clocks begin.
pub(crate) const NOON: OffsetDateTime = datetime!(2026-11-26 12:00 UTC);

/// A Keystone that validates tokens by a function of the token.
pub(crate) struct FakeKeystone {
    pub(crate) url: String,
    questions: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl FakeKeystone {
    /// Each answer takes so long, so that questions at the same time can meet.
    pub(crate) async fn start(
        delay: Duration,
        answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let questions = Arc::new(Mutex::new(Vec::new()));
        let (log, answer, own) = (Arc::clone(&questions), Arc::new(answer), own_token(&url));
        let handler = move |method: Method, _: Uri, headers: HeaderMap| {
            let (status, body) = if method == Method::POST {
                (201, own.clone())
            } else {
                let subject = headers["x-subject-token"].to_str().unwrap();
                log.lock().unwrap().push(subject.to_owned());
                answer(subject)
            };
            async move {
                tokio::time::sleep(delay).await;
                Response::builder()
                    .status(status)
                    .header("x-subject-token", "own")
                    .body(Body::from(body.to_string()))
                    .unwrap()
            }
        };
        let mut task = JoinSet::new();
        task.spawn(async move {
            let service = Router::new().fallback(handler);
            axum::serve(listener, service).await.unwrap();
        });
        Self {
            url,
            questions,
            _task: task,
        }
    }

    /// How often it was asked about a token.
    pub(crate) fn questions(&self) -> usize {
        self.questions.lock().unwrap().len()
    }

    /// A validator at this Keystone.
    pub(crate) fn validator(&self, clock: &Arc<TestClock>) -> TokenValidator {
        let options = options(&self.url, "");
        let policy = CachePolicy::new(options.token_cache_time);
        TokenValidator::with_policy(options, policy, Arc::clone(clock) as Arc<dyn Clock>).unwrap()
    }
}

/// The section of a test, with the credentials that tests use.
pub(crate) fn options(url: &str, more: &str) -> AuthTokenOptions {
    AuthTokenOptions::read(&config(url, more)).unwrap()
}

pub(crate) fn config(url: &str, more: &str) -> Config {
    let text = format!(
        "[keystone_authtoken]\nauth_type = password\nauth_url = {url}\nusername = nova\n\
         user_domain_name = Default\npassword = nova\nproject_name = service\n\
         project_domain_name = Default\nservice_type = preemption\n{more}\n"
    );
    Config::of_text(Path::new("nova.conf"), &text).unwrap()
}

/// Who reads `/v1/servers` with this token.
pub(crate) async fn read(
    validator: &TokenValidator,
    token: &str,
) -> Result<Authentication, KeystoneError> {
    let request = ApiRequest::new("GET", "/v1/servers").with_token(Some(token));
    validator.authenticate(&request).await
}

/// What Keystone says of a member of project `p`.
pub(crate) fn member(expires_at: &str) -> Value {
    let domain = json!({"id": "default", "name": "Default"});
    json!({"token": {
        "user": {"id": "u", "name": "ada", "domain": domain},
        "project": {"id": "p", "name": "research", "domain": domain},
        "roles": [{"id": "m", "name": "member"}],
        "expires_at": expires_at,
        "audit_ids": ["a"],
        "catalog": [],
    }})
}

pub(crate) fn unknown() -> (u16, Value) {
    (
        404,
        json!({"error": {"code": 404, "message": "This is not a recognized token"}}),
    )
}

fn own_token(url: &str) -> Value {
    json!({"token": {
        "issued_at": "2026-11-26T12:00:00.000000Z",
        "expires_at": "2026-11-26T20:00:00.000000Z",
        "catalog": [{"id": "s", "type": "identity", "name": "keystone", "endpoints": [
            {"id": "e", "interface": "internal", "region_id": "R", "region": "R", "url": url}]}],
    }})
}

/// A clock at noon that stands still.
#[derive(Debug)]
pub(crate) struct TestClock(Mutex<ClockReading>);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(ClockReading {
            wall: NOON,
            elapsed: Duration::ZERO,
        })))
    }

    pub(crate) fn advance(&self, seconds: u64) {
        let mut now = self.0.lock().unwrap();
        now.wall += Duration::from_secs(seconds);
        now.elapsed += Duration::from_secs(seconds);
    }
}

impl Clock for TestClock {
    fn now(&self) -> ClockReading {
        *self.0.lock().unwrap()
    }
}
