//! The command on an OpenStack: a real Keystone, its catalog, and the API of a scheduler behind it.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../scheduler/service/tests/openstack/kit.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the API, which need more of it"
)]
mod kit;

#[path = "../../../scheduler/service/tests/curl.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of REST, which need more of it"
)]
mod curl;

#[path = "../../../integration/keystone/tests/suite/cloud.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the Keystone crate, which need more of it"
)]
mod keystone;

mod renewal;

use curl::HttpService as _;
use kit::OpenStack;
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;

/// How often a command is run again for which the API could not ask Keystone.
const KEYSTONE_TRIES: u32 = 5;

/// What a run of the command left.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err))
    }
}

/// A user of the cloud with a clouds.yaml.
struct User {
    folder: TempDir,
}

impl User {
    fn with(clouds: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("clouds.yaml"), clouds).unwrap();
        Self { folder }
    }

    /// Runs the command, and again where the API refuses it for a moment, because a Keystone on a
    /// busy machine has not answered in time.
    async fn run(&self, variables: &[(&str, &str)], arguments: &str) -> Ran {
        let mut ran = self.run_once(variables, arguments).await;
        for _ in 0..KEYSTONE_TRIES {
            if !ran.err.contains("EB-KEYSTONE-010") {
                break;
            }
            ran = self.run_once(variables, arguments).await;
        }
        ran
    }

    async fn run_once(&self, variables: &[(&str, &str)], arguments: &str) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_ebbtide"))
            .args(arguments.split(' '))
            .env_clear()
            .env("HOME", self.folder.path())
            .envs(variables.iter().copied())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The API is in the catalog, in a region of its own.
async fn register(cloud: &OpenStack) -> String {
    let url = format!("http://{}", cloud.address());
    let keystone = &cloud.keystone;
    let region = json!({"region": {"id": "RegionTwo"}});
    keystone.post("/v3/regions", region).await;
    let endpoint = json!({"endpoint": {
        "service_id": keystone.service, "interface": "public", "region_id": "RegionTwo",
        "url": url,
    }});
    keystone.post("/v3/endpoints", endpoint).await;
    url
}

/// An application credential of this member: its id; the secret is `pw`.
async fn application_credential(cloud: &OpenStack, user: &str) -> String {
    let keystone = &cloud.keystone;
    let token = keystone.token_of(user).await;
    let id = keystone.describe(&token).await.body["token"]["user"]["id"].clone();
    let path = format!("/v3/users/{}/application_credentials", id.as_str().unwrap());
    let given = json!({"application_credential": {"name": "command", "secret": "pw"}});
    let made = keystone.call_as(&token, "POST", &path, Some(given)).await;
    keystone::id(&made["application_credential"])
}

/// One test, because a start of Keystone takes seconds.
#[tokio::test]
async fn the_command_finds_its_cloud_and_says_which_one_it_is() {
    let mut cloud = OpenStack::start("").await;
    let endpoint = register(&cloud).await;
    let id = application_credential(&cloud, "ada").await;
    let auth_url = cloud.keystone.url();
    let clouds = format!(
        "clouds:
  research:
    auth_type: v3applicationcredential
    region_name: RegionTwo
    auth: {{auth_url: '{auth_url}', application_credential_id: {id}, application_credential_secret: pw}}
  admin:
    region_name: RegionTwo
    auth: {{auth_url: '{auth_url}', username: admin, password: admin, project_name: admin}}
  refused:
    auth: {{auth_url: '{auth_url}', username: ada, password: wrong, project_name: research}}
  unregistered:
    region_name: RegionThree
    auth: {{auth_url: '{auth_url}', username: ada, password: ada, project_name: research}}
"
    );
    let user = User::with(&clouds);

    let own = user
        .run(&[], "--os-cloud research server list -o json")
        .await;
    assert_eq!(own.code, Some(0), "{}", own.err);
    let names = |ran: &Ran| {
        let list = ran.json();
        let names = list.as_array().unwrap().iter();
        let mut names: Vec<String> = names
            .map(|server| server["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&own), ["web-1", "web-2"]);
    let said = format!("OpenStack research (RegionTwo), {endpoint}\n");
    assert_eq!(own.err, said);
    let quiet = user
        .run(&[], "--os-cloud research --quiet server list -o json")
        .await;
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""));

    // An administrator, named by a variable.
    let named = [("OS_CLOUD", "admin"), ("EBBTIDE_PROJECT", "")];
    let all = user.run(&named, "server list --all-projects -o json").await;
    assert_eq!(
        names(&all),
        ["web-1", "web-2", "web-3", "web-4"],
        "{}",
        all.err
    );
    let status = user.run(&named, "status").await;
    assert_eq!(status.code, Some(0), "{}", status.err);
    assert!(
        status.out.contains("OpenStack admin (RegionTwo)"),
        "{}",
        status.out
    );

    // Disruption budgets, of a project and of a group by its name.
    let project = cloud.keystone.project.clone();
    let group = cloud.group(1, "web", &project).await;
    for owner in [format!("--of-project {project}"), "--group web".to_owned()] {
        let line = format!("budget set {owner} --max-victims 1 --window 600");
        let set = user.run(&named, &line).await;
        assert_eq!(set.code, Some(0), "{}", set.err);
    }
    let scopes = |ran: &Ran| {
        let list = ran.json();
        let list = list.as_array().unwrap().iter();
        let scope = |budget: &Value| {
            let part = |name: &str| budget[name].as_str().unwrap_or_default().to_owned();
            (part("project_id"), part("group_id"))
        };
        list.map(scope).collect::<Vec<_>>()
    };
    let all = scopes(&user.run(&named, "budget list -o json").await);
    let (of_project, of_group) = ((project, String::new()), (String::new(), group));
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all.contains(&of_project) && all.contains(&of_group),
        "{all:?}"
    );
    let own = user
        .run(&[], "--os-cloud research budget list -o json")
        .await;
    assert_eq!(scopes(&own), [of_project]);
    let refused = "--os-cloud research budget set --group web --max-victims 9 --window 1";
    let refused = user.run(&[], refused).await;
    assert!(refused.err.contains("EB-ACCESS-004"), "{}", refused.err);
    let gone = user.run(&named, "budget delete --group web").await;
    assert_eq!(gone.code, Some(0), "{}", gone.err);

    // Variables alone, as an openrc sets them; --os-region-name chooses.
    let rc = [
        ("OS_AUTH_URL", auth_url.as_str()),
        ("OS_USERNAME", "ada"),
        ("OS_PASSWORD", "ada"),
        ("OS_PROJECT_NAME", "research"),
    ];
    let line = "--os-region-name RegionTwo server list -o json";
    assert_eq!(names(&user.run(&rc, line).await), ["web-1", "web-2"]);
    let token = cloud.keystone.token_of("rita").await;
    let rc = [
        ("OS_AUTH_URL", auth_url.as_str()),
        ("OS_AUTH_TYPE", "v3token"),
        ("OS_TOKEN", token.as_str()),
        ("OS_PROJECT_ID", cloud.keystone.project.as_str()),
        ("OS_REGION_NAME", "RegionTwo"),
    ];
    assert_eq!(
        names(&user.run(&rc, "server list -o json").await),
        ["web-1", "web-2"]
    );
    // What names an endpoint of its own is not overruled by variables; an option is, by an option.
    let rc = [
        ("OS_CLOUD", "admin"),
        ("EBBTIDE_ENDPOINT", "http://127.0.0.1:1"),
    ];
    let region = user.run(&rc, "status").await;
    assert_eq!(region.code, Some(3), "{}", region.err);
    assert!(region.err.contains("http://127.0.0.1:1"), "{}", region.err);
    let option = user
        .run(&rc, "--os-cloud research server list -o json")
        .await;
    assert_eq!(names(&option), ["web-1", "web-2"], "{}", option.err);

    for (arguments, code, error, next) in [
        (
            "--os-cloud refused",
            1,
            "EB-HTTP-002",
            "`openstack --os-cloud refused token issue`",
        ),
        (
            "--os-cloud unregistered",
            1,
            "EB-HTTP-009",
            "`openstack service create --name ebbtide preemption`",
        ),
        (
            "--os-cloud rehearsal",
            2,
            "EB-OSCLOUD-001",
            "the clouds are admin, refused, research, unregistered",
        ),
        (
            "--os-cloud admin --os-region-name x",
            2,
            "EB-OSCLOUD-003",
            "its regions are RegionTwo",
        ),
    ] {
        let ran = user.run(&[], &format!("{arguments} status")).await;
        assert_eq!(ran.code, Some(code), "{}", ran.err);
        assert!(
            ran.err.starts_with(error) && ran.err.contains(next),
            "{}",
            ran.err
        );
        assert!(!ran.err.contains("wrong"), "{}", ran.err);
    }
    // What needs no region needs no cloud.
    let completion = user
        .run(&[("OS_CLOUD", "rehearsal")], "completion bash")
        .await;
    assert_eq!(completion.code, Some(0), "{}", completion.err);

    cloud.keystone.keystone.kill();
    let away = user.run(&[], "--os-cloud research status -o json").await;
    assert_eq!(away.code, Some(3), "{}", away.err);
    let error: Value = serde_json::from_str(&away.err).unwrap();
    assert_eq!(error["error"]["code"], "EB-HTTP-007");
    cloud.end().await;
}
