//! How far L1 was read, on disk.

use blindfold_store::{Store, StoreError, What};

const KEY: &str = "from_l1";

/// The L1 blocks up to which everything was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The L1 block up to which runs of headers were taken.
    pub(super) runs: u64,
    /// The L1 block up to which hints were taken.
    pub(super) hints: u64,
}

impl Cursor {
    /// What is on disk, or the beginning.
    pub(super) async fn load(store: &dyn Store, genesis: u64) -> Result<Self, StoreError> {
        let Some(stored) = store.meta(KEY).await? else {
            return Ok(Self { runs: genesis, hints: genesis });
        };
        let damaged = || StoreError::Corrupt { what: What::Meta, fault: format!("{KEY} has no two numbers") };
        let (runs, rest) = stored.split_first_chunk().ok_or_else(damaged)?;
        let hints = rest.try_into().map_err(|_| damaged())?;
        Ok(Self { runs: u64::from_be_bytes(*runs), hints: u64::from_be_bytes(hints) })
    }

    /// Writes it; it is durable when this returns.
    pub(super) async fn save(self, store: &dyn Store) -> Result<(), StoreError> {
        store.put_meta(KEY, &[self.runs.to_be_bytes(), self.hints.to_be_bytes()].concat()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindfold_store::SqlStore;

    #[tokio::test]
    async fn it_comes_back_and_damage_is_named() {
        let store = SqlStore::in_memory().unwrap();
        assert_eq!(Cursor::load(&store, 7).await, Ok(Cursor { runs: 7, hints: 7 }));
        let cursor = Cursor { runs: 9, hints: u64::MAX };
        cursor.save(&store).await.unwrap();
        assert_eq!(Cursor::load(&store, 7).await, Ok(cursor));
        store.put_meta(KEY, &[0; 15]).await.unwrap();
        assert!(matches!(Cursor::load(&store, 7).await, Err(StoreError::Corrupt { .. })));
    }
}
