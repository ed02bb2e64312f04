//! Safe calls of ICICLE: slices in, a code with words out.

use std::ffi::{CStr, c_char, c_int, c_void};

use blindfold_bte::accelerator::DeviceError;
use icicle_bls12_381::curve::{G1Affine, G1Projective, ScalarField};
use icicle_core::msm::MSMConfig;
use icicle_core::vec_ops::VecOpsConfig;
use icicle_runtime::Device;

/// Bytes for the words of an exception.
const WORDS_BYTES: usize = 512;
/// Bytes for the names of the devices.
const NAMES_BYTES: usize = 256;
/// What ICICLE calls its error codes, from 0.
const CODES: [&str; 15] = [
    "success",
    "invalid device",
    "out of memory",
    "invalid pointer",
    "allocation failed",
    "deallocation failed",
    "copy failed",
    "synchronization failed",
    "stream creation failed",
    "stream destruction failed",
    "the device does not implement it",
    "invalid argument",
    "the backend cannot be loaded",
    "the licence of the backend is missing or does not hold",
    "unknown error",
];

// src/caught.cpp. Every function writes at most `room` bytes of words, terminated.
unsafe extern "C" {
    fn blindfold_icicle_load(folder: *const c_char, words: *mut c_char, room: usize) -> c_int;
    fn blindfold_icicle_available(device: *const Device, words: *mut c_char, room: usize) -> c_int;
    fn blindfold_icicle_registered(
        names: *mut c_char,
        names_room: usize,
        words: *mut c_char,
        room: usize,
    ) -> c_int;
    fn blindfold_icicle_select(device: *const Device, words: *mut c_char, room: usize) -> c_int;
    fn blindfold_icicle_convert(
        points: *mut G1Affine,
        count: u64,
        into: bool,
        config: *const c_void,
        words: *mut c_char,
        room: usize,
    ) -> c_int;
    fn blindfold_icicle_msm(
        scalars: *const ScalarField,
        points: *const G1Affine,
        count: c_int,
        config: *const c_void,
        out: *mut G1Projective,
        words: *mut c_char,
        room: usize,
    ) -> c_int;
    fn blindfold_icicle_to_affine(
        point: *const G1Projective,
        out: *mut G1Affine,
        words: *mut c_char,
        room: usize,
    ) -> c_int;
}

/// Text up to its terminator.
fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes)
        .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
}

/// Runs a call with room for words, and makes an error of what it returns.
fn done(call: impl FnOnce(*mut c_char, usize) -> c_int) -> Result<(), DeviceError> {
    let mut words = [0u8; WORDS_BYTES];
    let code = call(words.as_mut_ptr().cast(), WORDS_BYTES);
    if code == 0 {
        return Ok(());
    }
    let known = usize::try_from(code).ok().and_then(|code| CODES.get(code));
    let message = known.map_or_else(|| text(&words), |known| (*known).to_owned());
    Err(DeviceError::Failed { code, message })
}

/// Loads the backends under a folder; without one, those of the folder that `ICICLE_BACKEND_INSTALL_DIR` names, or of
/// `/opt/icicle/lib/backend`.
pub(crate) fn load(folder: Option<&CStr>) -> Result<(), DeviceError> {
    let folder = folder.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: a terminated path or none, and room for words.
    done(|words, room| unsafe { blindfold_icicle_load(folder, words, room) })
}

/// Is there a backend for devices of this name?
pub(crate) fn available(device: &Device) -> bool {
    // SAFETY: ICICLE's own type, and room for words.
    done(|words, room| unsafe { blindfold_icicle_available(device, words, room) }).is_ok()
}

/// The names of all devices with a backend.
pub(crate) fn registered() -> String {
    let mut names = [0u8; NAMES_BYTES];
    // SAFETY: writes at most so many bytes of names; room for words.
    let outcome = done(|words, room| unsafe {
        blindfold_icicle_registered(names.as_mut_ptr().cast(), NAMES_BYTES, words, room)
    });
    outcome.map_or_else(|_| String::new(), |()| text(&names))
}

/// Makes a device that of this thread.
pub(crate) fn select(device: &Device) -> Result<(), DeviceError> {
    // SAFETY: ICICLE's own type, and room for words.
    done(|words, room| unsafe { blindfold_icicle_select(device, words, room) })
}

/// Takes coordinates into Montgomery form, or out of it.
pub(crate) fn convert(points: &mut [G1Affine], into: bool) -> Result<(), DeviceError> {
    let config = VecOpsConfig::default();
    let (first, count) = (points.as_mut_ptr(), points.len() as u64);
    let config = (&raw const config).cast();
    // SAFETY: so many points in the host's memory, as the default configuration says; room for words.
    done(|words, room| unsafe { blindfold_icicle_convert(first, count, into, config, words, room) })
}

/// Σ kᵢ·Pᵢ, coordinates and scalars as plain numbers, the scalars below 2^`bits` (0: any). At least one point, and as
/// many scalars.
pub(crate) fn msm(
    points: &[G1Affine],
    scalars: &[ScalarField],
    bits: i32,
) -> Result<G1Projective, DeviceError> {
    assert_eq!(points.len(), scalars.len(), "a scalar for each point");
    let Ok(count @ 1..) = c_int::try_from(points.len()) else {
        return Err(DeviceError::Failed { code: 11, message: format!("{} points at once", points.len()) });
    };
    let mut config = MSMConfig::default();
    config.bitsize = bits;
    let config = (&raw const config).cast();
    let mut out = G1Projective::default();
    // SAFETY: so many scalars and points and room for a point in the host's memory, as the configuration says; room for
    // words.
    done(|words, room| unsafe {
        blindfold_icicle_msm(scalars.as_ptr(), points.as_ptr(), count, config, &raw mut out, words, room)
    })?;
    Ok(out)
}

/// A point, not the identity, by its two coordinates. One inversion, on the processor.
pub(crate) fn to_affine(point: &G1Projective) -> Result<G1Affine, DeviceError> {
    let mut out = G1Affine::default();
    // SAFETY: one point each; room for words.
    done(|words, room| unsafe { blindfold_icicle_to_affine(point, &raw mut out, words, room) })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_words_and_exceptions_bring_theirs() {
        let code = |code| done(|_, _| code).unwrap_err().to_string();
        assert!(code(13).contains("licence"), "{}", code(13));
        let thrown = done(|words, room| {
            assert_eq!(room, WORDS_BYTES);
            // SAFETY: within the room.
            unsafe { words.copy_from(c"no such operation".as_ptr(), 18) };
            -1
        });
        assert!(thrown.unwrap_err().to_string().contains("no such operation"));
        assert_eq!(done(|_, _| 0), Ok(()));
    }

    #[test]
    fn an_exception_ends_in_an_error() {
        // ICICLE throws where a device is selected that has no backend.
        let thrown = select(&Device::new("NONE", 0)).unwrap_err();
        assert!(
            matches!(&thrown, DeviceError::Failed { code: -1, message } if message.contains("NONE")),
            "{thrown}"
        );
        assert!(!available(&Device::new("NONE", 0)));
        assert!(registered().split(',').any(|name| name == "CPU"), "{}", registered());
    }
}
