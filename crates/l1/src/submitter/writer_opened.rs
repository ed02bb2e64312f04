//! Posting batches as what their envelopes were opened to.

use std::sync::Arc;

use alloy_primitives::keccak256;
use blindfold_bte::EncryptionKey;
use blindfold_protocol::{
    Epoch,
    limits::MAX_ATTESTED_DATA_BYTES,
    opened::{BatchTerms, OpenedBatch, OpenedRun, RunTerms},
};
use blindfold_runtime::blocking;

use crate::{
    error::{L1Error, RunError},
    posting::{
        opened_data::{HintsReference, KeyedBatch, OpenedData, OpenedPiece},
        run_data::MAX_POSTER_PART_BYTES,
    },
    submitter::{pending::Sent, writer::L1Writer},
};

/// What the items of one piece take at most, but where a single batch takes more. Members are asked to read a piece whole, so
/// it has to fit a request of theirs; readers keep more of what is not complete.
const MAX_PIECE_ITEM_BYTES: usize = MAX_ATTESTED_DATA_BYTES - (64 << 10);
const _: () = assert!(MAX_PIECE_ITEM_BYTES < MAX_POSTER_PART_BYTES / 2);

/// Data is made anew without the keys that gave something else, and then without any.
const TRIES: usize = 3;

impl L1Writer {
    /// The data of batches of one run, whose hints stand in that posting, as what their envelopes were opened to, cut into as
    /// many pieces as are posted one by one. Everything is restored and compared: what its key does not give back stands as
    /// it is.
    ///
    /// # Errors
    /// [`L1Error::UnknownEpoch`]; [`RunError::Opened`]; the errors of a call.
    pub async fn opened_data(
        &self,
        chain_id: u64,
        batches: &[KeyedBatch],
        hints: HintsReference,
    ) -> Result<Vec<OpenedPiece>, L1Error> {
        let run = RunTerms { chain_id, deployment: self.client().config().deployment };
        let mut pieces = Vec::new();
        let mut rest = batches;
        while !rest.is_empty() {
            let mut bytes = 0usize;
            let fits = |batch: &&KeyedBatch| {
                bytes = bytes.saturating_add(batch.item_bytes());
                bytes <= MAX_PIECE_ITEM_BYTES
            };
            let length = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(length);
            let data = self.piece(run, now, hints).await?.into();
            pieces.push(OpenedPiece { batches: now.to_vec(), hints, data });
            rest = later;
        }
        Ok(pieces)
    }

    /// Posts one of these pieces, in as many transactions as it takes. Gives the last one.
    ///
    /// # Errors
    /// As [`L1Writer::post_data`].
    pub async fn post_opened_data(&self, piece: &OpenedPiece) -> Result<Sent, L1Error> {
        let numbers = piece.numbers().ok_or(L1Error::Run(RunError::Empty))?;
        // It gives them back: nobody has to find that out again.
        let headers = piece.batches.iter().map(|batch| (batch.batch.sealed.header.hash(), true));
        self.client().inner.compared.note(numbers.0, keccak256(&piece.data), headers);
        self.post_run_data(numbers, &piece.data).await
    }

    /// The data of these batches, which give them back.
    async fn piece(
        &self,
        run: RunTerms,
        batches: &[KeyedBatch],
        hints: HintsReference,
    ) -> Result<Vec<u8>, L1Error> {
        let epochs = self.client().epochs().await?;
        let mut keyed = Vec::with_capacity(batches.len());
        for batch in batches {
            let id = batch.batch.sealed.header.epoch;
            let epoch = epochs.by_epoch(id).ok_or(L1Error::UnknownEpoch(id))?;
            let terms = terms(batch, epoch);
            let key = self.client().kept_encryption_key(&terms).await?;
            keyed.push((batch.clone(), terms, key));
        }
        let made = blocking(move || checked(&run, keyed, hints)).await;
        // One that is cancelled belongs to a process that ends.
        Ok(made.unwrap_or(Err(RunError::Opened))?)
    }
}

type Keyed = (KeyedBatch, BatchTerms, Arc<EncryptionKey>);

fn terms(batch: &KeyedBatch, epoch: &Epoch) -> BatchTerms {
    BatchTerms { number: batch.number(), epoch: epoch.epoch, encryption_key_hash: epoch.encryption_key_hash }
}

/// Data that give back what they are of (OD-5). What its key does not give back stands as it is in the next try.
///
/// Where every proof is a derived one, nothing is encrypted again to see that: the proof of each item shows that the key is
/// the right one, so data that decode to what was encoded give the batch back.
fn checked(run: &RunTerms, mut batches: Vec<Keyed>, hints: HintsReference) -> Result<Vec<u8>, RunError> {
    for _ in 0..TRIES {
        let open: Vec<_> = batches.iter().map(|(batch, terms, _)| batch.open(*terms)).collect();
        let made = OpenedRun::of(run, &open);
        let data = OpenedData::encode_run(run.chain_id, hints, &made).map_err(|_| RunError::Opened)?;
        let decoded = OpenedData::decode(&data).map_err(|_| RunError::Opened)?;
        let mut is_right = decoded.run.batches.len() == batches.len();
        for ((batch, made), decoded) in batches.iter_mut().zip(&made.batches).zip(&decoded.run.batches) {
            let is_evident = made.is_derived() && made == decoded;
            is_right &= is_evident || drop_wrong_keys(run, batch, decoded);
        }
        if is_right {
            return Ok(data);
        }
    }
    Err(RunError::Opened)
}

/// Takes the keys away that do not give their item back. True where all do.
fn drop_wrong_keys(run: &RunTerms, (keyed, terms, key): &mut Keyed, made: &OpenedBatch) -> bool {
    let Ok(restored) = made.restore(run, terms, key, &keyed.keys) else {
        keyed.keys.fill(None);
        return false;
    };
    let mut is_right = true;
    let items = keyed.batch.sealed.items.iter().zip(&restored).zip(&mut keyed.keys);
    for ((item, (_, restored)), key) in items {
        if item != restored {
            *key = None;
            is_right = false;
        }
    }
    is_right
}
