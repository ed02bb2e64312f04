//! The encryption key ek = \[τ^(B+1)\]_T and its fixed-base tables.

use std::sync::{Arc, OnceLock};

use crate::GT_BYTES;
use crate::comb::GtComb;
use crate::curve::{Gt, GtError, Scalar};
use crate::hash::sha256;

/// Default window of the verification table: 6 rows of 1024 elements, 3.5 MB, 23 products per exponentiation.
pub const DEFAULT_WINDOW_BITS: u32 = 11;
/// Smallest accepted window: 17 rows of 8 elements, 78 KB.
pub const MIN_WINDOW_BITS: u32 = 4;
/// Largest accepted window: 5 rows of 32768 elements, 94 MB, 17 products.
pub const MAX_WINDOW_BITS: u32 = 16;

/// Window of the constant-time table, whose every lookup reads a whole row: 17 rows of 8 elements, 78 KB.
const SECRET_WINDOW_BITS: u32 = 4;

/// Why bytes are not an encryption key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not a canonical element of GT.
    #[error("encryption key: {0}")]
    Element(#[from] GtError),
    /// The neutral element: would encrypt nothing.
    #[error("encryption key is the neutral element")]
    Identity,
    /// A table window outside [`MIN_WINDOW_BITS`]..=[`MAX_WINDOW_BITS`].
    #[error("table window of {0} bits, allowed are {MIN_WINDOW_BITS} to {MAX_WINDOW_BITS}")]
    Window(u32),
}

/// The public key users encrypt to and hints are verified against. Cheap to clone; tables are built at first use
/// (verification about 10 ms by default, encryption under 1 ms) and shared by the clones.
#[derive(Clone)]
pub struct EncryptionKey(Arc<Inner>);

struct Inner {
    ek: Gt,
    bytes: [u8; GT_BYTES],
    window_bits: u32,
    public: OnceLock<GtComb>,
    secret: OnceLock<GtComb>,
}

impl EncryptionKey {
    /// Decodes 576 bytes, checking that every coefficient is canonical and that the element lies in GT. About 60 µs.
    ///
    /// # Errors
    /// [`KeyError`]: whoever supplied the key is at fault.
    pub fn from_bytes(bytes: &[u8; GT_BYTES]) -> Result<Self, KeyError> {
        Self::with_window(bytes, DEFAULT_WINDOW_BITS)
    }

    /// Like [`EncryptionKey::from_bytes`] with a chosen memory/speed trade: the verification table takes
    /// ⌈65/w⌉·2^(w−1)·576 bytes.
    ///
    /// # Errors
    /// [`KeyError`]; for the window, the caller is at fault.
    pub fn with_window(bytes: &[u8; GT_BYTES], window_bits: u32) -> Result<Self, KeyError> {
        if !(MIN_WINDOW_BITS..=MAX_WINDOW_BITS).contains(&window_bits) {
            return Err(KeyError::Window(window_bits));
        }
        let ek = Gt::decode(bytes)?;
        if ek.is_one() {
            return Err(KeyError::Identity);
        }
        Ok(Self::from_element(ek, window_bits))
    }

    pub(crate) fn from_element(ek: Gt, window_bits: u32) -> Self {
        let (public, secret) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Inner { ek, bytes: ek.encode(), window_bits, public, secret }))
    }

    /// The 576 bytes.
    pub fn to_bytes(&self) -> [u8; GT_BYTES] {
        self.0.bytes
    }

    /// SHA-256 of the 576 bytes: what envelope headers and L1 name the key by.
    pub fn hash(&self) -> [u8; 32] {
        sha256(&[&self.0.bytes])
    }

    pub(crate) fn element(&self) -> &Gt {
        &self.0.ek
    }

    /// ek^k in variable time.
    pub(crate) fn pow_public(&self, k: &Scalar) -> Gt {
        self.0.public.get_or_init(|| GtComb::new(&self.0.ek, self.0.window_bits)).pow_public(k)
    }

    /// ek^k in constant time.
    pub(crate) fn pow_secret(&self, k: &Scalar) -> Gt {
        self.0.secret.get_or_init(|| GtComb::new(&self.0.ek, SECRET_WINDOW_BITS)).pow_secret(k)
    }
}

impl PartialEq for EncryptionKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.bytes == other.0.bytes
    }
}

impl Eq for EncryptionKey {}

impl std::fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hash = self.hash();
        write!(f, "EncryptionKey(sha256 {:02x}{:02x}{:02x}{:02x}…)", hash[0], hash[1], hash[2], hash[3])
    }
}
