//! Tokens: valid at once, gone at once, never written down.

use super::kit::{Tokens, refusal, scheduler, soon, with_token};
use ebbtide_access::Role;
use ebbtide_client::Credentials;
use ebbtide_harness::ProcessCommand;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions, bin};
use ebbtide_proto::v1;
use tonic::Code;

#[tokio::test]
async fn tokens_are_made_and_revoked_without_a_restart() {
    let mut tokens = Tokens::new();
    let operator = tokens.make(Role::Operator, &[]);
    let region = scheduler(tokens.auth(), with_token(&operator)).await;
    let ask = async |credentials: &Credentials| {
        let mut clients = region.clients(credentials).await.unwrap();
        clients.admin.list_hosts(v1::ListHostsRequest {}).await
    };
    ask(&with_token(&operator)).await.unwrap();
    let unknown = (Code::Unauthenticated, "EB-ACCESS-001".to_owned());
    assert_eq!(refusal(ask(&Credentials::default()).await), unknown);
    let bad = (Code::Unauthenticated, "EB-ACCESS-002".to_owned());
    let mut forged = operator.clone();
    forged.pop();
    forged.push(if operator.ends_with('A') { 'B' } else { 'A' });
    for wrong in ["x", "ebt_", &forged] {
        assert_eq!(refusal(ask(&with_token(wrong)).await), bad, "{wrong}");
    }

    let reader = tokens.make(Role::Reader, &[]);
    soon(async || ask(&with_token(&reader)).await.map_err(|e| e.to_string())).await;
    let mut clients = region.clients(&with_token(&reader)).await.unwrap();
    let disable = v1::DisableHostRequest {
        name: "x".to_owned(),
        reason: "y".to_owned(),
    };
    let answer = clients.admin.disable_host(disable).await;
    assert_eq!(
        refusal(answer),
        (Code::PermissionDenied, "EB-ACCESS-004".to_owned())
    );

    tokens.revoke(&reader);
    soon(async || match ask(&with_token(&reader)).await {
        Err(status) if status.code() == Code::Unauthenticated => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    // The scheduler logs a broken file and keeps the old tokens.
    std::fs::write(&tokens.path, "[[token]").unwrap();
    soon(
        async || match region.scheduler_log().contains("EB-ACCESS-009") {
            true => Ok(()),
            false => Err("not told yet".to_owned()),
        },
    )
    .await;
    ask(&with_token(&operator)).await.unwrap();
}

#[tokio::test]
async fn no_log_at_any_level_shows_a_token() {
    let mut tokens = Tokens::new();
    let operator = tokens.make(Role::Operator, &[]);
    let region = Region::start(RegionOptions {
        hosts: Vec::new(),
        sections: tokens.auth(),
        credentials: with_token(&operator),
        log: "trace".to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    region
        .admin()
        .await
        .unwrap()
        .list_hosts(v1::ListHostsRequest {})
        .await
        .unwrap();
    let stranger = format!("{}x", operator);
    let mut clients = region.clients(&with_token(&stranger)).await.unwrap();
    refusal(clients.admin.list_hosts(v1::ListHostsRequest {}).await);
    // The metrics page, where the header comes over HTTP/1.1.
    let address = region.address("http").unwrap().replace("http://", "");
    let answer = crate::secure::limits::get(&address, "/metrics", Some(&operator)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // And the command, which shows what it is doing.
    let log = region.dir().join("command.log");
    let command = ProcessCommand::new("ebbtide", bin("ebbtide"))
        .args(["--endpoint", &region.endpoint().unwrap(), "host", "list"])
        .env("EBBTIDE_TOKEN", &stranger)
        .env("RUST_LOG", "trace")
        .spawn(&log)
        .unwrap();
    assert_eq!(command.wait_exit(PATIENCE).await.unwrap().code(), Some(1));
    let secret = operator.splitn(3, '_').nth(2).unwrap();
    let logs = [
        region.scheduler_log(),
        std::fs::read_to_string(&log).unwrap(),
    ];
    assert!(logs[0].contains("TRACE"), "the test looks at nothing");
    assert!(logs[1].contains("EB-ACCESS-002"), "{}", logs[1]);
    for log in logs {
        assert!(
            !log.contains(secret) && !log.contains(&secret[..16]),
            "a token is in a log"
        );
    }
}

#[tokio::test]
async fn the_command_makes_tokens_that_the_region_takes() {
    let tokens = Tokens::new();
    let file = tokens.path.display().to_string();
    let log = tokens.path.with_extension("log");
    let run = async |arguments: &[&str]| {
        let _ = std::fs::remove_file(&log);
        let process = ProcessCommand::new("ebbtide-manage", bin("ebbtide-manage"))
            .args(arguments.iter().copied())
            .args(["--file", &file])
            .spawn(&log)
            .unwrap();
        let status = process.wait_exit(PATIENCE).await.unwrap();
        assert!(status.success(), "{}", process.log_tail());
        std::fs::read_to_string(&log).unwrap()
    };
    let said = run(&[
        "token", "create", "--role", "operator", "-o", "value", "-c", "token",
    ])
    .await;
    let token = said
        .split_whitespace()
        .find(|word| word.starts_with("ebt_"))
        .unwrap()
        .to_owned();
    let listed = run(&["token", "list"]).await;
    let id = token.split('_').nth(1).unwrap();
    assert!(listed.contains(id) && !listed.contains(&token), "{listed}");
    let region = scheduler(tokens.auth(), with_token(&token)).await;
    region
        .admin()
        .await
        .unwrap()
        .list_hosts(v1::ListHostsRequest {})
        .await
        .unwrap();
    run(&["token", "revoke", id]).await;
    soon(async || {
        match region
            .admin()
            .await
            .unwrap()
            .list_hosts(v1::ListHostsRequest {})
            .await
        {
            Err(status) if status.code() == Code::Unauthenticated => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}
