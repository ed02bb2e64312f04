use serde_json::json;

use super::*;
use crate::{
    Recovery,
    test_server::{Answer, serve},
};

const LIMIT_BYTES: usize = 1_000;

/// Key 00 01 … 1f, `iat` 1,700,000,000; made with Python's `hmac`.
const EXPECTED_TOKEN: &str = concat!(
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE3MDAwMDAwMDB",
    "9.uAxdaUtr1_HpYPtNDLNlQ_sHMiP5eBV-ra8EjL3ScS8"
);

async fn answered(answer: fn() -> Answer) -> Result<Result<Value, RpcError>, TransportError> {
    let url = serve(move |_, _| answer()).await;
    Endpoint::new(&url, None, 30_000, LIMIT_BYTES).call("m", json!([])).await
}

#[test]
fn token_is_the_one_other_implementations_make() {
    let secret = JwtSecret::from_hex(&hex::encode((0..32).collect::<Vec<u8>>())).unwrap();
    assert_eq!(secret.token(1_700_000_000), EXPECTED_TOKEN);
}

#[test]
fn secrets_are_read_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jwt.hex");
    let secret = JwtSecret::generate().unwrap();
    fs::write(&path, format!("0x{}\n", secret.to_hex().as_str())).unwrap();
    assert_eq!(JwtSecret::from_file(&path).unwrap(), secret);
    assert_eq!(format!("{secret:?}"), "JwtSecret(redacted)");
    assert!(secret != JwtSecret::generate().unwrap());
    for bad in ["", "0x", "00", &"zz".repeat(32), &"00".repeat(33)] {
        assert!(matches!(JwtSecret::from_hex(bad), Err(JwtSecretError::NotHex)), "{bad}");
    }
    let missing = JwtSecret::from_file(&dir.path().join("none"));
    assert!(matches!(missing, Err(JwtSecretError::File { .. })));
}

#[tokio::test]
async fn results_and_errors_come_through() {
    assert_eq!(answered(|| Answer::Result(json!({"a": 1}))).await.unwrap().unwrap(), json!({"a": 1}));
    assert_eq!(answered(|| Answer::Result(Value::Null)).await.unwrap().unwrap(), Value::Null);
    let error = answered(|| Answer::Error(-5, "no", json!("0x01"))).await.unwrap().unwrap_err();
    assert_eq!(error, RpcError { code: -5, message: "no".into(), data: Some(json!("0x01")) });
}

#[tokio::test]
async fn a_null_result_is_an_error_where_a_value_must_be() {
    let url = serve(|_, _| Answer::Result(Value::Null)).await;
    let endpoint = Endpoint::new(&url, None, 30_000, LIMIT_BYTES);
    let error = endpoint.call::<u64>("m", json!([])).await.unwrap_err();
    assert!(matches!(error, TransportError::Malformed { .. }), "{error}");
    assert_eq!(endpoint.call::<Option<u64>>("m", json!([])).await, Ok(Ok(None)));
}

#[tokio::test]
async fn failures_are_told_apart() {
    let error = answered(|| Answer::Raw(401, Vec::new())).await.unwrap_err();
    assert_eq!(error, TransportError::Unauthorized { method: "m".into(), status: 401 });
    assert_eq!(error.recovery(), Recovery::Retry);
    let error = answered(|| Answer::Raw(503, Vec::new())).await.unwrap_err();
    assert_eq!(error, TransportError::HttpStatus { method: "m".into(), status: 503 });
    assert_eq!(error.recovery(), Recovery::Retry);
    let error = answered(|| Answer::Raw(413, Vec::new())).await.unwrap_err();
    assert_eq!(error.recovery(), Recovery::GiveUp);
    for body in [&b""[..], b"[]", b"{", b"{\"result\":1", b"\xff"] {
        let body = body.to_vec();
        let url = serve(move |_, _| Answer::Raw(200, body.clone())).await;
        let answer = Endpoint::new(&url, None, 30_000, LIMIT_BYTES).call::<u64>("m", json!([])).await;
        assert!(matches!(answer, Err(TransportError::Malformed { .. })), "{answer:?}");
    }
    let error = answered(|| Answer::Raw(200, vec![b' '; LIMIT_BYTES + 1])).await.unwrap_err();
    assert_eq!(error, TransportError::ResponseTooLarge { method: "m".into(), limit_bytes: LIMIT_BYTES });
    let error = answered(|| Answer::Break).await.unwrap_err();
    assert!(matches!(error, TransportError::Unreachable { .. }), "{error}");
    assert_eq!(error.recovery(), Recovery::Retry);
}

/// A renewed secret was refused for ever: only a restart read it again.
#[tokio::test]
async fn a_renewed_secret_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jwt.hex");
    let (old, renewed) = (JwtSecret::generate().unwrap(), JwtSecret::generate().unwrap());
    fs::write(&path, old.to_hex().as_bytes()).unwrap();
    let url = serve(|_, _| Answer::Raw(401, Vec::new())).await;
    let endpoint =
        Endpoint::new(&url, Some(old.clone()), 30_000, LIMIT_BYTES).with_secret_file(Some(path.clone()));
    let held = || endpoint.secret.as_ref().unwrap().lock().unwrap().clone();
    endpoint.call::<u64>("m", json!([])).await.unwrap_err();
    assert!(held() == old);
    fs::write(&path, b"half a sec").unwrap();
    endpoint.call::<u64>("m", json!([])).await.unwrap_err();
    assert!(held() == old, "what cannot be read changes nothing");
    fs::write(&path, renewed.to_hex().as_bytes()).unwrap();
    endpoint.call::<u64>("m", json!([])).await.unwrap_err();
    assert!(held() == renewed);
}

#[tokio::test]
async fn silence_and_absence_are_retried() {
    let url = serve(|_, _| Answer::Silence).await;
    let error = Endpoint::new(&url, None, 20, LIMIT_BYTES).call::<u64>("m", json!([])).await.unwrap_err();
    assert_eq!(error, TransportError::Timeout { method: "m".into(), timeout_ms: 20 });
    assert_eq!(error.recovery(), Recovery::Retry);
    // Port 1 belongs to a service that nobody runs.
    let nobody = Endpoint::new("http://127.0.0.1:1", None, 30_000, LIMIT_BYTES);
    let error = nobody.call::<u64>("m", json!([])).await.unwrap_err();
    assert!(matches!(error, TransportError::Unreachable { .. }), "{error}");
    assert!(!error.to_string().contains("http://"), "{error}");
}

#[test]
fn long_texts_are_cut_between_characters() {
    let text = shorten("é".repeat(ERROR_TEXT_LIMIT_CHARS + 1));
    assert_eq!(text.chars().count(), ERROR_TEXT_LIMIT_CHARS + 1);
    assert!(text.ends_with('…'));
    assert_eq!(shorten("short".into()), "short");
}
