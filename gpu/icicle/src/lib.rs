//! Sums of multiples of points on the devices that ICICLE has: what batched proof checks leave to a device.
//!
//! ICICLE (github.com/ingonyama-zk/icicle, MIT) has multi-scalar multiplication behind one interface, and backends for
//! it: one for processors, compiled in, and others, among them CUDA, as libraries under licences of their own that are
//! loaded when the program starts. [`Icicle`] makes of one device the [`Accelerator`] that
//! [`blindfold_bte::accelerator::Offload`] takes. It does [`Operation::Sum`] and nothing else: ICICLE has no powers,
//! transforms or Frobenius maps in GT and no Miller loops over lines computed beforehand.
//!
//! | | the seam | ICICLE |
//! |---|---|---|
//! | coordinates | Montgomery form, R = 2^384 | plain: converted there and back by the device |
//! | scalars | integers below r | the same |
//! | the identity | (0, 0) | left out before, told by Z = 0 after |
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use blindfold_bte::accelerator::Offload;
//! use blindfold_icicle::{Icicle, Settings};
//!
//! # fn main() -> Result<(), blindfold_icicle::IcicleError> {
//! let device = Icicle::new(&Settings { device: "METAL".to_owned(), ..Settings::default() })?;
//! let backend = Offload::new(Arc::new(device), 0, |operation, fault| {
//!     eprintln!("{}: {fault}; the processor does it", operation.name());
//! });
//! # Ok(())
//! # }
//! ```
//!
//! Not guaranteed: constant time (what crosses the seam is public); that a device other than the processor gives right
//! results, of which only a known sum is checked at the start. A wrong sum makes a batch of proofs fail, and the
//! processor then checks them one by one.

mod convert;
mod ffi;

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use blindfold_bte::accelerator::{Accelerator, DeviceError, Domain, G1Limbs, Operation, ScalarLimbs, Setup};
use icicle_bls12_381::curve::{G1Affine, ScalarField};
use icicle_core::bignum::BigNum;
use icicle_runtime::Device;

/// The most points of a sum: ICICLE counts in 32 bits.
const MAX_POINTS: usize = 1 << 26;
/// Bits of the weights that batched checks draw.
const WEIGHT_BITS: i32 = 128;
/// ICICLE's name for the device that needs no backend but the one compiled in.
const PROCESSOR: &str = "CPU";
/// Bytes of a device's name with its terminator.
const NAME_BYTES: usize = 64;
/// As the seam writes it.
const IDENTITY: G1Limbs = [[0; 6]; 2];
/// The standard generator of G1, in Montgomery form.
const GENERATOR: G1Limbs = [
    [
        0x5cb38790fd530c16,
        0x7817fc679976fff5,
        0x154f95c7143ba1c1,
        0xf0ae6acdf3d0e747,
        0xedce6ecc21dbf440,
        0x120177419e0bfb75,
    ],
    [
        0xbaac93d50ce72271,
        0x8c22631a7918fd8e,
        0xdd595f13570725ce,
        0x51ac582950405194,
        0x0e1c8c3fad0059c0,
        0x0bbc3efc5008a26a,
    ],
];
/// r − 4.
const MINUS_FOUR: ScalarLimbs =
    [0xffff_fffe_ffff_fffd, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

/// Which device, and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// ICICLE's name for the kind of device: `CPU`, `CUDA`, `METAL`, `VULKAN`.
    pub device: String,
    /// Which of them, from 0.
    pub index: u32,
    /// The folder with the backends' libraries. `None`: that of `ICICLE_BACKEND_INSTALL_DIR`, or else
    /// `/opt/icicle/lib/backend`, as ICICLE has it. `CPU` needs none.
    pub backends: Option<PathBuf>,
    /// The smallest sum that the device is given, in points.
    pub sum_min: usize,
}

impl Default for Settings {
    /// The first CUDA device, for 4,096 points or more: set by reasoning, as for the backend `cuda`.
    fn default() -> Self {
        Self { device: "CUDA".to_owned(), index: 0, backends: None, sum_min: 4096 }
    }
}

/// Why a device of ICICLE cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IcicleError {
    /// No name of a device.
    #[error("{0:?} is no device of ICICLE: take CPU, CUDA, METAL or VULKAN")]
    Name(String),
    /// The folder is not there, or its name is no C string.
    #[error("{0} is no folder with ICICLE's backends: name the one that holds their libraries")]
    Folder(PathBuf),
    /// No backend for it is found, or its libraries do not load.
    #[error(
        "ICICLE has no device {name} here, only {registered}: install its backend, name the backend's folder in \
         ICICLE_BACKEND_INSTALL_DIR (else /opt/icicle/lib/backend is looked at), and see that the libraries that it \
         needs itself are there"
    )]
    Missing {
        /// The device asked for.
        name: String,
        /// Those that have a backend.
        registered: String,
    },
    /// The backend is there and the device does not work.
    #[error("ICICLE's device {name} {index} cannot be used: {fault}")]
    Device {
        /// Its kind.
        name: String,
        /// Its number.
        index: u32,
        /// What it answered.
        fault: DeviceError,
    },
    /// A known sum comes out wrong.
    #[error(
        "ICICLE's device {name} {index} computes 5·G − 4·G ≠ G: its backend does not go with this build (v4.0.0), or \
         the device is broken"
    )]
    Wrong {
        /// Its kind.
        name: String,
        /// Its number.
        index: u32,
    },
}

/// A device of ICICLE that computes sums.
#[derive(Debug)]
pub struct Icicle {
    device: Device,
    sum_min: usize,
    /// One sum at a time: each fills the device.
    busy: Mutex<()>,
}

impl Icicle {
    /// Loads the backend, selects the device and has it compute a known sum.
    ///
    /// # Errors
    /// [`IcicleError`].
    pub fn new(settings: &Settings) -> Result<Self, IcicleError> {
        let (name, index) = (settings.device.clone(), settings.index);
        let named = (1..NAME_BYTES).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric());
        let Some(number) = i32::try_from(index).ok().filter(|_| named) else {
            return Err(IcicleError::Name(format!("{name} {index}")));
        };
        if name != PROCESSOR || settings.backends.is_some() {
            load(settings)?;
        }
        let device = Device::new(&name, number);
        if !ffi::available(&device) {
            return Err(IcicleError::Missing { name, registered: ffi::registered() });
        }
        let icicle = Self { device, sum_min: settings.sum_min, busy: Mutex::default() };
        judged(settings, icicle.sum(&[GENERATOR; 2], &[[5, 0, 0, 0], MINUS_FOUR]))?;
        Ok(icicle)
    }
}

/// What a device made of 5·G − 4·G.
fn judged(settings: &Settings, sum: Result<G1Limbs, DeviceError>) -> Result<(), IcicleError> {
    let (name, index) = (settings.device.clone(), settings.index);
    match sum {
        Ok(GENERATOR) => Ok(()),
        Ok(_) => Err(IcicleError::Wrong { name, index }),
        Err(fault) => Err(IcicleError::Device { name, index, fault }),
    }
}

/// What did not load shows where the device is looked for: ICICLE itself passes over such libraries.
fn load(settings: &Settings) -> Result<(), IcicleError> {
    let Some(folder) = &settings.backends else {
        // The error says no more than that the device is missing.
        let _ = ffi::load(None);
        return Ok(());
    };
    let refused = || IcicleError::Folder(folder.clone());
    let path = CString::new(folder.as_os_str().as_encoded_bytes()).map_err(|_| refused())?;
    if !folder.is_dir() {
        return Err(refused());
    }
    ffi::load(Some(&path)).map_err(|_| refused())
}

impl Accelerator for Icicle {
    fn name(&self) -> &'static str {
        "icicle"
    }

    fn takes(&self, operation: Operation, items: usize) -> bool {
        operation == Operation::Sum && (self.sum_min.max(1)..=MAX_POINTS).contains(&items)
    }

    fn load(&self, _setup: &Setup) -> Result<Arc<dyn Domain>, DeviceError> {
        Err(DeviceError::NotOffered(Operation::Load))
    }

    /// Panics unless there is a scalar for each point. n points: n conversions and a multi-scalar multiplication of 255
    /// bits, or of 128 where all scalars are that short, on the device.
    fn sum(&self, points: &[G1Limbs], scalars: &[ScalarLimbs]) -> Result<G1Limbs, DeviceError> {
        assert_eq!(points.len(), scalars.len(), "a scalar for each point");
        // What a backend makes of the identity as (0, 0) is not written down anywhere.
        let terms = points.iter().zip(scalars).filter(|(point, k)| **point != IDENTITY && **k != [0; 4]);
        let (mut points, scalars): (Vec<G1Affine>, Vec<ScalarField>) =
            terms.clone().map(|(point, k)| (convert::point(point), convert::scalar(k))).unzip();
        if points.is_empty() {
            return Ok(IDENTITY);
        }
        let short = terms.clone().all(|(_, k)| k[2..] == [0; 2]);
        let _turn = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        // ICICLE keeps the device by thread.
        ffi::select(&self.device)?;
        ffi::convert(&mut points, false)?;
        let sum = ffi::msm(&points, &scalars, if short { WEIGHT_BITS } else { 0 })?;
        if *sum.z.limbs() == [0; 12] {
            return Ok(IDENTITY);
        }
        let mut sum = [ffi::to_affine(&sum)?];
        ffi::convert(&mut sum, true)?;
        Ok(convert::point_limbs(&sum[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_computes_a_known_sum_wrongly_is_refused() {
        let settings = Settings::default();
        assert_eq!(judged(&settings, Ok(GENERATOR)), Ok(()));
        let [x, y] = GENERATOR;
        for wrong in [IDENTITY, [y, x]] {
            let refused = judged(&settings, Ok(wrong)).unwrap_err();
            assert_eq!(refused, IcicleError::Wrong { name: "CUDA".to_owned(), index: 0 });
            assert!(refused.to_string().contains("v4.0.0"), "{refused}");
        }
    }
}
