//! Where the time of a batch goes, by the device's own clock.

/// A part of a batch's work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Name of what was done.
    pub name: &'static str,
    /// For how long, in milliseconds.
    pub ms: f32,
}

/// The phases of what was done last, in order; empty before that.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Phases {
    /// Of the last batch: cross-terms, or blinding factors at once.
    pub batch: Vec<Phase>,
    /// Of the last release of a batch whose cross-terms were there.
    pub release: Vec<Phase>,
}
