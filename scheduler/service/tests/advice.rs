//! Advice of a real scheduler with a real database and real tokens, over gRPC: what each role gets,
//! and what tenants must not get.

use ebbtide_access::{Role, TokenFile};
use ebbtide_bus::InProcessBroker;
use ebbtide_lifetime::description::Description;
use ebbtide_model::record::Change;
use ebbtide_model::{LifeEnd, PastLife, Seconds, ServerId, Timestamp};
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::market_client::MarketClient;
use ebbtide_runtime::clock;
use ebbtide_scheduler::{Config, NamedBus, RunningScheduler};
use ebbtide_store::{Store, StoreConfig};
use std::collections::HashMap;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use uuid::Uuid;

const HOUR_MS: i64 = 3_600_000;

/// The whole hour before the present one.
pub(crate) fn last_hour() -> i64 {
    // Lives have to lie in the past of a scheduler with a real clock.
    (clock::unix_millis() / HOUR_MS - 1) * HOUR_MS
}

/// A life that ended some hours before `now`, milliseconds.
fn life(n: u128, project: &str, flavor: &str, now: i64, ended_before: f64, hours: f64) -> Change {
    // Whole seconds, as Nova's databases have them.
    let ms = |hours: f64| (hours * 3600.0) as i64 * 1000;
    Change::PutLife(Box::new(PastLife {
        server_id: ServerId::from(Uuid::from_u128(n)),
        starts: 1,
        name: format!("secret-name-{n}"),
        project_id: project.to_owned(),
        flavor: flavor.to_owned(),
        preemptible: true,
        price_per_hour: "0.031".parse().unwrap(),
        max_lifetime: Some(Seconds(86_400)),
        host: "secret-host".to_owned(),
        zone: "nova".to_owned(),
        launched_at: Timestamp::from_millis(now - ms(ended_before) - ms(hours)),
        ended_at: Timestamp::from_millis(now - ms(ended_before)),
        end: if n.is_multiple_of(6) {
            LifeEnd::Deleted
        } else {
            LifeEnd::Preempted
        },
    }))
}

/// 240 lives of four projects over three weeks, some hours long, and eight of science's. The last
/// twelve end in one hour, which completes their batch.
pub(crate) fn lives(now: i64) -> Vec<Change> {
    let names = ["art", "biology", "chemistry", "dance"];
    let mut all: Vec<Change> = (0..240u32)
        .map(|n| {
            // All quantiles of an exponential distribution of 5 h, mixed.
            let quantile = (f64::from(n * 77 % 240) + 0.5) / 240.0;
            let hours = (-(1.0 - quantile).ln() * 5.0).min(23.0);
            let ended_before = if n < 12 { 10.0 } else { f64::from(n) * 2.0 };
            life(
                u128::from(n),
                names[(n % 4) as usize],
                "spot",
                now,
                ended_before,
                hours,
            )
        })
        .collect();
    all.extend((0..8u32).map(|n| {
        life(
            1000 + u128::from(n),
            "science",
            "spot",
            now,
            20.0 + f64::from(n),
            1.0 + f64::from(n),
        )
    }));
    all
}

pub(crate) struct Region {
    running: Option<RunningScheduler>,
    stop: CancellationToken,
    address: String,
    pub(crate) operator: String,
    pub(crate) science: String,
    /// A tenant without any life.
    newcomer: String,
    _dir: TempDir,
}

impl Region {
    pub(crate) async fn start(lives: Vec<Change>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", dir.path().join("region.db").display());
        let store = Store::open(&StoreConfig::new(&url).unwrap()).await.unwrap();
        // A lease that has ended when the scheduler starts.
        let long_ago = Timestamp::from_millis(1_700_000_000_000);
        let lease = store
            .acquire_lease("test", long_ago, Seconds(1))
            .await
            .unwrap();
        store.commit(&lease, &lives).await.unwrap();
        drop(store);
        let mut tokens = TokenFile::default();
        let mut make = |role, projects: &[&str]| {
            let projects = projects.iter().map(|p| (*p).to_owned()).collect();
            let token = tokens
                .create("test", role, projects, long_ago, None)
                .unwrap();
            token.reveal()
        };
        let operator = make(Role::Operator, &[]);
        let science = make(Role::Tenant, &["science"]);
        let newcomer = make(Role::Tenant, &["newcomer"]);
        let file = dir.path().join("tokens.toml");
        tokens.write(&file).unwrap();
        let text = format!(
            "[grpc]\nlisten = \"127.0.0.1:0\"\n[http]\nlisten = \"127.0.0.1:0\"\n[database]\nurl = {url:?}\n[auth]\ntokens = {:?}\n",
            file.display().to_string()
        );
        let config: Config = toml::from_str(&text).unwrap();
        let stop = CancellationToken::new();
        let bus = NamedBus {
            name: "in-process",
            logins: None,
            bus: Arc::new(InProcessBroker::new().connect()),
        };
        let running = ebbtide_scheduler::start(config, bus, stop.clone())
            .await
            .unwrap();
        let region = Self {
            address: format!("http://{}", running.grpc),
            running: Some(running),
            stop,
            operator,
            science,
            newcomer,
            _dir: dir,
        };
        region.flavor("spot", true).await;
        region.flavor("rare", true).await;
        region.flavor("normal", false).await;
        region
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(self.address.clone())
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    async fn flavor(&self, name: &str, preemptible: bool) {
        let mut specs = HashMap::new();
        if preemptible {
            specs.insert("ebbtide:preemptible".to_owned(), "true".to_owned());
            specs.insert(
                "ebbtide:max_lifetime_seconds".to_owned(),
                "86400".to_owned(),
            );
        }
        let request = v1::CreateFlavorRequest {
            flavor: Some(v1::Flavor {
                name: name.to_owned(),
                vcpus: 1,
                ram_mb: 1024,
                disk_gb: 1,
                extra_specs: specs,
                ..Default::default()
            }),
        };
        let mut admin = AdminClient::new(self.channel().await);
        admin
            .create_flavor(with(request, &self.operator))
            .await
            .unwrap();
    }

    pub(crate) async fn ask(
        &self,
        token: &str,
        request: v1::GetAdviceRequest,
    ) -> Result<v1::GetAdviceResponse, Status> {
        let mut market = MarketClient::new(self.channel().await);
        Ok(market.get_advice(with(request, token)).await?.into_inner())
    }

    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        self.running.take().unwrap().finish().await.unwrap();
    }
}

pub(crate) fn with<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

pub(crate) fn about(flavor: &str) -> v1::GetAdviceRequest {
    v1::GetAdviceRequest {
        flavor: flavor.to_owned(),
        job_hours: 4.0,
        restart_hours: 0.05,
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_is_told_what_the_lives_say_and_tenants_nothing_about_single_ones() {
    let now = last_hour();
    let region = Region::start(lives(now)).await;
    let everything = region.ask(&region.operator, about("spot")).await.unwrap();
    assert_eq!(
        (everything.whose.as_str(), everything.scope.as_str()),
        ("everybody", "flavor")
    );
    assert_eq!((everything.lives, everything.own_lives), (248, 248));
    let told = region.ask(&region.science, about("spot")).await.unwrap();
    assert_eq!(
        (told.whose.as_str(), told.own_lives, told.lives),
        ("own-and-others", 8, 248)
    );
    assert_eq!(told.interruptions % 10, 0);
    for answer in [&everything, &told] {
        // A sixth was stopped by its users; the others follow an exponential distribution of 5 h.
        assert!((4.0..8.0).contains(&answer.expected_hours), "{answer:?}");
        let hour = &answer.chances[0];
        assert!((0.08..0.25).contains(&hour.chance), "{hour:?}");
        let model = Description::parse(&answer.model).unwrap().model().unwrap();
        assert!((model.mean_residual(0.0) - answer.expected_hours).abs() < 1e-9);
        let plan = answer.schedule.as_ref().unwrap();
        let work: f64 = plan.interval_hours.iter().sum();
        assert!((work - 4.0).abs() < 1e-6 && plan.expected_hours < plan.without_hours.unwrap());
        assert!(!answer.calibration.as_ref().unwrap().overall.is_empty());
    }
    // No name, host or project of another tenant, nor the exact age of any life.
    let text = format!("{told:?}");
    for word in ["secret", "art", "biology", "chemistry", "dance"] {
        assert!(
            !text.contains(&format!("\"{word}")) && !text.contains(&format!("{word}-")),
            "{word} is in {text}"
        );
    }
    // There are too few lives of the rarely used flavor for a model of its own.
    let rare = region.ask(&region.science, about("rare")).await.unwrap();
    assert_eq!(
        (rare.scope.as_str(), rare.expected_hours),
        ("all-preemptible", told.expected_hours)
    );
    region.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nine_more_lives_of_others_change_nothing_that_a_tenant_sees() {
    let now = last_hour();
    let one = Region::start(lives(now)).await;
    // Nine very short lives of three other projects that end after the last batch.
    let mut more = lives(now);
    more.extend((0..9u32).map(|n| {
        let project = ["art", "biology", "chemistry"][(n % 3) as usize];
        life(
            2000 + u128::from(n),
            project,
            "spot",
            now,
            1.0 + f64::from(n) / 2.0,
            0.01,
        )
    }));
    let other = Region::start(more).await;
    for pick in [
        |r: &Region| r.science.clone(),
        |r: &Region| r.newcomer.clone(),
    ] {
        let before = one.ask(&pick(&one), about("spot")).await.unwrap();
        let after = other.ask(&pick(&other), about("spot")).await.unwrap();
        assert_eq!(before.whose, "own-and-others");
        assert_eq!(before, after);
    }
    // The operator, who may see everything, sees them.
    let all = other.ask(&other.operator, about("spot")).await.unwrap();
    assert_eq!(all.lives, 257);
    one.end().await;
    other.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_tenants_are_told_of_their_own_lives_only_and_that_it_is_too_little() {
    let now = last_hour();
    // A hundred lives of two other projects.
    let mut few: Vec<Change> = (0..100u32)
        .map(|n| {
            life(
                u128::from(n),
                ["art", "biology"][(n % 2) as usize],
                "spot",
                now,
                f64::from(n),
                3.0,
            )
        })
        .collect();
    few.extend((0..3u32).map(|n| {
        life(
            1000 + u128::from(n),
            "science",
            "spot",
            now,
            5.0,
            2.0 + f64::from(n),
        )
    }));
    let region = Region::start(few).await;
    let told = region.ask(&region.science, about("spot")).await.unwrap();
    assert_eq!(
        (told.whose.as_str(), told.lives, told.own_lives),
        ("own", 3, 3)
    );
    assert!(
        told.model.is_empty() && told.too_little.contains("at least 10"),
        "{told:?}"
    );
    assert!(told.chances.is_empty() && told.curve.is_empty() && told.schedule.is_none());
    // For the newcomer, science is the third other project.
    let newcomer = region.ask(&region.newcomer, about("spot")).await.unwrap();
    assert_eq!(
        (newcomer.whose.as_str(), newcomer.lives, newcomer.own_lives),
        ("own-and-others", 100, 0)
    );
    region.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_asked_is_refused_by_its_field() {
    let region = Region::start(lives(last_hour())).await;
    let good = about("spot");
    let bad = [
        (
            "age_hours",
            v1::GetAdviceRequest {
                age_hours: -1.0,
                ..good.clone()
            },
        ),
        (
            "age_hours",
            v1::GetAdviceRequest {
                age_hours: 24.0,
                ..good.clone()
            },
        ),
        (
            "age_hours",
            v1::GetAdviceRequest {
                age_hours: f64::NAN,
                ..good.clone()
            },
        ),
        (
            "job_hours",
            v1::GetAdviceRequest {
                job_hours: 1e9,
                ..good.clone()
            },
        ),
        (
            "job_hours",
            v1::GetAdviceRequest {
                job_hours: f64::NAN,
                ..good.clone()
            },
        ),
        (
            "checkpoint_hours",
            v1::GetAdviceRequest {
                checkpoint_hours: Some(-1.0),
                ..good.clone()
            },
        ),
        (
            "restart_hours",
            v1::GetAdviceRequest {
                restart_hours: f64::INFINITY,
                ..good.clone()
            },
        ),
        ("flavor", about("normal")),
    ];
    for (field, request) in bad {
        let status = region.ask(&region.science, request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(field), "{field}: {status}");
    }
    let unknown = region
        .ask(&region.science, about("none"))
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let stranger = region.ask("ebt_unknown", good).await.unwrap_err();
    assert_eq!(stranger.code(), Code::Unauthenticated);
    region.end().await;
}
