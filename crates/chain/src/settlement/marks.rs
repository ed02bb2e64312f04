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
    /// Up to which batch nothing on L1 can change what became of it here, as a role has left it on its disk: it was final,
    /// and what was executed was compared with what is void. 0 where no role knew. A role that runs may be further.
    ///
    /// # Errors
    /// The disk's.
    pub async fn final_on_disk(store: &dyn Store) -> Result<u64, StoreError> {
        let stored = Stored::load(store, 0).await?;
        Ok(stored.compared.min(stored.marks.finalized))
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
    /// Up to which final batch blocks were compared with what is void. Not further than that when this was written.
    pub(super) compared: u64,
}

impl Stored {
    /// What is on disk, or the beginning.
    pub(super) async fn load(store: &dyn Store, genesis: u64) -> Result<Self, StoreError> {
        let Some(bytes) = store.meta(KEY).await? else {
            return Ok(Self { after: genesis, as_of: genesis, marks: Settled::default(), compared: 0 });
        };
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_be_bytes(*number)).collect();
        match (numbers.as_slice(), rest) {
            // Programs of before wrote four or five.
            ([after, posted, safe, finalized, more @ ..], []) if more.len() <= 2 => {
                let marks = Settled { posted: *posted, safe: *safe, finalized: *finalized };
                let as_of = more.first().copied().unwrap_or(*after);
                let compared = more.get(1).copied().unwrap_or_default();
                Ok(Self { after: *after, as_of, marks, compared })
            }
            _ => {
                let fault = format!("{KEY} has no six numbers");
                Err(StoreError::Corrupt { what: What::Meta, fault })
            }
        }
    }

    /// Writes them; they are durable when this returns.
    pub(super) async fn save(self, store: &dyn Store) -> Result<(), StoreError> {
        let Settled { posted, safe, finalized } = self.marks;
        let numbers = [self.after, posted, safe, finalized, self.as_of, self.compared];
        let bytes = numbers.map(u64::to_be_bytes).concat();
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
        let fresh = Stored { after: 7, as_of: 7, marks: Settled::default(), compared: 0 };
        assert_eq!(Stored::load(&store, 7).await, Ok(fresh));
        let marks = Settled { posted: 5, safe: 4, finalized: u64::MAX };
        let stored = Stored { after: 9, as_of: 12, marks, compared: 3 };
        stored.save(&store).await.unwrap();
        assert_eq!(Stored::load(&store, 7).await, Ok(stored));
        assert_eq!(Settled::final_on_disk(&store).await, Ok(3));
        let five = [9, 5, 4, u64::MAX, 12].map(u64::to_be_bytes);
        for (numbers, as_of) in [(&five[..4], 9), (&five[..], 12)] {
            store.put_meta(KEY, &numbers.concat()).await.unwrap();
            let of_before = Stored { as_of, compared: 0, ..stored };
            assert_eq!(Stored::load(&store, 7).await, Ok(of_before), "of a program of before");
        }
        store.put_meta(KEY, &[0; 31]).await.unwrap();
        assert!(matches!(Stored::load(&store, 7).await, Err(StoreError::Corrupt { .. })));
    }
}
