//! What to do about a handshake that failed.

/// Words of rustls, which its errors keep wherever libraries wrap them, and what they mean here.
const MEANINGS: &[(&str, &str)] = &[
    (
        "InvalidContentType",
        "the other side does not speak TLS there: use http:// (ws://), or give that server a certificate \
         (inbound.tls of its role)",
    ),
    (
        "UnknownIssuer",
        "no authority that is known here signed the server's certificate: name its authority in tls.ca_file, or see \
         whether this is the right server",
    ),
    (
        "invalid peer certificate: BadSignature",
        "an authority of this name is known here, with another key, and did not sign the server's certificate: name the \
         right one in tls.ca_file",
    ),
    (
        "invalid peer certificate: certificate not valid for name",
        "the server's certificate is for another name: use a URL with a name that it has",
    ),
    (
        "invalid peer certificate: certificate expired",
        "the server's certificate has expired: its operator has to renew it",
    ),
    (
        "invalid peer certificate: certificate not valid yet",
        "the server's certificate does not count yet: see whether this machine's clock is right",
    ),
    (
        "CertificateRequired",
        "the server takes only clients with a certificate of its authority: set tls.cert_file and tls.key_file",
    ),
    (
        "received fatal alert: UnknownCA",
        "the server does not know the authority of our certificate: its client_ca_file has to name it, or tls.cert_file \
         another certificate",
    ),
    (
        "received fatal alert: DecryptError",
        "the server does not take our certificate: an authority of its name is known there, with another key",
    ),
    (
        "received fatal alert: CertificateExpired",
        "the server finds our certificate expired: renew that of tls.cert_file",
    ),
    (
        "received fatal alert: BadCertificate",
        "the server does not take our certificate: it must be one for clients (extended key usage clientAuth)",
    ),
];

/// What a failed call may mean, if TLS had a part in it; `error` is the text of all its causes.
#[must_use]
pub fn advice(error: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(words, _)| error.contains(words)).map(|(_, meaning)| *meaning)
}
