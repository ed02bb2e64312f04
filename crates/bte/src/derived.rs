//! What one backend keeps beside a value that all backends share.

use std::any::Any;
use std::sync::OnceLock;

/// A place for what a backend makes of a key or of parameters at first use. Only the backend knows what it is, so that
/// they need to know no backend.
#[derive(Default)]
#[allow(dead_code)] // only lanes use it
pub(crate) struct Derived(OnceLock<Box<dyn Any + Send + Sync>>);

#[allow(dead_code)] // only lanes use it
impl Derived {
    /// What is kept; a new one at first. A place is for one type.
    ///
    /// # Panics
    /// If another type has been asked for here.
    pub(crate) fn get<T: Any + Default + Send + Sync>(&self) -> &T {
        let kept = self.0.get_or_init(|| Box::<T>::default());
        match kept.downcast_ref() {
            Some(kept) => kept,
            None => panic!("what is kept here is no {}", std::any::type_name::<T>()),
        }
    }
}
