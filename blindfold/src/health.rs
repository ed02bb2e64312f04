//! `blindfold health`: whether a role is well, as an exit status, for supervisors that can start a program and no more.

use anyhow::{Context, Result, bail};
use blindfold_telemetry::redact_url;
use clap::Args;

use crate::http_probe;

/// Most characters of an answer that are shown.
const SHOWN_CHARS: usize = 2_000;

/// Options of `blindfold health`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HealthArgs {
    /// Path on a role's admin port: /healthz while the process runs, /readyz while it does its work
    #[arg(value_name = "URL", value_parser = plain_url)]
    url: String,
    /// How long the answer is waited for
    #[arg(long, value_name = "MS", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: u64,
}

fn plain_url(text: &str) -> Result<String, &'static str> {
    let why = "expected a plain URL, for example http://127.0.0.1:9546/readyz";
    let rest = text.strip_prefix("http://").ok_or(why)?;
    if rest.contains(['@', ' ']) || http_probe::authority(text).is_none() {
        return Err(why);
    }
    Ok(text.to_owned())
}

/// Asks once. Prints what a well role answers.
///
/// # Errors
/// No answer in time, or one that is not 200: then with what it says, at `/readyz` the reasons.
pub(crate) async fn run(args: HealthArgs) -> Result<()> {
    let shown = redact_url(&args.url);
    let authority = http_probe::authority(&args.url).with_context(|| format!("{shown} names no host"))?;
    let path = args.url.get("http://".len()..).and_then(|rest| rest.find('/').and_then(|at| rest.get(at..)));
    let answer = http_probe::get(&authority, path.unwrap_or("/"), args.timeout_ms)
        .await
        .with_context(|| format!("{shown}: not well"))?;
    let body: String = answer.body.trim().chars().take(SHOWN_CHARS).collect();
    if answer.status != 200 {
        bail!("{shown}: status {}: {body}", answer.status);
    }
    println!("{body}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Answers one request; gives its first line.
    async fn asked(answer: &'static str, path: &str) -> (Result<()>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        let server = blindfold_runtime::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 512];
            let length = stream.read(&mut request).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&request[..length]).lines().next().unwrap_or_default().to_owned()
        });
        let outcome = run(HealthArgs { url, timeout_ms: 60_000 }).await;
        (outcome, server.await.unwrap())
    }

    #[tokio::test]
    async fn the_status_of_the_path_decides() {
        let ok = asked("HTTP/1.1 200 OK\r\n\r\nok", "/healthz").await;
        assert!(ok.0.is_ok());
        assert_eq!(ok.1, "GET /healthz HTTP/1.1");
        assert_eq!(asked("HTTP/1.1 200 OK\r\n\r\n", "").await.1, "GET / HTTP/1.1");
        let waiting =
            "HTTP/1.1 503 Service Unavailable\r\n\r\n{\"ready\":false,\"reasons\":{\"l1\":\"old\"}}";
        let refused = asked(waiting, "/readyz").await.0.unwrap_err().to_string();
        assert!(refused.contains("503") && refused.contains("\"l1\":\"old\""), "{refused}");
        assert!(asked("HTTP/1.1 404 Not Found\r\n\r\n", "/ready").await.0.is_err());
        assert!(asked("SSH-2.0-x\r\n", "/readyz").await.0.is_err());
    }

    #[tokio::test]
    async fn nobody_there_is_not_well() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{nobody}/healthz");
        assert!(run(HealthArgs { url, timeout_ms: 60_000 }).await.is_err());
    }

    #[test]
    fn only_plain_urls_are_asked() {
        assert!(plain_url("http://[::1]:9546/readyz").is_ok());
        for bad in ["127.0.0.1:9546", "https://a/readyz", "http://", "http://user:secret@a/", "http://a/ x"] {
            assert!(plain_url(bad).is_err(), "{bad}");
        }
    }
}
