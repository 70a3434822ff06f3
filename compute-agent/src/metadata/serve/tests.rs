use super::*;
use crate::clock::SystemClock;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use uuid::Uuid;

#[derive(Debug)]
struct Empty;

#[async_trait]
impl DocumentSource for Empty {
    async fn document(&self, _: ServerId) -> io::Result<Option<Document>> {
        Ok(None)
    }

    async fn release(&self, _: ServerId, _: EvacuationId) -> io::Result<()> {
        Ok(())
    }
}

/// Connections of which each says as little as this; then a program of the same guest asks
/// something.
async fn answer_beside(words: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metadata");
    let server_id = ServerId(Uuid::from_u128(1));
    let open = OpenListener::on_socket(&path, server_id, Arc::new(Empty), Arc::new(SystemClock));
    let _open = open.unwrap();
    let mut held = Vec::new();
    for _ in 0..MOST.all + 8 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        // Those that made way for others may be closed already.
        let _ = stream.write_all(words).await;
        held.push(stream);
    }
    let asked = async {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let request = b"GET /latest/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    // Far less than the ten minutes that a connection may last.
    let answer = tokio::time::timeout(Duration::from_secs(20), asked).await;
    answer.expect("the guest is kept waiting")
}

#[tokio::test]
async fn idle_connections_of_a_guest_keep_its_own_programs_from_nothing() {
    for words in [
        b"".as_slice(),
        b"GET /latest/ HTTP/1.1\r\nHo",
        b"GET /latest/ HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let answer = answer_beside(words).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
}
