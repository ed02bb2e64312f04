//! What `HintRegistry` stores for hints, wherever their data are.

use blindfold_protocol::{B256, Canonical};
use blindfold_runtime::blocking;

use crate::{
    error::L1Error,
    posting::{
        blobs::BlobError,
        hint_blobs::HintBlobs,
        hint_posting::{HintPosting, MAX_RUN_HINT_BYTES},
        hint_tree::HintTree,
        place::DataPlace,
    },
};

/// The roots of the same hints of one run. `None` where they do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintRoots {
    /// With their data in the transaction's input.
    pub calldata: Option<B256>,
    /// With their data in its blobs.
    pub blobs: Option<B256>,
}

impl HintRoots {
    /// The root of the hints of a run that begins with `first` with their data in the transaction's input, without the
    /// other one, which takes a commitment for each blob.
    pub fn in_calldata(first: u64, hints: &HintPosting) -> Self {
        let fits = hints.encode().len() <= MAX_RUN_HINT_BYTES;
        Self { calldata: fits.then(|| HintTree::new(hints, first).root()), blobs: None }
    }

    /// The roots of the hints of a run that begins with `first`. One commitment, over 4,096 points, for each blob, away
    /// from the executor's threads.
    ///
    /// # Errors
    /// [`L1Error::Blobs`] when the library fails.
    pub async fn of(first: u64, hints: HintPosting) -> Result<Self, L1Error> {
        let Self { calldata, .. } = Self::in_calldata(first, &hints);
        let made = blocking(move || HintBlobs::of(&hints)).await;
        let blobs = match made {
            Ok(Ok(blobs)) => Some(blobs.root(first)),
            Ok(Err(BlobError::TooLong { .. })) => None,
            Ok(Err(fault)) => return Err(L1Error::Blobs(fault)),
            Err(error) => return Err(L1Error::Blobs(BlobError::Kzg(error.to_string()))),
        };
        Ok(Self { calldata, blobs })
    }

    /// That of hints in `place`, and that of the same hints in the other.
    pub fn in_place(&self, place: DataPlace) -> [Option<B256>; 2] {
        match place {
            DataPlace::Calldata => [self.calldata, self.blobs],
            DataPlace::Blobs => [self.blobs, self.calldata],
        }
    }

    /// Whether a posting with this root holds these hints.
    pub fn contain(&self, root: B256) -> bool {
        [self.calldata, self.blobs].contains(&Some(root))
    }
}
