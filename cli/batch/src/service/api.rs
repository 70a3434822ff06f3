//! REST over a socket in the file system or over TCP. Errors are problem documents (RFC 9457).

use crate::service::answers::{BatchRequest, Call, well};
use crate::service::fault::ServiceError;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post, put};
use ebbtide_batch::{BatchError, BatchSettings};
use ebbtide_batch_service::storage;
use ebbtide_model::Money;
use ebbtide_runtime::ids;
use ebbtide_runtime::task::{Task, spawn};
use ebbtide_shell::errors::CliError;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, oneshot};

/// The largest body: ten thousand members with parameters.
const LARGEST: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone)]
struct Api {
    calls: mpsc::Sender<Call>,
    token: Option<Arc<str>>,
}

/// Serves until the returned task is dropped.
///
/// # Errors
/// The address or the socket cannot be used, or the token cannot be read.
pub(crate) async fn serve(
    settings: &BatchSettings,
    calls: mpsc::Sender<Call>,
) -> Result<Task, CliError> {
    let token = match &settings.token_file {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(storage("read", path))?;
            let token = text.trim();
            if token.len() < 16 {
                let problem =
                    "the file has less than 16 characters; `openssl rand -hex 32` makes a token";
                let key = "token_file".to_owned();
                let problem = problem.to_owned();
                return Err(ServiceError::from(BatchError::Setting { key, problem }).into());
            }
            Some(Arc::from(token))
        }
        None => None,
    };
    let api = Api { calls, token };
    let router = Router::new()
        .route("/healthz", get(health))
        .route("/v1/status", get(status))
        .route("/v1/elastic/report", get(elastic_report))
        .route("/v1/works", get(list).post(submit))
        .route("/v1/plans", post(plan))
        .route("/v1/works/{id}", get(show))
        .route("/v1/works/{id}/cancel", post(cancel))
        .route("/v1/works/{id}/budget", put(budget))
        .route("/v1/works/{id}/report", get(report))
        .fallback(no_route)
        .layer(middleware::from_fn_with_state(api.clone(), check_token))
        .with_state(api);
    Ok(match settings.listen.strip_prefix("unix:") {
        Some(path) => {
            let path = std::path::Path::new(path);
            // The book's lock keeps a second service away: this one is left over.
            let _ = std::fs::remove_file(path);
            let listener = UnixListener::bind(path).map_err(storage("listen at", path))?;
            // Each user who may write to the socket may hand in work, which runs as this user.
            let mode = std::fs::Permissions::from_mode(0o660);
            std::fs::set_permissions(path, mode).map_err(storage("protect", path))?;
            spawn("api", async move {
                let _ = axum::serve(listener, router).await;
            })
        }
        None => {
            let listener = TcpListener::bind(&settings.listen).await;
            let listener = listener.map_err(|error| {
                let key = "listen".to_owned();
                let problem = format!("{}: {error}", settings.listen);
                ServiceError::from(BatchError::Setting { key, problem })
            })?;
            spawn("api", async move {
                let _ = axum::serve(listener, router).await;
            })
        }
    })
}

async fn check_token(State(api): State<Api>, request: Request, next: Next) -> Response {
    let Some(token) = &api.token else {
        return next.run(request).await;
    };
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer "));
    if request.uri().path() == "/healthz" || given.is_some_and(|given| same(given, token)) {
        return next.run(request).await;
    }
    problem(
        StatusCode::UNAUTHORIZED,
        "EB-BATCH-010",
        "the call has no token, or another one than token_file has",
    )
}

/// Compares in a time that does not tell how much is right.
fn same(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let differs = given.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differs == 0
}

async fn health() -> Response {
    answer(StatusCode::OK, "application/json", &well())
}

async fn status(State(api): State<Api>) -> Response {
    api.ask(BatchRequest::Status, StatusCode::OK).await
}

async fn elastic_report(State(api): State<Api>) -> Response {
    api.ask(BatchRequest::ElasticReport, StatusCode::OK).await
}

async fn list(State(api): State<Api>) -> Response {
    api.ask(BatchRequest::List, StatusCode::OK).await
}

async fn submit(State(api): State<Api>, request: Request) -> Response {
    match body(request).await {
        Ok(document) => {
            api.ask(BatchRequest::Submit(document), StatusCode::CREATED)
                .await
        }
        Err(refused) => *refused,
    }
}

async fn plan(State(api): State<Api>, request: Request) -> Response {
    match body(request).await {
        Ok(document) => api.ask(BatchRequest::Plan(document), StatusCode::OK).await,
        Err(refused) => *refused,
    }
}

async fn show(State(api): State<Api>, Path(id): Path<String>) -> Response {
    api.about(&id, BatchRequest::Show).await
}

async fn cancel(State(api): State<Api>, Path(id): Path<String>) -> Response {
    api.about(&id, BatchRequest::Cancel).await
}

async fn report(State(api): State<Api>, Path(id): Path<String>) -> Response {
    api.about(&id, BatchRequest::Report).await
}

async fn budget(State(api): State<Api>, Path(id): Path<String>, request: Request) -> Response {
    let document = match body(request).await {
        Ok(document) => document,
        Err(refused) => return *refused,
    };
    let wanted = match document.get("budget") {
        Some(Value::Null) => Some(None),
        Some(Value::String(text)) => text.parse::<Money>().ok().map(Some),
        _ => None,
    };
    let Some(wanted) = wanted else {
        return problem(
            StatusCode::BAD_REQUEST,
            "EB-BATCH-002",
            "budget: it has to be an amount as text, such as \"3.00\", or null for no limit",
        );
    };
    api.about(&id, |id| BatchRequest::SetBudget(id, wanted))
        .await
}

async fn no_route(request: Request) -> Response {
    let detail = format!("there is no {} {}", request.method(), request.uri().path());
    problem(StatusCode::NOT_FOUND, "EB-BATCH-004", &detail)
}

impl Api {
    async fn about(&self, id: &str, ask: impl FnOnce(u64) -> BatchRequest) -> Response {
        match id.parse() {
            Ok(id) => self.ask(ask(id), StatusCode::OK).await,
            Err(_) => {
                refused(&ServiceError::from(BatchError::Unknown { id: id.to_owned() }).into())
            }
        }
    }

    async fn ask(&self, ask: BatchRequest, well: StatusCode) -> Response {
        let (answer_to, waits) = oneshot::channel();
        let call = Call {
            ask,
            answer: answer_to,
        };
        if self.calls.send(call).await.is_err() {
            return problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "EB-BATCH-011",
                "the service ends",
            );
        }
        match waits.await {
            Ok(Ok(body)) => answer(well, "application/json", &body),
            Ok(Err(error)) => refused(&error),
            Err(_) => problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "EB-BATCH-011",
                "the service ends",
            ),
        }
    }
}

async fn body(request: Request) -> Result<Value, Box<Response>> {
    let refuse = |detail: &str| Box::new(problem(StatusCode::BAD_REQUEST, "EB-BATCH-002", detail));
    let bytes = to_bytes(request.into_body(), LARGEST).await;
    let bytes = bytes.map_err(|_| refuse("the body is cut off, or has more than 8 MiB"))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        refuse(&format!("the body is no JSON: {place}"))
    })
}

fn refused(error: &CliError) -> Response {
    let status = match error.code() {
        "EB-BATCH-002" | "EB-BATCH-003" => StatusCode::BAD_REQUEST,
        "EB-BATCH-004" => StatusCode::NOT_FOUND,
        "EB-BATCH-005" => StatusCode::CONFLICT,
        // The disk is full: nothing was taken.
        "EB-BURST-010" => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    problem(status, error.code(), &error.to_string())
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = json!({
        "type": format!("urn:ebbtide:error:{code}"),
        "title": status.canonical_reason().unwrap_or("Error"),
        "status": status.as_u16(),
        "detail": detail,
        "code": code,
        "request_id": ids::new_request_id(),
    });
    answer(status, "application/problem+json", &body)
}

fn answer(status: StatusCode, kind: &str, body: &Value) -> Response {
    let made = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .body(Body::from(body.to_string()));
    made.unwrap_or_default()
}
