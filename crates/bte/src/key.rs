//! The encryption key ek = \[τ^(B+1)\]_T and its fixed-base tables.

use std::sync::{Arc, OnceLock};

use crate::GT_BYTES;
use crate::comb::GtComb;
use crate::curve::{Gt, GtError, Scalar, TorusProduct};
use crate::derived::Derived;
use crate::hash::sha256;

/// Default window of the verification table: 5 rows, 19745 elements, 5.7 MB, 20 factors per exponentiation.
pub const DEFAULT_WINDOW_BITS: u32 = 13;
/// Smallest accepted window: 17 rows, 129 elements, 37 KB, 68 factors.
pub const MIN_WINDOW_BITS: u32 = 4;
/// Largest accepted window: 4 rows and one element, 38 MB, 16 factors.
pub const MAX_WINDOW_BITS: u32 = 16;

/// Window of the constant-time table, whose every lookup reads a whole row: 11 rows, 334 elements, 96 KB.
const SECRET_WINDOW_BITS: u32 = 6;

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
/// (less than two F_p12 products for each element) and shared by the clones.
#[derive(Clone)]
pub struct EncryptionKey(Arc<Inner>);

struct Inner {
    ek: Gt,
    bytes: [u8; GT_BYTES],
    window_bits: u32,
    public: OnceLock<GtComb>,
    derived: Derived,
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
    /// at most ⌈65/w⌉·2^(w−1)·288 bytes, a third more for a backend in eight lanes.
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
        Self(Arc::new(Inner {
            ek,
            bytes: ek.encode(),
            window_bits,
            public: OnceLock::new(),
            derived: Derived::default(),
            secret: OnceLock::new(),
        }))
    }

    /// The canonical encoding of the element of GT, 576 bytes.
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

    /// ek^k in variable time, not divided yet.
    pub(crate) fn product_public(&self, k: &Scalar) -> TorusProduct {
        self.public_comb().product_public(k)
    }

    /// ek^k for each k in variable time, not divided yet.
    pub(crate) fn products_public(&self, scalars: &[Scalar]) -> Vec<TorusProduct> {
        self.public_comb().products_public(scalars)
    }

    /// Computes the table for public exponents now instead of at first use.
    pub(crate) fn prepare(&self) {
        self.public_comb();
    }

    fn public_comb(&self) -> &GtComb {
        self.0.public.get_or_init(|| GtComb::new(&self.0.ek, self.0.window_bits))
    }

    /// Gives the table for public exponents to `read`. It is not kept for that: who reads it makes another one of it.
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn read_comb<T>(&self, read: impl FnOnce(&GtComb) -> T) -> T {
        match self.0.public.get() {
            Some(comb) => read(comb),
            None => read(&GtComb::new(&self.0.ek, self.0.window_bits)),
        }
    }

    /// What a backend keeps beside this key.
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn derived(&self) -> &Derived {
        &self.0.derived
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
