//! Calls over real sockets.

use std::net::SocketAddr;

use blindfold_rpc::{
    ClientConfig, HttpClient, ReceivedError, RpcError, http_client, jsonrpsee::core::ClientError,
};

/// A client of whoever listens here.
pub fn client(addr: SocketAddr) -> HttpClient {
    http_client(&format!("http://{addr}"), &ClientConfig::default()).expect("a URL")
}

/// Why a call was refused; there has to be an answer.
pub fn refused(error: ClientError) -> RpcError {
    match ReceivedError::from(error) {
        ReceivedError::Refused(error) => error,
        ReceivedError::NoAnswer(why) => panic!("no answer: {why}"),
    }
}
