//! An HTTP server that answers JSON-RPC calls by a function of method and parameters; a GET is the method "GET" with
//! the path as parameter. Batches are answered from the last call to the first.
#![allow(clippy::unwrap_used, reason = "helper of tests")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use alloy_primitives::{Address, B256, Bloom};
use serde_json::{Value, json};

/// What the server sends back.
#[derive(Clone)]
pub(crate) enum Answer {
    Result(Value),
    /// Of a batch the answer to this call; what is neither this nor a result is the whole batch's answer.
    Error {
        code: i64,
        message: &'static str,
        data: Option<String>,
    },
    Status(u16),
    Raw(&'static str),
    /// Nothing: the connection stays open until the client leaves.
    Silence,
}

/// A block as `eth_getBlockByNumber` gives it.
pub(crate) fn block() -> Value {
    let zero = B256::ZERO;
    json!({
        "number": "0x1", "hash": zero, "parentHash": zero, "sha3Uncles": zero, "miner": Address::ZERO, "stateRoot": zero,
        "transactionsRoot": zero, "receiptsRoot": zero, "logsBloom": Bloom::ZERO, "difficulty": "0x0",
        "gasLimit": "0x0", "gasUsed": "0x0", "timestamp": "0x1", "extraData": "0x", "mixHash": zero,
        "nonce": "0x0000000000000000", "baseFeePerGas": "0x7", "uncles": [], "transactions": [],
    })
}

/// Starts the server on a free port; gives its URL. It ends with the test process.
pub(crate) fn serve(answer: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static) -> String {
    serve_batches(move |method, params, _| answer(method, params))
}

/// [`serve`], where the function is told as well whether the call is one of a batch.
pub(crate) fn serve_batches(answer: impl Fn(&str, &Value, bool) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            // A client that leaves in the middle ends its connection, nothing more.
            std::thread::spawn(move || exchange(stream, &*answer));
        }
    });
    url
}

fn exchange(stream: TcpStream, answer: &dyn Fn(&str, &Value, bool) -> Answer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let (mut length, mut path) = (0, None);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(rest) = line.strip_prefix("GET ") {
                path = rest.split(' ').next().map(str::to_owned);
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let request: Value = match &path {
            Some(path) => json!({ "method": "GET", "params": path }),
            None => serde_json::from_slice(&body).unwrap(),
        };
        let batch = request.as_array().is_some();
        let calls = request.as_array().cloned().unwrap_or_else(|| vec![request]);
        let mut answers = Vec::new();
        let mut whole = None;
        for call in calls.iter().rev() {
            let id = &call["id"];
            match answer(call["method"].as_str().unwrap(), &call["params"], batch) {
                Answer::Result(result) if path.is_some() => whole = Some((200, result.to_string())),
                Answer::Result(result) => answers.push(json!({"jsonrpc": "2.0", "id": id, "result": result})),
                Answer::Error { code, message, data } => {
                    let error = json!({"code": code, "message": message, "data": data});
                    answers.push(json!({"jsonrpc": "2.0", "id": id, "error": error}));
                }
                Answer::Status(status) => whole = Some((status, String::new())),
                Answer::Raw(text) => whole = Some((200, text.to_owned())),
                Answer::Silence => {
                    reader.read_exact(&mut [0])?;
                    return Ok(());
                }
            }
        }
        let (status, text) = whole.unwrap_or_else(|| match batch {
            true => (200, json!(answers).to_string()),
            false => (200, answers.remove(0).to_string()),
        });
        write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{text}", text.len())?;
    }
}
