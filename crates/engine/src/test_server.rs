//! A scripted JSON-RPC server for tests.

use std::sync::Arc;

use blindfold_runtime::spawn;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// What the server does with one request.
pub(crate) enum Answer {
    /// A JSON-RPC result.
    Result(Value),
    /// A JSON-RPC error.
    Error(i64, &'static str, Value),
    /// A status and a body.
    Raw(u16, Vec<u8>),
    /// Close the connection in the middle of the answer.
    Break,
    /// Never answer.
    Silence,
}

/// Serves until the test's runtime ends; returns the URL.
pub(crate) async fn serve(script: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let script = Arc::new(script);
    spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn(connection(stream, script.clone()));
        }
    });
    url
}

async fn connection(stream: TcpStream, script: Arc<impl Fn(&str, &Value) -> Answer>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let request: Value = serde_json::from_slice(&body).unwrap();
        let (status, body) = match script(request["method"].as_str().unwrap(), &request["params"]) {
            Answer::Result(result) => {
                (200, json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string().into())
            }
            Answer::Error(code, message, data) => {
                let error = json!({"code": code, "message": message, "data": data});
                (200, json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string().into())
            }
            Answer::Raw(status, body) => (status, body),
            Answer::Break => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{").await;
                return;
            }
            Answer::Silence => std::future::pending().await,
        };
        let head = format!("HTTP/1.1 {status} status\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).await.is_err() || stream.write_all(&body).await.is_err() {
            return;
        }
    }
}
