//! The seam for devices beside the processor: what one computes, on plain limbs.
//!
//! An [`Accelerator`] keeps the fixed data of a domain and of an encryption key in its own memory and does the bulk of
//! a batch there; [`Offload`] makes a [`crate::Backend`] of it that hashes, compares and answers for it on the CPU.
//!
//! # Numbers
//!
//! Everything crosses the seam as 64-bit limbs, least significant first, of fully reduced values:
//!
//! | type | what |
//! |---|---|
//! | [`FpLimbs`] | an element of F_p in Montgomery form, R = 2^384 |
//! | [`G1Limbs`] | x, y; (0, 0) is the identity |
//! | [`G2Limbs`] | x.c0, x.c1, y.c0, y.c1, F_p2 = F_p\[u\]/(u²+1); zeros are the identity |
//! | [`GtLimbs`] | twelve coefficients in tower order c0.c0.c0, c0.c0.c1, c0.c1.c0, … c1.c2.c1 |
//! | [`ScalarLimbs`] | an element of F_r as an ordinary integer below r |
//!
//! These are the bytes that `blst` and arkworks keep on a little-endian machine. Points are in the subgroup of order r;
//! headers are never the identity, a release may be. Among a batch's points there may be equal and opposite ones:
//! whoever encrypts chooses them.
//!
//! # What a device computes
//!
//! The convolution of [`Setup::fixed`] with a batch, as `crates/bte/src/convolution` describes it, in four steps. With
//! L = [`Shape::capacity`], M = [`Shape::size`], n = [`Shape::points`]:
//!
//! 1. *Fold.* Position i (from 0) of the batch is slot [`Shape::slot`]; −pd, when the release is one of the inputs, is
//!    slot [`Shape::release_slot`]; other slots are the identity. In coset j slot m is multiplied by
//!    ζ^([`Shape::twist`]`(j, m)`), (x, y) ↦ (βx, y) for ζ¹, and added to element m mod M.
//! 2. *Forward.* In each coset a transform of length M with ω: radix 2, decimation in frequency, natural order in,
//!    bit-reversed out. ω^i has the digits [`Setup::twiddles`]`[i]`.
//! 3. *Multiply.* Value k is paired with `fixed[k]`: Miller loop and the **easy part** f^((p⁶−1)(p²+1)) of the final
//!    exponentiation.
//! 4. *Back.* In each coset Y_i = Π_f v_f^(ω^(if)) from the bit-reversed v, then output i = Π_j Y^(j)_(i mod M)^(ζ^([`Shape::twist`]`(j, i)`)),
//!    in the cyclotomic subgroup: g^(ζ) = conj(g^(p²)), and the cube of Frobenius is a fourth root of unity
//!    ([`Setup::frobenius_is_fourth_root`]).
//!
//! Without a release the outputs are the cross-terms X_i up to the hard part of the final exponentiation
//! ([`Domain::cross_terms`]). The blinding factors are then z_i = (easy(miller(pd, `release[i]`))·conj(X_i))^h with h
//! the **hard part** 3·(p⁴−p²+1)/r, the exponent of `blst` and arkworks ([`CrossTerms::blinding_factors`]). With the
//! release among the inputs the outputs are z_i^(−1) but for the hard part ([`Domain::blinding_factors`]).
//!
//! Which elements of F_p12 the cross-terms are may differ from device to device by factors that the hard part removes;
//! z_i may not.
//!
//! # Secrets
//!
//! Nothing that crosses the seam is secret: points of published ciphertexts, releases, blinding factors and exponents
//! of ciphertexts that are being opened, random weights of checks. **Member keys never do**:
//! shares of a release are computed on the CPU in constant time. A device need not run in constant time nor wipe
//! memory.

#[cfg(feature = "reference")]
mod double;
mod offload;
mod resident;

use std::ops::Range;
use std::sync::Arc;

#[cfg(feature = "reference")]
pub use double::Double;
pub use offload::{Fallback, Offload};
pub(crate) use resident::Resident;

pub use crate::convolution::Shape;
use crate::curve::{G1Affine, G2Affine, Gt, Scalar, limbs};
use crate::digits::{base_x, glv_halves};
use crate::par;
use crate::parameters::Parameters;

/// An element of F_p: Montgomery form, R = 2^384, below p.
pub type FpLimbs = [u64; 6];
/// A point of G1: x, y; (0, 0) is the identity.
pub type G1Limbs = [FpLimbs; 2];
/// A point of G2: x.c0, x.c1, y.c0, y.c1; zeros are the identity.
pub type G2Limbs = [FpLimbs; 4];
/// An element of F_p12: twelve coefficients in tower order.
pub type GtLimbs = [FpLimbs; 12];
/// An element of F_r: the integer, below r.
pub type ScalarLimbs = [u64; 4];

/// What can be left to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Loading a domain or a key.
    Load,
    /// Cross-terms, or blinding factors without pre-decryption.
    Batch,
    /// Blinding factors after the release.
    Finalize,
    /// Powers of the encryption key.
    Powers,
    /// Sums of multiples of points.
    Sum,
}

impl Operation {
    /// Every [name](Self::name): the label values of metrics.
    pub const NAMES: &[&str] = &["load", "batch", "finalize", "powers", "sum"];

    /// One word, as labels of metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Batch => "batch",
            Self::Finalize => "finalize",
            Self::Powers => "powers",
            Self::Sum => "sum",
        }
    }
}

/// Why a device did not do its part. The CPU does it then; nothing is lost but time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Left to the CPU for good.
    #[error("this device does not compute {0:?}")]
    NotOffered(Operation),
    /// What was loaded leaves too little memory: something has to go, or the batch be smaller.
    #[error(
        "device memory: {needed_bytes} bytes needed, {free_bytes} free; use a smaller batch or a larger device"
    )]
    Memory {
        /// Bytes that the operation needs.
        needed_bytes: u64,
        /// How many bytes are free on the device.
        free_bytes: u64,
    },
    /// The device or its driver failed. Some failures last until the process is started again.
    #[error(
        "device failure {code}: {message}; if it comes again, restart the process and look at the driver's log"
    )]
    Failed {
        /// The driver's number for it.
        code: i32,
        /// The driver's words for it.
        message: String,
    },
    /// What came back is no value of its type: the device computes wrongly.
    #[error("the device returned an impossible value; take it out of service and test it")]
    Corrupt,
}

/// A device, or several that act as one. Calls block their thread.
pub trait Accelerator: Send + Sync {
    /// What the backend is called in configuration and figures.
    fn name(&self) -> &'static str;

    /// Does the device compute this for so many items, and faster than a CPU?
    fn takes(&self, operation: Operation, items: usize) -> bool;

    /// From how many ciphertexts on either half of a batch keeps the device busy.
    fn halves_from(&self) -> usize {
        usize::MAX
    }

    /// Takes a domain into the device's memory, with whatever tables it computes from it.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn load(&self, setup: &Setup) -> Result<Arc<dyn Domain>, DeviceError>;

    /// Takes the base of [`Base::powers`] into the device's memory.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn load_base(&self, _base: &GtLimbs) -> Result<Arc<dyn Base>, DeviceError> {
        Err(DeviceError::NotOffered(Operation::Powers))
    }

    /// Σ kᵢ·Pᵢ, identities allowed. The scalars are public.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn sum(&self, _points: &[G1Limbs], _scalars: &[ScalarLimbs]) -> Result<G1Limbs, DeviceError> {
        Err(DeviceError::NotOffered(Operation::Sum))
    }
}

/// A domain in a device's memory; leaves it when dropped.
pub trait Domain: Send + Sync {
    /// The cross-terms of 2 to L inputs; they stay in the device's memory.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn cross_terms(&self, inputs: &[G1Limbs]) -> Result<Box<dyn CrossTerms>, DeviceError>;

    /// The blinding factors z_i of 2 to L inputs whose release pd is known, in GT.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn blinding_factors(&self, inputs: &[G1Limbs], release: &G1Limbs) -> Result<Vec<GtLimbs>, DeviceError>;
}

/// The cross-terms of one batch in a device's memory; leave it when dropped.
pub trait CrossTerms: Send + Sync {
    /// Elements of the cyclotomic subgroup, not yet raised to the hard part.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn download(&self) -> Result<Vec<GtLimbs>, DeviceError>;

    /// The blinding factors z_i under a release, in GT, of these ciphertexts of the batch. A release that is not the batch's
    /// gives other elements of GT.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn blinding_factors(&self, release: &G1Limbs, of: Range<usize>) -> Result<Vec<GtLimbs>, DeviceError>;
}

/// An element of GT with its tables in a device's memory; leaves it when dropped.
pub trait Base: Send + Sync {
    /// The base to each power. The exponents are public.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn powers(&self, exponents: &[ScalarLimbs]) -> Result<Vec<GtLimbs>, DeviceError>;
}

/// What a device loads: everything about a domain that does not depend on the batch.
#[derive(Debug, Clone)]
pub struct Setup {
    /// M and c.
    pub shape: Shape,
    /// w_k in order \[coset\]\[bit-reversed frequency\]: n points. Some may be the identity.
    pub fixed: Vec<G2Limbs>,
    /// What the release is paired with for position i: h_(B−i), for the min(L, B) positions that a batch may have.
    pub release: Vec<G2Limbs>,
    /// ω^i for 0 ≤ i < M, cut into digits.
    pub twiddles: Vec<Twiddle>,
    /// Is g^(p³) = g^(ω^(M/4)) in GT, or its inverse?
    pub frobenius_is_fourth_root: bool,
}

/// A scalar k, public, as points and elements of GT are multiplied by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twiddle {
    /// k = halves\[0\] + halves\[1\]·x², both below 2^128; in G1 x²·(X, Y) = (βX, −Y).
    pub halves: [u128; 2],
    /// k = Σ digits\[j\]·|x|^j, each below |x|; in GT g^(|x|) is the conjugate of g^p.
    pub digits: [u64; 4],
}

impl Twiddle {
    fn new(k: &Scalar) -> Self {
        Self { halves: glv_halves(k).into(), digits: base_x(k) }
    }

    /// Cuts any public scalar; `None` unless it is below r.
    pub fn of(k: &ScalarLimbs) -> Option<Self> {
        scalar(k).map(|k| Self::new(&k))
    }
}

impl Setup {
    /// The domain for batches of `batch` ciphertexts, 2 ≤ `batch` ≤ B. Computes what the parameters do not have yet, as
    /// [`Parameters::prepare`] does, but for Miller lines.
    pub(crate) fn new(parameters: &Parameters, batch: usize) -> Self {
        let fixed = parameters.fixed_side(batch);
        let domain = fixed.domain();
        let positions = 0..domain.shape().capacity().min(parameters.max_batch());
        let release = positions.filter_map(|i| parameters.h_point(parameters.max_batch() - i));
        Self {
            shape: domain.shape(),
            fixed: fixed.points().iter().map(|point| point.to_limbs()).collect(),
            release: release.map(|point| G2Affine::to_limbs(*point)).collect(),
            twiddles: domain.roots().iter().map(Twiddle::new).collect(),
            frobenius_is_fourth_root: domain.frobenius_is_fourth_root(),
        }
    }
}

fn scalar(k: &ScalarLimbs) -> Option<Scalar> {
    let mut bytes = [0; 32];
    for (bytes, limb) in bytes.rchunks_exact_mut(8).zip(k) {
        bytes.copy_from_slice(&limb.to_be_bytes());
    }
    Scalar::from_bytes(&bytes)
}

fn point_limbs(point: &G1Affine) -> G1Limbs {
    point.limbs().map(|limbs| *limbs)
}

/// What a device returned, if it is a value at all, on the current pool. That it is the right one shows when a ciphertext
/// opens.
fn elements(returned: &[GtLimbs], expected: usize) -> Result<Vec<Gt>, DeviceError> {
    let reduced = par::map(returned.len(), |i| returned[i].iter().all(limbs::is_reduced));
    if returned.len() != expected || reduced.contains(&false) {
        return Err(DeviceError::Corrupt);
    }
    Ok(par::map(expected, |i| Gt::from_limbs(&returned[i])))
}

/// Likewise a point.
fn point(returned: &G1Limbs) -> Result<G1Affine, DeviceError> {
    match returned.iter().all(limbs::is_reduced) {
        true => Ok(G1Affine::from_limbs(returned[0], returned[1])),
        false => Err(DeviceError::Corrupt),
    }
}
