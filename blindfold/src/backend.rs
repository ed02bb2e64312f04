//! Which backend does the heavy cryptography: chosen once, at the start, with the reason.

use std::sync::Arc;

use anyhow::{Context, Result};
use blindfold_bte::Backend;
#[cfg(feature = "cuda")]
use blindfold_gpu::Cuda;

/// A backend with the reason for it.
pub struct Chosen {
    /// The backend, shared by the parts of a role.
    pub backend: Arc<dyn Backend>,
    /// Why it is this one.
    pub why: String,
    /// The devices that it computes on.
    #[cfg(feature = "cuda")]
    pub devices: Vec<Cuda>,
}

impl Chosen {
    fn on_processor(backend: Box<dyn Backend>, why: String) -> Self {
        Self {
            backend: backend.into(),
            why,
            #[cfg(feature = "cuda")]
            devices: vec![],
        }
    }
}

/// The backend called `name` (`auto`, `cuda`, `ifma`, `portable`, …) with `threads` threads beside a device (0: one for
/// each core). `auto` is a device, where the build has the code for one and the machine has one, else the fastest
/// that the processor has.
///
/// # Errors
/// An unknown name, or that of a backend that this machine or build does not have, and what is missing.
pub fn by_name(name: &str, threads: usize) -> Result<Chosen> {
    match name {
        "auto" => automatic(threads),
        #[cfg(feature = "cuda")]
        "cuda" => {
            let devices = device::found().context("backend \"cuda\"")?;
            device::chosen(devices, threads, "asked for by name")
        }
        name => {
            let backend =
                blindfold_bte::by_name(name, threads).with_context(|| format!("backend {name:?}"))?;
            Ok(Chosen::on_processor(backend, "asked for by name".to_owned()))
        }
    }
}

#[cfg(feature = "cuda")]
fn automatic(threads: usize) -> Result<Chosen> {
    let chosen = device::found().and_then(|devices| device::chosen(devices, threads, "auto"));
    Ok(chosen.unwrap_or_else(|fault| on_processor(threads, &format!("no device: {fault:#}"))))
}

#[cfg(not(feature = "cuda"))]
fn automatic(threads: usize) -> Result<Chosen> {
    Ok(on_processor(threads, "this build has no code for devices"))
}

fn on_processor(threads: usize, no_device: &str) -> Chosen {
    let backend = blindfold_bte::auto(threads);
    let processor = match backend.name() {
        "ifma" => "this processor has AVX-512 IFMA",
        _ => "this processor has no AVX-512 IFMA",
    };
    Chosen::on_processor(backend, format!("auto: {no_device}; {processor}"))
}

#[cfg(feature = "cuda")]
mod device {
    use std::sync::Arc;

    use anyhow::Result;
    use blindfold_bte::Decided;
    use blindfold_bte::accelerator::{Accelerator, Offload};
    use blindfold_gpu::several::Several;
    use blindfold_gpu::{Cuda, Limits, devices};

    use super::Chosen;

    /// All devices of this machine that can be used.
    pub(super) fn found() -> Result<Vec<Cuda>> {
        devices()?.into_iter().map(|device| Ok(Cuda::new(device, Limits::default())?)).collect()
    }

    pub(super) fn chosen(devices: Vec<Cuda>, threads: usize, how: &str) -> Result<Chosen> {
        let names: Vec<String> = devices.iter().map(|device| device.device().to_string()).collect();
        let all = devices.iter().map(|device| Box::new(device.clone()) as Box<dyn Accelerator>).collect();
        let several = Several::new("cuda", all, |number, fault| {
            tracing::error!(number, %fault, "a device is out of service until the process is started again");
        });
        let offload = Offload::new(Arc::new(several), threads, |operation, fault| {
            tracing::warn!(
                operation = operation.name(), %fault,
                "the device failed, the processor does its work"
            );
        });
        Ok(Chosen {
            backend: Arc::new(Decided::new(Box::new(offload))),
            why: format!("{how}: {}", names.join("; ")),
            devices,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_has_a_reason() {
        let auto = by_name("auto", 1).unwrap();
        assert!(auto.why.starts_with("auto: "), "{}", auto.why);
        assert!(blindfold_bte::BACKEND_NAMES.contains(&auto.backend.name()));
        let portable = by_name("portable", 1).unwrap();
        assert_eq!((portable.backend.name(), portable.why.as_str()), ("portable", "asked for by name"));
        assert!(by_name("fast", 1).is_err());
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error_that_says_what_to_do() {
        match by_name("cuda", 1) {
            Ok(chosen) => assert_eq!(chosen.backend.name(), "cuda"),
            Err(fault) if cfg!(feature = "cuda") => {
                assert!(format!("{fault:#}").contains("choose another backend"), "{fault:#}");
            }
            Err(fault) => assert!(format!("{fault:#}").contains("feature `cuda`"), "{fault:#}"),
        }
    }
}
