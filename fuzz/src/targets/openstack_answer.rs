//! HTTP answers of Keystone, Placement and Nova, through the real client and a socket. The first
//! byte says what was asked, the second with which status it is answered; header lines follow, and
//! after an empty line the body. Keystone's answers never show in an error.

use crate::secret::MARK;
use ebbtide_openstack::{
    AdapterOptions, AuthMethod, AuthOptions, Compute, IdOrName, OpenStackError, Placement, Secret,
    Session, SessionOptions, TlsOptions, TokenScope,
};
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use uuid::Uuid;

const STATUSES: [u16; 12] = [200, 201, 200, 204, 202, 200, 300, 400, 401, 404, 409, 503];
const MOST: usize = 60_000;
const ID: Uuid = Uuid::from_u128(7);
/// Keystone is asked at this path; only there a token is given.
const TOKENS: &str = "/v3/auth/tokens";

struct AnswerTarget {
    runtime: Runtime,
    tasks: LocalSet,
    /// What is answered next.
    next: Rc<RefCell<Next>>,
    keystone: Session,
    placement: Placement,
    compute: Compute,
    unasked: Compute,
    /// Where everybody is.
    at: String,
}

#[derive(Default)]
struct Next {
    tokens: Vec<u8>,
    others: Vec<u8>,
}

thread_local! {
    // Never dropped: a runtime cannot end while its thread does.
    static WORLD: &'static AnswerTarget = Box::leak(Box::new(AnswerTarget::new()));
}

pub(super) fn run(bytes: &[u8]) {
    let [call, status, rest @ ..] = bytes else {
        return;
    };
    let text = rest
        .split(|byte| *byte == b'\n')
        .take_while(|line| !line.is_empty());
    let head: Vec<&[u8]> = text.collect();
    let behind = head.iter().map(|line| line.len() + 1).sum::<usize>() + 1;
    let body = rest.get(behind..).unwrap_or_default();
    let head: Vec<String> = head
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    let status = STATUSES[usize::from(*status) % STATUSES.len()];
    WORLD.with(|world| world.ask(*call, answer(status, &head, body)));
}

/// An answer as it goes over the wire. Headers of the transport are not for the fuzzer: hyper has
/// its own.
fn answer(status: u16, head: &[String], body: &[u8]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} X\r\n");
    for line in head {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let good = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let value: String = value
            .trim()
            .chars()
            .filter(|c| matches!(c, ' '..='~'))
            .collect();
        let ours = [
            "content-length",
            "transfer-encoding",
            "connection",
            "content-encoding",
        ];
        if good && !ours.contains(&name.to_ascii_lowercase().as_str()) && text.len() < 8_000 {
            let _ = write!(text, "{name}: {value}\r\n");
        }
    }
    // There is no body behind 204.
    let body = if status == 204 { &[] } else { body };
    let _ = write!(text, "content-length: {}\r\n\r\n", body.len());
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

impl AnswerTarget {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let tasks = LocalSet::new();
        let next = Rc::new(RefCell::new(Next::default()));
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a port");
        let at = format!("http://{}", listener.local_addr().expect("an address"));
        let answers = Rc::clone(&next);
        tasks.spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::task::spawn_local(serve(stream, Rc::clone(&answers)));
            }
        });
        let session = |method| {
            let mut options = SessionOptions::new("fuzz");
            options.max_answer_bytes = MOST;
            let auth = AuthOptions {
                auth_url: Some(at.clone()),
                method,
                endpoint: None,
                tls: TlsOptions::default(),
                timeout: Some(Duration::from_secs(10)),
            };
            Session::new(auth, options).expect("a session")
        };
        let here = |mut options: AdapterOptions| {
            options.endpoint_override = Some(at.clone());
            options
        };
        let keystone = session(AuthMethod::Password {
            user: IdOrName::Id("u".to_owned()),
            password: Secret::new(MARK),
            scope: TokenScope::Unscoped,
        });
        let unauthenticated = session(AuthMethod::None);
        let compute = || {
            Compute::new(unauthenticated.clone(), here(AdapterOptions::compute())).expect("compute")
        };
        let world = Self {
            placement: Placement::new(unauthenticated.clone(), here(AdapterOptions::placement()))
                .expect("placement"),
            compute: compute(),
            unasked: compute(),
            runtime,
            tasks,
            next,
            keystone,
            at: at.clone(),
        };
        world.next.borrow_mut().others = answer(
            200,
            &[],
            br#"{"version": {"version": "2.96", "min_version": "2.1"}}"#,
        );
        world
            .wait(world.compute.negotiated())
            .expect("a microversion");
        world
    }

    fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(self.tasks.run_until(what))
    }

    fn ask(&self, call: u8, answer_bytes: Vec<u8>) {
        let refused = answer(401, &[], b"");
        *self.next.borrow_mut() = Next {
            tokens: answer_bytes.clone(),
            others: if call.is_multiple_of(16) {
                refused
            } else {
                answer_bytes
            },
        };
        let (placement, compute) = (&self.placement, &self.compute);
        let seen = |result: Result<(), OpenStackError>| {
            if let Err(error) = result {
                let text = error.to_string();
                assert!(text.len() < 2_000, "an endless error");
                let _ = (error.code(), error.is_passing(), error.effect());
            }
        };
        self.wait(async {
            match call % 16 {
                0 => self.token().await,
                1 => seen(placement.versions().await.map(drop)),
                2 => seen(placement.allocation_candidates("limit=1").await.map(drop)),
                3 => seen(placement.allocations(ID).await.map(drop)),
                4 => seen(placement.providers("").await.map(drop)),
                5 => seen(placement.provider(ID).await.map(drop)),
                6 => seen(placement.inventories(ID).await.map(drop)),
                7 => seen(placement.usages(ID).await.map(drop)),
                8 => {
                    seen(placement.traits(ID).await.map(drop));
                    seen(placement.aggregates(ID).await.map(drop));
                }
                9 => seen(placement.provider_allocations(ID).await.map(drop)),
                10 => seen(self.unasked.versions().await.map(drop)),
                11 => seen(compute.server(ID).await.map(drop)),
                12 => seen(compute.services(None).await.map(drop)),
                13 => seen(compute.instance_actions(ID).await.map(drop)),
                14 => seen(compute.migrations(ID).await.map(drop)),
                _ => seen(compute.delete(ID).await.map(drop)),
            }
        });
    }

    /// The service does not know the token that we have, so that each time a new one is read.
    async fn token(&self) {
        let asked = self.keystone.authenticate().await;
        if let Err(error) = &asked {
            assert!(!error.to_string().contains(MARK), "the password is shown");
        }
        let options = AdapterOptions::placement();
        if let Ok(url) = self.keystone.endpoint(&options).await {
            assert!(!url.ends_with('/'), "{url}");
        }
        let _ = (
            self.keystone.project_id().await,
            self.keystone.user_id().await,
        );
        assert!(!format!("{:?}", self.keystone).contains(MARK));
        let mut here = options;
        here.endpoint_override = Some(self.at.clone());
        let placement = Placement::new(self.keystone.clone(), here).expect("placement");
        if let Err(error) = placement.usages(ID).await {
            assert!(!error.to_string().contains(MARK), "the password is shown");
        }
    }
}

/// One connection: each request is answered with what comes next.
async fn serve(mut stream: TcpStream, next: Rc<RefCell<Next>>) {
    let mut held = Vec::new();
    loop {
        let Some(length) = request_length(&held) else {
            match stream.read_buf(&mut held).await {
                Ok(0) | Err(_) => return,
                Ok(_) => continue,
            }
        };
        let asked = held.split_off(length);
        let for_token = held
            .windows(TOKENS.len())
            .take(64)
            .any(|part| part == TOKENS.as_bytes());
        held = asked;
        let answer = match for_token {
            true => next.borrow().tokens.clone(),
            false => next.borrow().others.clone(),
        };
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// How long the first request is, if all of it is there.
fn request_length(held: &[u8]) -> Option<usize> {
    let end = held.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&held[..end]).to_ascii_lowercase();
    let body = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let all = end
        + body
            .and_then(|n| n.trim().parse::<usize>().ok())
            .unwrap_or(0);
    (held.len() >= all).then_some(all)
}
