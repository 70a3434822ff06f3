//! Pages of metrics and health, without a client of HTTP.

/// A page of `ADDRESS:PORT`, with its head. HTTP/1.0: the body comes in one piece.
///
/// # Errors
/// Nothing answers there in time, in words.
pub async fn get_raw(address: &str, path: &str) -> Result<String, String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let read = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let request =
            format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await?;
        std::io::Result::Ok(page)
    };
    read.await.map_err(|error| format!("{address}: {error}"))
}
