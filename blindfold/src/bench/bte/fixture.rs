//! One batch with everything that the operations need, and what their results must be.

use anyhow::{Context, Result, ensure};
use blindfold_bte::{
    Backend, Ciphertext, CiphertextPoint, EncryptionKey, HintItem, MemberKey, Opening, Parameters, Proof,
    ProofItem, Release, SessionKey, dealer,
};
use blindfold_runtime::{now, random, rng};

/// Length of each message, in bytes: a transfer's envelope.
pub(super) const MESSAGE_BYTES: usize = 300;

/// One ciphertext with all about it.
pub(super) struct Made {
    pub(super) ad: [u8; 32],
    pub(super) message: Vec<u8>,
    pub(super) ciphertext: Ciphertext,
    pub(super) proof: Proof,
    pub(super) key: SessionKey,
}

/// A committee whose parameters are as large as the batch.
pub(super) struct Fixture {
    parameters: Parameters,
    /// The points that batches of this size are convolved with.
    table: Option<Vec<u8>>,
    pub(super) ek: EncryptionKey,
    pub(super) member: MemberKey,
    pub(super) made: Vec<Made>,
    pub(super) points: Vec<CiphertextPoint>,
    /// Of all members.
    pub(super) shares: Vec<(u16, [u8; 48])>,
    pub(super) release: Release,
}

/// The fewest of `members` without whom no two certificates conflict, with f = ⌊(n − 1)/3⌋ dishonest: t > (n + f)/2.
pub(super) fn threshold(members: u16) -> u16 {
    let dishonest = members.saturating_sub(1) / 3;
    (members + dishonest) / 2 + 1
}

impl Fixture {
    /// Deals, encrypts and releases on all cores, through `backend`; says on standard error how long it took.
    pub(super) fn new(batch: u32, members: u16, backend: &dyn Backend) -> Result<Self> {
        eprintln!("B = {batch}: dealing to {members} members and encrypting");
        let started = now();
        let mut rng = rng();
        let (parameters, keys) = dealer::deal(batch, members, threshold(members), &mut rng)?;
        let dealt = started.elapsed();
        let ek = parameters.encryption_key();
        let mut made = Vec::with_capacity(batch as usize);
        for _ in 0..batch {
            let ad: [u8; 32] = random();
            let message: Vec<u8> = (0..MESSAGE_BYTES).map(|_| random()).collect();
            let (ciphertext, proof, key) = ek.encrypt(&ad, &message, b"benchmark", &mut rng)?;
            made.push(Made { ad, message, ciphertext, proof, key });
        }
        let points =
            made.iter().map(|made| made.ciphertext.header()).collect::<Result<Vec<CiphertextPoint>, _>>()?;
        let shares = keys
            .iter()
            .map(|key| Ok((key.index(), backend.release_share(key, &points)?)))
            .collect::<Result<Vec<_>>>()?;
        let release = parameters.combine(&shares)?;
        let worked = started.elapsed();
        let table = parameters.export_table(batch as usize);
        let member = keys.into_iter().next().context("a committee has a member")?;
        eprintln!(
            "B = {batch}: dealt in {:.1} s, encrypted and released in {:.1} s, transformed the key in {:.1} s",
            dealt.as_secs_f64(),
            (worked - dealt).as_secs_f64(),
            (started.elapsed() - worked).as_secs_f64()
        );
        Ok(Self { parameters, table, ek, member, made, points, shares, release })
    }

    /// The parameters with tables of their own, so that contenders do not share memory; the points are given.
    pub(super) fn parameters(&self, lines_max_bytes: usize) -> Result<Parameters> {
        let parameters = self.parameters.clone().with_memory_limit(lines_max_bytes);
        if let Some(table) = &self.table {
            parameters.import_table(table)?;
        }
        Ok(parameters)
    }

    /// The parameters as everyone knows them.
    #[cfg(feature = "bench")]
    pub(super) fn public(&self) -> &Parameters {
        &self.parameters
    }

    pub(super) fn batch(&self) -> usize {
        self.made.len()
    }

    pub(super) fn items(&self) -> Vec<(&[u8; 32], &Ciphertext)> {
        self.made.iter().map(|made| (&made.ad, &made.ciphertext)).collect()
    }

    pub(super) fn hints(&self) -> Vec<HintItem<'_>> {
        self.made.iter().map(|made| (&made.ad, &made.ciphertext, &made.key)).collect()
    }

    pub(super) fn proofs(&self) -> Vec<ProofItem<'_>> {
        self.made.iter().map(|made| (&made.ad, &made.ciphertext, &made.proof)).collect()
    }

    pub(super) fn check_openings(&self, openings: &[Opening]) -> Result<()> {
        let right = |(made, opening): (&Made, &Opening)| matches!(opening, Opening::WellFormed { key, message } if *key == made.key && *message == made.message);
        ensure!(
            openings.len() == self.batch() && self.made.iter().zip(openings).all(right),
            "a batch was opened wrongly"
        );
        Ok(())
    }

    pub(super) fn check_messages<'a>(&self, messages: impl Iterator<Item = Option<&'a [u8]>>) -> Result<()> {
        let right = messages
            .zip(&self.made)
            .filter(|(message, made)| message.is_some_and(|message| message == made.message))
            .count();
        ensure!(right == self.batch(), "a hint or an opening gave the wrong message");
        Ok(())
    }

    pub(super) fn check_share(&self, share: &[u8; 48]) -> Result<()> {
        let expected = self.shares.first().context("a share")?;
        ensure!(*share == expected.1, "a release share is wrong");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::threshold;

    #[test]
    fn thresholds_are_those_of_the_scheme() {
        assert_eq!([1, 4, 7, 10].map(threshold), [1, 3, 5, 7]);
    }
}
