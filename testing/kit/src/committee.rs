//! A committee, and what its members make of a batch.

use std::sync::{Arc, OnceLock};

use blindfold_bte::{
    CiphertextPoint, EncryptionKey, MemberKey, Opening, Parameters,
    bls::{PublicKey, SecretKey},
    dealer, verify_proof,
};
use blindfold_chain::{EpochParameters, ParameterSet};
use blindfold_protocol::{
    Acknowledgement, B256, BatchHeader, BatchHints, Canonical, Certificate, CertifiedBatch, Deployment,
    Envelope, Epoch, HintEntry, Release, SealedBatch, certificate,
    validity::{Verdict, sub_batches},
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use crate::{EPOCH, LAST_NUMBER, MAX_BATCH, MEMBERS, THRESHOLD, backend, chain_config, sequencer_key};

/// Dealt keys. Members count from 1, lists from 0.
pub struct Committee {
    /// What everybody knows.
    pub parameters: Arc<Parameters>,
    /// What envelopes are encrypted to.
    pub encryption_key: EncryptionKey,
    /// The members' shares.
    pub keys: Vec<MemberKey>,
    /// What members sign acknowledgements with: the same in every committee.
    pub bls: Vec<SecretKey>,
    /// Of those, the public keys.
    pub public: Vec<PublicKey>,
    max_batch: u32,
    threshold: u16,
}

impl Committee {
    /// Deals as the dealer of a deployment does, from a seed.
    pub fn deal(members: u16, threshold: u16, max_batch: u32, seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (parameters, keys) =
            dealer::deal(max_batch, members, threshold, &mut rng).expect("a valid shape");
        let secret = |member: u16| SecretKey::generate(&[member as u8; 32]).expect("32 bytes");
        let bls: Vec<SecretKey> = (1..=members).map(secret).collect();
        let public = bls.iter().map(SecretKey::public_key).collect();
        let (encryption_key, parameters) = (parameters.encryption_key(), Arc::new(parameters));
        Self { parameters, encryption_key, keys, bls, public, max_batch, threshold }
    }

    /// An epoch of this committee, from one number to another.
    pub fn epoch(&self, epoch: u64, first: u64, last: u64) -> Epoch {
        Epoch {
            epoch,
            first,
            last,
            counts_from: 0,
            continues: 0,
            parameters_hash: B256::from(self.parameters.hash()),
            encryption_key_hash: B256::from(self.encryption_key.hash()),
            max_batch: self.max_batch,
            threshold: self.threshold,
            members: self.public.clone(),
        }
    }

    /// This committee's parameters for each of its epochs.
    pub fn parameter_set(&self, epochs: &[Epoch]) -> Arc<ParameterSet> {
        let entry = |epoch: &Epoch| {
            let parameters = Arc::clone(&self.parameters);
            EpochParameters::new(epoch.clone(), parameters, "parameters.bin".to_owned()).expect("they match")
        };
        Arc::new(ParameterSet::new(epochs.iter().map(entry).collect()).expect("in order"))
    }

    /// What a member says of a header.
    pub fn acknowledge(&self, chain: &Deployment, header: &BatchHeader, member: u16) -> Acknowledgement {
        let (key, hash) = (&self.bls[usize::from(member) - 1], header.hash());
        certificate::sign_acknowledgement(key, chain, header.epoch, header.number, hash, member)
    }

    /// A certificate by these members.
    pub fn certify(&self, chain: &Deployment, header: &BatchHeader, members: &[u16]) -> Certificate {
        let acknowledge = |member: &u16| self.acknowledge(chain, header, *member);
        let acknowledgements: Vec<Acknowledgement> = members.iter().map(acknowledge).collect();
        let epoch = self.epoch(header.epoch, 1, u64::MAX);
        certificate::aggregate(&epoch, &acknowledgements).expect("enough members")
    }

    fn shares<T>(&self, members: [u16; 3], share: impl Fn(&MemberKey) -> T) -> [(u16, T); 3] {
        members.map(|member| (member, share(&self.keys[usize::from(member) - 1])))
    }
}

/// The committee of most tests.
pub fn committee() -> &'static Committee {
    static COMMITTEE: OnceLock<Committee> = OnceLock::new();
    COMMITTEE.get_or_init(|| Committee::deal(MEMBERS, THRESHOLD, MAX_BATCH, 7))
}

/// Its only epoch, unless a test makes others.
pub fn epoch() -> Epoch {
    committee().epoch(EPOCH, 1, LAST_NUMBER)
}

/// The parameters of [`epoch`].
pub fn parameter_set() -> Arc<ParameterSet> {
    committee().parameter_set(&[epoch()])
}

/// What a member of [`committee()`] says of a header.
pub fn acknowledge(batch: &SealedBatch, member: u16) -> Acknowledgement {
    committee().acknowledge(&chain_config().deployment, &batch.header, member)
}

/// A certificate by these members.
pub fn certify(batch: &SealedBatch, members: &[u16]) -> Certificate {
    committee().certify(&chain_config().deployment, &batch.header, members)
}

/// A certificate by members 1, 2 and 4.
pub fn certificate_of(batch: &SealedBatch) -> Certificate {
    certify(batch, &[1, 2, 4])
}

/// A batch with [`certificate_of`] it.
pub fn certified(batch: &SealedBatch) -> CertifiedBatch {
    CertifiedBatch { sealed: batch.clone(), certificate: certificate_of(batch) }
}

/// The same batch with another header, signed as well: a second header for its number.
pub fn resigned(batch: &SealedBatch, change: impl FnOnce(&mut BatchHeader)) -> SealedBatch {
    let mut changed = batch.clone();
    change(&mut changed.header);
    changed.signature = changed.header.sign(&sequencer_key(), &chain_config().deployment).signature;
    changed
}

/// The points of each sub-batch, with item index and envelope.
pub fn points_of(batch: &SealedBatch, verdicts: &[Verdict]) -> Vec<Vec<(u32, Envelope, CiphertextPoint)>> {
    let open = |index: u32| {
        let envelope = Envelope::decode(&batch.items[index as usize]).expect("accepted");
        let ad = envelope.header.hash().0;
        let point = verify_proof(&ad, &envelope.ciphertext, &envelope.proof).expect("accepted");
        (index, envelope, point)
    };
    let sub_batches = sub_batches(verdicts, MAX_BATCH).into_iter();
    sub_batches.map(|indices| indices.into_iter().map(open).collect()).collect()
}

/// What an honest hint publisher publishes of a batch, by the scheme itself: shares of members 1, 2 and 4.
pub fn open_batch(batch: &SealedBatch, verdicts: &[Verdict]) -> (Release, BatchHints) {
    let parameters = &committee().parameters;
    let (number, header_hash) = (batch.header.number, batch.header.hash());
    let mut entries = vec![HintEntry::Skipped; batch.items.len()];
    let mut pds = Vec::new();
    for opened in points_of(batch, verdicts) {
        let points: Vec<CiphertextPoint> = opened.iter().map(|(_, _, point)| *point).collect();
        let shares = committee().shares([1, 2, 4], |key| key.release_share(&points).expect("a batch"));
        let release = parameters.combine(&shares).expect("three shares");
        let prepared = backend().predecrypt(parameters, &points).expect("a batch");
        let ads: Vec<[u8; 32]> = opened.iter().map(|(_, envelope, _)| envelope.header.hash().0).collect();
        let items: Vec<_> =
            ads.iter().zip(&opened).map(|(ad, (_, envelope, _))| (ad, &envelope.ciphertext)).collect();
        let openings = backend().finalize(parameters, &prepared, &release, &items).expect("it fits");
        for ((index, _, point), opening) in opened.iter().zip(openings) {
            entries[*index as usize] = match opening {
                Opening::WellFormed { key, .. } => HintEntry::Key(*key.as_bytes()),
                Opening::Malformed => HintEntry::Malformed(singleton(point)),
            };
        }
        pds.push(release.to_bytes());
    }
    (Release { number, header_hash, pds }, BatchHints { number, header_hash, entries, blindings: vec![] })
}

/// The singleton release of one ciphertext, whether malformed or not.
pub fn singleton(point: &CiphertextPoint) -> [u8; 48] {
    let shares = committee().shares([1, 2, 3], |key| key.singleton_share(point));
    committee().parameters.combine_singletons(&shares).expect("three shares")
}
