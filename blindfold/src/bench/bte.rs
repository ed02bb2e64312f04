//! The scheme's operations, each checked before it is timed; two implementations are timed in turn, so that both see
//! the same machine.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use blindfold_bte::{
    Backend, Ciphertext, CiphertextPoint, EncryptionKey, HintItem, MemberKey, Opening, Parameters, Release,
    SessionKey, by_name, dealer,
};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::median;

/// Length of each message, in bytes: a transfer's envelope.
const MESSAGE_BYTES: usize = 300;
/// Operations of one ciphertext are timed over this many.
const SINGLE_SAMPLES: usize = 64;
/// Committee of the measured shares.
const MEMBERS: u16 = 4;
const THRESHOLD: u16 = 3;

/// Options of `blindfold bench bte`.
#[derive(Args, Debug)]
pub struct BteArgs {
    /// Ciphertexts in the batch; also B
    #[arg(long, default_value_t = 128)]
    batch: u32,
    /// Threads of the backend; the peer has one
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Which implementation
    #[arg(long, default_value = "auto")]
    backend: String,
    /// Time the paper-shaped code in the same run (feature `bench`)
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// Rounds of each; the medians are printed
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Peer {
    Reference,
}

/// Medians of one implementation.
#[derive(Clone, Debug, Default, Serialize)]
struct Figures {
    batch: u32,
    threads: usize,
    backend: String,
    predecrypt_ms: f64,
    finalize_ms: f64,
    encrypt_us: f64,
    verify_hint_us: f64,
    release_ms: f64,
    verify_share_ms: f64,
}

#[derive(Serialize)]
struct Ratio {
    predecrypt: f64,
    finalize: f64,
    helper: f64,
    encrypt: f64,
    verify_hint: f64,
    release: f64,
    verify_share: f64,
}

#[derive(Serialize)]
struct Output {
    #[serde(flatten)]
    own: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<Ratio>,
}

/// One batch with everything needed to open it.
struct Fixture {
    parameters: Parameters,
    key: EncryptionKey,
    member: MemberKey,
    ads: Vec<[u8; 32]>,
    ciphertexts: Vec<Ciphertext>,
    keys: Vec<SessionKey>,
    points: Vec<CiphertextPoint>,
    share: [u8; 48],
    release: Release,
}

/// Samples of one implementation, in milliseconds or microseconds as [`Figures`] names them.
#[derive(Default)]
struct Samples {
    predecrypt: Vec<f64>,
    finalize: Vec<f64>,
    encrypt: Vec<f64>,
    verify_hint: Vec<f64>,
    release: Vec<f64>,
    verify_share: Vec<f64>,
}

impl Samples {
    fn medians(self, batch: u32, threads: usize, backend: &str) -> Figures {
        Figures {
            batch,
            threads,
            backend: backend.to_owned(),
            predecrypt_ms: median(self.predecrypt),
            finalize_ms: median(self.finalize),
            encrypt_us: median(self.encrypt),
            verify_hint_us: median(self.verify_hint),
            release_ms: median(self.release),
            verify_share_ms: median(self.verify_share),
        }
    }
}

fn ms<T>(samples: &mut Vec<f64>, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    samples.push(started.elapsed().as_secs_f64() * 1e3);
    result
}

fn us_each<T>(samples: &mut Vec<f64>, count: usize, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    samples.push(started.elapsed().as_secs_f64() * 1e6 / count.max(1) as f64);
    result
}

impl Fixture {
    fn new(batch: u32) -> Result<Self> {
        let mut rng = rand::rng();
        let (parameters, members) = dealer::deal(batch, MEMBERS, THRESHOLD, &mut rng)?;
        let key = parameters.encryption_key();
        let (mut ads, mut ciphertexts, mut keys, mut points) = (vec![], vec![], vec![], vec![]);
        for _ in 0..batch {
            let ad: [u8; 32] = rand::random();
            let message: Vec<u8> = (0..MESSAGE_BYTES).map(|_| rand::random()).collect();
            let (ciphertext, _, session_key) = key.encrypt(&ad, &message, b"benchmark", &mut rng)?;
            points.push(CiphertextPoint::from_bytes(&ciphertext.c)?);
            ads.push(ad);
            ciphertexts.push(ciphertext);
            keys.push(session_key);
        }
        let shares = members
            .iter()
            .take(usize::from(THRESHOLD))
            .map(|member| Ok((member.index(), member.release_share(&points)?)))
            .collect::<Result<Vec<_>>>()?;
        let release = parameters.combine(&shares)?;
        let share = shares.first().context("a share")?.1;
        let member = members.into_iter().next().context("a member")?;
        Ok(Self { parameters, key, member, ads, ciphertexts, keys, points, share, release })
    }

    fn items(&self) -> Vec<(&[u8; 32], &Ciphertext)> {
        self.ads.iter().zip(&self.ciphertexts).collect()
    }

    /// One round of the production code. Every result is checked.
    fn round(&self, backend: &dyn Backend, samples: &mut Samples) -> Result<()> {
        let mut rng = rand::rng();
        let predecrypted =
            ms(&mut samples.predecrypt, || backend.predecrypt(&self.parameters, &self.points))?;
        let items = self.items();
        let openings = ms(&mut samples.finalize, || {
            backend.finalize(&self.parameters, &predecrypted, &self.release, &items)
        })?;
        for (opening, key) in openings.iter().zip(&self.keys) {
            let right = matches!(opening, Opening::WellFormed { key: found, .. } if found.as_bytes() == key.as_bytes());
            ensure!(right, "the backend opened a ciphertext wrongly");
        }
        let message = [7u8; MESSAGE_BYTES];
        us_each(&mut samples.encrypt, SINGLE_SAMPLES, || {
            for ad in self.ads.iter().cycle().take(SINGLE_SAMPLES) {
                std::hint::black_box(self.key.encrypt(ad, &message, b"benchmark", &mut rng).is_ok());
            }
        });
        let hints: Vec<HintItem<'_>> =
            items.iter().zip(&self.keys).map(|((ad, ciphertext), key)| (*ad, *ciphertext, key)).collect();
        let opened = us_each(&mut samples.verify_hint, hints.len(), || backend.open_hints(&self.key, &hints));
        ensure!(opened.iter().all(Result::is_ok), "the backend refused a right hint");
        let share = ms(&mut samples.release, || backend.release_share(&self.member, &self.points))?;
        ensure!(share == self.share, "the backend computed a wrong share");
        ms(&mut samples.verify_share, || {
            self.parameters.verify_share(&mut rng, self.member.index(), &self.points, &self.share)
        })?;
        Ok(())
    }
}

#[cfg(feature = "bench")]
mod peer {
    use blindfold_reference::{
        Ciphertext as PeerCiphertext, Prepared, Reference, release_share, verify_share,
    };

    use super::*;

    /// The paper-shaped code on the same batch.
    pub struct PeerFixture {
        reference: Reference,
        prepared: Prepared,
        headers: Vec<[u8; 48]>,
        ciphertexts: Vec<PeerCiphertext>,
        shares: Vec<[u8; 32]>,
        verification_keys: Vec<[u8; 96]>,
    }

    impl PeerFixture {
        pub fn new(fixture: &Fixture) -> Result<Self> {
            let max_batch = fixture.parameters.max_batch();
            let ek = fixture.key.to_bytes();
            let reference = Reference::from_bytes(max_batch, |i| fixture.parameters.h(i), &ek)?;
            let encoded = fixture.member.encode();
            let shares = &encoded[encoded.len() - 32 * max_batch..];
            let member = fixture.member.index();
            Ok(Self {
                prepared: reference.prepare(fixture.points.len()),
                headers: fixture.ciphertexts.iter().map(|ciphertext| ciphertext.c).collect(),
                ciphertexts: fixture
                    .ciphertexts
                    .iter()
                    .map(|ciphertext| PeerCiphertext {
                        c: ciphertext.c,
                        d: ciphertext.d,
                        e: ciphertext.e.clone(),
                    })
                    .collect(),
                shares: shares.chunks_exact(32).map(|share| share.try_into()).collect::<Result<_, _>>()?,
                verification_keys: (1..=max_batch)
                    .map(|i| fixture.parameters.verification_key(member, i).context("a verification key"))
                    .collect::<Result<_>>()?,
                reference,
            })
        }

        pub fn round(&self, fixture: &Fixture, samples: &mut Samples) -> Result<()> {
            let cross =
                ms(&mut samples.predecrypt, || self.reference.cross_terms(&self.prepared, &self.headers))?;
            let items: Vec<(&[u8; 32], &PeerCiphertext)> =
                fixture.ads.iter().zip(&self.ciphertexts).collect();
            let pd = fixture.release.to_bytes();
            let opened = ms(&mut samples.finalize, || self.reference.finalize(&cross, &pd, &items))?;
            for (opened, key) in opened.iter().zip(&fixture.keys) {
                let right = opened.as_ref().is_some_and(|opened| &opened.key == key.as_bytes());
                ensure!(right, "the reference opened a ciphertext wrongly");
            }
            let message = [7u8; MESSAGE_BYTES];
            let mut rho = [1u8; 32];
            rho[0] = 0;
            us_each(&mut samples.encrypt, SINGLE_SAMPLES, || {
                for ad in fixture.ads.iter().cycle().take(SINGLE_SAMPLES) {
                    std::hint::black_box(self.reference.encrypt(ad, &message, &[3; 16], &rho).is_ok());
                }
            });
            us_each(&mut samples.verify_hint, items.len(), || {
                for ((ad, ciphertext), key) in items.iter().zip(&fixture.keys) {
                    std::hint::black_box(
                        self.reference.verify_hint(ad, ciphertext, key.as_bytes()).is_some(),
                    );
                }
            });
            let share = ms(&mut samples.release, || release_share(&self.shares, &self.headers))?;
            ensure!(share == fixture.share, "the reference computed another share");
            let right = ms(&mut samples.verify_share, || {
                verify_share(&self.verification_keys, &self.headers, &fixture.share)
            })?;
            ensure!(right, "the reference refuses a right share");
            Ok(())
        }
    }
}

/// Measures and prints.
///
/// # Errors
/// A wrong result, or options that cannot be measured.
pub fn run(args: &BteArgs) -> Result<()> {
    let backend = by_name(&args.backend, args.threads)?;
    eprintln!("dealing B = {} and encrypting the batch", args.batch);
    let fixture = Fixture::new(args.batch)?;
    backend.prepare(&fixture.parameters, fixture.points.len())?;
    let (mut own, mut peer) = (Samples::default(), Samples::default());
    let mut peer_round = peer_round(args.peer, &fixture)?;
    for round in 1..=args.rounds.max(1) {
        eprintln!("round {round} of {}", args.rounds.max(1));
        fixture.round(&*backend, &mut own)?;
        peer_round(&mut peer)?;
    }
    drop(peer_round);
    let own = own.medians(args.batch, args.threads, backend.name());
    let peer = args.peer.map(|_| peer.medians(args.batch, 1, "reference"));
    let ratio = peer.as_ref().map(|peer| ratio(&own, peer));
    print(&Output { own, peer, ratio }, args.json)
}

/// A round of the peer, if there is one.
type PeerRound<'a> = Box<dyn FnMut(&mut Samples) -> Result<()> + 'a>;

#[cfg(feature = "bench")]
fn peer_round(peer: Option<Peer>, fixture: &Fixture) -> Result<PeerRound<'_>> {
    match peer {
        None => Ok(Box::new(|_| Ok(()))),
        Some(Peer::Reference) => {
            let reference = peer::PeerFixture::new(fixture)?;
            Ok(Box::new(move |samples| reference.round(fixture, samples)))
        }
    }
}

#[cfg(not(feature = "bench"))]
fn peer_round(peer: Option<Peer>, _fixture: &Fixture) -> Result<PeerRound<'_>> {
    match peer {
        None => Ok(Box::new(|_| Ok(()))),
        Some(Peer::Reference) => anyhow::bail!("this binary has no peer: build it with `--features bench`"),
    }
}

/// How many times faster the production code is.
fn ratio(own: &Figures, peer: &Figures) -> Ratio {
    Ratio {
        predecrypt: peer.predecrypt_ms / own.predecrypt_ms,
        finalize: peer.finalize_ms / own.finalize_ms,
        helper: (peer.predecrypt_ms + peer.finalize_ms) / (own.predecrypt_ms + own.finalize_ms),
        encrypt: peer.encrypt_us / own.encrypt_us,
        verify_hint: peer.verify_hint_us / own.verify_hint_us,
        release: peer.release_ms / own.release_ms,
        verify_share: peer.verify_share_ms / own.verify_share_ms,
    }
}

fn print(output: &Output, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(output)?);
        return Ok(());
    }
    for figures in std::iter::once(&output.own).chain(&output.peer) {
        println!(
            "{} batch {} threads {}: pre-decrypt {:.1} ms, finalize {:.1} ms, encrypt {:.0} µs, verify hint {:.1} µs, \
             release {:.2} ms, verify share {:.2} ms",
            figures.backend,
            figures.batch,
            figures.threads,
            figures.predecrypt_ms,
            figures.finalize_ms,
            figures.encrypt_us,
            figures.verify_hint_us,
            figures.release_ms,
            figures.verify_share_ms
        );
    }
    if let Some(ratio) = &output.ratio {
        println!(
            "ratio: helper {:.2} (pre-decrypt {:.2}, finalize {:.2}), encrypt {:.2}, verify hint {:.2}, release {:.2}, \
             verify share {:.2}",
            ratio.helper,
            ratio.predecrypt,
            ratio.finalize,
            ratio.encrypt,
            ratio.verify_hint,
            ratio.release,
            ratio.verify_share
        );
    }
    Ok(())
}
