//! Whose call it is: the address that limits count. Behind a reverse proxy that is what the proxy says, if it is one
//! of those that the operator named; what anybody else says about addresses is not read.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use axum::http::{HeaderMap, header::FORWARDED};
use blindfold_tls::ServerTlsFiles;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::limits::{MAX_CALLS_PER_ADDRESS_PER_SECOND, MAX_CONNECTIONS_PER_ADDRESS};

const X_FORWARDED_FOR: &str = "x-forwarded-for";
/// Longest PROXY header, version 1, with its line end.
const PROXY_V1_BYTES: usize = 107;
const PROXY_V2_SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Longest rest of a PROXY header, version 2: addresses, and what proxies add to them.
const PROXY_V2_REST_BYTES: usize = 2_048;

/// Settings of a public listener; a table of the configuration file. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Inbound {
    /// Reverse proxies, as addresses or networks (`10.0.0.0/8`), whose `Forwarded` or `X-Forwarded-For` says who calls.
    pub trusted_proxies: Vec<Network>,
    /// Whether each connection of a trusted proxy begins with a PROXY protocol header (version 1 or 2).
    pub proxy_protocol: bool,
    /// With them, the port speaks TLS and nothing else; both files are read again when they change.
    pub tls: Option<ServerTlsFiles>,
    /// Most open connections of one address.
    pub max_connections_per_address: u32,
    /// Most calls per second of one address, averaged; zero switches the limit off.
    pub max_calls_per_address_per_second: u32,
}

impl Default for Inbound {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            proxy_protocol: false,
            tls: None,
            max_connections_per_address: MAX_CONNECTIONS_PER_ADDRESS,
            max_calls_per_address_per_second: MAX_CALLS_PER_ADDRESS_PER_SECOND,
        }
    }
}

impl Inbound {
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }

    /// Who calls, as a trusted proxy says: of the chain that the proxies wrote, the rightmost address that is no trusted
    /// proxy. Whatever is not written as it should be, or in both headers (a client wrote one of them), counts as the
    /// proxy's own.
    pub(crate) fn caller(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let lines = |name: &str| -> Option<Vec<&str>> {
            headers.get_all(name).iter().map(|value| value.to_str().ok()).collect()
        };
        let (standard, common) = (lines(FORWARDED.as_str()), lines(X_FORWARDED_FOR));
        let hops: Vec<Option<IpAddr>> = match (standard, common) {
            (Some(lines), Some(none)) if none.is_empty() => elements(&lines).map(forwarded_for).collect(),
            (Some(none), Some(lines)) if none.is_empty() => elements(&lines).map(address).collect(),
            _ => return peer,
        };
        let mut known = peer;
        for hop in hops.into_iter().rev() {
            let Some(hop) = hop else { return known };
            known = hop;
            if !self.trusts(hop) {
                return known;
            }
        }
        known
    }
}

fn elements<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    lines.iter().flat_map(|line| line.split(',')).map(str::trim)
}

/// The `for` of one element of `Forwarded` (RFC 7239).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut values = element.split(';').filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for").then_some(value)
    });
    let value = values.next().filter(|_| values.next().is_none())?;
    address(value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value))
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let parsed = bare.parse().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    parsed.ok().map(|address: IpAddr| address.to_canonical())
}

/// An address, or those that share its first `prefix` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Neither an address nor a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: expected an address or a network, for example 10.0.0.5 or 10.0.0.0/8")]
pub struct NoNetwork(String);

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let (ours, theirs, width) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (u128::from(u32::from(ours)), u128::from(u32::from(theirs)), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (u128::from(ours), u128::from(theirs), 128),
            _ => return false,
        };
        let shift = width - u32::from(self.prefix);
        // A shift by the whole width leaves nothing to compare.
        ours.checked_shr(shift).unwrap_or_default() == theirs.checked_shr(shift).unwrap_or_default()
    }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let fault = || NoNetwork(text.chars().take(64).collect());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().map_err(|_| fault())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| fault())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(width);
        if prefix > width || address != address.to_canonical() {
            return Err(fault());
        }
        Ok(Self { address, prefix })
    }
}

impl TryFrom<String> for Network {
    type Error = NoNetwork;

    fn try_from(text: String) -> Result<Self, NoNetwork> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

/// Reads a PROXY protocol header and nothing after it: the address it speaks for, or none for a connection of the
/// proxy's own.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for what is no header; those of the stream.
pub async fn proxied_for(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let mut start = [0; PROXY_V2_SIGNATURE.len()];
    stream.read_exact(&mut start).await?;
    if start == PROXY_V2_SIGNATURE { version_2(stream).await } else { version_1(&start, stream).await }
}

fn no_header() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no PROXY protocol header")
}

async fn version_1(start: &[u8], stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= PROXY_V1_BYTES || !line.starts_with(b"PROXY ") {
            return Err(no_header());
        }
        line.push(stream.read_u8().await?);
    }
    let line = std::str::from_utf8(&line).map_err(|_| no_header())?;
    let fields: Vec<&str> = line.trim_end_matches("\r\n").split(' ').collect();
    match fields.as_slice() {
        ["PROXY", "UNKNOWN", ..] => Ok(None),
        ["PROXY", family @ ("TCP4" | "TCP6"), source, _, port, _] => {
            let source: IpAddr = source.parse().map_err(|_| no_header())?;
            let port = port.parse().map_err(|_| no_header())?;
            if source.is_ipv4() != (*family == "TCP4") {
                return Err(no_header());
            }
            Ok(Some(SocketAddr::new(source.to_canonical(), port)))
        }
        _ => Err(no_header()),
    }
}

async fn version_2(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let (command, family) = (stream.read_u8().await?, stream.read_u8().await?);
    let length = usize::from(stream.read_u16().await?);
    if length > PROXY_V2_REST_BYTES {
        return Err(no_header());
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    let source = match (command, family) {
        // LOCAL: the proxy itself, for a health check.
        (0x20, _) => return Ok(None),
        // TCP over IPv4: two addresses, two ports.
        (0x21, 0x11) => match rest.as_slice() {
            [a, b, c, d, _, _, _, _, high, low, ..] if length >= 12 => {
                (IpAddr::V4(Ipv4Addr::new(*a, *b, *c, *d)), [*high, *low])
            }
            _ => return Err(no_header()),
        },
        // TCP over IPv6.
        (0x21, 0x21) => match (rest.first_chunk::<16>(), rest.get(32..34)) {
            (Some(source), Some([high, low])) if length >= 36 => {
                (IpAddr::V6(Ipv6Addr::from(*source)).to_canonical(), [*high, *low])
            }
            _ => return Err(no_header()),
        },
        (0x21, _) => return Ok(None),
        _ => return Err(no_header()),
    };
    Ok(Some(SocketAddr::new(source.0, u16::from_be_bytes(source.1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbound(proxies: &[&str]) -> Inbound {
        let trusted_proxies = proxies.iter().map(|text| text.parse().expect("a network")).collect();
        Inbound { trusted_proxies, ..Inbound::default() }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn caller(inbound: &Inbound, peer: &str, headers: &[(&'static str, &'static str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        inbound.caller(ip(peer), &map).to_string()
    }

    #[test]
    fn networks() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.5", "10.0.0.5", "10.0.0.4"),
            ("0.0.0.0/0", "192.0.2.1", "2001:db8::1"),
            ("::/0", "2001:db8::1", "192.0.2.1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
        ] {
            let network: Network = network.parse().expect("a network");
            assert!(network.contains(ip(inside)) && !network.contains(ip(outside)), "{network}");
        }
        for text in
            ["", "10.0.0.0/33", "::/129", "10.0.0", "x", "10.0.0.0/", "10.0.0.0/-1", "::ffff:10.0.0.1"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_says_who_calls() {
        let nobody = inbound(&[]);
        let forged = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=203.0.113.9")];
        assert_eq!(caller(&nobody, "127.0.0.1", &forged[..1]), "127.0.0.1");
        let local = inbound(&["127.0.0.1", "10.0.0.0/8"]);
        assert_eq!(caller(&local, "192.0.2.1", &forged[..1]), "192.0.2.1");
        assert_eq!(caller(&local, "127.0.0.1", &forged[..1]), "203.0.113.9");
        assert_eq!(caller(&local, "127.0.0.1", &forged[1..]), "203.0.113.9");
        assert_eq!(
            caller(&local, "127.0.0.1", &forged),
            "127.0.0.1",
            "which of the two the proxy wrote is not known"
        );
    }

    #[test]
    fn the_rightmost_address_that_is_no_proxy_counts() {
        let local = inbound(&["127.0.0.1", "10.0.0.0/8"]);
        for (value, expected) in [
            // What the client wrote stands on the left.
            ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
            ("198.51.100.1, 203.0.113.9, 10.1.1.1", "203.0.113.9"),
            ("203.0.113.9:4711", "203.0.113.9"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("10.1.1.1", "10.1.1.1"),
            ("203.0.113.9, unknown", "127.0.0.1"),
            ("203.0.113.9, x, 10.1.1.1", "10.1.1.1"),
            ("", "127.0.0.1"),
        ] {
            assert_eq!(caller(&local, "127.0.0.1", &[("x-forwarded-for", value)]), expected, "{value}");
        }
        let lines = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "203.0.113.9")];
        assert_eq!(caller(&local, "127.0.0.1", &lines), "203.0.113.9");
        for (value, expected) in [
            ("for=198.51.100.1, For=\"203.0.113.9:80\";proto=https;by=10.0.0.1", "203.0.113.9"),
            ("for=\"[2001:db8::1]:80\"", "2001:db8::1"),
            ("for=_hidden", "127.0.0.1"),
            ("for=203.0.113.9;for=203.0.113.8", "127.0.0.1"),
            ("proto=https", "127.0.0.1"),
        ] {
            assert_eq!(caller(&local, "127.0.0.1", &[("forwarded", value)]), expected, "{value}");
        }
    }

    async fn read(mut bytes: &[u8]) -> (io::Result<Option<SocketAddr>>, usize) {
        let read = proxied_for(&mut bytes).await;
        (read, bytes.len())
    }

    #[tokio::test]
    async fn proxy_protocol_headers() {
        let source = |text: &str| text.parse::<SocketAddr>().expect("an address");
        for (text, expected) in [
            ("PROXY TCP4 203.0.113.9 10.0.0.1 4711 443\r\n", Some(source("203.0.113.9:4711"))),
            ("PROXY TCP6 2001:db8::1 ::1 4711 443\r\n", Some(source("[2001:db8::1]:4711"))),
            ("PROXY UNKNOWN\r\n", None),
        ] {
            let (read, left) = read(format!("{text}POST").as_bytes()).await;
            assert_eq!((read.expect("a header"), left), (expected, 4), "{text}");
        }
        let version_2 = |command: u8, family: u8, rest: &[u8]| {
            let length = u16::try_from(rest.len()).expect("short");
            [PROXY_V2_SIGNATURE.as_slice(), &[command, family], &length.to_be_bytes(), rest, b"POST"].concat()
        };
        let v4 = [203, 0, 113, 9, 10, 0, 0, 1, 0x12, 0x67, 1, 187, 9, 9];
        let (address, left) = read(&version_2(0x21, 0x11, &v4)).await;
        assert_eq!((address.expect("a header"), left), (Some(source("203.0.113.9:4711")), 4));
        let mut v6 = ip("2001:db8::1").to_string().parse::<Ipv6Addr>().expect("v6").octets().to_vec();
        v6.extend([0; 16]);
        v6.extend([0x12, 0x67, 1, 187]);
        assert_eq!(
            read(&version_2(0x21, 0x21, &v6)).await.0.expect("a header"),
            Some(source("[2001:db8::1]:4711"))
        );
        assert_eq!(read(&version_2(0x20, 0, &[])).await.0.expect("a header"), None);
        for bad in [
            version_2(0x21, 0x11, &v4[..11]),
            version_2(0x21, 0x21, &v6[..35]),
            version_2(0x11, 0x11, &v4),
            version_2(0x21, 0x11, &vec![0; PROXY_V2_REST_BYTES + 1]),
            b"POST / HTTP/1.1\r\n\r\n".to_vec(),
            b"PROXY TCP4 2001:db8::1 10.0.0.1 4711 443\r\n".to_vec(),
            b"PROXY TCP4 203.0.113.9 10.0.0.1 99999 443\r\n".to_vec(),
            [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat(),
            b"PROXY".to_vec(),
        ] {
            assert!(read(&bad).await.0.is_err());
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { cases: 300, rng_seed: proptest::test_runner::RngSeed::Fixed(1), failure_persistence: None, ..Default::default() })]

        /// Whatever callers write, the answer is an address, and that of a peer who is not trusted is his own.
        #[test]
        fn whatever_stands_in_headers(value in "[ -~]{0,60}", bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", value.parse().expect("visible"));
            let inbound = inbound(&["127.0.0.1"]);
            proptest::prop_assert_eq!(inbound.caller(ip("192.0.2.1"), &headers), ip("192.0.2.1"));
            inbound.caller(ip("127.0.0.1"), &headers);
            let mut bytes = [PROXY_V2_SIGNATURE.as_slice(), &bytes].concat();
            let _ = futures::executor::block_on(proxied_for(&mut bytes.as_slice()));
            bytes.drain(..PROXY_V2_SIGNATURE.len());
            let _ = futures::executor::block_on(proxied_for(&mut bytes.as_slice()));
        }
    }
}
