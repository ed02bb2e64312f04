//! A member whose answers are larger than any that it could be asked for.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// The bytes of an answer that no share has.
pub const FLOOD_BYTES: usize = 20 << 20;

/// Answers whoever asks with [`FLOOD_BYTES`], and tells how many were taken.
pub async fn flood(listener: TcpListener) -> usize {
    let (mut stream, _) = listener.accept().await.expect("it is asked");
    let begun = stream.read(&mut [0; 1024]).await.expect("a question");
    assert!(begun > 0);
    // It begins as an answer does.
    let length = FLOOD_BYTES + 1;
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await.expect("it is read");
    let (mut sent, chunk) = (0, vec![b' '; 1 << 16]);
    while sent < FLOOD_BYTES && stream.write_all(&chunk).await.is_ok() {
        sent += chunk.len();
    }
    sent
}
