//! Which devices there are, and why there are none.

use std::ffi::CStr;

use blindfold_bte::accelerator::DeviceError;

use crate::ffi;

/// The CUDA runtime's number for an allocation that found too little memory.
const OUT_OF_MEMORY: i32 = 2;
/// Its numbers for a driver that is missing or older than the runtime.
const DRIVER: [i32; 4] = [34, 35, 36, 803];
/// Its number for a driver without devices.
const NO_DEVICE: i32 = 100;
/// The oldest compute capability that the kernels are compiled for.
const OLDEST: (u32, u32) = (8, 0);

/// Why no device can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DevicesError {
    /// The driver is missing, or older than what this build needs.
    #[error(
        "no NVIDIA driver that this build can use ({0}): install or update the driver, or choose another backend"
    )]
    Driver(String),
    /// A driver that sees no device.
    #[error(
        "the NVIDIA driver sees no device: look at nvidia-smi and CUDA_VISIBLE_DEVICES, or choose another backend"
    )]
    None,
    /// Only devices that the kernels are not compiled for.
    #[error(
        "device {index}, {name}, has compute capability {major}.{minor} and needs at least 8.0: \
         choose another device with CUDA_VISIBLE_DEVICES, or another backend"
    )]
    TooOld {
        /// Number of the device, from 0.
        index: usize,
        /// Name of the device, as the driver gives it.
        name: String,
        /// Compute capability, the number before the point.
        major: u32,
        /// Compute capability, the number behind the point.
        minor: u32,
    },
    /// The runtime fails otherwise.
    #[error(
        "the CUDA runtime cannot be used ({code}, {message}): look at the driver's log, or choose another backend"
    )]
    Runtime {
        /// The runtime's number for it.
        code: i32,
        /// The runtime's words for it.
        message: String,
    },
}

/// One CUDA device, as the runtime describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its number for the runtime.
    pub index: usize,
    /// Its maker's name for it, or "emulated".
    pub name: String,
    /// The device's memory in all, in bytes.
    pub total_bytes: u64,
    /// Memory that was free when it was looked at.
    pub free_bytes: u64,
    /// Compute capability; (0, 0) is the emulation.
    pub capability: (u32, u32),
    /// How many multiprocessors the device has.
    pub processors: u32,
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = self.capability;
        let mib = |bytes: u64| bytes >> 20;
        write!(
            f,
            "{}: {}, compute capability {major}.{minor}, {} of {} MiB free",
            self.index,
            self.name,
            mib(self.free_bytes),
            mib(self.total_bytes)
        )
    }
}

/// All devices that the kernels run on, at least one.
///
/// # Errors
/// [`DevicesError`]: what this machine lacks.
pub fn devices() -> Result<Vec<Device>, DevicesError> {
    let mut count = 0;
    // SAFETY: writes one number.
    let code = unsafe { ffi::blindfold_device_count(&mut count) };
    refused(code)?;
    let all = (0..count).map(describe).collect::<Result<Vec<_>, _>>()?;
    let runs = |device: &Device| device.capability >= OLDEST || device.capability == (0, 0);
    let (usable, others): (Vec<Device>, Vec<Device>) = all.into_iter().partition(runs);
    match (usable.is_empty(), others.into_iter().next()) {
        (false, _) => Ok(usable),
        (true, None) => Err(DevicesError::None),
        (true, Some(Device { index, name, capability: (major, minor), .. })) => {
            Err(DevicesError::TooOld { index, name, major, minor })
        }
    }
}

fn describe(index: i32) -> Result<Device, DevicesError> {
    let mut raw =
        ffi::RawDevice { name: [0; 256], total_bytes: 0, free_bytes: 0, major: 0, minor: 0, processors: 0 };
    // SAFETY: writes one structure of this layout.
    refused(unsafe { ffi::blindfold_device_describe(index, &mut raw) })?;
    let name = raw.name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect::<Vec<_>>();
    Ok(Device {
        index: index.unsigned_abs() as usize,
        name: String::from_utf8_lossy(&name).into_owned(),
        total_bytes: raw.total_bytes,
        free_bytes: raw.free_bytes,
        capability: (raw.major.unsigned_abs(), raw.minor.unsigned_abs()),
        processors: raw.processors.unsigned_abs(),
    })
}

/// The runtime's words for an error.
fn text(code: i32) -> String {
    // SAFETY: the function returns a constant string, ended by 0, for any number.
    let text = unsafe { CStr::from_ptr(ffi::blindfold_error_text(code)) };
    text.to_string_lossy().into_owned()
}

/// What an error means where devices are looked for.
fn refused(code: i32) -> Result<(), DevicesError> {
    match code {
        0 => Ok(()),
        NO_DEVICE => Err(DevicesError::None),
        code if DRIVER.contains(&code) => Err(DevicesError::Driver(text(code))),
        code => Err(DevicesError::Runtime { code, message: text(code) }),
    }
}

/// What an error means where a device is used; `needed_bytes` of memory, if it was asked for some.
pub(crate) fn done(code: i32, needed_bytes: u64) -> Result<(), DeviceError> {
    match code {
        0 => Ok(()),
        OUT_OF_MEMORY => Err(DeviceError::Memory { needed_bytes, free_bytes: 0 }),
        code => Err(DeviceError::Failed { code, message: text(code) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_driver_and_a_missing_device_are_told_apart() {
        assert_eq!(refused(0), Ok(()));
        assert_eq!(refused(100), Err(DevicesError::None));
        assert!(matches!(refused(35), Err(DevicesError::Driver(_))));
        assert!(matches!(refused(3), Err(DevicesError::Runtime { code: 3, .. })));
        let Err(driver) = refused(35) else { panic!("refused") };
        assert!(driver.to_string().contains("install or update"), "{driver}");
        assert!(DevicesError::None.to_string().contains("nvidia-smi"));
    }

    #[test]
    fn errors_of_use_are_told_apart() {
        assert_eq!(done(0, 7), Ok(()));
        assert_eq!(done(2, 7), Err(DeviceError::Memory { needed_bytes: 7, free_bytes: 0 }));
        assert!(matches!(done(719, 0), Err(DeviceError::Failed { code: 719, .. })));
    }
}
