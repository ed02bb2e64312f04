//! The paper-shaped code on the same batch, called directly: no conversions on the clock but its own.

use anyhow::{Context, Result, ensure};
use blindfold_reference::{
    Ciphertext, CrossTerms, Encrypted, Headers, Prepared, Reference, Weight, randomness_hint, release_share,
    verify_proof, verify_share,
};
use blindfold_runtime::random;

use super::Contender;
use super::fixture::{Fixture, Made};
use super::operation::{Operation, Sample, sample};

/// The contender; the batch comes with [`Contender::prepare`].
#[derive(Default)]
pub(super) struct Peer(Option<Loaded>);

/// One batch in the reference's terms.
struct Loaded {
    reference: Reference,
    prepared: Prepared,
    headers: Vec<[u8; 48]>,
    /// Decoded at admission, as the article's verifier has them.
    decoded: Headers,
    encrypted: Vec<Encrypted>,
    /// σ_1^i.
    shares: Vec<[u8; 32]>,
    /// v_j^i by member.
    verification_keys: Vec<Vec<[u8; 96]>>,
    randomness: Vec<[u8; 32]>,
    targets: Vec<[u8; 576]>,
    weights: Vec<Weight>,
    cross: CrossTerms,
}

impl Loaded {
    fn new(fixture: &Fixture) -> Result<Self> {
        let parameters = fixture.public();
        let max_batch = parameters.max_batch();
        let reference = Reference::from_bytes(max_batch, |i| parameters.h(i), &fixture.ek.to_bytes())?;
        let prepared = reference.prepare(fixture.batch());
        let headers: Vec<[u8; 48]> = fixture.made.iter().map(|made| made.ciphertext.c).collect();
        let cross = reference.cross_terms(&prepared, &headers)?;
        let key = fixture.member.encode();
        let shares = key.get(key.len() - 32 * max_batch..).context("a member key ends with its shares")?;
        let keys_of = |member: u16| {
            let keys = (1..=max_batch).map(|i| parameters.verification_key(member, i));
            keys.collect::<Option<Vec<_>>>().context("a member has verification keys")
        };
        Ok(Self {
            prepared,
            decoded: Headers::decode(&headers)?,
            encrypted: fixture.made.iter().map(encrypted).collect(),
            shares: shares.chunks_exact(32).map(<[u8; 32]>::try_from).collect::<Result<_, _>>()?,
            verification_keys: fixture
                .shares
                .iter()
                .map(|(member, _)| keys_of(*member))
                .collect::<Result<_>>()?,
            randomness: fixture
                .made
                .iter()
                .map(|made| randomness_hint(&made.ad, &made.message, made.key.as_bytes()))
                .collect(),
            targets: reference.unblind(&cross, &fixture.release.to_bytes())?,
            weights: headers.iter().map(|_| random()).collect(),
            headers,
            cross,
            reference,
        })
    }

    /// Each of `shares` by itself.
    fn verify_shares(&self, shares: &[(u16, [u8; 48])]) -> Result<Sample> {
        sample(
            || {
                let each = shares.iter().zip(&self.verification_keys);
                each.map(|((_, share), keys)| Ok(verify_share(keys, &self.headers, share)?)).collect()
            },
            |right: &Vec<bool>| {
                ensure!(right.iter().all(|right| *right), "the reference refuses a right share");
                Ok(())
            },
        )
    }

    fn encrypt(&self, fixture: &Fixture) -> Result<Sample> {
        let mut rho = [1; 32];
        rho[0] = 0; // below r
        sample(
            || {
                let encrypt =
                    |made: &Made| self.reference.encrypt(&made.ad, &made.message, made.key.as_bytes(), &rho);
                Ok(fixture.made.iter().map(encrypt).collect::<Result<Vec<_>, _>>()?)
            },
            |encrypted| {
                let same = encrypted.iter().zip(&self.encrypted).all(|(a, b)| a.ciphertext == b.ciphertext);
                ensure!(same, "the reference encrypts to something else");
                Ok(())
            },
        )
    }
}

fn encrypted(made: &Made) -> Encrypted {
    let blindfold_bte::Ciphertext { c, d, e } = made.ciphertext.clone();
    Encrypted { ciphertext: Ciphertext { c, d, e }, r: made.proof.r, s: made.proof.s }
}

impl Contender for Peer {
    fn name(&self) -> &str {
        "reference"
    }

    fn threads(&self) -> usize {
        1
    }

    fn is_peer(&self) -> bool {
        true
    }

    fn prepare(&mut self, fixture: &Fixture) -> Result<()> {
        self.0 = Some(Loaded::new(fixture)?);
        Ok(())
    }

    fn forget(&mut self) {
        self.0 = None;
    }

    fn run(&mut self, operation: Operation, fixture: &Fixture) -> Result<Option<Sample>> {
        let peer = self.0.as_ref().context("the peer is prepared before it runs")?;
        let reference = &peer.reference;
        let made = || fixture.made.iter().zip(&peer.encrypted);
        let messages = |messages: &Vec<Vec<u8>>| {
            fixture.check_messages(messages.iter().map(|message| Some(message.as_slice())))
        };
        let taken = match operation {
            Operation::Predecrypt => sample(
                || Ok(reference.cross_terms(&peer.prepared, &peer.headers)?),
                |cross| {
                    ensure!(cross.to_bytes() == peer.cross.to_bytes(), "other cross-terms than before");
                    Ok(())
                },
            )?,
            Operation::Finalize => {
                let items: Vec<_> = made().map(|(made, own)| (&made.ad, &own.ciphertext)).collect();
                let pd = fixture.release.to_bytes();
                sample(
                    || Ok(reference.finalize(&peer.cross, &pd, &items)?),
                    |opened| {
                        let opened =
                            opened.iter().map(|opened| opened.as_ref().map(|o| o.message.as_slice()));
                        fixture.check_messages(opened)
                    },
                )?
            }
            Operation::VerifyHints => sample(
                || {
                    let open = made().map(|(made, own)| {
                        reference.verify_hint(&made.ad, &own.ciphertext, made.key.as_bytes())
                    });
                    Ok(open.collect::<Vec<_>>())
                },
                |opened| fixture.check_messages(opened.iter().map(Option::as_deref)),
            )?,
            Operation::RandomnessHints => {
                let items: Vec<_> = made()
                    .zip(&peer.randomness)
                    .map(|((made, own), hint)| (&made.ad, &own.ciphertext, hint))
                    .collect();
                sample(
                    || Ok(reference.verify_randomness_hints(&peer.decoded, &items, &peer.weights)?),
                    messages,
                )?
            }
            Operation::TargetHints => {
                let items: Vec<_> = made()
                    .zip(&peer.targets)
                    .map(|((made, own), hint)| (&made.ad, &own.ciphertext, hint))
                    .collect();
                sample(|| Ok(reference.verify_target_hints(&peer.decoded, &items, &peer.weights)?), messages)?
            }
            Operation::Encrypt => peer.encrypt(fixture)?,
            Operation::ReleaseShare => sample(
                || Ok(release_share(&peer.shares, &peer.headers)?),
                |share| fixture.check_share(share),
            )?,
            Operation::VerifyShare => peer.verify_shares(&fixture.shares[..1])?,
            Operation::InvalidShares => peer.verify_shares(&fixture.shares)?,
            Operation::VerifyProofs => sample(
                || {
                    let proofs = made().map(|(made, own)| verify_proof(&made.ad, own));
                    Ok(proofs.collect::<Result<Vec<bool>, _>>()?)
                },
                |right| {
                    ensure!(right.iter().all(|right| *right), "the reference refuses a right proof");
                    Ok(())
                },
            )?,
            Operation::Unblind => {
                let pd = fixture.release.to_bytes();
                sample(
                    || Ok(reference.unblind(&peer.cross, &pd)?),
                    |factors| {
                        ensure!(*factors == peer.targets, "other blinding factors than before");
                        Ok(())
                    },
                )?
            }
            Operation::Decrypt | Operation::Helper | Operation::HelperUnchecked => return Ok(None),
        };
        Ok(Some(taken))
    }
}
