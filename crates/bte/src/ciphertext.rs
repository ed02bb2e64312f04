//! What travels: ciphertexts, proofs of knowledge, session keys.

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::curve::{G1Affine, PointError};
use crate::hash::stream_xor;
use crate::{G1_BYTES, PROOF_BYTES, SCALAR_BYTES, SESSION_KEY_BYTES};

/// The session key K of one ciphertext. Published after release it is the ciphertext's **hint**; before that, a
/// secret. Printed redacted, wiped on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SessionKey([u8; SESSION_KEY_BYTES]);

impl SessionKey {
    /// Any 16 bytes are a session key; whether they belong to a ciphertext is what
    /// [`EncryptionKey::open_hint`](crate::EncryptionKey::open_hint) decides.
    pub fn from_bytes(bytes: [u8; SESSION_KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes of the key, which opens the ciphertext.
    pub fn as_bytes(&self) -> &[u8; SESSION_KEY_BYTES] {
        &self.0
    }

    /// What E decrypts to under this key, be it the right one or not: nothing is checked.
    pub fn message(&self, ad: &[u8; 32], e: &[u8]) -> Vec<u8> {
        let mut message = e.to_vec();
        stream_xor(&self.0, ad, &mut message);
        message
    }
}

impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SessionKey {}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKey(redacted)")
    }
}

/// A ciphertext as it is transmitted. Its bytes are not checked: decode the header by [`Ciphertext::header`] or
/// [`verify_proof`](crate::verify_proof).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ciphertext {
    /// C = \[k\]₁, compressed: the header, all that the committee sees.
    pub c: [u8; G1_BYTES],
    /// D = K ⊕ SHA-256(KEM ‖ ek^k)\[0..16\].
    pub d: [u8; SESSION_KEY_BYTES],
    /// E = the message under the key stream of K; as long as the message.
    pub e: Vec<u8>,
}

impl Ciphertext {
    /// Decodes and checks C (on the curve, in the subgroup, not the identity). About 30 µs.
    ///
    /// # Errors
    /// [`PointError`]: the sender's fault.
    pub fn header(&self) -> Result<CiphertextPoint, PointError> {
        CiphertextPoint::from_bytes(&self.c)
    }
}

/// A proof that the encryptor knows k, bound to C, D, E and the associated data: R = \[ρ\]₁, s = ρ + c·k.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Proof {
    /// The commitment R = \[ρ\]₁, compressed.
    pub r: [u8; G1_BYTES],
    /// The response s, big-endian, below r.
    pub s: [u8; SCALAR_BYTES],
}

impl Proof {
    /// R ‖ s.
    pub fn to_bytes(&self) -> [u8; PROOF_BYTES] {
        let mut out = [0; PROOF_BYTES];
        out[..G1_BYTES].copy_from_slice(&self.r);
        out[G1_BYTES..].copy_from_slice(&self.s);
        out
    }

    /// Splits R ‖ s; nothing is checked before [`verify_proof`](crate::verify_proof).
    pub fn from_bytes(bytes: &[u8; PROOF_BYTES]) -> Self {
        Self { r: std::array::from_fn(|i| bytes[i]), s: std::array::from_fn(|i| bytes[G1_BYTES + i]) }
    }
}

/// A decoded ciphertext header: a point of G1 of order r, never the identity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CiphertextPoint(pub(crate) G1Affine);

impl CiphertextPoint {
    /// Decodes 48 canonical bytes. About 30 µs: a square root and a subgroup check.
    ///
    /// # Errors
    /// [`PointError`]: the sender's fault.
    pub fn from_bytes(bytes: &[u8; G1_BYTES]) -> Result<Self, PointError> {
        G1Affine::decode(bytes).and_then(Self::new)
    }

    /// Takes a decoded point if it is not the identity.
    pub(crate) fn new(point: G1Affine) -> Result<Self, PointError> {
        if point.is_identity() { Err(PointError::Identity) } else { Ok(Self(point)) }
    }

    /// The compressed encoding in G1, 48 bytes.
    pub fn to_bytes(&self) -> [u8; G1_BYTES] {
        self.0.encode()
    }
}

impl TryFrom<&[u8]> for CiphertextPoint {
    type Error = PointError;

    fn try_from(bytes: &[u8]) -> Result<Self, PointError> {
        let bytes =
            bytes.try_into().map_err(|_| PointError::Length { expected: G1_BYTES, actual: bytes.len() })?;
        Self::from_bytes(bytes)
    }
}

impl std::fmt::Debug for CiphertextPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CiphertextPoint(")?;
        for byte in self.to_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}
