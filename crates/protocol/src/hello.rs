//! Who calls: a peer's signed hello to one server, with which it takes the places that are kept for peers.

use crate::eip712::{self, Deployment, struct_hash};
use crate::limits::VERSION;
use crate::messages::G1_BYTES;
use crate::signature::{SIGNATURE_BYTES, Signature65, SigningKey, recover};
use alloy_primitives::{Address, B256, FixedBytes, hex};
use blindfold_bte::bls::{PublicKey, SecretKey, Signature};
use std::fmt;
use std::str::FromStr;

/// Longest text of a hello.
pub const MAX_HELLO_CHARS: usize = 320;

/// A party of the protocol that has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Party {
    /// The sequencer, by its signing key.
    Sequencer,
    /// The committee's member with this index, from 1, by its BLS key.
    Member(u16),
    /// A hint publisher, by the key of this account. Who counts as one, each server's operator says.
    HintPublisher(Address),
    /// A gateway of the sequencer's operator, by the key of this account.
    Gateway(Address),
}

impl fmt::Display for Party {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequencer => formatter.write_str("sequencer"),
            Self::Member(index) => write!(formatter, "member-{index}"),
            Self::HintPublisher(address) => write!(formatter, "helper-{address:#x}"),
            Self::Gateway(address) => write!(formatter, "gateway-{address:#x}"),
        }
    }
}

impl FromStr for Party {
    type Err = HelloError;

    fn from_str(text: &str) -> Result<Self, HelloError> {
        let party = if let Some(index) = text.strip_prefix("member-") {
            Self::Member(index.parse().map_err(|_| HelloError::Form)?)
        } else if let Some(address) = text.strip_prefix("helper-") {
            Self::HintPublisher(address.parse().map_err(|_| HelloError::Form)?)
        } else if let Some(address) = text.strip_prefix("gateway-") {
            Self::Gateway(address.parse().map_err(|_| HelloError::Form)?)
        } else {
            Self::Sequencer
        };
        if party.to_string() == text { Ok(party) } else { Err(HelloError::Form) }
    }
}

/// Why a hello proves nothing. The fault of whoever sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Not of the form of a hello.
    #[error("not of the form of a hello")]
    Form,
    /// Signed by another key, or for another server or deployment.
    #[error("the signature is not the peer's for this server")]
    Signature,
}

/// By what a party's hello is judged.
#[derive(Clone, Debug)]
pub enum PartyKey {
    /// Address of a secp256k1 key. Costs about a tenth of a millisecond.
    Address(Address),
    /// A member's BLS key. Costs two pairings.
    Bls(PublicKey),
}

/// `<peer> <time> <nonce> <signature>`, as it stands in the HTTP header. The server is not named: it is in what is
/// signed, so that a hello to one server is worth nothing at another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The peer that it claims to come from.
    pub peer: Party,
    /// When it was made, in Unix milliseconds by the peer's clock.
    pub timestamp_ms: u64,
    /// Makes two hellos of one moment differ.
    pub nonce: FixedBytes<16>,
    signature: Vec<u8>,
}

impl Hello {
    fn digest(
        deployment: &Deployment,
        server: Party,
        peer: Party,
        timestamp_ms: u64,
        nonce: FixedBytes<16>,
    ) -> B256 {
        deployment.digest(&struct_hash(&eip712::Hello {
            version: VERSION,
            server: server.to_string(),
            peer: peer.to_string(),
            timestampMs: timestamp_ms,
            nonce,
        }))
    }

    /// The sequencer's hello to a server.
    pub fn of_sequencer(
        key: &SigningKey,
        deployment: &Deployment,
        server: Party,
        timestamp_ms: u64,
        nonce: FixedBytes<16>,
    ) -> Self {
        Self::of_account(Party::Sequencer, key, deployment, server, timestamp_ms, nonce)
    }

    /// A hint publisher's hello to a server.
    pub fn of_hint_publisher(
        key: &SigningKey,
        deployment: &Deployment,
        server: Party,
        timestamp_ms: u64,
        nonce: FixedBytes<16>,
    ) -> Self {
        Self::of_account(Party::HintPublisher(key.address()), key, deployment, server, timestamp_ms, nonce)
    }

    /// A gateway's hello to a server.
    pub fn of_gateway(
        key: &SigningKey,
        deployment: &Deployment,
        server: Party,
        timestamp_ms: u64,
        nonce: FixedBytes<16>,
    ) -> Self {
        Self::of_account(Party::Gateway(key.address()), key, deployment, server, timestamp_ms, nonce)
    }

    fn of_account(
        peer: Party,
        key: &SigningKey,
        deployment: &Deployment,
        server: Party,
        timestamp_ms: u64,
        nonce: FixedBytes<16>,
    ) -> Self {
        let digest = Self::digest(deployment, server, peer, timestamp_ms, nonce);
        Self { peer, timestamp_ms, nonce, signature: key.sign(&digest).0.to_vec() }
    }

    /// A member's hello to a server.
    pub fn of_member(
        key: &SecretKey,
        member: u16,
        deployment: &Deployment,
        server: Party,
        timestamp_ms: u64,
        nonce: FixedBytes<16>,
    ) -> Self {
        let peer = Party::Member(member);
        let digest = Self::digest(deployment, server, peer, timestamp_ms, nonce);
        Self { peer, timestamp_ms, nonce, signature: key.sign(&digest.0).to_bytes().to_vec() }
    }

    /// Whether the key made it for this server. Whether its time is right is for the server to say (H-1).
    pub fn verify(&self, deployment: &Deployment, server: Party, key: &PartyKey) -> Result<(), HelloError> {
        let digest = Self::digest(deployment, server, self.peer, self.timestamp_ms, self.nonce);
        match key {
            PartyKey::Address(address) => {
                let signature: [u8; SIGNATURE_BYTES] =
                    self.signature.as_slice().try_into().map_err(|_| HelloError::Form)?;
                let signer = recover(&digest, &Signature65(signature)).map_err(|_| HelloError::Signature)?;
                if signer == *address { Ok(()) } else { Err(HelloError::Signature) }
            }
            PartyKey::Bls(key) => {
                let signature: [u8; G1_BYTES] =
                    self.signature.as_slice().try_into().map_err(|_| HelloError::Form)?;
                let signature = Signature::from_bytes(&signature).map_err(|_| HelloError::Signature)?;
                key.verify(&digest.0, &signature).map_err(|_| HelloError::Signature)
            }
        }
    }
}

impl fmt::Display for Hello {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, timestamp_ms, nonce, signature } = self;
        write!(formatter, "{peer} {timestamp_ms} {nonce} {}", hex::encode_prefixed(signature))
    }
}

impl FromStr for Hello {
    type Err = HelloError;

    fn from_str(text: &str) -> Result<Self, HelloError> {
        let fields: Vec<&str> = text.split(' ').collect();
        let [peer, timestamp_ms, nonce, signature] = fields.as_slice() else { return Err(HelloError::Form) };
        let hello = Self {
            peer: peer.parse()?,
            timestamp_ms: timestamp_ms.parse().map_err(|_| HelloError::Form)?,
            nonce: nonce.parse().map_err(|_| HelloError::Form)?,
            signature: hex::decode(signature).map_err(|_| HelloError::Form)?,
        };
        // One text for one hello: what was judged is remembered by it.
        if text.len() <= MAX_HELLO_CHARS && hello.to_string() == text {
            Ok(hello)
        } else {
            Err(HelloError::Form)
        }
    }
}
