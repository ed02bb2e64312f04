//! From signed inner transactions to a signed envelope with a sensible fee.

use blindfold_protocol::{
    Bundle, ChainConfig, Envelope, SigningKey,
    envelope_builder::{BuildError, EnvelopeFields, build},
    limits::EXPIRY_WINDOW,
    validity::most_after,
};
use blindfold_runtime::{now, random, rng};
use blindfold_telemetry::traces;

use crate::{committee_key::CommitteeKey, transaction::SignedTransaction};

/// How long an envelope stays valid by default, in batches: about four minutes of full slots.
pub const DEFAULT_EXPIRY_BATCHES: u64 = 1_024;

/// The offered fee is this many times the base fee, so that the envelope outlives a rise of the base fee.
const BASE_FEE_MARGIN: u128 = 2;

/// With a promise the offer covers the steepest rise of the base fees over so many headers, for a sequencer promises
/// nothing that a rise could put out of reach: those that it leaves before the first number it promises (4 unless its
/// `sealing.promise_margin_batches` says otherwise), those sealed before the envelope is there, and some to choose from.
const PROMISE_HEADERS: u32 = 16;

/// What the payer offers and asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Base fee of the next batch, in wei per byte.
    pub base_fee: u128,
    /// Gas base fee of the next batch, in wei per unit of gas.
    pub gas_base_fee: u128,
    /// Wei per byte on top.
    pub priority_fee: u128,
    /// The newest batch number that is known.
    pub head: u64,
    /// The chain's generation at that batch, see [`Expiry`](blindfold_protocol::Expiry).
    pub generation: u16,
    /// Batches from the head in which the envelope may be sealed.
    pub expiry_batches: u64,
    /// Whether the sequencer is asked for a promise.
    pub promise: bool,
}

impl Offer {
    /// Batches in which the envelope may be sealed: those asked for, within the protocol's window.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.expiry_batches.clamp(1, EXPIRY_WINDOW)
    }

    /// The number of the expiry that goes into the header: within the window and the key's epoch.
    #[must_use]
    pub fn expiry(&self, last_of_epoch: u64) -> u64 {
        self.head.saturating_add(self.window()).min(last_of_epoch)
    }

    /// Twice the base fee, or what a promise needs, plus the priority fee.
    #[must_use]
    pub fn max_fee(&self) -> u128 {
        self.covered(self.base_fee).saturating_add(self.priority_fee)
    }

    /// Twice the gas base fee, or what a promise needs.
    #[must_use]
    pub fn max_gas_fee(&self) -> u128 {
        self.covered(self.gas_base_fee)
    }

    fn covered(&self, base_fee: u128) -> u128 {
        if self.promise {
            (0..PROMISE_HEADERS).fold(base_fee, |fee, _| most_after(fee))
        } else {
            base_fee.saturating_mul(BASE_FEE_MARGIN)
        }
    }
}

/// What an envelope has in common with the one that it replaces: of envelopes with one fee nonce and one expiry the chain
/// accepts one at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlaceOf {
    /// The fee nonce to be used again.
    pub fee_nonce: u64,
    /// The number of the expiry.
    pub expiry: u64,
}

/// The fees that go into the header, in wei.
#[derive(Default)]
struct Fees {
    max_fee: u128,
    priority_fee: u128,
    max_gas_fee: u128,
}

/// Makes envelopes that `payer` pays for.
pub struct EnvelopeMaker<'a> {
    /// The chain's settings, the same for every party.
    pub chain: &'a ChainConfig,
    /// The committee the envelope is encrypted to.
    pub committee: &'a CommitteeKey,
    /// The key of the account that pays.
    pub payer: &'a SigningKey,
}

impl EnvelopeMaker<'_> {
    /// Encrypts transactions in this order into one envelope.
    ///
    /// Cost: one encryption (two fixed-base exponentiations) and one signature.
    ///
    /// # Errors
    /// When the transactions do not fit the largest bucket, or encryption fails.
    pub fn of_transactions(
        &self,
        transactions: &[SignedTransaction],
        offer: &Offer,
    ) -> Result<Envelope, BuildError> {
        self.of_transactions_in_place_of(transactions, offer, None)
    }

    /// The same, in the place of another envelope of theirs.
    ///
    /// # Errors
    /// As [`EnvelopeMaker::of_transactions`].
    pub fn of_transactions_in_place_of(
        &self,
        transactions: &[SignedTransaction],
        offer: &Offer,
        other: Option<InPlaceOf>,
    ) -> Result<Envelope, BuildError> {
        let bundle = Bundle::of_transactions(transactions.iter().map(|transaction| transaction.raw.to_vec()));
        // Saturating: the sequencer refuses a limit above a block's, which says it better than an overflow.
        let gas_limit =
            transactions.iter().fold(0u64, |sum, transaction| sum.saturating_add(transaction.gas_limit));
        self.made(&bundle, gas_limit, offer, other)
    }

    /// Encrypts any bundle.
    ///
    /// # Errors
    /// As [`EnvelopeMaker::of_transactions`].
    pub fn of_bundle(&self, bundle: &Bundle, gas_limit: u64, offer: &Offer) -> Result<Envelope, BuildError> {
        self.made(bundle, gas_limit, offer, None)
    }

    fn made(
        &self,
        bundle: &Bundle,
        gas_limit: u64,
        offer: &Offer,
        in_place_of: Option<InPlaceOf>,
    ) -> Result<Envelope, BuildError> {
        let common = in_place_of.unwrap_or_else(|| InPlaceOf {
            fee_nonce: random(),
            expiry: offer.expiry(self.committee.epoch.last),
        });
        let fees = Fees {
            max_fee: offer.max_fee(),
            priority_fee: offer.priority_fee,
            max_gas_fee: offer.max_gas_fee(),
        };
        self.sealed(bundle, gas_limit, fees, common, offer.generation)
    }

    /// Encrypts transactions for the forced queue: valid to the end of the epoch, because nobody knows which batch will
    /// take it, and as long as the chain stays in this generation. Whoever enqueues it has paid, so the offered fee is
    /// never taken.
    ///
    /// # Errors
    /// As [`EnvelopeMaker::of_transactions`].
    pub fn forced(
        &self,
        transactions: &[SignedTransaction],
        generation: u16,
    ) -> Result<Envelope, BuildError> {
        let bundle = Bundle::of_transactions(transactions.iter().map(|transaction| transaction.raw.to_vec()));
        let gas_limit =
            transactions.iter().fold(0u64, |sum, transaction| sum.saturating_add(transaction.gas_limit));
        let alone = InPlaceOf { fee_nonce: random(), expiry: self.committee.epoch.last };
        self.sealed(&bundle, gas_limit, Fees::default(), alone, generation)
    }

    fn sealed(
        &self,
        bundle: &Bundle,
        gas_limit: u64,
        fees: Fees,
        InPlaceOf { fee_nonce, expiry }: InPlaceOf,
        generation: u16,
    ) -> Result<Envelope, BuildError> {
        let mut rng = rng();
        let fields = EnvelopeFields {
            chain_id: self.chain.chain_id,
            deployment: self.chain.deployment,
            epoch: self.committee.epoch.epoch,
            fee_nonce,
            max_fee: fees.max_fee,
            priority_fee: fees.priority_fee,
            max_gas_fee: fees.max_gas_fee,
            gas_limit,
            expiry,
            generation,
        };
        let started = now();
        let envelope = build(&self.committee.key, &fields, bundle, self.payer, &mut rng)?;
        traces::envelope(&envelope.id().0, "encrypt", started);
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_for_a_promise_outlives_the_steepest_rise_until_it_is_kept() {
        let offer = |base_fee, promise| Offer {
            base_fee,
            gas_base_fee: base_fee,
            priority_fee: 3,
            head: 7,
            generation: 0,
            expiry_batches: 64,
            promise,
        };
        let fees = |offer: Offer| (offer.max_fee(), offer.max_gas_fee());
        assert_eq!(fees(offer(1, false)), (5, 2));
        // 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17, 20, 23, 26, 30.
        assert_eq!(fees(offer(1, true)), (33, 30));
        for base_fee in [1, 7, 1_000, 1_000_000] {
            // As many batches later as the sequencer's margin, and its head as many ahead of the user's node.
            let at_the_first_number = (0..8).fold(base_fee, |fee, _| most_after(fee));
            let (_, offered) = fees(offer(base_fee, true));
            assert!(offered >= at_the_first_number && offered >= 2 * base_fee, "{base_fee}: {offered}");
        }
        assert_eq!(fees(offer(u128::MAX, true)), (u128::MAX, u128::MAX));
    }
}
