//! Asking one of several schedulers.

use super::kit::request;
use ebbtide_harness::eventually;
use ebbtide_integration_tests::Peer;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_proto::v1;
use uuid::Uuid;

/// A server as this scheduler sees it.
pub(crate) async fn get(peer: &Peer, id: &str) -> Result<v1::Server, String> {
    let get = v1::GetServerRequest { id: id.to_owned() };
    let mut servers = peer.servers().await.map_err(|e| e.to_string())?;
    let got = servers.get_server(get).await.map_err(|e| e.to_string())?;
    got.into_inner()
        .server
        .ok_or_else(|| "no server".to_owned())
}

/// Waits until a server has a status as this scheduler sees it.
pub(crate) async fn until_at(peer: &Peer, id: &str, status: &str) {
    eventually(PATIENCE, async || {
        let server = get(peer, id).await?;
        match server.status == status {
            true => Ok(()),
            false => Err(format!(
                "{} is {}, not {status}",
                server.name, server.status
            )),
        }
    })
    .await;
}

/// Creates a server with a given identifier, as often as it takes.
pub(crate) async fn create_at(peer: &Peer, name: &str, flavor: &str, id: Uuid) -> v1::Server {
    let create = || v1::CreateServersRequest {
        max_price: String::new(),
        name: name.to_owned(),
        request: Some(v1::PlacementRequest {
            server_ids: vec![id.to_string()],
            ..request(flavor, 1)
        }),
    };
    eventually(PATIENCE, async || {
        let mut servers = peer.servers().await.map_err(|e| e.to_string())?;
        let created = servers.create_servers(create()).await;
        created.map_err(|e| e.to_string())
    })
    .await
    .into_inner()
    .servers
    .remove(0)
}
