//! How far the chain stands on L1, on disk.

use blindfold_store::{Store, StoreError, What};

const KEY: &str = "settlement";

/// How far the chain stands in final L1 blocks, as batch numbers. None of them ever falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The last posted header that is ours.
    pub posted: u64,
    /// Everything up to this batch can be derived from L1 alone: headers, data and hints stand there.
    pub safe: u64,
    /// Nothing on L1 can change what becomes of the batches up to this one.
    pub finalized: u64,
}

impl Settled {
    /// The marks that a role has left on its disk; zeros where it never knew any.
    ///
    /// # Errors
    /// The disk's.
    pub async fn on_disk(store: &dyn Store) -> Result<Self, StoreError> {
        Ok(Stored::load(store, 0).await?.marks)
    }

    /// Moves each mark up to that of `other` where it is higher. Whether one moved.
    pub(crate) fn raise(&mut self, other: Self) -> bool {
        let before = *self;
        self.posted = self.posted.max(other.posted);
        self.safe = self.safe.max(other.safe);
        self.finalized = self.finalized.max(other.finalized);
        *self != before
    }

    /// The last batch that a safe block may hold, and the last that a finalized one may: the header that closes its
    /// second, which is the next one, has to be posted, too.
    pub(crate) fn last_batches(&self) -> (u64, u64) {
        let closed = self.posted.saturating_sub(1);
        (self.safe.min(closed), self.finalized.min(closed))
    }
}

/// The marks as they are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Everything in L1 blocks up to this one that matters is in the marks.
    pub(super) after: u64,
    /// The final L1 block that was read last for them.
    pub(super) as_of: u64,
    pub(super) marks: Settled,
}

impl Stored {
    /// What is on disk, or the beginning.
    pub(super) async fn load(store: &dyn Store, genesis: u64) -> Result<Self, StoreError> {
        let Some(bytes) = store.meta(KEY).await? else {
            return Ok(Self { after: genesis, as_of: genesis, marks: Settled::default() });
        };
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_be_bytes(*number)).collect();
        match (numbers.as_slice(), rest) {
            // Programs of before wrote four.
            ([after, posted, safe, finalized, as_of @ ..], []) if as_of.len() <= 1 => {
                let marks = Settled { posted: *posted, safe: *safe, finalized: *finalized };
                Ok(Self { after: *after, as_of: as_of.first().copied().unwrap_or(*after), marks })
            }
            _ => {
                let fault = format!("{KEY} has no five numbers");
                Err(StoreError::Corrupt { what: What::Meta, fault })
            }
        }
    }

    /// Writes them; they are durable when this returns.
    pub(super) async fn save(self, store: &dyn Store) -> Result<(), StoreError> {
        let Settled { posted, safe, finalized } = self.marks;
        let bytes = [self.after, posted, safe, finalized, self.as_of].map(u64::to_be_bytes).concat();
        store.put_meta(KEY, &bytes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindfold_store::SqlStore;

    #[tokio::test]
    async fn marks_come_back_and_damage_is_named() {
        let store = SqlStore::in_memory().unwrap();
        let fresh = Stored { after: 7, as_of: 7, marks: Settled::default() };
        assert_eq!(Stored::load(&store, 7).await, Ok(fresh));
        let stored =
            Stored { after: 9, as_of: 12, marks: Settled { posted: 5, safe: 4, finalized: u64::MAX } };
        stored.save(&store).await.unwrap();
        assert_eq!(Stored::load(&store, 7).await, Ok(stored));
        assert_eq!(Settled::on_disk(&store).await, Ok(stored.marks));
        let four = [9, 5, 4, u64::MAX].map(u64::to_be_bytes).concat();
        store.put_meta(KEY, &four).await.unwrap();
        assert_eq!(
            Stored::load(&store, 7).await,
            Ok(Stored { as_of: 9, ..stored }),
            "of a program of before"
        );
        store.put_meta(KEY, &[0; 31]).await.unwrap();
        assert!(matches!(Stored::load(&store, 7).await, Err(StoreError::Corrupt { .. })));
    }
}
