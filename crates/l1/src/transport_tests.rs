#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use crate::{
    error::Recovery,
    test_server::{Answer, serve, serve_batches},
};
use alloy_sol_types::SolError;
use serde_json::json;

async fn outcome(rpc: &Rpc) -> L1Error {
    rpc.chain_id().await.unwrap_err()
}

fn rpc(answer: impl Fn(&str, &serde_json::Value) -> Answer + Send + Sync + 'static) -> Rpc {
    Rpc::new(&serve(answer), 5_000).unwrap()
}

#[tokio::test]
async fn failures_of_the_way_are_named() {
    let error = outcome(&rpc(|_, _| Answer::Status(503))).await;
    assert_eq!(error, L1Error::HttpStatus { method: "eth_chainId".into(), status: 503 });
    assert_eq!(error.recovery(), Recovery::Retry);
    // Credentials are renewed on both sides, one after the other.
    let error = outcome(&rpc(|_, _| Answer::Status(403))).await;
    assert_eq!(error.recovery(), Recovery::Retry);
    let error = outcome(&rpc(|_, _| Answer::Status(404))).await;
    assert_eq!(error.recovery(), Recovery::GiveUp);

    for text in ["", "[]", "{}", r#"{"jsonrpc":"2.0","id":1,"result":"0xzz"}"#, r#"{"id":1,"result":7.5}"#] {
        let error = outcome(&rpc(move |_, _| Answer::Raw(text))).await;
        assert!(matches!(error, L1Error::Malformed { .. }), "{text}: {error:?}");
        assert_eq!(error.recovery(), Recovery::GiveUp);
    }

    let long = serde_json::Value::from("1".repeat(2_000));
    let url = serve(move |_, _| Answer::Result(long.clone()));
    let endpoint = Rpc::over(Http::new(&url, 5_000).unwrap().with_response_limit(1_000));
    let limit_bytes = 1_000;
    assert_eq!(
        outcome(&endpoint).await,
        L1Error::ResponseTooLarge { method: "eth_chainId".into(), limit_bytes }
    );

    let silent = Rpc::new(&serve(|_, _| Answer::Silence), 50).unwrap();
    let error = outcome(&silent).await;
    assert_eq!(error, L1Error::Timeout { method: "eth_chainId".into(), timeout_ms: 50 });
    assert!(error.is_transient());

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = outcome(&Rpc::new(&format!("http://{closed}/?key=secret"), 5_000).unwrap()).await;
    assert!(matches!(error, L1Error::Unreachable { .. }), "{error:?}");
    assert!(error.is_transient() && !error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn the_servers_own_errors_are_kept_apart() {
    let busy = rpc(|_, _| Answer::Error { code: -32005, message: "limit exceeded", data: None });
    let error = outcome(&busy).await;
    let (method, message) = ("eth_chainId".to_owned(), "limit exceeded".to_owned());
    assert_eq!(error, L1Error::Rpc { method, code: -32005, message });
    assert!(error.is_transient());
    let unknown = rpc(|_, _| Answer::Error { code: -32601, message: "no such method", data: None });
    assert_eq!(outcome(&unknown).await.recovery(), Recovery::GiveUp);
}

#[tokio::test]
async fn two_calls_go_in_one_request_and_only_where_batches_are_refused_in_two() {
    let both = async |answer: fn(&str, bool) -> Answer| {
        let rpc = Rpc::new(&serve_batches(move |method, _, batch| answer(method, batch)), 5_000).unwrap();
        rpc.call_both::<u64, u64>(("first", json!([])), ("second", json!([]))).await
    };
    let answered = both(|method, batch| match batch {
        true => Answer::Result(if method == "first" { 1 } else { 2 }.into()),
        false => Answer::Status(500),
    });
    assert_eq!(answered.await, Ok((1, Ok(2))));
    let error = |method: &str| {
        let (method, message) = (method.to_owned(), "no such method".to_owned());
        L1Error::Rpc { method, code: -32601, message }
    };
    let second = both(|method, _| match method {
        "first" => Answer::Result(1.into()),
        _ => Answer::Error { code: -32601, message: "no such method", data: None },
    });
    assert_eq!(second.await, Ok((1, Err(error("second")))));
    let first = both(|method, _| match method {
        "first" => Answer::Error { code: -32601, message: "no such method", data: None },
        _ => Answer::Result(2.into()),
    });
    assert_eq!(first.await, Err(error("first")));
    let alone = both(|method, batch| match batch {
        true => Answer::Raw(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no list"}}"#),
        false => Answer::Result(if method == "first" { 1 } else { 2 }.into()),
    });
    assert_eq!(alone.await, Ok((1, Ok(2))));
    // Whoever is away, or busy, may take a batch the next time.
    assert!(both(|_, _| Answer::Status(503)).await.unwrap_err().is_transient());
    let busy =
        both(|_, _| Answer::Raw(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"limit"}}"#));
    assert!(busy.await.unwrap_err().is_transient());
    for answer in [
        || Answer::Raw("[]"),
        || Answer::Raw("{}"),
        || Answer::Raw(r#"{"jsonrpc":"2.0","id":1,"result":1}"#),
        || Answer::Raw(r#"[{"jsonrpc":"2.0","id":2,"result":1}]"#),
    ] as [fn() -> Answer; 4]
    {
        let rpc = Rpc::new(&serve_batches(move |_, _, _| answer()), 5_000).unwrap();
        let unlike =
            rpc.call_both::<u64, u64>(("first", json!([])), ("second", json!([]))).await.unwrap_err();
        assert!(matches!(unlike, L1Error::Malformed { .. }), "{unlike:?}");
    }
}

#[tokio::test]
async fn reverts_are_told_in_the_contracts_words() {
    let view = async |data: Option<String>, message: &'static str, code: i64| {
        let endpoint = rpc(move |_, _| Answer::Error { code, message, data: data.clone() });
        let call = contracts::BlindedInbox::openAccusationsCall {};
        endpoint.view("openAccusations", Address::ZERO, &call).await.unwrap_err()
    };
    let reverted = |reason: &str| L1Error::Reverted { call: "openAccusations", reason: reason.to_owned() };
    let hex = |data: Vec<u8>| Some(alloy_primitives::hex::encode_prefixed(data));

    let known = contracts::BlindedInbox::WrongNumber { expected: 3, given: 1 }.abi_encode();
    let error = view(hex(known), "execution reverted", 3).await;
    assert_eq!(error, reverted("WrongNumber { expected: 3, given: 1 }"));
    assert_eq!(error.recovery(), Recovery::Refresh);
    let registry = contracts::CommitteeRegistry::UnknownEpoch { epoch: 9 }.abi_encode();
    assert_eq!(view(hex(registry), "execution reverted", 3).await, reverted("UnknownEpoch { epoch: 9 }"));
    let vault = contracts::FeeVault::ZeroPayer {}.abi_encode();
    assert_eq!(view(hex(vault), "execution reverted", 3).await, reverted("ZeroPayer"));
    assert_eq!(view(hex(vec![1, 2, 3, 4]), "execution reverted", 3).await, reverted("0x01020304"));
    assert_eq!(view(hex(vec![]), "execution reverted", 3).await, reverted("no reason given"));
    assert_eq!(view(None, "execution reverted", -32000).await, reverted("execution reverted"));
    assert!(matches!(view(None, "boom", -32000).await, L1Error::Rpc { code: -32000, .. }));
}

#[tokio::test]
async fn an_answer_of_another_shape_is_refused() {
    let endpoint = rpc(|_, _| Answer::Result("0x".into()));
    let call = contracts::BlindedInbox::openAccusationsCall {};
    let error = endpoint.view("openAccusations", Address::ZERO, &call).await.unwrap_err();
    assert!(matches!(error, L1Error::Undecodable { call: "openAccusations", .. }), "{error:?}");
}

#[test]
fn urls_are_checked_first() {
    for url in ["", "127.0.0.1:8545", "ws://127.0.0.1", "http://"] {
        assert!(matches!(Rpc::new(url, 1), Err(L1Error::Url { .. })), "{url}");
    }
    assert!(Rpc::new("https://example.org", 1).is_ok());
}

#[test]
fn the_url_is_not_printed() {
    let rpc = Rpc::new("http://user:secret@127.0.0.1", 1).unwrap();
    assert!(!format!("{rpc:?}").contains("secret"));
}

#[test]
fn long_texts_are_cut() {
    assert_eq!(shorten("short"), "short");
    assert_eq!(shorten(&"é".repeat(600)).chars().count(), ERROR_TEXT_LIMIT_CHARS + 1);
}
