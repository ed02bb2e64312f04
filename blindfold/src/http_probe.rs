//! One GET by plain HTTP with a bounded answer: for an admin port, and for the time in an answer's headers, which JSON-RPC
//! clients do not show.

use std::{fmt::Write, time::UNIX_EPOCH};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Duration, timeout},
};

/// Longest answer that is read, with its headers.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The server's time in Unix milliseconds, to the second, where it tells.
    pub date_ms: Option<u64>,
    /// As far as it was read, with what is no UTF-8 replaced.
    pub body: String,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// No connection, or it broke.
    #[error("{0}")]
    Connection(#[from] std::io::Error),
    /// No whole answer in time.
    #[error("no answer within {0} ms")]
    Timeout(u64),
    /// An answer that is not HTTP.
    #[error("what answers is no HTTP server")]
    NotHttp,
}

impl ProbeError {
    /// Whether nobody listens there.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Connection(cause) if cause.kind() == std::io::ErrorKind::ConnectionRefused)
    }
}

/// `host:port` of a plain `http://` URL; `None` for others.
pub(crate) fn authority(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://")?;
    let authority = rest.split(['/', '\\', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    (!host.is_empty()).then(|| if has_port { host.to_owned() } else { format!("{host}:80") })
}

/// Asks `host:port` for `path`.
pub(crate) async fn get(address: &str, path: &str, timeout_ms: u64) -> Result<Answer, ProbeError> {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        let mut request = String::new();
        // Into a string nothing fails.
        let _ = write!(request, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes).await?;
        parsed(&bytes).ok_or(ProbeError::NotHttp)
    };
    timeout(Duration::from_millis(timeout_ms), asked).await.map_err(|_| ProbeError::Timeout(timeout_ms))?
}

fn parsed(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let date =
        lines.filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("date"));
    let date = date.and_then(|(_, value)| httpdate::parse_http_date(value.trim()).ok());
    let since = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
    let date_ms = since.and_then(|since| u64::try_from(since.as_millis()).ok());
    Some(Answer { status, date_ms, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn the_parts_of_an_answer_are_read() {
        let text = "HTTP/1.1 503 Service Unavailable\r\nDate: Thu, 01 Jan 1970 00:01:00 GMT\r\nx: y\r\n\r\n{\"a\":1}";
        let answer = parsed(text.as_bytes()).unwrap();
        assert_eq!(answer, Answer { status: 503, date_ms: Some(60_000), body: "{\"a\":1}".to_owned() });
        assert_eq!(parsed(b"HTTP/1.0 200 OK\r\ndate: never\r\n\r\n").unwrap().date_ms, None);
        for bad in
            ["", "SSH-2.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 many\r\n\r\n", "HTTP/2 200\r\n\r\n"]
        {
            assert_eq!(parsed(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn only_plain_urls_have_an_authority() {
        for (url, expected) in [
            ("http://a:1", Some("a:1")),
            ("http://user:pass@a:1/path?x", Some("a:1")),
            ("http://[::1]:9545/", Some("[::1]:9545")),
            ("http://a/b:7", Some("a:80")),
            ("https://a:1", None),
            ("http://", None),
        ] {
            assert_eq!(authority(url).as_deref(), expected, "{url}");
        }
    }

    /// Answers one connection with these bytes and then, if `hangs`, keeps it open.
    async fn server(answer: Vec<u8>, hangs: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        blindfold_runtime::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 512];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer).await;
            if hangs {
                std::future::pending::<()>().await;
            }
        });
        address
    }

    #[tokio::test]
    async fn an_answer_is_bounded_in_size_and_time() {
        let mut endless = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        endless.resize(1 << 20, b'x');
        let long = get(&server(endless, true).await, "/", 60_000).await.unwrap();
        assert!(long.body.len() < MAX_ANSWER_BYTES as usize);
        let silent = get(&server(b"HTTP/1.1".to_vec(), true).await, "/", 20).await;
        assert!(matches!(silent, Err(ProbeError::Timeout(20))), "{silent:?}");
        let other = get(&server(b"SSH-2.0-x\r\n".to_vec(), false).await, "/", 60_000).await;
        assert!(matches!(other, Err(ProbeError::NotHttp)), "{other:?}");
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        assert!(get(&nobody, "/", 60_000).await.unwrap_err().is_refused());
    }
}
